"""The documents of commands that were asked about nothing, with ``--allow-empty``.

Whoever reads an answer by a machine gets a document of the format that was wanted, without entries; JSON has all keys
that its schema demands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any

from govtool.cli.shared.complete import formats_of
from govtool.cli.shared.formats import OutputFile, chosen
from govtool.cli.shared.ui import Ui

_ANSWERS = {
    "impact": "impact:ImpactAnswer",
    "path": "path:PathAnswer",
    "explain": "explain:ExplainAnswer",
    "classify": "suggestions:SuggestionsAnswer",
    "whatif_drop": "whatif:WhatIfAnswer",
    "whatif_rename": "whatif:WhatIfAnswer",
    "whatif_retype": "whatif:WhatIfAnswer",
    "whatif_mask": "whatif:WhatIfAnswer",
    "whatif_delete": "whatif:WhatIfAnswer",
    "whatif_several": "whatif:WhatIfAnswer",
    "report_html": "report:ReportAnswer",
    "export_graph": "report:ReportAnswer",
}
"""The answers of commands that fail before they have one; ``ls`` and ``classes`` show theirs first."""
_DOCUMENTS = {
    "dot": ("digraph lineage {", "}"),
    "mermaid": ("flowchart LR",),
    "graphml": (
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed"/></graphml>',
    ),
    "html": ('<!DOCTYPE html><html lang="en"><title>Lineage</title><p>Nothing is selected.</p></html>',),
    "svg": ('<?xml version="1.0" encoding="UTF-8"?>', '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'),
    "markdown": ("Nothing is selected.",),
}


def show_nothing(ui: Ui, function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Write an empty document to each output of a command.

    Args:
        ui: The terminal.
        function: The command.
        arguments: Its arguments; ``format`` and ``output`` stand among them or in one of its bundles.
    """
    place = _ANSWERS.get(function.__name__)
    if place is None:
        return
    module, _, name = place.partition(":")
    answer = getattr(import_module(f"govtool.answers.{module}"), name)
    for form, file in _outputs(function, arguments):
        if form == "json":
            lines = tuple(_json(answer, function.__name__, arguments))
        else:
            lines = tuple(_document(form, answer, function.__name__))
        if lines or file is not None:
            ui.write(lines, file)


def _json(answer: Any, command: str, arguments: Mapping[str, Any]) -> Iterable[str]:
    """The answer about nothing, of the version that was asked about."""
    from govtool.answers.envelope import envelope
    from govtool.api.opening import open as open_version
    from govtool.render.formats.envelope import json_lines

    places = {name: _argument(arguments, name) for name in ("store", "at", "branch")}
    version = open_version(places["store"], ref=places["at"], branch=places["branch"]).snapshot().version
    body = _BODIES[answer.schema](command, arguments)
    if "not_understood" in body.get("summary", ()):
        body["summary"]["not_understood"] = version.unclear
    return json_lines(envelope(answer.schema, {**version.header(), **body, "coverage": version.coverage.counts()}))


def _argument(arguments: Mapping[str, Any], name: str) -> Any:
    """An argument of a command, or of one of its bundles."""
    bundle = next((b for b in arguments.values() if is_dataclass(b) and hasattr(b, name)), None)
    return getattr(bundle, name) if bundle is not None else arguments.get(name)


def _impact(command: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    upstream = bool(arguments["upstream"])
    return {
        "subject": arguments["column"],
        "subject_kind": "selection",
        "direction": "up" if upstream else "down",
        "change": None if upstream else arguments["change"] or "logic",
        "columns": [],
        "summary": {"columns": 0, "datasets": 0, "no_path": 0, "not_understood": 0},
        "diagnostics": [],
    }


def _path(command: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"from": arguments["start"], "to": arguments["end"], "ways": [], "more": False, "diagnostics": []}


def _explain(command: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"subject": arguments["column"], "subject_kind": "selection", "subjects": [], "diagnostics": []}


def _whatif(command: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    action = command.removeprefix("whatif_")
    lists: dict[str, Any] = {name: [] for name in ("subjects", "columns", "datasets", "jobs", "reports", "unused")}
    return {
        "action": action,
        "to": arguments.get("to"),
        **lists,
        "policies": None,
        "summary": {"not_understood": 0},
    }


def _report(command: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    from govtool.report.drawing import drawing
    from govtool.report.model import LineageView

    empty = LineageView((), (), ())
    return {
        "title": arguments.get("title") or "Lineage",
        "selection": list(arguments.get("selector") or ()),
        "graph": empty.body(),
        "drawing": drawing(empty),
        **dict.fromkeys(("findings", "sources", "diff", "erasure")),
        "folders": [],
        "traces": [],
        "workflows": [],
    }


def _suggestions(command: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"suggestions": [], "classified": 0}


_BODIES: Mapping[str, Callable[[str, Mapping[str, Any]], dict[str, Any]]] = {
    "impact/1": _impact,
    "path/1": _path,
    "explain/1": _explain,
    "whatif/1": _whatif,
    "report/1": _report,
    "suggestions/1": _suggestions,
}
"""The keys of answers about nothing, by schema, without the version and its coverage."""


def _outputs(function: Callable[..., Any], arguments: Mapping[str, Any]) -> list[OutputFile]:
    supported = formats_of(function)
    bundle = next((b for b in arguments.values() if is_dataclass(b) and hasattr(b, "format")), None)
    if bundle is not None:
        return chosen(getattr(bundle, "format", None), getattr(bundle, "output", None), supported)
    output = arguments.get("output")
    if "format" in arguments:
        return chosen(arguments["format"], output, supported)
    return [OutputFile(supported[0], None if output is None or str(output) == "-" else output)]


def _document(form: str, answer: Any, command: str) -> Iterable[str]:
    """The lines of a document without entries; none of a table, beside which a note stands."""
    if form == "csv":
        from govtool.render.layout.table import to_csv

        return to_csv(_header(answer, command), ())
    return _DOCUMENTS.get(form, ())


def _header(answer: Any, command: str) -> tuple[str, ...]:
    if command == "export_graph":
        from govtool.render.graph_files import FIELDS

        return FIELDS
    fields: tuple[str, ...] = answer.fields
    return fields

"""The documents of commands that were asked about nothing, with ``--allow-empty``.

Whoever reads an answer by a machine gets a document of the format that was wanted, without entries. Of JSON that is
the envelope alone, since without a subject there is no answer to put into it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any

from govtool.cli.complete import formats_of
from govtool.cli.formats import OutputFile, chosen
from govtool.cli.ui import Ui

_ANSWERS = {
    "impact": "impact:ImpactAnswer",
    "path": "path:PathAnswer",
    "explain": "explain:ExplainAnswer",
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
        lines = tuple(_document(form, answer, function.__name__))
        if lines or file is not None:
            ui.write(lines, file)


def _outputs(function: Callable[..., Any], arguments: Mapping[str, Any]) -> list[OutputFile]:
    supported = formats_of(inspect.unwrap(function).__module__)
    bundle = next((b for b in arguments.values() if is_dataclass(b) and hasattr(b, "format")), None)
    if bundle is not None:
        return chosen(getattr(bundle, "format", None), getattr(bundle, "output", None), supported)
    output = arguments.get("output")
    if "format" in arguments:
        return chosen(arguments["format"], output, supported)
    return [OutputFile(supported[0], None if output is None or str(output) == "-" else output)]


def _document(form: str, answer: Any, command: str) -> Iterable[str]:
    """The lines of a document without entries; none of a table, beside which a note stands."""
    if form == "json":
        from govtool.answers.envelope import envelope
        from govtool.render.envelope import json_lines

        return json_lines(envelope(answer.schema, {}))
    if form == "csv":
        from govtool.render.table import to_csv

        return to_csv(_header(answer, command), ())
    return _DOCUMENTS.get(form, ())


def _header(answer: Any, command: str) -> tuple[str, ...]:
    if command == "export_graph":
        from govtool.render.graph_export import FIELDS

        return FIELDS
    fields: tuple[str, ...] = answer.fields
    return fields

"""What `lineage` and `ingest sql` have in common: their request, and how diagnostics are shown."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.app.sql import SourceText, SqlRequest
from govtool.cli.ui import Ui
from govtool.config import load_config
from govtool.errors import UnknownNameError, UsageError
from govtool.model import Diagnostic
from govtool.render.errors import diagnostic_lines
from govtool.render.table import Table
from govtool.render.text import count

if TYPE_CHECKING:
    from govtool.app.ingest import IngestResult

_SHOWN = 10
_RANK = {"error": 0, "warning": 1, "info": 2}


def build_request(
    paths: Sequence[str],
    *,
    dialect: str | None,
    schema: Sequence[Path] | None,
    default_catalog: str | None,
    default_schema: str | None,
    relation_from: str | None,
    var: Sequence[str] | None,
    namespace: str | None = None,
    source: str | None = None,
    catalog: str | None = None,
    explain: bool = False,
) -> SqlRequest:
    """Options over the defaults of ``govtool.toml``."""
    defaults = load_config(Path.cwd()).sql
    return SqlRequest(
        paths=tuple(paths),
        dialect=dialect or defaults.dialect or "",
        schema=tuple(schema) if schema else defaults.schema,
        default_catalog=default_catalog or defaults.default_catalog,
        default_schema=default_schema or defaults.default_schema,
        namespace=namespace or defaults.namespace,
        source=source or defaults.source,
        relation_from=relation_from or defaults.relation_from,
        variables={**defaults.variables, **dict(_variable(text) for text in var or ())},
        catalog=catalog,
        explain=explain,
    )


def _pair(text: str, form: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"not {form}: {text}", code="usage.arguments", location=option)
    return name, value


def _variable(text: str) -> tuple[str, object]:
    name, value = _pair(text, "NAME=VALUE", "--var")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def check_semantics(semantics: str) -> str:
    """Return the name of a reading of set operations, or raise UnknownNameError."""
    known = ("precise", "lineagex")
    if semantics not in known:
        raise UnknownNameError(
            f"no semantics {semantics}",
            code="usage.unknown-semantics",
            nearest=tuple(difflib.get_close_matches(semantics, known)),
            hint=f"one of {', '.join(known)}",
        )
    return semantics


def read_map(given: Sequence[str] | None) -> dict[str, str]:
    """``--map text=query,user=who`` as a mapping, from however many options."""
    pairs = [pair for text in given or () for pair in text.split(",") if pair.strip()]
    return {name.strip(): str(value) for name, value in (_pair(pair, "FIELD=NAME", "--map") for pair in pairs)}


def show_ingest(ui: Ui, result: IngestResult, *, explain_failures: bool, keep_literals: bool = True) -> None:
    """The outcome of an ingest: what cost most of the coverage, the failures if asked for, and the summary."""
    from govtool.render.commits import ingest_summary
    from govtool.render.coverage import breakdown, costs

    if explain_failures:
        from govtool.app.failures import failures
        from govtool.render.failures import explained

        ui.write(explained(failures(result.shortfalls, keep_literals=keep_literals)))
    if result.reasons:
        ui.table(breakdown(result.coverage))
        ui.write([""])
        ui.table(costs(result.reasons))
        ui.write([""])
    ui.table(Table(columns=(), rows=(), summary=ingest_summary(result)))


def show_diagnostics(ui: Ui, diagnostics: Sequence[Diagnostic], text: SourceText | None) -> None:
    """Write the worst diagnostics to stderr, each with its source line if there is a ``text``; count the rest.

    ``-v`` shows all of them, remarks included; ``--quiet`` only errors.
    """
    wanted = [d for d in diagnostics if ui.verbose or d.severity != "info"]
    if ui.quiet:
        wanted = [d for d in wanted if d.severity == "error"]
    wanted.sort(key=lambda d: _RANK.get(d.severity, 9))
    shown = wanted if ui.verbose else wanted[:_SHOWN]
    for diagnostic in shown:
        for line in diagnostic_lines(
            diagnostic, text.line(diagnostic) if text is not None else None, ui.remark_width()
        ):
            ui.remark(line)
    if len(wanted) > len(shown):
        rest = Counter(d.code for d in wanted[len(shown) :])
        kinds = ", ".join(f"{number} {code}" for code, number in rest.most_common())
        ui.note(f"… and {count(len(wanted) - len(shown), 'more diagnostic')}: {kinds} (all of them: -v)")

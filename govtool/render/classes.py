"""``govtool classes`` and ``govtool ls``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from govtool.render.answer import closing, heading, way
from govtool.render.layout.rows import ROW_FORMATS, data_lines, laid_out
from govtool.render.layout.table import Table, TableColumn, to_csv
from govtool.render.layout.text import count

if TYPE_CHECKING:
    from govtool.answers.classes import ClassesAnswer
    from govtool.answers.ls import ListAnswer, Listed
    from govtool.policy.classes.provenance_paths import Classed

FORMATS = ROW_FORMATS
_NAMED = 2
"""Classes that are named of those that a column may have."""


def _shown(form: str, table: Table) -> Table | Iterable[str]:
    return laid_out(form, table)


def classes(form: str, answer: ClassesAnswer) -> Table | Iterable[str]:
    """The classes of columns, and the ways by which they came."""
    if form in ("json", "jsonl"):
        return data_lines(form, answer, answer.items())
    if form == "csv":
        return to_csv(answer.fields, [(entry.column, *_cells(entry)) for entry in answer.entries])
    columns = len({entry.column for entry in answer.entries})
    more = f"{count(answer.truncated, 'more entry', 'more entries')} (--all)" if answer.truncated else ""
    return _shown(
        form,
        Table(
            columns=(
                TableColumn("column", style="bold"),
                TableColumn("class"),
                TableColumn("how"),
                TableColumn("declassified"),
                TableColumn("source"),
                TableColumn("way", style="dim"),
            ),
            rows=[row for _, rows in groupby(answer.entries, _came) for row in _folded(form, list(rows))],
            heading=heading(answer.version, "classes"),
            summary=closing(answer.version, count(columns, "column"), more),
            names=1,
        ),
    )


def _came(found: Classed) -> tuple[object, ...]:
    return found.column, found.mode, found.passed, found.source, found.steps


def _folded(form: str, alike: Sequence[Classed]) -> Iterator[tuple[str, ...]]:
    """Rows of classes that came to a column in the same way; one row where it is not known whether they did.

    A column of an opaque step may have every class: ``any of 14: gdpr, gdpr.birth …``; all are named but in a table.
    """
    if len(alike) == 1 or alike[0].mode != "unknown":
        yield from ((entry.column, *_cells(entry)) for entry in alike)
        return
    names = [name for entry in alike for name in entry.classes]
    first, _, *rest = alike[0].column, *_cells(alike[0])
    shown = names[:_NAMED] if form == "table" else names
    more = " …" if len(names) > len(shown) else ""
    yield (first, f"any of {len(names)}: {', '.join(shown)}{more}", *rest)


def _cells(found: Classed) -> tuple[str, str, str, str, str]:
    steps = way([step.label for step in found.steps]) or "classified"
    return ", ".join(found.classes), found.mode, ", ".join(found.passed), found.source, steps


def listing(form: str, answer: ListAnswer) -> Table | Iterable[str]:
    """Selected datasets and columns."""
    if form in ("json", "jsonl"):
        return data_lines(form, answer, answer.items())
    rows = [_listed(entry) for entry in answer.entries]
    if form == "csv":
        return to_csv(answer.fields, rows)
    has_places = any(entry.place for entry in answer.entries)
    more = f"{answer.truncated:,} more (--all)" if answer.truncated else ""
    return _shown(
        form,
        Table(
            columns=(
                TableColumn("name", style="bold"),
                TableColumn("kind"),
                TableColumn("type"),
                TableColumn("columns", justify="right"),
                *([TableColumn("from", style="dim")] if has_places else []),
            ),
            rows=rows if has_places else [row[:-1] for row in rows],
            summary=closing(answer.version, f"{len(answer.entries) + answer.truncated:,} selected", more),
        ),
    )


def _listed(entry: Listed) -> tuple[str, ...]:
    columns = "" if entry.kind == "column" else f"{entry.columns:,}"
    return entry.name, entry.kind, entry.type or "", columns, entry.place or ""

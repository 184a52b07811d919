"""``govtool classes`` and ``govtool ls``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from govtool.render.answer import GraphVersion, step_object
from govtool.render.envelope import compact, envelope, json_lines
from govtool.render.table import Table, TableColumn, markdown, plain, to_csv
from govtool.render.text import count

if TYPE_CHECKING:
    from govtool.policy.why import Classed

FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown")


class Listed(NamedTuple):
    """A column or dataset of a listing."""

    name: str
    kind: str
    """``column``, or the kind of the dataset."""
    type: str | None
    columns: int
    """Of a dataset; 1 for a column."""


def _shown(form: str, table: Table) -> Table | Iterable[str]:
    return table if form == "table" else (plain if form == "plain" else markdown)(table)


def classes(form: str, found: Sequence[Classed], version: GraphVersion, left: int) -> Table | Iterable[str]:
    """The classes of columns and why."""
    if form in ("json", "jsonl"):
        values: list[dict[str, object]] = [
            {
                "column": c.column,
                "classes": list(c.classes),
                "origin": c.origin,
                "mode": c.mode,
                "declassified": list(c.passed),
                "source": c.source,
                "steps": [step_object(step) for step in c.steps],
            }
            for c in found
        ]
        if form == "jsonl":
            return (compact(value) for value in values)
        body = {**version.header(), "columns": values, **({"truncated": left} if left else {})}
        return json_lines(envelope("classes/1", {**body, "coverage": version.coverage.counts()}))
    if form == "csv":
        header = ("column", "classes", "mode", "declassified", "source", "way")
        return to_csv(header, [(c.column, *_cells(c)) for c in found])
    columns = len({c.column for c in found})
    more = f"{count(left, 'more entry', 'more entries')} (--all)" if left else ""
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
            rows=[(c.column, *_cells(c)) for c in found],
            heading=version.heading("classes"),
            summary=version.closing(count(columns, "column"), more),
        ),
    )


def _cells(found: Classed) -> tuple[str, str, str, str, str]:
    hops = [s.label for s in found.steps]
    way = " → ".join(hops) if hops else "classified"
    return ", ".join(found.classes), found.mode, ", ".join(found.passed), found.source, way


def listing(form: str, found: Sequence[Listed], version: GraphVersion, left: int) -> Table | Iterable[str]:
    """Selected datasets and columns."""
    if form in ("json", "jsonl"):
        values: list[dict[str, object]] = [item._asdict() for item in found]
        if form == "jsonl":
            return (compact(value) for value in values)
        body = {**version.header(), "items": values, **({"truncated": left} if left else {})}
        return json_lines(envelope("ls/1", {**body, "coverage": version.coverage.counts()}))
    rows = [(i.name, i.kind, i.type or "", "" if i.kind == "column" else f"{i.columns:,}") for i in found]
    if form == "csv":
        return to_csv(("name", "kind", "type", "columns"), rows)
    more = f"{left:,} more (--all)" if left else ""
    return _shown(
        form,
        Table(
            columns=(
                TableColumn("name", style="bold"),
                TableColumn("kind"),
                TableColumn("type"),
                TableColumn("columns", justify="right"),
            ),
            rows=rows,
            summary=version.closing(f"{len(found) + left:,} selected", more),
        ),
    )

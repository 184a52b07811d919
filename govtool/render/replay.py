"""Replays as text: the rows of a result that are gone, changed and new."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from govtool.render.layout.rows import ROW_FORMATS, cell, rendered
from govtool.render.layout.table import Table, TableColumn
from govtool.render.layout.text import count

if TYPE_CHECKING:
    from govtool.answers.replay import ReplayReport
    from govtool.records.replay.answer import Row

FORMATS = ROW_FORMATS
_SIGNS = {"gone": "-", "changed": "~", "new": "+"}


def render_replay(form: str, report: ReplayReport) -> Table | Iterable[str]:
    """A replay in one of ``FORMATS``."""
    return rendered(form, report, lambda: _table(report))


def _table(report: ReplayReport) -> Table:
    names = report.replay.columns
    rows = [(_SIGNS[kind], kind, *_cells(before, after)) for kind, before, after, _ in report.kinds()]
    columns = (TableColumn(""), TableColumn("row", style="bold"), *map(TableColumn, names))
    return Table(columns=columns, rows=rows, heading=_heading(report), summary=_summary(report))


def _cells(before: Row | None, after: Row | None) -> list[str]:
    if before is None or after is None:
        return [cell(value) for value in before or after or ()]
    pairs = zip(before, after, strict=True)
    return [cell(old) if old == new else f"{cell(old)} → {cell(new)}" for old, new in pairs]


def _heading(report: ReplayReport) -> str:
    parts = [
        f"without {each.dataset} where {each.where}"
        if each.where
        else f"with {count(len(each.files), 'other file')} for {each.dataset}"
        for each in report.changes
    ]
    if report.script:
        parts = [f"by {' '.join(report.script)}"]
    return f"{report.replay.output} {' and '.join(parts)}"


def _summary(report: ReplayReport) -> str:
    found = report.replay
    reached = "all was evaluated again"
    if report.script:
        reached = f"{count(found.before, 'row')} run again over the {'whole' if found.whole else 'traced'} inputs"
    elif found.groups is not None:
        reached = f"{count(found.groups, 'value')} of {', '.join(found.reached)} evaluated again"
    against = "compared with the written rows" if found.recorded else "compared with the plan over what was read"
    lines = [
        f"{len(found.gone):,} gone, {len(found.changed):,} changed, {len(found.new):,} new",
        " · ".join([reached, against, f"run {found.run}", *([report.engine] if report.engine else [])]),
    ]
    if report.script and not found.whole:
        lines.append("Rows of inputs that these results were not made of were not given to the script.")
    shown = sum(min(len(rows), report.limit) for rows in (found.gone, found.changed, found.new))
    rest = len(found.gone) + len(found.changed) + len(found.new) - shown
    lines += [f"{count(rest, 'more row')} (--show N)"] if rest else []
    lines += [f"{name} does not evaluate it exactly: {why}" for name, why in report.refusals]
    lines += [f"{each.dataset} was evaluated again by the plan of {each.run}" for each in report.evaluated]
    return "\n".join([*lines, *(f"NOT CERTAIN: {doubt}" for doubt in found.doubts)])

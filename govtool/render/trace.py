"""Traces as text: the steps with how exact they are, then the rows of each dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from govtool.render.formats.envelope import compact
from govtool.render.layout.rows import ROW_FORMATS, data_lines
from govtool.render.layout.table import Table, TableColumn, markdown, plain, to_csv
from govtool.render.layout.text import count, printable, width

if TYPE_CHECKING:
    from govtool.answers.trace import TraceReport
    from govtool.records.trace.answer import InputAnswer, RefusedFile, StepAnswer

FORMATS = ROW_FORMATS
_STYLES = {"exact": "green", "superset": "yellow", "coarse": "red", "incomplete": "red"}
_WIDEST = 32
"""Cells that a column is taken to need when it is decided how many fit."""
_GAP = 2


def render_trace(form: str, report: TraceReport, show: int, room: int | None = None) -> list[Table] | Iterable[str]:
    """A trace in one of ``FORMATS``; for ``table`` one table after the other.

    Args:
        form: The format.
        report: The trace.
        show: Rows of each dataset in ``table``, ``plain`` and ``markdown``.
        room: Cells of a line; columns that do not fit are left off and counted. None: all are shown.
    """
    if form in ("json", "jsonl"):
        return data_lines(
            form, report, ({"part": part, "dataset": g.dataset, **row} for part, g in report.parts for row in g.rows)
        )
    if form == "csv":
        header, rows = report.flat()
        return to_csv(header, (["" if cell is None else cell for cell in row] for row in rows))
    tables = list(_tables(report, show, room))
    if form == "table":
        return tables
    return spaced(tables, plain if form == "plain" else markdown)


def spaced(tables: Iterable[Table], lines: Any = plain) -> Iterator[str]:
    """Tables as lines, with an empty line between them."""
    for number, table in enumerate(tables):
        if number:
            yield ""
        yield from lines(table)


def _tables(report: TraceReport, show: int, room: int | None) -> Iterator[Table]:
    yield _steps(report)
    for part, group in report.parts:
        yield _rows(part, group, show, room)
    if report.hops:
        yield _hops(report)
    if report.ends:
        yield _ends(report)
    refused = list(dict.fromkeys([*report.trace.refused, *(file for hop in report.hops for file in hop.trace.refused)]))
    if refused:
        yield _refused(refused)


def _hops(report: TraceReport) -> Table:
    several = any(hop.paths > 1 for hop in report.hops)
    rows: list[tuple[str, ...]] = []
    for hop in report.hops:
        groups = [group for part, group in hop.parts if part != "against"]
        grades = [*(step.exactness for step in hop.trace.steps), *(group.exactness for group in groups)]
        worst = max(grades, key=list(_STYLES).index, default="exact")
        found = f"{sum(group.count for group in groups):,}"
        cells = (str(hop.depth), hop.trace.run, hop.trace.output, f"{hop.trace.selected:,}", found, worst)
        rows.append((*cells, f"{hop.paths:,}") if several else cells)
    columns = (
        TableColumn("hop", justify="right"),
        TableColumn("run", style="bold"),
        TableColumn("output"),
        TableColumn("from", justify="right"),
        TableColumn("rows", justify="right"),
        TableColumn("trace"),
        TableColumn("paths", justify="right"),
    )
    return Table(
        columns=columns if several else columns[:-1],
        rows=rows,
        heading=f"through {count(len(report.hops), 'more run')}",
    )


def _ends(report: TraceReport) -> Table:
    rows = [
        (end.dataset, str(len(end.files)), f"{end.rows:,}", ("lost: " if end.broken else "") + end.reason)
        for end in report.ends
    ]
    columns = (
        TableColumn("ends at", style="bold"),
        TableColumn("files", justify="right"),
        TableColumn("rows", justify="right"),
        TableColumn("because"),
    )
    return Table(columns=columns, rows=rows)


def _steps(report: TraceReport) -> Table:
    trace = report.trace
    verb = "back from" if report.direction == "back" else "forward from"
    reasons = list(dict.fromkeys(step.why for step in trace.steps))
    why, summary = any(reasons), _summary(report)
    if why and len(reasons) == 1 and len(trace.steps) > 1:  # once, instead of in every line
        why, summary = False, f"{summary}\n{trace.steps[0].exactness}: {reasons[0]}"
    columns = [
        TableColumn("step", style="bold"),
        TableColumn("rows", justify="right"),
        TableColumn("trace"),
        TableColumn("why"),
    ]
    return Table(
        columns=tuple(columns if why else columns[:3]),
        rows=[row if why else row[:3] for row in _step_rows(trace.steps)],
        heading=f"{verb} {trace.output} where {report.where}",
        summary=summary,
    )


def _step_rows(steps: Iterable[StepAnswer]) -> Iterator[tuple[str, ...]]:
    """Cells of each step; three and more alike without rows, as a pivot has them, are one line."""
    for (name, rows, *others), alike in groupby((step.operator, step.rows, step.exactness, step.why) for step in steps):
        times = len(list(alike))
        if times > 2 and not rows:
            yield (f"{times} × {name}", "0", *others)
        else:
            yield from [(name, f"{rows:,}", *others)] * times


def _summary(report: TraceReport) -> str:
    trace = report.trace
    total = sum(group.count - group.repeated for part, group in report.parts if part != "against")
    places = sum(part != "against" and group.count > 0 for part, group in report.parts)
    parts = [
        f"{count(trace.selected, 'row')} selected → {count(total, 'row')} in {count(places, 'place')}",
        f"run {trace.run}",
        *([report.engine] if report.engine else []),
    ]
    lines = [" · ".join(parts)]
    lines += [f"{name} does not evaluate it exactly: {why}" for name, why in report.refusals]
    again = dict.fromkeys(each for part in (trace, *(hop.trace for hop in report.hops)) for each in part.evaluated)
    lines += [f"{each.dataset} is gone, and was evaluated again by the plan of {each.run}" for each in again]
    if report.verified is not None:
        lines.append(
            "verified: the plan gives the written rows once more"
            if report.verified
            else "NOT VERIFIED: the plan gives other rows than those that were written"
        )
        lines += [f"not compared: column {name} cannot be evaluated again" for name in report.unverified]
    return "\n".join(lines)


def _rows(part: str, group: InputAnswer, show: int, room: int | None) -> Table:
    shown, new = group.rows[:show], group.count - group.repeated
    names = list(dict.fromkeys(name for row in shown for name in row if name not in ("_id", "_file", "_row")))
    titles = (["record"] if any("_id" in row for row in shown) else []) + names
    cells = [[_cell(row, title) for title in titles] for row in shown]
    kept = _fitting(titles, cells, room)
    rest = [f"{count(new - len(shown), 'more row')} (--show N)"] if new > len(shown) else []
    rest += [f"{count(len(titles) - kept, 'more column')} (--format json)"] if kept < len(titles) else []
    numbers = [all(_is_number(row.get(title)) for row in shown) for title in titles]
    columns = [
        TableColumn(title, "right" if number else "left", "yellow" if title == "record" else "")
        for title, number in zip(titles[:kept], numbers, strict=False)
    ]
    return Table(
        columns=tuple(columns),
        rows=[row[:kept] for row in cells],
        heading=_heading(part, group),
        summary=" · ".join(rest),
    )


def _heading(part: str, group: InputAnswer) -> str:
    lead = {"against": "against: ", "between": "at "}.get(part, "")
    name = f"{group.dataset}@{group.version}" if group.version else group.dataset
    why = f": {group.why}" if group.why else ""
    above = f", {group.repeated:,} of them above" if group.repeated else ""
    return f"{lead}{name} · {count(group.count, 'row')}{above} · {group.exactness}{why}"


def _cell(row: dict[str, Any], title: str) -> str:
    if title == "record":
        return str(row.get("_id", "")).rpartition(":")[2]
    value = row.get(title)
    if value is None:
        return "NULL" if title in row else ""
    return value if isinstance(value, str) else compact(value)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _fitting(titles: Sequence[str], cells: Sequence[Sequence[str]], room: int | None) -> int:
    """Return the number of columns that fit on a line; two at least."""
    if room is None:
        return len(titles)
    used = 1
    for i, title in enumerate(titles):
        widest = max([width(title), *(width(printable(row[i])) for row in cells)])
        used += min(widest, _WIDEST) + (_GAP if i else 0)
        if used > room and i >= 2:
            return i
    return len(titles)


def _refused(files: Sequence[RefusedFile]) -> Table:
    return Table(
        columns=(TableColumn("refused", style="red"), TableColumn("because it")),
        rows=[(file.file, file.reason) for file in files],
        heading=f"{count(len(files), 'input file')} refused",
        summary="The rows of these files are not shown. Those that reach the output only with them may be left out.",
    )

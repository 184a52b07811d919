"""Rows that differ between two runs as text: output by output, with the input rows below each row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from govtool.answers.row_diff import CHANGED, GONE, NEW, UNKNOWN, cells
from govtool.render.formats.envelope import compact
from govtool.render.layout.rows import cell
from govtool.render.layout.table import Table, markdown, plain, to_csv
from govtool.render.layout.text import Prose, count, printable
from govtool.render.runs import render_run_diff

if TYPE_CHECKING:
    from govtool.answers.row_diff import DifferentRow, InputRows, OutputRows, Row, RowDiff
    from govtool.answers.run_diff import RunDiffAnswer

FIELDS = ("output", "kind", "columns", "before", "after", "inputs", "why", "cause")
_SIGNS = {GONE: "-", CHANGED: "~", NEW: "+"}
_BEHIND = 5
"""Input rows of a kind that are shown below a row."""


def rows_as_lines(form: str, answer: RunDiffAnswer, *, explain: bool = False) -> Iterable[str]:
    """The rows that differ as lines: CSV and JSON lines hold nothing else, texts begin with the runs compared."""
    found = answer.row_diff
    assert found is not None
    if form == "csv":
        return to_csv(FIELDS, map(_csv_row, found.lines()))
    if form == "jsonl":
        return (compact({"output": output.after, **output.row_object(row)}) for output, row in found.lines())
    lines = markdown if form == "markdown" else plain
    return _texts(lines, answer, found, explain=explain)


def _texts(
    lines: Callable[[Table], Iterator[str]], answer: RunDiffAnswer, found: RowDiff, *, explain: bool
) -> Iterator[str]:
    made = render_run_diff("table", answer, explain=explain)
    assert isinstance(made, Table)
    yield from lines(made)
    yield from row_prose(found).lines


def _csv_row(pair: tuple[OutputRows, DifferentRow]) -> tuple[str, ...]:
    output, row = pair
    texts = [
        "" if each is None else json.dumps(cells(output.columns, each), ensure_ascii=False, separators=(",", ":"))
        for each in (row.before, row.after)
    ]
    inputs = json.dumps([each.to_dict() for each in row.inputs], ensure_ascii=False, separators=(",", ":"))
    return (output.after, row.kind, " ".join(_differing(output, row)), *texts, inputs, row.why, output.cause)


def _differing(output: OutputRows, row: DifferentRow) -> list[str]:
    if row.before is None or row.after is None:
        return []
    return [n for n, old, new in zip(output.columns, row.before, row.after, strict=True) if not _is_same(old, new)]


def row_prose(found: RowDiff) -> Prose:
    """The outputs one after the other: their rows, with the input rows behind each below it."""
    return Prose(line for output in found.outputs for line in ("", *map(printable, _block(output))))


def _block(output: OutputRows) -> Iterator[str]:
    name = output.after if output.before == output.after else f"{output.before} → {output.after}"
    yield f"{name} · rows {output.verdict}"
    for row in output.rows:
        yield f"  {_SIGNS[row.kind]} {_row(output, row)}"
        yield from (f"      {text}" for each in row.inputs for text in _behind(each))
        if row.why:
            yield f"      ? {row.why}"
    yield from _summary(output)


def _row(output: OutputRows, row: DifferentRow) -> str:
    """``land de: total 60 → 30, n 2 → 1``, ``land de, total 60, n 2``."""
    if row.before is None or row.after is None:
        return _listed(output.columns, row.before or row.after or ())
    cells = list(zip(output.columns, row.before, row.after, strict=True))
    key = ", ".join(f"{name} {cell(new)}" for name, _, new in cells if name in output.key)
    return f"{key}: " + ", ".join(f"{name} {_changed(old, new)}" for name, old, new in cells if not _is_same(old, new))


def _listed(columns: Sequence[str], row: Row) -> str:
    return ", ".join(f"{name} {cell(value)}" for name, value in zip(columns, row, strict=True))


def _changed(old: object, new: object) -> str:
    return cell(old) if _is_same(old, new) else f"{cell(old)} → {cell(new)}"


def _is_same(old: object, new: object) -> bool:
    """Return whether two cells are equal; NaN is, within a list as well."""
    if isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)):
        return len(old) == len(new) and all(map(_is_same, old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_is_same(old[key], new[key]) for key in old)
    return old == new or (old != old and new != new)


def _behind(found: InputRows) -> Iterator[str]:
    """The input rows behind a row that only one of the runs read."""
    name = found.dataset.rpartition("/")[2]
    for old, new in found.changed[:_BEHIND]:
        pairs = zip(found.columns, old, new, strict=True)
        yield f"~ {name}: " + ", ".join(f"{column} {_changed(a, b)}" for column, a, b in pairs)
    for sign, rows in (("-", found.removed), ("+", found.added)):
        for row in rows[:_BEHIND]:
            yield f"{sign} {name}: {_listed(found.columns, row)}"
    rest = sum(max(0, len(rows) - _BEHIND) for rows in (found.removed, found.added, found.changed))
    if rest:
        yield f"  {rest:,} more of {name} (--format json)"
    if not (found.removed or found.added or found.changed) and not found.why:
        yield f"= {name}: {count(found.same, 'row')}, the same in both runs"
    if found.why:
        yield f"? {name}: {found.why}"


def _summary(output: OutputRows) -> Iterator[str]:
    gone, changed, new = output.counts
    if any(output.counts):
        key = f" · by {', '.join(output.key)} ({output.key_is})" if output.key else " · no key is known"
        yield f"{gone:,} gone, {changed:,} changed, {new:,} new{key}"
    rest = sum(output.counts) - len(output.rows)
    if rest > 0:
        yield f"{count(rest, 'more row')} (--limit N)"
    if output.tolerance is not None:
        verb = "differs" if output.within == 1 else "differ"
        yield f"{count(output.within, 'row')} {verb} by no more than the tolerance of {output.tolerance:g}"
    if output.cause:
        yield f"first cause: {output.cause}"
    if output.others:
        yield f"not compared: {', '.join(output.others)} (in one run only, or of another type)"
    if output.why:
        yield f"{'UNKNOWN' if output.verdict == UNKNOWN else 'NOT CERTAIN'}: {output.why}"

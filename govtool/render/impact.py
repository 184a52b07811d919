"""``govtool impact``: what depends on a column, or what it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, cast

from govtool.answers.affected_rows import NOT_RECORDED
from govtool.answers.impact import verdict_of
from govtool.model.derivation import ROWS
from govtool.names import join_name, split_name
from govtool.render.answer import already, closing, heading, places, tally, unclear, way
from govtool.render.layout.rows import ROW_FORMATS, cells, data_lines
from govtool.render.layout.table import Table, TableColumn, markdown, plain, to_csv
from govtool.render.layout.text import Prose, count, printable
from govtool.render.layout.tree import TreeNode, tree_lines
from govtool.render.pictures.answers import MOST_EDGES, PICTURES, fenced, impact_drawing, picture
from govtool.wording import few

if TYPE_CHECKING:
    from govtool.answers.affected_rows import AffectedDataset, AffectedRows
    from govtool.answers.impact import ImpactAnswer
    from govtool.query.changes.impact import ImpactResult
    from govtool.query.changes.impact_entries import Impacted, ImpactLine

FORMATS = (*ROW_FORMATS, "tree", *PICTURES)

_STYLES = {"breaks": "bold red", "unknown": "magenta", "changes": "yellow", "rows": "cyan", "passes": "green"}
_BOUNDS = {"exact": "", "superset": "≤ ", "coarse": "≤ "}
_NOUNS = {"breaks": "break", "unknown": "unknown", "changes": "change", "rows": "by rows only", "passes": "pass"}


def render(form: str, answer: ImpactAnswer) -> Table | Prose | Iterable[str]:
    """One of ``FORMATS``."""
    if form in PICTURES:
        return picture(form, impact_drawing(answer))
    if form in ("json", "jsonl"):
        return data_lines(form, answer, answer.items())
    if form == "csv":
        return _csv(answer)
    if form == "tree":
        return Prose(tree(answer))
    made = table(answer)
    if form == "markdown":
        return chain(markdown(made), [""], fenced(impact_drawing(answer, MOST_EDGES)))
    return made if form == "table" else plain(made)


def tree(answer: ImpactAnswer) -> Iterator[str]:
    """What is reached, below the column that it is reached by; a relation with one verdict is one line.

    Names stay whole: a line is as wide as it needs to be, and goes on below itself on a terminal.
    """
    frame = table(answer)
    yield printable(frame.heading)
    yield from tree_lines(_roots(answer.lines))
    yield ""
    yield from (printable(line) for line in frame.summary.split("\n"))


def _roots(found: Sequence[ImpactLine]) -> list[TreeNode]:
    """The trees of entries; each is below the nearest entry on its way that is fewer hops away."""
    shown = {entry.column: (entry, TreeNode(_line(entry, first))) for entry, first in found}
    roots: list[TreeNode] = []
    for entry, _ in found:
        nearest = entry.path[1:] if entry.column == entry.path[0] else reversed(entry.path[:-1])  # upstream, or down
        names = (shown.get(name) or shown.get(_whole(name)) for name in nearest)
        above = (each for each in names if each is not None)
        parent = next((node for other, node in above if other.hops < entry.hops), None)
        (roots if parent is None else parent.below).append(shown[entry.column][1])
    return roots


def _whole(name: str) -> str:
    """The name of the rows of a column's relation, where the column stands within their line."""
    return join_name([*split_name(name)[:-1], ROWS])


def _line(entry: Impacted, first: tuple[str, ...]) -> str:
    words = [_named(entry, first), verdict_of(entry) or "", way(entry.via), places(entry.evidence)]
    return "  ".join(word for word in words if word)


def _csv(answer: ImpactAnswer) -> Iterable[str]:
    """The columns; with ``where`` also the affected rows of each one's dataset."""
    affected, dataset, via = answer.affected, answer.fields.index("dataset"), answer.fields.index("via")
    rows = ((*row[:via], way(cast("tuple[str, ...]", row[via])), *row[via + 1 :]) for row in answer.rows())
    if affected is None:
        return to_csv(answer.fields, map(cells, rows))
    found = ((row, affected.of(str(row[dataset]))) for row in rows)
    counted = (cells((*row, each.count, each.total, each.exactness)) for row, each in found)
    return to_csv((*answer.fields, "rows", "of_rows", "rows_are"), counted)


def table(answer: ImpactAnswer) -> Table:
    """The picture of the answer: the worst first. Owners have a column where any is known."""
    result, up, affected = answer.result, answer.result.direction == "up", answer.affected
    found = answer.lines
    entries = [entry for entry, _ in found]
    shown = {"verdict": not up, "rows": affected is not None, "owner": any(entry.owner for entry in entries)}
    columns = [(column, cell) for column, cell in _columns(affected) if shown.get(column.title, True)]
    return Table(
        columns=tuple(column for column, _ in columns),
        rows=[tuple(cell(*each) for _, cell in columns) for each in found],
        heading=_heading(answer),
        summary="\n".join([closing(answer.version, _summary(answer), _left_off(result)), *_row_lines(answer)]),
        row_styles=() if up else [_STYLES.get(verdict_of(entry) or "", "") for entry in entries],
        names=0 if up else 1,
        groups=[entry.dataset for entry in entries],
    )


_Cell = Callable[["Impacted", tuple[str, ...]], str]
"""The text for an entry and the columns that its relation stands for."""


def _columns(affected: AffectedRows | None) -> list[tuple[TableColumn, _Cell]]:
    """All columns of the table, in order, each with what stands in it."""
    return [
        (TableColumn("verdict"), lambda entry, _: verdict_of(entry) or ""),
        (TableColumn("column", style="bold"), _named),
        (TableColumn("hops", justify="right"), lambda entry, _: str(entry.hops)),
        (TableColumn("rows"), lambda entry, _: _rows(affected.of(entry.dataset)) if affected is not None else ""),
        (TableColumn("via"), lambda entry, _: way(entry.via)),
        (TableColumn("owner"), lambda entry, _: entry.owner or ""),
        (TableColumn("evidence", style="dim"), lambda entry, _: places(entry.evidence)),
    ]


def _heading(answer: ImpactAnswer) -> str:
    """``crm.users.email · personal.contact.email · 7f3a1c0 (2026-11-20 22:10) · change: drop``."""
    result = answer.result
    what = "upstream" if result.direction == "up" else f"change: {result.change.text if result.change else 'logic'}"
    subject = " · ".join(part for part in (result.subject, few(answer.subject_classes)) if part)
    return heading(answer.version, subject, what)


def _summary(answer: ImpactAnswer) -> str:
    result, summary = answer.result, answer.result.summary
    beyond = f" + {summary.hidden:,} {_filter(result)}" if summary.hidden else ""
    if result.direction == "up":
        sources = f"{count(summary.columns, 'column')} of {count(summary.datasets, 'dataset')}{beyond}"
        return " · ".join(part for part in (_selected(result), sources) if part)
    counts = {_NOUNS[verdict.label]: number for verdict, number in summary.verdicts}
    bare = [f"{count(n, 'dataset')} of unknown columns: {verdict.label}" for verdict, n in summary.bare if n]
    known = answer.unaffected is not None
    others = f"{summary.no_path:,} {'unaffected' if known else 'with no path found'}"
    text = ", ".join(part for part in (f"{tally(counts)}{beyond}".lstrip(), *bare, others) if part)
    chosen = _selected(result)
    idle = already(result.unchanged, result.change.to or "") if result.change else ""
    return " · ".join(part for part in (chosen, idle, result.not_compared, text, unclear(answer.version)) if part)


def _selected(result: ImpactResult) -> str:
    """``3 selected (2 of them downstream of another)``; empty of one."""
    if result.subject_kind != "selection":
        return ""
    among = len(result.reached_subjects)
    where = "upstream" if result.direction == "up" else "downstream"
    return f"{len(result.subjects):,} selected" + (f" ({among:,} of them {where} of another)" if among else "")


def _rows(found: AffectedDataset) -> str:
    """``2 of 40``, ``≤ 3 of 40``, ``? of 40``, ``no run``."""
    if found.exactness == NOT_RECORDED:
        return "no run"
    of = "" if found.total is None else f" of {found.total:,}"
    if found.count is None:
        return f"?{of}"
    return f"{_BOUNDS.get(found.exactness, '? ')}{found.count:,}{of}"


def _row_lines(answer: ImpactAnswer) -> list[str]:
    """What was selected, and what is to be known of each count."""
    affected = answer.affected
    if affected is None:
        return []
    lines = [f"rows: {count(affected.selected, 'row')} of {affected.dataset} where {affected.where}"]
    for each in affected.doubts():
        if each.why and each.exactness != NOT_RECORDED:
            lines.append(f"{each.dataset}: {each.exactness}: {each.why}")
    keepers = [each.dataset for each in affected.datasets if each.keeps_out]
    if keepers:
        lines.append(f"not counted: what rows change that the selected ones keep out of {few(keepers)}")
    return lines


def _filter(result: ImpactResult) -> str:
    """Name the filter that hid what is reached: ``beyond depth 1``, ``by other kinds than join``."""
    depth = f"beyond depth {result.depth}" if result.depth is not None else ""
    kinds = f"by other kinds than {', '.join(result.kinds)}" if result.kinds else ""
    return " or ".join(part for part in (depth, kinds) if part)


def _left_off(result: ImpactResult) -> str:
    left = result.truncated_lines
    return f"{count(left, 'more entry', 'more entries')} (--all)" if left else ""


def _named(entry: Impacted, first: tuple[str, ...]) -> str:
    """``stg.users.* (11 columns: email …)``: a relation, and the columns that are reached by themselves."""
    if not entry.is_rows:
        return entry.column
    if entry.rows_only:
        return f"{entry.column} (rows)"
    more = " …" if entry.columns > len(first[:2]) else ""
    names = f": {', '.join(first[:2])}{more}" if first else ""
    return f"{entry.column} ({count(entry.columns, 'column')}{names})"

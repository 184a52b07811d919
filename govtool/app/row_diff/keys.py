"""Keys by which a row of one run is the same row in another: declared, the keys of groups, or a column found unique."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.app.records.keys import declared_keys
from govtool.config import load_config
from govtool.records.execute.compare import comparable
from govtool.records.plan.expressions import Attribute, Call, passed
from govtool.records.plan.nodes import Distinct, Filter, Project, Relation
from govtool.records.plan.types import BOOLEAN, DOUBLE, FLOAT
from govtool.records.plan.types import comparable as is_comparable
from govtool.records.trace.back import count_rows, exists

if TYPE_CHECKING:
    from govtool.answers.row_diff import Row
    from govtool.records.trace.back import Executor

_TRIED = 8
"""The most columns that are tried, from the first on."""


def row_key(
    executor: Executor, sides: Sequence[Relation], dataset: str, steady: Sequence[str] = ()
) -> tuple[tuple[str, ...], str]:
    """The columns that identify rows on both sides, and how that is known: ``declared``, ``found`` or nothing.

    Args:
        executor: Evaluates them.
        sides: The rows of both runs, with the same columns.
        dataset: Whose rows they are.
        steady: Columns that no aggregate computes, where others are: the keys of groups.
    """
    names = [column.name for column in sides[0].columns]
    declared = declared_keys([replace(sides[0], dataset=dataset)], load_config(Path.cwd()).keys).get(dataset, ())
    if declared:
        return declared, "declared"
    tried = [tuple(steady)] if steady else [(name,) for name in names[:_TRIED]]
    for columns in tried:
        if len(columns) < len(names) and all(_is_key(executor, side, columns, bool(steady)) for side in sides):
            return columns, "found"
    return (), ""


def _is_key(executor: Executor, rows: Relation, names: Sequence[str], is_group: bool) -> bool:
    """Return whether columns identify rows; NULL is a key of a group, and no other key."""
    columns = [column for column in rows.columns if column.name in names]
    if any(column.type in (DOUBLE, FLOAT) or not is_comparable(column.type) for column in columns):
        return False
    if not is_group and exists(executor, Filter(rows, Call("is null", (columns[0],), BOOLEAN))):
        return False
    distinct = Distinct(Project(rows, tuple(map(passed, columns))))
    return count_rows(executor, distinct) == count_rows(executor, rows)


def paired(
    gone: Iterable[Row], new: Iterable[Row], columns: Sequence[Attribute], key: Sequence[str]
) -> tuple[list[Row], list[tuple[Row, Row]], list[Row]]:
    """Rows that are gone, changed and new: a changed row is the only one on either side with its key."""
    at = [number for number, column in enumerate(columns) if column.name in key]
    before, after = _by_key(gone, at), _by_key(new, at)
    same = [each for each, rows in before.items() if key and len(rows) == 1 and len(after.get(each, ())) == 1]
    changed = [(before.pop(each)[0], after.pop(each)[0]) for each in same]
    return [row for rows in before.values() for row in rows], changed, [row for rows in after.values() for row in rows]


def _by_key(rows: Iterable[Row], at: Sequence[int]) -> dict[tuple[Hashable, ...], list[Row]]:
    found: dict[tuple[Hashable, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(comparable(row[number]) for number in at), []).append(row)
    return found

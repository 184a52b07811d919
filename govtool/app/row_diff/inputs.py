"""Input rows behind an output row: traced back in the run that has it, and compared with the other run's inputs."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from govtool.answers.row_diff import InputRows, Row
from govtool.app.row_diff.keys import paired, row_key
from govtool.errors import EvidenceError, GovtoolError
from govtool.records.execute.compare import comparable
from govtool.records.execute.inputs import relations
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Call, Literal, Value
from govtool.records.plan.nodes import LocalRows, Project, Relation
from govtool.records.recordset import RecordSet
from govtool.records.replay.compare import row_differences
from govtool.records.trace.back import ReachedRows, count_rows
from govtool.records.trace.forward import input_key
from govtool.records.trace.segment import both
from govtool.records.trace.traced_rows import part_name

if TYPE_CHECKING:
    from govtool.app.records.opened import OpenedWrite

MAX_BEHIND = 10_000
"""The most rows of an input behind one output row that are looked at."""
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
Key = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class InputChange:
    """The rows of an input that only one of two runs read.

    Attributes:
        dataset: The input.
        columns: The columns that both runs read.
        removed: Rows of the first run only.
        added: Rows of the second run only.
        key: Columns that identify its rows, if any do.
        why: Why they are not compared.
        known: Whether that is all that there is to know: an input that only one of the runs read is not compared.
    """

    dataset: str
    columns: tuple[Attribute, ...]
    removed: Counter[Key]
    added: Counter[Key]
    key: tuple[str, ...] = ()
    why: str = ""
    known: bool = True


def input_changes(first: OpenedWrite, second: OpenedWrite) -> dict[str, InputChange]:
    """What differs between the inputs of two runs, by the name of either.

    Inputs with other names in the two runs, such as folders of days, are one where they stand alone with their columns.
    """
    before = {leaf.dataset: leaf for leaf in relations(first.plan.root)}
    after = {leaf.dataset: leaf for leaf in relations(second.plan.root)}
    pairs = {name: (before.get(name), after.get(name)) for name in {**before, **after}}
    for old in [leaf for name, leaf in before.items() if name not in after]:
        alike = [leaf for name, leaf in after.items() if name not in before and _names(leaf) == _names(old)]
        others = [leaf for name, leaf in before.items() if name not in after and _names(leaf) == _names(old)]
        if len(alike) == len(others) == 1:
            pairs[old.dataset] = pairs[alike[0].dataset] = (old, alike[0])
    made: dict[tuple[int, ...], InputChange] = {}
    versions = _read_in_versions(first) | _read_in_versions(second)
    for each in pairs.values():
        if tuple(map(id, each)) not in made:
            made[tuple(map(id, each))] = _change(first, second, *each, versions)
    return {name: made[tuple(map(id, each))] for name, each in pairs.items()}


_VERSIONS = "a run read several versions of it: their rows are not compared"


def _read_in_versions(write: OpenedWrite) -> set[str]:
    """The datasets of which a run read several versions, or other files in several places of its plan."""
    keys: dict[str, set[tuple[object, ...]]] = {}
    for leaf in relations(write.plan.root):
        keys.setdefault(leaf.dataset, set()).add(input_key(leaf))
    return {name for name, own in keys.items() if len(own) > 1}


def _names(leaf: Relation) -> list[str]:
    return [column.name for column in leaf.columns]


def _change(
    first: OpenedWrite, second: OpenedWrite, old: Relation | None, new: Relation | None, versions: Collection[str]
) -> InputChange:
    none: Counter[Key] = Counter()
    own = new or old
    assert own is not None
    names = {leaf.dataset for leaf in (old, new) if leaf is not None}
    about = InputChange(own.dataset, own.columns, none, none)
    if names & set(versions):
        return replace(about, why=_VERSIONS, known=False)
    if old is None or new is None:
        return replace(about, why=f"only {(second if old is None else first).run.run} read it")
    lost = [each for write in (first, second) for each in write.lineage.refused if each.dataset in names]
    if lost:
        return replace(about, why=f"{lost[0].file} {lost[0].reason}", known=False)
    return about if old.version == new.version else _compared(second, old, new, about)


def _compared(second: OpenedWrite, old: Relation, new: Relation, about: InputChange) -> InputChange:
    """The rows that differ between two versions of an input, which the executor of the second write reads."""
    types = {column.name: column.type for column in old.columns}
    # Cells of other types are never equal: rows are compared by the columns that both have alike.
    columns = tuple(column for column in new.columns if types.get(column.name) == column.type)
    about = replace(about, columns=columns)
    try:
        sides = (kept_rows(second, old, columns), kept_rows(second, new, columns))
        gone, come = row_differences(second.lineage, *sides)
        key = row_key(second.executor, sides, new.dataset)[0] if gone and come else ()
    except GovtoolError as error:
        if error.code == "usage.config-keys":
            raise
        return replace(about, why=error.message, known=False)
    return replace(about, removed=Counter(map(value_key, gone)), added=Counter(map(value_key, come)), key=key)


def kept_rows(write: OpenedWrite, relation: Relation, columns: Sequence[Attribute]) -> Relation:
    """The rows of files, some of their columns by name, for the executor of a write."""
    own = replace(relation, columns=tuple(write.lineage.ids.attribute(c.name, c.type) for c in relation.columns))
    by_name = {column.name: column for column in own.columns}
    named = tuple(write.lineage.ids.named(column.name, by_name[column.name]) for column in columns)
    return write.executor.keep(Project(own, named))


def value_key(row: Row) -> Key:
    """A row in a form that compares as results do."""
    return tuple(map(comparable, row))


def behind(
    sides: tuple[OpenedWrite, OpenedWrite], before: tuple[Row, int] | None, after: tuple[Row, int] | None,
    columns: Sequence[Attribute], changes: dict[str, InputChange],
) -> tuple[InputRows, ...]:  # fmt: skip
    """The input rows behind an output row, as far as the inputs differ.

    Args:
        sides: Both runs.
        before: The row in the first run, and how often it is among those that differ.
        after: The same in the second run.
        columns: The columns of the row.
        changes: What differs between the inputs.

    Raises:
        GovtoolError: A row cannot be traced.
    """
    traced = [
        {} if row is None else _traced(write, columns, *row, changes)
        for write, row in zip(sides, (before, after), strict=True)
    ]
    names = sorted({*traced[0], *traced[1]})
    return tuple(_beside(changes[name], traced[0].get(name), traced[1].get(name)) for name in names)


@dataclass(frozen=True, slots=True)
class _Behind:
    """Rows of an input behind a row; None where there are too many to look at."""

    count: int
    rows: list[Row] | None
    why: str
    known: bool


def _traced(
    write: OpenedWrite, columns: Sequence[Attribute], row: Row, times: int, changes: dict[str, InputChange]
) -> dict[str, _Behind]:
    found: dict[str, _Behind] = {}
    reached = _recorded(write, columns, row, times).go_back_all()
    for part in reached.parts:
        if isinstance(part, ReachedRows) and not part.against and isinstance(part.leaf, Relation):
            name = changes[part_name(part)].dataset
            grade = write.lineage.graded(part.grade)
            count = count_rows(write.executor, part.rows)
            rows = _values(reached, part_name(part), changes[name].columns) if count <= MAX_BEHIND else None
            why = "" if grade.exactness == "exact" else f"{grade.exactness}: {grade.why}"
            known = rows is not None and grade.exactness in ("exact", "superset")
            found[name] = _Behind(count, rows, why, known)
    return found


def _recorded(write: OpenedWrite, columns: Sequence[Attribute], row: Row, times: int) -> RecordSet:
    """The rows of a plan with the values of a row, in the order of the plan's columns."""
    lineage = write.lineage
    if lineage.refused:
        first = lineage.refused[0]
        raise EvidenceError(f"{first.file} {first.reason} since {write.run.run} read it", code="evidence.changed")
    values = {column.name: value for column, value in zip(columns, row, strict=True)}
    visible = lineage.stage.segment.visible
    if {column.name for column in visible} != set(values):
        terms = (Call("<=>", (c, Literal(stored(values[c.name], c.type), c.type)), t.BOOLEAN) for c in visible
                 if c.name in values and t.comparable(c.type))  # fmt: skip
        condition = both(terms)
        assert condition is not None
        return write.rows().where(condition)
    own = tuple(lineage.ids.attribute(column.name, column.type) for column in visible)
    cells = tuple(stored(values[column.name], column.type) for column in visible)
    return lineage.recorded(LocalRows(0, own, (cells,) * times))


def _values(reached: RecordSet, dataset: str, columns: Sequence[Attribute]) -> list[Row]:
    table = reached.arrow(dataset).select([column.name for column in columns])
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True)) if columns else []


def _beside(change: InputChange, old: _Behind | None, new: _Behind | None) -> InputRows:
    """The rows behind one output row that the inputs do not have in common."""
    sides = [each for each in (old, new) if each is not None]
    why = "; ".join(dict.fromkeys(filter(None, (change.why, *(each.why for each in sides)))))
    names = tuple(column.name for column in change.columns)
    known = change.known and all(each.known for each in sides)
    large = [each for each in sides if each.rows is None]
    if large:
        count = max(each.count for each in large)
        return InputRows(
            change.dataset, names, why=why or f"{count:,} rows are behind it: too many to look at", known=False
        )
    removed = _among(old, change.removed)
    added = _among(new, change.added)
    same = max((len(each.rows or ()) - len(own) for each, own in ((old, removed), (new, added)) if each), default=0)
    gone, changed, come = paired(removed, added, change.columns, change.key)
    return InputRows(change.dataset, names, tuple(gone), tuple(come), tuple(changed), same, why, known)


def _among(found: _Behind | None, values: Counter[Key]) -> list[Row]:
    left = Counter(values)
    chosen = []
    for row in (found.rows or ()) if found is not None else ():
        key = value_key(row)
        if left[key] > 0:
            left[key] -= 1
            chosen.append(row)
    return chosen


def stored(value: Any, kind: t.Type) -> Value:
    """A fetched value in the form that plans have it."""
    if value is None:
        return None
    if isinstance(kind, t.Array):
        return tuple(stored(item, kind.element) for item in value)
    if isinstance(kind, t.Struct):
        return tuple(stored(value[field.name], field.type) for field in kind.fields)
    if isinstance(kind, t.Map):
        pairs = value.items() if isinstance(value, dict) else value
        return tuple((stored(key, kind.key), stored(item, kind.value)) for key, item in pairs)
    if isinstance(value, datetime.datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)
        return (aware - _EPOCH) // datetime.timedelta(microseconds=1)
    if isinstance(value, datetime.date):
        return (value - _EPOCH.date()).days
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else value

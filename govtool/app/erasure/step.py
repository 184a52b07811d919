"""One recorded write, evaluated over corrected inputs as far as the corrections reach, and compared with its output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from govtool.app.erasure.corrections import Corrections, same_names
from govtool.app.erasure.deltas import DatasetDelta, Drops, in_schema
from govtool.app.erasure.keys import Wanted, meets_any
from govtool.errors import EngineError, EvidenceError
from govtool.model.token import file_and_row
from govtool.records.execute.compare import comparable
from govtool.records.execute.places import Place, place_of
from govtool.records.plan.expressions import Attribute, Call, Literal, Named
from govtool.records.plan.nodes import Distinct, Filter, Join, Limit, Project, Relation, SetOperation, outputs
from govtool.records.plan.tree import Node
from govtool.records.plan.types import BOOLEAN, LONG
from govtool.records.replay.compare import MAX_DIFFERENT, whole_plan
from govtool.records.replay.decided import undecided
from govtool.records.replay.reach import ReplayReach, reach
from govtool.records.trace.back import count_rows
from govtool.records.trace.computed import carrying, computed
from govtool.records.trace.segment import alike, both, unique

if TYPE_CHECKING:
    import pyarrow as pa

    from govtool.app.records.opened import OpenedWrite

Row = tuple[Any, ...]
Key = tuple[Hashable, ...]
MAX_DOUBTFUL = 1000
"""The most rows that are named one by one as uncertain."""


@dataclass(frozen=True, slots=True)
class CorrectedOutput:
    """What a write's output becomes.

    Attributes:
        delta: The change of its files.
        columns: Its columns.
        key: The places of the columns that pair a row with what it becomes.
        gone: Rows that go.
        changed: Rows, before and after.
        new: Rows that come.
        reached: How many of its rows were compared.
        uncertain: Why a run may decide otherwise; empty: it cannot.
        doubtful: Rows that it may decide otherwise; None: any.
        writable: False where cells of rows that come cannot be evaluated.
    """

    delta: DatasetDelta
    columns: tuple[Attribute, ...]
    key: tuple[int, ...]
    gone: tuple[Row, ...] = field(repr=False)
    changed: tuple[tuple[Row, Row], ...] = field(repr=False)
    new: tuple[Row, ...] = field(repr=False)
    reached: int
    uncertain: tuple[str, ...] = ()
    doubtful: tuple[Row, ...] | None = field(default=(), repr=False)
    writable: bool = True

    def changing(self) -> frozenset[str]:
        """The columns in which rows change."""
        if not self.changed:
            return frozenset()
        return frozenset(column.name for n, column in enumerate(self.delta.relation.columns) if n not in self.key)


def corrected_output(
    write: OpenedWrite,
    changes: Corrections,
    erased: Sequence[Wanted] = (),
    key: Sequence[str] = (),
    changing: frozenset[int] = frozenset(),
) -> CorrectedOutput:
    """Evaluate a write over corrected inputs.

    Args:
        write: The write; its output is there, and no input is refused.
        changes: The corrections.
        erased: Keys whose rows have to go from the output itself.
        key: The declared key of the output.
        changing: Ids of the inputs' columns whose cells change within a row.

    Raises:
        EvidenceError: Too many rows differ.
        EngineError: No engine evaluates the plan exactly.
    """
    sides = _Sides(write, changes, erased)
    gone, come = sides.differing()
    places = sides.key(key, changing)
    pairs, rest, fresh = _paired(gone, come.rows, places)
    uncertain = sides.uncertain()
    return CorrectedOutput(
        DatasetDelta(sides.output, _drops(sides.output, pairs, rest), come.table, tuple(fresh)),
        sides.columns,
        places,
        tuple(row.values for row in rest),
        tuple((row.values, come.rows[index]) for row, index in pairs),
        tuple(come.rows[index] for index in fresh),
        count_rows(sides.executor, sides.was),
        uncertain,
        sides.doubtful() if uncertain else (),
        not (sides.blank and come.rows),
    )


@dataclass(frozen=True, slots=True)
class _WrittenRow:
    record: int
    values: Row


@dataclass(frozen=True, slots=True)
class _Arriving:
    """Rows that come; cells that cannot be evaluated again are NULL."""

    table: pa.Table
    rows: list[Row]


class _Sides:
    """A write's output as it was written and as it becomes, as far as corrections reach."""

    def __init__(self, write: OpenedWrite, changes: Corrections, erased: Sequence[Wanted]) -> None:
        assert write.output is not None
        self.lineage, self.executor, self.output = write.lineage, write.executor, write.output
        whole = whole_plan(self.lineage, self.lineage.stage)
        self._before = Project(whole, same_names(unique(self.lineage.stage.segment.visible)))
        self.columns = outputs(self._before)
        self.blank = [n for n, column in enumerate(self.columns) if column.id in self.lineage.blank]
        self._shown = [n for n in range(len(self.columns)) if n not in self.blank]
        self._record = self.lineage.ids.attribute("record", LONG)
        now = changes.applied(self._before)
        if erased:
            named = [replace(column, name=own.name) for column, own in self._pairs()]
            kept = Call("not", (alike(meets_any(named, erased), Literal(True, BOOLEAN)),), BOOLEAN)
            now = Filter(now, kept)
        # Rows that go from the output itself need not be within the reach of the inputs.
        self._evaluate(now, None if erased or not changes.leaves else changes)

    def _evaluate(self, now: Node, changes: Corrections | None) -> None:
        """Evaluate both sides, as far as corrections reach; whole where a narrowed plan cannot be evaluated."""
        try:
            self._reach = ReplayReach() if changes is None else reach(changes, self._before)
            self._both(now)
        except EngineError:
            if changes is None:
                raise
            self._evaluate(now, None)

    def _both(self, now: Node) -> None:
        self._after = self._reach.within(self.lineage, now)
        self._now = self.executor.keep(self._fresh(self._after, self.columns))
        self.was = self.executor.keep(self._written())

    def _pairs(self) -> list[tuple[Attribute, Attribute]]:
        """The columns of the plan, each with that of the written files."""
        return list(zip(self.columns, self.output.columns, strict=True))

    def _written(self) -> Node:
        """The written rows within reach, under the plan's columns, each with its id."""
        read = replace(
            self.output, columns=(*self.output.columns, self._record), metadata=((self._record.id, "_record"),)
        )
        columns = [Named(own, column.id, column.name) for column, own in self._pairs()]
        record = Named(self._record, self._record.id, "record")
        return self._reach.within(self.lineage, Project(read, (*columns, record)))

    def _fresh(self, node: Node, columns: Iterable[Attribute]) -> Project:
        """Columns of a plan under ids of their own."""
        return Project(node, tuple(self.lineage.ids.named(column.name, column) for column in columns))

    def _side(self, kept: Relation) -> Node:
        """The columns that are compared."""
        return Project(kept, same_names(tuple(kept.columns[n] for n in self._shown)))

    # ---- rows that differ ---------------------------------------------------------------------------------------

    def differing(self) -> tuple[list[_WrittenRow], _Arriving]:
        """Written rows that go, and rows that come. Floats that agree up to the order of a sum are equal."""
        old, new = self._side(self.was), self._side(self._now)
        left, right = self._more(old, new), self._more(new, old)
        kinds = tuple(self.columns[n] for n in self._shown)
        come = in_schema(self.executor.arrow(right), kinds)
        rows = python_rows(come)
        balance = Counter(map(row_key, python_rows(in_schema(self.executor.arrow(left), kinds))))
        balance.subtract(Counter(map(row_key, rows)))
        gone = self._found_again(left, {key: count for key, count in balance.items() if count > 0})
        numbers = _chosen(rows, {key: -count for key, count in balance.items() if count < 0})
        return gone, self._arriving(come, numbers)

    def _more(self, one: Node, other: Node) -> Relation:
        """The rows that are more often on one side than on the other.

        Raises:
            EvidenceError: They are too many.
        """
        columns = tuple(self.lineage.ids.attribute(column.name, column.type) for column in outputs(one))
        found = self.executor.keep(Limit(SetOperation(one, other, "except", True, columns), MAX_DIFFERENT + 1))
        if count_rows(self.executor, found) > MAX_DIFFERENT:
            raise EvidenceError(f"more than {MAX_DIFFERENT:,} rows differ", code="evidence.different")
        return found

    def _found_again(self, values: Relation, counts: dict[Key, int]) -> list[_WrittenRow]:
        """Written rows with given values, with their ids: as many of each as are wanted."""
        if not counts:
            return []
        copies = [self.lineage.ids.named(column.name, column) for column in values.columns]
        same = both(alike(self.was.columns[n], copy.attribute) for n, copy in zip(self._shown, copies, strict=True))
        found = Join(self.was, Distinct(Project(values, tuple(copies))), "left_semi", same)
        table = self.executor.arrow(Project(found, same_names(self.was.columns)))
        rows = []
        for *cells, record in sorted(python_rows(in_schema(table, (*self.columns, self._record))), key=_last):
            key = row_key(cells[n] for n in self._shown)
            if counts.get(key, 0) > 0:
                counts[key] -= 1
                rows.append(_WrittenRow(record, tuple(cells)))
        return rows

    def _arriving(self, table: pa.Table, numbers: list[int]) -> _Arriving:
        """The rows that come, under all columns of the output."""
        import pyarrow as pa

        chosen = table.take(pa.array(numbers, pa.int64()))
        place = {n: number for number, n in enumerate(self._shown)}
        columns = [
            chosen.column(place[n]) if n in place else pa.nulls(len(numbers), pa.null())
            for n in range(len(self.columns))
        ]
        full = in_schema(pa.table(columns, [str(n) for n in range(len(columns))]), self.output.columns)
        return _Arriving(full, python_rows(full))

    def key(self, declared: Sequence[str], changing: frozenset[int]) -> tuple[int, ...]:
        """The columns that pair rows: the declared key, else those that are not computed, here or in an input."""
        names = [column.name for column in self.output.columns]
        if declared and all(name in names for name in declared):
            return tuple(names.index(name) for name in declared)
        own, all_made = computed(self._before), carrying(self._before, changing)
        kept = tuple(n for n in self._shown if self.columns[n].id not in all_made)
        return kept or tuple(n for n in self._shown if self.columns[n].id not in own)

    # ---- certainty ----------------------------------------------------------------------------------------------

    def uncertain(self) -> tuple[str, ...]:
        """Why a run may decide otherwise."""
        found = undecided(self.lineage, self._after)
        if self.blank and count_rows(self.executor, self._now):
            names = ", ".join(self.output.columns[n].name for n in self.blank)
            found = (*found, f"{names} cannot be evaluated again")
        return found

    def doubtful(self) -> tuple[Row, ...] | None:
        """The rows that are uncertain: those within reach; None: any."""
        if self._reach.values is None:
            return None
        old = self.executor.arrow(Project(self.was, same_names(self.was.columns[:-1])))
        new = self.executor.arrow(Project(self._now, same_names(self._now.columns)))
        rows = [row for table in (old, new) for row in python_rows(in_schema(table, self.columns))]
        every = {row_key(row): row for row in rows}
        return tuple(every.values()) if len(every) <= MAX_DOUBTFUL else None


def _drops(
    output: Relation, pairs: Sequence[tuple[_WrittenRow, int]], rest: Sequence[_WrittenRow]
) -> dict[Place, Drops]:
    """Rows that go, by file."""
    files = {file.ordinal: place_of(file) for file in output.files}
    found: dict[Place, Drops] = {}
    for row, index in [*pairs, *((row, None) for row in rest)]:
        file, number = file_and_row(row.record)
        found.setdefault(files[file], {})[number] = index
    return found


def _paired(
    gone: Sequence[_WrittenRow], come: Sequence[Row], places: Sequence[int]
) -> tuple[list[tuple[_WrittenRow, int]], list[_WrittenRow], list[int]]:
    """Rows that go with what comes in their place, where the key says so; other rows that go; others that come."""
    before: dict[Key, list[_WrittenRow]] = {}
    after: dict[Key, list[int]] = {}
    for row in gone:
        before.setdefault(row_key(row.values[n] for n in places), []).append(row)
    for index, values in enumerate(come):
        after.setdefault(row_key(values[n] for n in places), []).append(index)
    keys = [key for key, rows in before.items() if len(rows) == 1 and len(after.get(key, ())) == 1]
    pairs = [(before.pop(key)[0], after.pop(key)[0]) for key in keys]
    return pairs, [row for rows in before.values() for row in rows], [n for rows in after.values() for n in rows]


def python_rows(table: pa.Table) -> list[Row]:
    """The rows of a table as values of Python."""
    if not table.num_columns:
        return [()] * table.num_rows
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def row_key(values: Iterable[Any]) -> Key:
    """A row in a form that compares as results do."""
    return tuple(map(comparable, values))


def _chosen(rows: Sequence[Row], counts: dict[Key, int]) -> list[int]:
    """The numbers of rows with given values: as many of each as are wanted."""
    numbers = []
    for number, row in enumerate(rows):
        key = row_key(row)
        if counts.get(key, 0) > 0:
            counts[key] -= 1
            numbers.append(number)
    return numbers


def _last(row: Row) -> Any:
    return row[-1]

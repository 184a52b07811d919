"""The groups and partitions of a result that a change of inputs can reach: all other rows stay as they are.

First the columns of the result are followed down to the changed inputs, through copies, group keys, partitions and join
sides. Where some of them arrive at every changed input, the result for other values of these does not read the changed
rows. Else, where operators only add (no antijoin, outer join, EXCEPT, window, limit, subquery), the rows that are left
out are traced forward, through conditions on aggregates, too: what they reach has the values that are evaluated again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Call, Expression, Named
from govtool.records.plan.nodes import (
    Aggregate,
    Distinct,
    Expand,
    Filter,
    Generate,
    Join,
    LocalRows,
    Project,
    Range,
    Relation,
    Sort,
    Union,
    outputs,
)
from govtool.records.plan.tree import Node, walk_nodes
from govtool.records.plan.types import BOOLEAN, LONG, Struct
from govtool.records.replay.changes import Exclusion, InputChanges
from govtool.records.sql.statement import KEPT
from govtool.records.trace.candidates import relaxed
from govtool.records.trace.computed import computed
from govtool.records.trace.forward import Forward, input_key
from govtool.records.trace.push import matched_columns, semijoined
from govtool.records.trace.segment import alike, both, projected, reads, subqueries, unique
from govtool.records.trace.traced_plan import TracedPlan

_ADDING = (Aggregate, Distinct, Expand, Filter, Generate, Join, LocalRows, Project, Range, Relation, Sort, Union)
"""Operators whose rows only depend on the rows that they are made of."""


@dataclass(frozen=True, slots=True)
class ReplayReach:
    """The values for which a result is evaluated again.

    Attributes:
        columns: Columns of the result.
        values: Their combinations, under ids of their own; None: everything is evaluated again.
    """

    columns: tuple[Attribute, ...] = ()
    values: Relation | None = None

    def within(self, lineage: TracedPlan, node: Node) -> Node:
        """The rows of a plan with the columns of the result that a change can reach."""
        if self.values is None:
            return node
        return semijoined(node, self.values, self.condition(self.columns))

    def condition(self, columns: tuple[Attribute, ...]) -> Expression | None:
        """The condition that columns have the values."""
        assert self.values is not None
        return both(alike(one, other) for one, other in zip(columns, self.values.columns, strict=True))


def reach(changes: InputChanges, node: Node) -> ReplayReach:
    """The values of a result that changes can reach."""
    columns = tuple(column for column in unique(outputs(node)) if _is_compared(column))
    if changes.are_within:
        return ReplayReach()
    return _by_columns(changes, node, columns) or _by_trace(changes, node, columns) or ReplayReach()


def _is_compared(column: Attribute) -> bool:
    return isinstance(column.type, (t.Scalar, t.Decimal)) and column.type not in (t.VOID, t.FLOAT, t.DOUBLE)


def _by_columns(changes: InputChanges, node: Node, columns: tuple[Attribute, ...]) -> ReplayReach | None:
    """By the columns that arrive at every changed input."""
    ids = changes.lineage.ids
    copies = tuple(ids.attribute(column.name, column.type) for column in columns)
    values = Relation(0, "kept_of_a_replay", KEPT, (), copies, Struct(()))
    pushed = semijoined(node, values, both(map(alike, columns, copies)))
    arrived = {_read(leaf): pairs for leaf, pairs in _arrivals(pushed, values)}
    changed = [leaf for leaf in walk_nodes(node) if isinstance(leaf, Relation) and changes.of(leaf)]
    # A changed input that the columns do not reach may change any group.
    if not changed or any(_read(leaf) not in arrived for leaf in changed):
        return None
    shared = [copy for copy in copies if all(copy.id in arrived[_read(leaf)] for leaf in changed)]
    if not shared:
        return None
    parts = [_values(changes, leaf, [arrived[_read(leaf)][copy.id] for copy in shared]) for leaf in changed]
    own = tuple(ids.attribute(copy.name, copy.type) for copy in shared)
    kept = changes.lineage.executor.keep(Distinct(Union(tuple(parts), own)))
    place = {copy.id: column for copy, column in zip(copies, columns, strict=True)}
    return ReplayReach(tuple(place[copy.id] for copy in shared), kept)


def _read(leaf: Relation) -> tuple[int, ...]:
    """Return what tells reads of one input apart: a definition that is used twice is two, with columns of their own."""
    return (leaf.leaf, *(column.id for column in leaf.columns))


def _arrivals(pushed: Node, values: Relation) -> Iterator[tuple[Relation, dict[int, int]]]:
    """The inputs that a semijoin was pushed to: for the id of a column of the values, that of the input's column."""
    for each in walk_nodes(pushed):
        if isinstance(each, Join) and each.right is values and isinstance(each.left, Relation):
            pairs = matched_columns(each.left, values, each.condition)
            yield each.left, {other.id: own for own, (_, other) in pairs.items()}


def _values(changes: InputChanges, leaf: Relation, columns: list[int]) -> Node:
    rows = changes.rows(leaf)
    assert rows is not None
    by_id = {column.id: column for column in outputs(rows)}
    return Project(rows, tuple(changes.lineage.ids.named(by_id[number].name, by_id[number]) for number in columns))


def _by_trace(changes: InputChanges, node: Node, columns: tuple[Attribute, ...]) -> ReplayReach | None:
    """By a trace forward of the rows that are left out, through a plan without conditions on aggregates."""
    steady = tuple(column for column in columns if column.id not in computed(node))
    if (
        changes.between.plans
        or not steady
        or not _only_adds(node)
        or not all(isinstance(part, Exclusion) for part in changes.parts)
    ):
        return None
    executor, ids = changes.lineage.executor, changes.lineage.ids
    lineage = TracedPlan.of(relaxed(node, ids), executor)
    chosen = {}
    for leaf in walk_nodes(node):
        rows = _with_ids(changes, leaf) if isinstance(leaf, Relation) else None
        if rows is not None and isinstance(leaf, Relation):
            chosen[input_key(leaf)] = executor.keep(rows)
    position = Forward(executor, lineage.ids).from_inputs(lineage.stage, chosen)
    if position is None or position.grade.exactness == "coarse":
        return None
    own = tuple(Named(column, next(ids.numbers), column.name) for column in steady)
    return ReplayReach(steady, executor.keep(Distinct(Project(position.rows, own))))


def _with_ids(changes: InputChanges, leaf: Relation) -> Node | None:
    """The ids of the rows of a leaf that are left out."""
    if not changes.of(leaf):
        return None
    record = changes.lineage.ids.attribute("record", LONG)
    read = Relation(
        leaf.leaf, leaf.dataset, leaf.format, leaf.files, (*leaf.columns, record), leaf.schema, leaf.partitioned,
        leaf.options, leaf.version, (*leaf.metadata, (record.id, "_record")),
    )  # fmt: skip
    rows = changes.rows(read)
    return None if rows is None else Distinct(projected(rows, (record,)))


def _only_adds(node: Node) -> bool:
    for each in walk_nodes(node):
        if not isinstance(each, _ADDING) or subqueries(each.terms()):
            return False
        if isinstance(each, Join) and each.kind not in ("inner", "cross"):
            return False
        if isinstance(each, Aggregate) and not each.keys:
            return (
                False  # its one row is there in any case: no trace leads from a total to rows that are compared with it
            )
        if _puts_together(each) & computed(each.nodes()[0] if each.nodes() else each):
            return False  # a row whose computed value becomes another one moves to a group that no trace comes to
    return True


def _puts_together(node: Node) -> frozenset[int]:
    """The columns by which an operator groups rows or makes them."""
    if isinstance(node, Aggregate):
        return reads(key.value for key in node.keys)
    if isinstance(node, Generate):
        return reads([node.generator])
    return frozenset(column.id for column in outputs(node)) if isinstance(node, Distinct) else frozenset()


def among(lineage: TracedPlan, node: Node, rows: Node, columns: tuple[Attribute, ...]) -> Node:
    """The rows of a plan that have the values of chosen rows in some columns."""
    copies = tuple(lineage.ids.named(column.name, column) for column in columns)
    kept = lineage.executor.keep(Distinct(Project(rows, copies)))
    same = both(Call("<=>", (column, copy.attribute), BOOLEAN) for column, copy in zip(columns, copies, strict=True))
    return semijoined(node, kept, same)

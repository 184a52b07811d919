"""Values after a deletion: aggregates from the terms that are left, functions from their new arguments.

The executor that evaluated the query evaluates them, so that types, NULLs and rounding are those of a re-run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.arrays.sets import Array
from govtool.records.plan.expressions import AggregateCall, Attribute, Call, Expression, Literal, passed
from govtool.records.plan.nodes import Aggregate, Filter, Join, Project, Range, Relation, Union, outputs
from govtool.records.plan.tree import Node, Term, walk
from govtool.records.plan.types import BOOLEAN, DOUBLE, FLOAT, INTEGER, LONG, Scalar, Type
from govtool.records.plan.types import Decimal as DecimalType
from govtool.records.trace.segment import alike
from govtool.workflow.annotate.circuit import Guard, Terms, ValueFunction, arrays_of
from govtool.workflow.annotate.query import AnnotatedQuery
from govtool.workflow.annotate.rows import LONG_ONE, LONG_ZERO, chosen, is_there, joined, rewritten, shifted, truth
from govtool.workflow.annotate.tables import TableStore, type_name

TOLERANCE = 1e-9
"""Floats that differ by less, relative to their size, are one value: a sum depends on the order of its rows."""
_LARGEST = {FLOAT: 3.4028234663852886e38, DOUBLE: sys.float_info.max}


@dataclass
class NewValues:
    """Values of v-nodes that a deletion changes, as tables of the executor by type.

    Attributes:
        query: The annotated query.
        changed: Per node whether its value is another one: bool[n].
    """

    query: AnnotatedQuery
    changed: Array
    _tables: dict[str, list[Relation]] = field(default_factory=dict)

    @property
    def _store(self) -> TableStore:
        return self.query.table.store

    def aggregates(self, blocks: Sequence[tuple[int, Terms]], own: Array, counts: Array) -> None:
        """Evaluate some values of blocks over the same terms again.

        Args:
            blocks: The blocks with their first nodes; several only if none has cells.
            own: Places of the values, in each block.
            counts: The count of every p-node after the deletion; those of the terms are known.
        """
        ids, store = self.query.ids, self._store
        block = blocks[0][1]
        node, row, times, cell = (ids.attribute(name, LONG) for name in ("value", "row", "times", "cell"))
        owners, places = block.inputs.expanded(own)
        left = counts[block.inputs.nodes[places]]
        alive = left > 0
        owners, places, left = owners[alive], places[alive], left[alive]
        columns: dict[Attribute, Any] = {node: own[owners], row: block.rows[places], times: left}
        if block.cells is not None:
            columns[cell] = block.cells[places]
        leaf = store.load(columns)
        terms: Node = joined(leaf, block.table.node, alike(row, block.table.number))
        terms, argument = self._argument(block, terms, cell)
        terms = _repeated(terms, times, int(left.max(initial=1)), ids.attribute("copy", LONG))
        place = ids.attribute("place", LONG)
        base = joined(store.load({place: own}), terms, alike(place, node), "left")
        arguments = [argument] if len(blocks) == 1 else [each.argument for _, each in blocks]
        values = [
            ids.named("value", _again(each.call, value, is_there(node)))
            for (_, each), value in zip(blocks, arguments, strict=True)
        ]
        made: Node = Aggregate(base, (passed(place),), tuple(values))
        if len(blocks) > 1:
            made = store.executor.keep(made)
        for (start, each), value in zip(blocks, values, strict=True):
            self._standing(start, each, made, place, value.attribute)

    def _standing(self, start: int, block: Terms, made: Node, place: Attribute, value: Attribute) -> None:
        """Compare the new values of a block, by their places, with those that stand."""
        ids = self.query.ids
        wanted, copy = ids.named("wanted", shifted(place, start)), ids.named("value", value)
        if block.call.name == "exists":
            copy = ids.named("value", Call(">", (value, LONG_ZERO), BOOLEAN))
        self._compare(start, Project(made, (wanted, copy)), wanted.attribute, copy.attribute, block.result)

    def _argument(self, block: Terms, terms: Node, cell: Attribute) -> tuple[Node, Expression | None]:
        if block.argument is None or block.cells is None:
            return terms, block.argument
        return self._renewed(terms, block.argument, cell)

    def _renewed(self, node: Node, column: Expression, cell: Attribute) -> tuple[Node, Expression]:
        """Rows in which a column has its new values."""
        fresh = self._all(column.type)
        if fresh is None:
            return node, column
        table, number, value = fresh
        wider = joined(node, table, alike(cell, number), "left")
        return wider, chosen(is_there(number), value, column)

    def _all(self, kind: Type) -> tuple[Node, Attribute, Attribute] | None:
        """All new values of a type: rows, node and value."""
        ids = self.query.ids
        tables = self._tables.get(type_name(Literal(None, kind)), [])
        if not tables:
            return None
        number, value = ids.attribute("node", LONG), ids.attribute("value", kind)
        parts = []
        for table in tables:
            one, two = outputs(table)
            parts.append(Project(table, (ids.named("node", one), ids.named("value", two))))
        return Union(tuple(parts), (number, value)), number, value

    def functions(self, start: int, function: ValueFunction, own: Array) -> None:
        """Evaluate some values of functions again."""
        rows, number = self._function_rows(start, function, own)
        node, made = rows
        self._compare(start, node, number, made, (function.table, function.result))

    def _function_rows(
        self, start: int, function: ValueFunction, own: Array
    ) -> tuple[tuple[Node, Attribute], Attribute]:  # fmt: skip
        ids = self.query.ids
        wanted, row = ids.attribute("wanted", LONG), ids.attribute("row", LONG)
        cells = {key: ids.attribute("cell", LONG) for key, _ in function.cells}
        columns: dict[Attribute, Any] = {wanted: own + start, row: own}
        columns.update({cells[key]: nodes[own] for key, nodes in function.cells})
        node: Node = joined(self._store.load(columns), function.table.node, alike(row, function.table.number))
        renewed: dict[int, Expression] = {}
        read = {term.id: term for term in walk(function.expression) if isinstance(term, Attribute)}
        for key, cell in cells.items():
            node, renewed[key] = self._renewed(node, read[key], cell)

        def swap(term: Term) -> Term:
            return renewed.get(term.id, term) if isinstance(term, Attribute) else term

        value = ids.named("value", rewritten(function.expression, swap))
        old = ids.named("old", function.result)
        return (Project(node, (passed(wanted), value, old)), value.attribute), wanted

    def truths(self, start: int, guard: Guard, own: Array) -> Array:
        """Return whether some conditions are true after the deletion: bool."""
        (node, value), wanted = self._function_rows(start, guard.function, own)
        found = self._store.fetch(node, [wanted, chosen(truth(value), LONG_ONE, LONG_ZERO)])
        numbers, truths = arrays_of(found.columns)
        made = np.zeros(len(own), bool)
        made[np.searchsorted(own, numbers - start)] = truths.astype(bool)
        return made

    def _compare(
        self, start: int, node: Node, number: Attribute, value: Attribute, standing: tuple[Any, Expression]
    ) -> None:
        """Keep the values that are not those that stand."""
        ids, store = self.query.ids, self._store
        table, column = standing
        before = ids.named("before", column)
        place = ids.named("place", Call("+", (table.number, Literal(start, LONG)), LONG, "ansi"))
        old = Project(table.node, (before, place))
        both = joined(Project(node, (passed(number), passed(value))), old, alike(number, place.attribute))
        differs = Call("not", (truth(_same(value, before.attribute)),), BOOLEAN)
        kept = store.executor.keep(Project(Filter(both, differs), (passed(number), passed(value))))
        (found,) = arrays_of(store.fetch(kept, [number]).columns)
        if len(found):
            self.changed[found] = True
            self._tables.setdefault(type_name(value), []).append(kept)

    def read(self, nodes: Array, kind: Type) -> dict[int, Any]:
        """The new values of changed nodes of one type, by node."""
        fresh = self._all(kind)
        if fresh is None or not len(nodes):
            return {}
        wanted = self.query.ids.attribute("wanted", LONG)
        node, number, value = fresh
        side = self._store.load({wanted: np.unique(nodes)})
        found = self._store.fetch(joined(side, node, alike(wanted, number)), [wanted, value])
        return dict(zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True))


def _repeated(node: Node, times: Attribute, most: int, number: Attribute) -> Node:
    """Every row as often as it is there."""
    if most <= 1:
        return node
    within = Call("<=", (number, times), BOOLEAN)
    return Join(node, Range(0, 1, most + 1, 1, number), "inner", within)


def _again(call: AggregateCall, argument: Expression | None, is_term: Expression) -> AggregateCall:
    """The aggregate over terms that are known to have a value."""
    if call.name in ("count", "exists"):
        counted = Literal(1, INTEGER) if argument is None else argument
        return AggregateCall("count", (counted,), LONG, filter=is_term)
    assert argument is not None
    if call.name == "row":
        return AggregateCall("max", (argument,), call.type, filter=is_term)
    return replace(call, arguments=(argument,), distinct=False, filter=is_term)


def _same(new: Attribute, old: Attribute) -> Expression:
    if not isinstance(new.type, (Scalar, DecimalType)):
        return Literal(False, BOOLEAN)  # lists are not compared: one whose terms changed is another one
    equal = alike(new, old)
    if new.type not in (FLOAT, DOUBLE):
        return equal
    kind = new.type
    distance = Call("abs", (Call("-", (new, old), kind, "ansi"),), kind)
    sizes = Call("+", (Call("abs", (new,), kind), Call("abs", (old,), kind)), kind, "ansi")
    near = Call("<=", (distance, Call("*", (sizes, Literal(TOLERANCE / 2, kind)), kind, "ansi")), BOOLEAN)
    is_finite = Call("<=", (distance, Literal(_LARGEST[kind], kind)), BOOLEAN)  # NaN and infinity are near to nothing
    return Call("or", (equal, Call("and", (is_finite, near), BOOLEAN)), BOOLEAN)

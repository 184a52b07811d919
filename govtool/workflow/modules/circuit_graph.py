"""Circuits of annotated queries as nodes of a provenance graph, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np  # noqa: TID253 - graphs are arrays; only what makes them imports this

from govtool.arrays.sets import Array
from govtool.records.plan.expressions import Attribute, Call, Cast, Expression, Literal, Udf
from govtool.records.plan.tree import walk
from govtool.records.plan.types import INTEGRAL, LONG, VOID
from govtool.workflow import vocabulary as terms
from govtool.workflow.annotate.circuit import (
    NONE,
    ONE,
    Block,
    Box,
    Circuit,
    Delta,
    Gate,
    Guard,
    Inputs,
    LimitGuard,
    Monus,
    Product,
    Sources,
    Sum,
    Terms,
    ValueFunction,
)
from govtool.workflow.builder import GraphBuilder

Resolve = Callable[[int, Array], Array]
"""Gives the graph nodes of a block of sources: its first circuit node, and places in the block."""
_AGGREGATES = {
    "count": "COUNT",
    "sum": "SUM",
    "min": "MIN",
    "max": "MAX",
    "avg": "AVG",
    "collect_list": "COLLECT",
    "collect_set": "COLLECT",
}
_STRUCTS = frozenset({"named_struct", "get field", "get fields"})
_NO_GRAPH_NODE = -1
"""The place of what has no node: 0, cells that are none, what nothing reads."""
_ALWAYS = -2
"""The place of 1: what hangs on nothing but the invocation."""


class CircuitWriter:
    """Writes the part of a circuit that some nodes are made of.

    Args:
        circuit: The circuit.
        builder: The graph.
        module: The module that the nodes belong to.
        invocation: The number of its invocation.
        invoked: The graph node of the invocation; what is there whatever goes is fed by it.
        resolve: Gives the nodes of sources.
        bags: Bags and the structs in them have nodes. Without, as in the paper, what reads a bag reads its rows.
    """

    def __init__(
        self,
        circuit: Circuit,
        builder: GraphBuilder,
        module: str,
        invocation: int,
        invoked: int,
        resolve: Resolve,
        *,
        bags: bool = True,
    ) -> None:
        self._circuit = circuit
        self._builder = builder
        self._own: dict[str, Any] = {"module": module, "invocation": invocation}
        self._invoked = invoked
        self._resolve = resolve
        self._places = np.full(circuit.size, _NO_GRAPH_NODE, np.int64)
        self._places[ONE] = _ALWAYS
        self._arrivals: dict[int, int] = {}
        self._needed = np.zeros(circuit.size, bool)
        self._bags = bags
        self._hidden = np.zeros(circuit.size, bool)

    def write(self, wanted: Array) -> Array:
        """Write nodes with all that they read.

        Args:
            wanted: Circuit nodes; ``NONE`` for none.

        Returns:
            The graph node of each circuit node; below 0 where there is none: -2 for what is 1, -1 for what is 0 and
            what nothing reads.
        """
        self._need(wanted)
        self._hide(np.unique(wanted))
        for start, block in reversed(list(self._circuit)):
            mask = self._needed[start : start + block.count]
            if mask.any():
                for nodes in _inputs(block, mask):
                    self._need(nodes)
        for start, block in self._circuit:
            chosen = np.flatnonzero(self._needed[start : start + block.count])
            if len(chosen) and not self._hidden[start]:
                self._write(start, block, chosen)
        return self._places

    def _need(self, nodes: Array) -> None:
        self._needed[nodes[nodes > ONE]] = True

    def _hide(self, wanted: Array) -> None:
        """Mark bags and structs that get no nodes: all but those that are cells of the result."""
        for start, block in self._circuit:
            if not self._bags and _is_bag(block):
                first, last = np.searchsorted(wanted, [start, start + block.count])
                self._hidden[start : start + block.count] = first == last

    def _opened(self, inputs: Array, made: Array) -> tuple[Array, Array]:
        """Edges into nodes, with the contents of bags in place of bags without nodes."""
        closed = ~(self._hidden[inputs] & (inputs >= 0))
        if closed.all():
            return inputs, made
        inner = [(inputs[closed], made[closed])]
        for start, block in self._circuit:
            own = ~closed & (inputs >= start) & (inputs < start + block.count)
            if own.any():
                parts = _contents(block, inputs[own] - start)
                inner += [self._opened(nodes, made[own][rows]) for nodes, rows in parts]
        pairs = np.concatenate([np.stack(each, 1) for each in inner])
        nodes, targets = np.unique(pairs, axis=0).T
        return nodes, targets

    # ---- blocks -----------------------------------------------------------------------------------------------------

    def _write(self, start: int, block: Block, chosen: Array) -> None:
        if isinstance(block, Sources):
            self._places[start + chosen] = self._resolve(start, chosen)
        elif isinstance(block, Product):
            self._product(start, block, chosen)
        elif isinstance(block, (Sum, Delta)):
            self._sum(start, block, chosen)
        elif isinstance(block, Monus):
            self._difference(start, block, chosen)
        elif isinstance(block, Guard):
            made = self._made(start, chosen, "op", guard_label(block.function.expression), black_box=True)
            self._compared(block.function, chosen, made)
        else:
            self._opaque_or_value(start, block, chosen)

    def _opaque_or_value(self, start: int, block: Block, chosen: Array) -> None:
        if isinstance(block, Terms):
            self._terms(start, block, chosen)
        elif isinstance(block, ValueFunction):
            values = _taken(block.table.read(block.result)[0], chosen)
            made = self._made(
                start,
                chosen,
                "val",
                terms.function_label(function_name(block.expression)),
                black_box=True,
                values=values,
            )
            self._operands(block, chosen, made)
        elif isinstance(block, Box):
            table, column = block.result
            made = self._made(
                start,
                chosen,
                "val",
                terms.function_label(block.label),
                black_box=True,
                values=_taken(table.read(column)[0], chosen),
            )
            self._edges(block.over[chosen], made)
            if block.cells is not None:
                self._list_edges(block.cells, chosen, made)
            self._gate(block.gate, made)
        elif isinstance(block, LimitGuard):
            made = self._made(start, chosen, "op", terms.function_label(block.label), black_box=True)
            self._edges(block.over[chosen], made)
            self._gate(block.gate, made)
        elif isinstance(block, Gate):
            made = self._made(start, chosen, "op", f"{terms.GATE} {block.what}", black_box=True)
            self._edges(block.watched, np.repeat(made, len(block.watched)))
            self._builder.edges(self._invoked, made)  # all that it watches may go; the gate stays

    def _sum(self, start: int, block: Sum | Delta, chosen: Array) -> None:
        """A sum; a gate of it is one more operand, which is 0 until it opens."""
        owners, places = block.inputs.expanded(chosen)
        sources = self._of(block.inputs.nodes[places])
        if block.gate == NONE:  # a sum of nothing is 0, which has no node
            chosen, owners, sources = _with_operands(chosen, owners, sources)
        made = self._made(start, chosen, "op", terms.PLUS if isinstance(block, Sum) else terms.DELTA)
        self._joined(sources, made[owners])
        always = made[owners[sources == _ALWAYS]]
        self._builder.edges(np.full(len(always), self._invoked), always)
        if block.gate != NONE:
            self._builder.edges(np.full(len(made), self._arrival(block.gate)), made)

    def _arrival(self, gate: int) -> int:
        """The tuples that a gate lets in: ``gate ⊖ invocation``, which is none until the gate is not certain."""
        if gate not in self._arrivals:
            self._arrivals[gate] = made = int(self._builder.nodes("op", terms.MONUS, **self._own)[0])
            self._edges(np.array([gate]), np.array([made]), terms.LEFT)
            self._builder.edges(self._invoked, made, terms.RIGHT)
        return self._arrivals[gate]

    def _difference(self, start: int, block: Monus, chosen: Array) -> None:
        """``left ⊖ right``; without a left edge the left operand is 1."""
        chosen = chosen[self._of(block.left[chosen]) != _NO_GRAPH_NODE]
        made = self._made(start, chosen, "op", terms.MONUS)
        self._edges(block.left[chosen], made, terms.LEFT)
        right = self._of(block.right[chosen])
        self._joined(right, made, terms.RIGHT)
        always = made[right == _ALWAYS]
        self._builder.edges(np.full(len(always), self._invoked), always, terms.RIGHT)

    def _product(self, start: int, block: Product, chosen: Array) -> None:
        """A product with 1 is its other factor, and needs no node; neither does one with 0."""
        left, right = self._of(block.left[chosen]), self._of(block.right[chosen])
        is_none = (left == _NO_GRAPH_NODE) | (right == _NO_GRAPH_NODE)
        alone = np.where(left == _ALWAYS, right, left)
        self._places[start + chosen] = np.where(is_none, _NO_GRAPH_NODE, alone)
        both = (left >= 0) & (right >= 0)
        made = self._made(start, chosen[both], "op", terms.TIMES)
        self._joined(left[both], made)
        self._joined(right[both], made)

    def _terms(self, start: int, block: Terms, chosen: Array) -> None:
        label = _AGGREGATES.get(block.call.name) or terms.function_label(block.call.name)
        opaque = block.call.name not in _AGGREGATES or block.around is not None or block.gate != NONE
        table, column = block.result
        values = _taken(table.read(column)[0], chosen)
        made = self._made(start, chosen, "val", label, black_box=opaque, values=values)
        owners, places = block.inputs.expanded(chosen)
        there = self._of(block.inputs.nodes[places]) != _NO_GRAPH_NODE
        owners, places = owners[there], places[there]
        tensors = self._builder.nodes("val", terms.TENSOR, len(places), **self._own)
        self._builder.edges(tensors, made[owners])
        self._edges(block.inputs.nodes[places], tensors)
        cells = np.full(len(places), NONE) if block.cells is None else block.cells[places]
        self._edges(cells, tensors)
        plain = cells == NONE
        if plain.any():
            constants = self._constants(block, block.rows[places][plain])
            self._builder.edges(constants, tensors[plain])
        if block.around is not None:
            self._edges(block.around[chosen], made)
        self._gate(block.gate, made)

    def _constants(self, block: Terms, rows: Array) -> Array:
        values: Any = np.ones(len(rows), np.int64)
        if block.argument is not None:
            values = _taken(block.table.read(block.argument)[0], rows)
        return self._builder.nodes("val", terms.CONSTANT, len(rows), values=values, **self._own)

    # ---- nodes and edges --------------------------------------------------------------------------------------------

    def _made(
        self, start: int, chosen: Array, kind: str, label: str, *, black_box: bool = False, values: Any = None
    ) -> Array:
        made = self._builder.nodes(kind, label, len(chosen), black_box=black_box, values=values, **self._own)
        self._places[start + chosen] = made
        return made

    def _of(self, nodes: Array) -> Array:
        return np.where(nodes >= 0, self._places[nodes], _NO_GRAPH_NODE)

    def _edges(self, inputs: Array, made: Array, side: int = terms.PLAIN) -> None:
        inputs, made = self._opened(inputs, made)
        self._joined(self._of(inputs), made, side)

    def _joined(self, sources: Array, made: Array, side: int = terms.PLAIN) -> None:
        there = sources >= 0
        self._builder.edges(sources[there], made[there], side)

    def _list_edges(self, inputs: Inputs, chosen: Array, made: Array) -> None:
        owners, places = inputs.expanded(chosen)
        self._edges(inputs.nodes[places], made[owners])

    def _gate(self, gate: int, made: Array) -> None:
        if gate != NONE:
            self._edges(np.full(len(made), gate), made)

    def _operands(self, function: ValueFunction, chosen: Array, made: Array) -> None:
        for _, nodes in function.cells:
            self._edges(nodes[chosen], made)

    def _compared(self, condition: ValueFunction, chosen: Array, made: Array) -> None:
        """The operands of a comparison. One that is computed in it gets a node: what it is made of is not compared."""
        for side, operand in zip((terms.LEFT, terms.RIGHT), _sides(condition.expression), strict=True):
            read = {term.id for term in walk(operand) if isinstance(term, Attribute)}
            cells = [nodes[chosen] for column, nodes in condition.cells if column in read]
            if is_copied(operand):
                for nodes in cells:
                    self._edges(nodes, made, side)
            elif cells:
                label = terms.function_label(function_name(operand))
                there = np.any([nodes != NONE for nodes in cells], axis=0)
                computed = self._builder.nodes("val", label, int(there.sum()), black_box=True, **self._own)
                for nodes in cells:
                    self._edges(nodes[there], computed)
                self._builder.edges(computed, made[there], side)


def _inputs(block: Block, mask: Array) -> list[Array]:
    """The circuit nodes that some nodes of a block read."""
    number: int = getattr(block, "gate", NONE)
    gate = [] if number == NONE else [np.array([number])]
    if isinstance(block, (Product, Monus)):
        return [block.left[mask], block.right[mask]]
    if isinstance(block, (Sum, Delta)):
        return [_of_lists(block.inputs, mask)[0], *gate]
    if isinstance(block, Terms):
        nodes, places = _of_lists(block.inputs, mask)
        more = [] if block.cells is None else [block.cells[places]]
        return [nodes, *more, *([] if block.around is None else [block.around[mask]]), *gate]
    if isinstance(block, (Guard, ValueFunction)):
        function = block.function if isinstance(block, Guard) else block
        return [nodes[mask] for _, nodes in function.cells]
    if isinstance(block, Box):
        more = [] if block.cells is None else [_of_lists(block.cells, mask)[0]]
        return [block.over[mask], *more, *gate]
    if isinstance(block, LimitGuard):
        return [block.over[mask], *gate]
    if isinstance(block, Gate):  # rows have nodes, so that a guard that goes with its row is told from others
        return [block.watched, *([] if block.placed is None else [block.placed])]
    return []


def _with_operands(chosen: Array, owners: Array, sources: Array) -> tuple[Array, Array, Array]:
    """Those sums that have an operand other than 0, and the operands under their new places."""
    there = sources != _NO_GRAPH_NODE
    used = np.bincount(owners[there], minlength=len(chosen)) > 0
    return chosen[used], (np.cumsum(used) - 1)[owners[there]], sources[there]


def _is_bag(block: Block) -> bool:
    if isinstance(block, Terms):
        return _AGGREGATES.get(block.call.name) == "COLLECT" and block.around is None and block.gate == NONE
    return isinstance(block, ValueFunction) and function_name(block.expression) in _STRUCTS


def _contents(block: Block, places: Array) -> Iterator[tuple[Array, Array]]:
    """The parts of bags and structs: nodes, and the position in ``places`` that each is a part of."""
    if isinstance(block, Terms):
        rows, terms_ = block.inputs.expanded(places)
        yield block.inputs.nodes[terms_], rows
        if block.cells is not None:
            yield block.cells[terms_], rows
    elif isinstance(block, ValueFunction):
        for _, nodes in block.cells:
            yield nodes[places], np.arange(len(places))


def _of_lists(inputs: Inputs, mask: Array) -> tuple[Array, Array]:
    _, places = inputs.expanded(np.flatnonzero(mask))
    return inputs.nodes[places], places


def _taken(column: Any, rows: Array) -> Any:
    import pyarrow as pa

    return column.take(pa.array(rows, pa.int64()))


def guard_label(condition: Expression) -> str:
    """The label of a guard: its comparison in brackets."""
    return f"[{function_name(condition)}]"


def function_name(expression: Expression) -> str:
    """The name of what computes a value: the outermost function, which may be the user's own."""
    if isinstance(expression, Udf):
        return expression.reference.qualname.rpartition(".")[2]
    return expression.name if isinstance(expression, Call) else type(expression).__name__.lower()


def _sides(condition: Expression) -> tuple[Expression, Expression]:
    """The operands of a comparison; what is no comparison is one, beside nothing."""
    if isinstance(condition, Call) and len(condition.arguments) == 2:
        return condition.arguments[0], condition.arguments[1]
    return condition, Literal(None, VOID)


def is_copied(operand: Expression) -> bool:
    """Return whether an operand has the value of a column, maybe as a wider integer."""
    if isinstance(operand, Cast) and operand.type == LONG and isinstance(operand.value, Attribute):
        return operand.value.type in INTEGRAL
    return isinstance(operand, Attribute)

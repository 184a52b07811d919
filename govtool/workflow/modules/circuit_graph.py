"""Circuits of annotated queries as nodes of a provenance graph, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np  # noqa: TID253 - graphs are arrays; only what makes them imports this

from govtool.arrays.sets import Array
from govtool.records.plan.expressions import Attribute, Call, Cast, Expression, Literal, Udf
from govtool.records.plan.tree import walk
from govtool.records.plan.types import INTEGRAL, LONG, VOID
from govtool.workflow import vocabulary as terms
from govtool.workflow.annotate.circuit import (
    FIRST_BLOCK,
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
from govtool.workflow.modules.shared_operators import Edges, OperatorBlocks, Place, SharedNodes

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
        shared: The nodes of other circuits of the invocation.
        blocks: Which blocks are of operators that those circuits have, too.
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
        shared: SharedNodes,
        blocks: OperatorBlocks,
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
        self._shared = shared
        self._blocks = blocks
        self._place: Place | None = None
        self._gates: dict[int, Place | None] = {}
        self._bags = bags
        self._is_bag = np.zeros(circuit.size, bool)
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
        for number, (start, block) in enumerate(self._circuit, FIRST_BLOCK):
            chosen = np.flatnonzero(self._needed[start : start + block.count])
            if len(chosen) and not self._hidden[start]:
                self._place = self._blocks.place(number)
                self._write(start, block, chosen)
        return self._places

    def _need(self, nodes: Array) -> None:
        self._needed[nodes[nodes > ONE]] = True

    def _hide(self, wanted: Array) -> None:
        """Mark bags and structs that get no nodes: all but those that are cells of the result."""
        for start, block in self._circuit:
            if not self._bags and _is_bag(block):
                first, last = np.searchsorted(wanted, [start, start + block.count])
                self._is_bag[start : start + block.count] = True
                self._hidden[start : start + block.count] = first == last

    def _opened(self, inputs: Array, made: Array) -> tuple[Array, Array]:
        """What nodes read, with the contents of bags in place of bags."""
        closed = ~(self._is_bag[inputs] & (inputs >= 0))
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
            label = guard_label(block.function.expression)
            self._put(start, chosen, "op", label, self._compared(block.function, chosen), black_box=True)
        else:
            self._opaque_or_value(start, block, chosen)

    def _opaque_or_value(self, start: int, block: Block, chosen: Array) -> None:
        if isinstance(block, Terms):
            self._terms(start, block, chosen)
        elif isinstance(block, ValueFunction):
            values = _taken(block.table.read(block.result)[0], chosen)
            edges = [self._read(nodes[chosen]) for _, nodes in block.cells]
            label = terms.function_label(function_name(block.expression))
            self._put(start, chosen, "val", label, edges, black_box=True, values=values)
        elif isinstance(block, Box):
            table, column = block.result
            edges = [self._read(block.over[chosen])]
            if block.cells is not None:
                owners, places = block.cells.expanded(chosen)
                edges.append(self._read(block.cells.nodes[places], owners))
            edges += self._gate(block.gate, len(chosen))
            values = _taken(table.read(column)[0], chosen)
            self._put(start, chosen, "val", terms.function_label(block.label), edges, black_box=True, values=values)
        elif isinstance(block, LimitGuard):
            edges = [self._read(block.over[chosen]), *self._gate(block.gate, len(chosen))]
            self._put(start, chosen, "op", terms.function_label(block.label), edges, black_box=True)
        elif isinstance(block, Gate):  # all that it watches may go; the gate stays
            edges = [self._read(block.watched, np.zeros(len(block.watched), np.int64)), self._invoking(np.array([0]))]
            self._put(start, chosen, "op", f"{terms.GATE} {block.what}", edges, black_box=True)
            self._gates[start] = self._place

    def _sum(self, start: int, block: Sum | Delta, chosen: Array) -> None:
        """A sum; a gate of it is one more operand, which is 0 until it opens."""
        owners, places = block.inputs.expanded(chosen)
        sources = self._of(block.inputs.nodes[places])
        if block.gate == NONE:  # a sum of nothing is 0, which has no node
            chosen, owners, sources = _with_operands(chosen, owners, sources)
        edges = [_nodes_only(sources, owners), self._invoking(owners[sources == _ALWAYS])]
        if block.gate != NONE:
            edges.append((np.full(len(chosen), self._arrival(block.gate)), np.arange(len(chosen)), terms.PLAIN))
        self._put(start, chosen, "op", terms.PLUS if isinstance(block, Sum) else terms.DELTA, edges)

    def _arrival(self, gate: int) -> int:
        """The tuples that a gate lets in: ``gate ⊖ invocation``, which is none until the gate is not certain."""
        if gate not in self._arrivals:
            edges = [self._read(np.array([gate]), side=terms.LEFT), self._invoking(np.array([0]), terms.RIGHT)]
            (made,), _ = self._made(self._gates.get(gate), "arrival", 1, "op", terms.MONUS, edges)
            self._arrivals[gate] = int(made)
        return self._arrivals[gate]

    def _difference(self, start: int, block: Monus, chosen: Array) -> None:
        """``left ⊖ right``; without a left edge the left operand is 1."""
        chosen = chosen[self._of(block.left[chosen]) != _NO_GRAPH_NODE]
        right = self._of(block.right[chosen])
        edges = [
            self._read(block.left[chosen], side=terms.LEFT),
            _nodes_only(right, np.arange(len(chosen)), terms.RIGHT),
            self._invoking(np.flatnonzero(right == _ALWAYS), terms.RIGHT),
        ]
        self._put(start, chosen, "op", terms.MONUS, edges)

    def _product(self, start: int, block: Product, chosen: Array) -> None:
        """A product with 1 is its other factor, and needs no node; neither does one with 0."""
        left, right = self._of(block.left[chosen]), self._of(block.right[chosen])
        is_none = (left == _NO_GRAPH_NODE) | (right == _NO_GRAPH_NODE)
        alone = np.where(left == _ALWAYS, right, left)
        self._places[start + chosen] = np.where(is_none, _NO_GRAPH_NODE, alone)
        both = (left >= 0) & (right >= 0)
        edges = [_nodes_only(side[both], np.arange(int(both.sum()))) for side in (left, right)]
        self._put(start, chosen[both], "op", terms.TIMES, edges)

    def _terms(self, start: int, block: Terms, chosen: Array) -> None:
        label = _AGGREGATES.get(block.call.name) or terms.function_label(block.call.name)
        opaque = block.call.name not in _AGGREGATES or block.around is not None or block.gate != NONE
        table, column = block.result
        values = _taken(table.read(column)[0], chosen)
        owners, places = block.inputs.expanded(chosen)
        there = self._of(block.inputs.nodes[places]) != _NO_GRAPH_NODE
        owners, places = owners[there], places[there]
        edges = [(self._tensors(block, places), owners, terms.PLAIN)]
        if block.around is not None:
            edges.append(self._read(block.around[chosen]))
        edges += self._gate(block.gate, len(chosen))
        self._put(start, chosen, "val", label, edges, black_box=opaque, values=values)

    def _tensors(self, block: Terms, places: Array) -> Array:
        """``t⊗v``; values that are no cells are constants, each of which has one reader."""
        cells = np.full(len(places), NONE) if block.cells is None else block.cells[places]
        edges = [self._read(block.inputs.nodes[places]), self._read(cells)]
        plain = np.flatnonzero(cells == NONE)
        constants: Any = np.ones(len(plain), np.int64)
        if block.argument is not None and len(plain):
            constants = _taken(block.table.read(block.argument)[0], block.rows[places[plain]])
        tensors, fresh = self._made(
            self._place, "term", len(places), "val", terms.TENSOR, edges, distinct_by=(constants, plain)
        )
        is_new = np.isin(plain, fresh)
        if is_new.any():
            own = _taken(constants, np.flatnonzero(is_new))
            made = self._builder.nodes("val", terms.CONSTANT, len(own), values=own, **self._own)
            self._builder.edges(made, tensors[plain[is_new]])
        return tensors

    # ---- nodes and edges --------------------------------------------------------------------------------------------

    def _put(
        self,
        start: int,
        chosen: Array,
        kind: str,
        label: str,
        edges: Sequence[Edges],
        *,
        black_box: bool = False,
        values: Any = None,
    ) -> None:
        """The nodes of a block."""
        distinct = None if values is None else (values, np.arange(len(chosen)))
        self._places[start + chosen], _ = self._made(
            self._place, "", len(chosen), kind, label, edges, black_box=black_box, values=values, distinct_by=distinct
        )

    def _made(
        self,
        place: Place | None,
        part: str,
        count: int,
        kind: str,
        label: str,
        edges: Sequence[Edges],
        *,
        black_box: bool = False,
        values: Any = None,
        distinct_by: tuple[Any, Array] | None = None,
    ) -> tuple[Array, Array]:
        """Nodes with what they read, and the positions of those that no other circuit has drawn."""

        def draw(fresh: Array) -> Array:
            own = values if values is None or len(fresh) == count else _taken(values, fresh)
            made = self._builder.nodes(kind, label, len(fresh), black_box=black_box, values=own, **self._own)
            drawn = np.full(count, NONE)
            drawn[fresh] = made
            for sources, owners, side in edges:
                is_new = drawn[owners] != NONE
                self._builder.edges(sources[is_new], drawn[owners[is_new]], side)
            return made

        if place is None:
            every = np.arange(count)
            return draw(every), every
        return self._shared.nodes((*place, part, label), count, edges, distinct_by, draw)

    def _of(self, nodes: Array) -> Array:
        return np.where(nodes >= 0, self._places[nodes], _NO_GRAPH_NODE)

    def _read(self, inputs: Array, owners: Array | None = None, side: int = terms.PLAIN) -> Edges:
        """Edges from circuit nodes; without owners each new node reads one of them."""
        nodes, owners = self._opened(inputs, np.arange(len(inputs)) if owners is None else owners)
        return _nodes_only(self._of(nodes), owners, side)

    def _invoking(self, owners: Array, side: int = terms.PLAIN) -> Edges:
        """Edges from the node of the invocation."""
        return np.full(len(owners), self._invoked), owners, side

    def _gate(self, gate: int, count: int) -> list[Edges]:
        return [] if gate == NONE else [self._read(np.full(count, gate))]

    def _compared(self, condition: ValueFunction, chosen: Array) -> list[Edges]:
        """The operands of a comparison. One that is computed in it gets a node: what it is made of is not compared."""
        edges = []
        for side, operand in zip((terms.LEFT, terms.RIGHT), _sides(condition.expression), strict=True):
            read = {term.id for term in walk(operand) if isinstance(term, Attribute)}
            cells = [nodes[chosen] for column, nodes in condition.cells if column in read]
            if is_copied(operand):
                edges += [self._read(nodes, side=side) for nodes in cells]
            elif cells:
                label = terms.function_label(function_name(operand))
                there = np.flatnonzero(np.any([nodes != NONE for nodes in cells], axis=0))
                inner = [self._read(nodes[there]) for nodes in cells]
                computed, _ = self._made(
                    self._place, f"operand {side}", len(there), "val", label, inner, black_box=True
                )
                edges.append((computed, there, side))
        return edges


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
    if isinstance(block, Gate):  # rows have nodes, so that a guard that goes with its row is distinct from others
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


def _nodes_only(sources: Array, owners: Array, side: int = terms.PLAIN) -> Edges:
    there = sources >= 0
    return sources[there], owners[there], side


def _taken(column: Any, rows: Array) -> Any:
    import pyarrow as pa

    if isinstance(column, np.ndarray):
        return column[rows]
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

"""Propagation of a deletion: the count of every p-node, as an interval where it is not certain.

A count is certain where everything below it is: tokens, ``+ · δ ⊖``, aggregates over terms that are certain, conditions
on values that are. What steers rows from outside of the annotation (positions of windows, limits, computed keys) makes
an interval, and says that rows may come that nothing stands for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.arrays.sets import Array
from govtool.records.sql.dialect import NotExact
from govtool.workflow.annotate.circuit import (
    NONE,
    ONE,
    Box,
    Decided,
    Delta,
    Gate,
    Guard,
    LimitGuard,
    Monus,
    Product,
    Sources,
    Sum,
    Terms,
    ValueFunction,
)
from govtool.workflow.annotate.query import AnnotatedQuery
from govtool.workflow.queries.values import NewValues

MANY = 1 << 40
"""An upper bound where there is none."""


@dataclass
class Survival:
    """A circuit after a deletion.

    Attributes:
        before: The count of every p-node before.
        low: The least count after.
        high: The greatest.
        unknown: v-nodes whose value is not known, and gates that are open.
        values: Values that changed.
        gains_possible: Rows may come that no candidate stands for.
        batch: Aggregates over the same terms that are still to be evaluated.
    """

    before: Array
    low: Array
    high: Array
    unknown: Array
    values: NewValues
    gains_possible: bool = False
    batch: list[tuple[int, Terms]] = field(default_factory=list)

    def finish_terms(self) -> None:
        """Evaluate the aggregates that are waiting."""
        blocks, self.batch = self.batch, []
        if blocks:
            _finished(self, blocks)

    def moved(self, nodes: Array) -> Array:
        """Which p-nodes are, or may be, there another number of times."""
        found: Array = (self.low[nodes] != self.before[nodes]) | (self.high[nodes] != self.before[nodes])
        return found

    def touched(self, nodes: Array) -> Array:
        """Which v-nodes have, or may have, another value; ``NONE`` has not."""
        found: Array = (nodes != NONE) & (self.values.changed[nodes] | self.unknown[nodes])
        return found

    def is_open(self, gate: int) -> bool:
        """Return whether a gate is open."""
        return gate != NONE and bool(self.unknown[gate])


def propagate(query: AnnotatedQuery, before: Array, gone: Array) -> Survival:
    """Delete source nodes.

    Args:
        query: The annotated query.
        before: Counts as things stand.
        gone: The nodes that are deleted.
    """
    size = query.circuit.size
    low = np.zeros(size, np.int64)
    low[ONE] = 1
    values = NewValues(query, np.zeros(size, bool))
    state = Survival(before, low, low.copy(), np.zeros(size, bool), values)
    for start, block in query.circuit:
        if isinstance(block, Terms):
            _terms(state, start, block)
            continue
        state.finish_terms()
        _RULES[type(block)](state, start, block)
        if isinstance(block, Sources):
            inside = gone[(gone >= start) & (gone < start + block.count)]
            state.low[inside] = state.high[inside] = 0
    state.finish_terms()
    return state


def _sources(state: Survival, start: int, block: Sources) -> None:
    state.low[start : start + block.count] = state.high[start : start + block.count] = 1


def _sum(state: Survival, start: int, block: Sum) -> None:
    own = slice(start, start + block.count)
    state.low[own] = block.inputs.sums(state.low[block.inputs.nodes])
    state.high[own] = np.minimum(block.inputs.sums(state.high[block.inputs.nodes]), MANY)
    if state.is_open(block.gate):
        state.high[own] = MANY


def _decided(state: Survival, start: int, block: Decided) -> None:
    _sum(state, start, block)
    if state.is_open(block.gate):
        state.low[start : start + block.count] = 0


def _delta(state: Survival, start: int, block: Delta) -> None:
    own = slice(start, start + block.count)
    state.low[own] = block.inputs.sums(state.low[block.inputs.nodes]) > 0
    state.high[own] = block.inputs.sums(state.high[block.inputs.nodes]) > 0
    if state.is_open(block.gate):
        state.high[own] = 1


def _product(state: Survival, start: int, block: Product) -> None:
    own = slice(start, start + block.count)
    state.low[own] = state.low[block.left] * state.low[block.right]
    left, right = state.high[block.left].astype(float), state.high[block.right].astype(float)
    state.high[own] = np.minimum(left * right, MANY).astype(np.int64)


def _monus(state: Survival, start: int, block: Monus) -> None:
    own = slice(start, start + block.count)
    state.low[own] = np.maximum(state.low[block.left] - state.high[block.right], 0)
    state.high[own] = np.maximum(state.high[block.left] - state.low[block.right], 0)


def _guard(state: Survival, start: int, block: Guard) -> None:
    own = np.arange(block.count)
    touched, unknown = _touched(state, block.function, own)
    truth = block.truth.copy()
    again = np.flatnonzero(touched & ~unknown)
    if len(again):
        try:
            truth[again] = state.values.truths(start, block, again)
        except NotExact:  # such as a division by what is 0 now: a re-run fails, too, or not
            unknown[again] = True
    state.low[start + own] = state.high[start + own] = truth
    state.low[start + own[unknown]], state.high[start + own[unknown]] = 0, 1


def _touched(state: Survival, function: ValueFunction, own: Array) -> tuple[Array, Array]:
    touched, unknown = np.zeros(len(own), bool), np.zeros(len(own), bool)
    for _, nodes in function.cells:
        touched |= state.touched(nodes)
        unknown |= (nodes != NONE) & state.unknown[nodes]
    if function.unsettled is not None:
        unknown |= touched & function.unsettled[own]
    if function.failing is not None:
        possible = state.high[function.failing.nodes] > 0
        touched, unknown = (touched | function.failing.absent)[own] & possible, unknown & possible
    return touched, unknown


def _function(state: Survival, start: int, block: ValueFunction) -> None:
    touched, unknown = _touched(state, block, np.arange(block.count))
    state.unknown[start : start + block.count] = unknown
    again = np.flatnonzero(touched & ~unknown)
    if len(again):
        try:
            state.values.functions(start, block, again)
        except NotExact:
            state.unknown[start + again] = True


def _terms(state: Survival, start: int, block: Terms) -> None:
    """Aggregates over the same terms, one block after the other, are evaluated in one query."""
    batch = state.batch
    if batch and not (batch[-1][1].inputs is block.inputs and _is_plain(block) and _is_plain(batch[-1][1])):
        state.finish_terms()
    state.batch.append((start, block))


def _is_plain(block: Terms) -> bool:
    return block.cells is None and block.around is None and block.call.name not in ("row", "exists")


def _finished(state: Survival, blocks: list[tuple[int, Terms]]) -> None:
    """Evaluate blocks over the same terms again."""
    affected, unknown = _lost_terms(state, blocks[0][1])
    for start, block in blocks:
        own = unknown | state.is_open(block.gate)
        state.unknown[start : start + block.count] = own
    by_gate: dict[bool, list[tuple[int, Terms]]] = {}
    for each in blocks:
        by_gate.setdefault(state.is_open(each[1].gate), []).append(each)
    again = np.flatnonzero(affected & ~unknown)
    if len(again) and by_gate.get(False):
        _evaluated(state, by_gate[False], again)


def _lost_terms(state: Survival, block: Terms) -> tuple[Array, Array]:
    """Return which values of a block lose or may lose a term, and which are not known for it: bool."""
    nodes = block.inputs.nodes
    moved = state.moved(nodes)
    doubtful = state.low[nodes] != state.high[nodes]
    if block.cells is not None:
        moved |= state.touched(block.cells)
        doubtful |= (block.cells != NONE) & state.unknown[block.cells] & (state.high[nodes] > 0)
    unknown = block.inputs.sums(doubtful) > 0
    if block.around is not None:
        unknown |= state.moved(block.around)
    if block.call.name == "row":
        unknown |= block.inputs.sums(state.high[nodes]) > 1
    return block.inputs.sums(moved) > 0, unknown


def _evaluated(state: Survival, blocks: list[tuple[int, Terms]], again: Array) -> None:
    try:
        state.values.aggregates(blocks, again, state.low)
    except NotExact:  # such as a sum that has no room
        if len(blocks) == 1:
            state.unknown[blocks[0][0] + again] = True
            return
        for each in blocks:
            _evaluated(state, [each], again)


def _box(state: Survival, start: int, block: Box) -> None:
    unknown = state.moved(block.over)
    if block.cells is not None:
        unknown |= block.cells.sums(state.touched(block.cells.nodes)) > 0
    if state.is_open(block.gate):
        unknown[:] = True
    state.unknown[start : start + block.count] = unknown


def _limit_guard(state: Survival, start: int, block: LimitGuard) -> None:
    own = np.arange(start, start + block.count)
    doubtful = np.zeros(block.count, bool) if block.steady else state.moved(block.over)
    if state.is_open(block.gate):
        doubtful[:] = True
    state.low[own] = ~doubtful
    state.high[own] = 1
    state.gains_possible |= bool(doubtful.any())


def _gate(state: Survival, start: int, block: Gate) -> None:
    nodes = block.watched
    if block.what == "grown":
        is_open = bool((state.high[nodes] > state.before[nodes]).any())
    elif block.what == "present":
        alive = block.alive if block.alive is not None else nodes
        is_open = bool(((state.low[nodes] < 1) & (state.high[alive] > 0)).any())
    elif block.what == "moved":
        is_open = bool(state.moved(nodes).any())
    else:
        is_open = bool((state.values.changed[nodes] | state.unknown[nodes]).any())
    state.unknown[start] = is_open
    state.gains_possible |= is_open


_RULES: dict[type, Callable[[Survival, int, Any], None]] = {
    Sources: _sources, Sum: _sum, Decided: _decided, Delta: _delta, Product: _product, Monus: _monus, Guard: _guard,
    ValueFunction: _function, Box: _box, LimitGuard: _limit_guard, Gate: _gate,
}  # fmt: skip

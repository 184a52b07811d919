"""By which way a taint came: shortest ways from a source to the nodes that have it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from govtool.arrays.csr import spread
from govtool.arrays.sets import distinct, distinct_nodes
from govtool.graph.index import Index
from govtool.model.kinds import EdgeKind
from govtool.policy.propagate import Propagation
from govtool.policy.taints import Mode, Taint, becomes

Array = np.ndarray[Any, np.dtype[Any]]


class TaintState(NamedTuple):
    """A taint at a node."""

    node: int
    mode: Mode
    taint: Taint


class Arrival(NamedTuple):
    """A state that was asked for, and the edges that lead to it."""

    state: TaintState
    edges: tuple[int, ...]


def moves(spread_: Propagation, state: TaintState, *, union_all: bool = False) -> Iterator[tuple[TaintState, int]]:
    """Return the next places of a taint, with their edges. The fixpoint of ``propagate`` is the closure of this."""
    index = spread_.index
    node, mode, taint = state
    rows = index.is_rows(node)
    around = [node]
    if not rows and len(index.nested):
        around += [*index.containers(node), *index.fields(node)]
    for source in around:
        for edge in index.out_edges(source):
            yield from _move(spread_, mode, taint, edge, any_column=False, union_all=union_all)
    if not rows and index.meta["opaque_rows"]:
        for edge in index.row_edges(index.node_dataset[node]):
            yield from _move(spread_, mode, taint, edge, any_column=True, union_all=union_all)


def _move(
    spread_: Propagation, mode: Mode, taint: Taint, edge: int, *, any_column: bool, union_all: bool
) -> Iterator[tuple[TaintState, int]]:
    index = spread_.index
    behind = becomes(mode, index.kind(edge), any_column=any_column, union_all=union_all)
    if behind is None or taint.stopped_by(spread_.possible.stops.get(edge, ())):
        return
    after: Taint | None = taint
    if mode is Mode.VALUE and behind is Mode.VALUE:
        after = spread_.after(taint, edge)
    if after is not None:
        yield TaintState(index.edge_target[edge], behind, after), edge


def ways(
    spread_: Propagation,
    starts: Iterable[TaintState],
    wanted: Collection[int],
    accept: Callable[[TaintState], bool],
    useful: Array | None = None,
    apart: Callable[[Taint], bool] = lambda taint: False,
) -> list[Arrival]:
    """Shortest ways from states to wanted nodes; one for each node and mode that is accepted, the strongest first.

    Args:
        spread_: The fixpoint.
        starts: Where to start, best first.
        wanted: Nodes.
        accept: Whether a state at a wanted node counts.
        useful: bool[nodes]: the nodes from which a wanted one can be reached (see ``leading_to``).
        apart: Taints for which this is true have ways of their own.
    """
    before: dict[TaintState, tuple[TaintState, int] | None] = dict.fromkeys(starts)
    found: dict[tuple[int, Mode, bool], TaintState] = {}
    frontier = list(before)
    while frontier:
        following = []
        for state in frontier:
            if state.node in wanted and accept(state):
                found.setdefault((state.node, state.mode, apart(state.taint)), state)
            for reached, edge in moves(spread_, state):
                if reached not in before and spread_.has(*reached) and (useful is None or useful[reached.node]):
                    before[reached] = (state, edge)
                    following.append(reached)
        frontier = following
    return [Arrival(state, _edges(before, state)) for _, state in sorted(found.items())]


def _edges(before: dict[TaintState, tuple[TaintState, int] | None], state: TaintState) -> tuple[int, ...]:
    edges = []
    while (step := before[state]) is not None:
        state, edge = step
        edges.append(edge)
    return tuple(reversed(edges))


def leading_to(index: Index, nodes: Iterable[int]) -> Array:
    """bool[nodes]: the nodes from which any of some nodes can be reached over edges of any kind."""
    a = index.arrays
    backward, back_edge = np.asarray(a["backward"]), np.asarray(a["backward_edge"])
    source, tag = np.asarray(a["edge_source"]), np.asarray(a["edge_tag"])
    dataset, base = np.asarray(a["node_dataset"]), np.asarray(a["dataset_base"])
    mark = np.zeros(index.node_count, bool)
    frontier = distinct(np.fromiter(nodes, np.int64))
    mark[frontier] = True
    while len(frontier):
        at, _ = spread(backward[frontier].astype(np.int64), backward[frontier + 1].astype(np.int64))
        edge = back_edge[at]
        start = source[edge].astype(np.int64)
        rows = base[dataset[start]] == start
        of = distinct(dataset[start[rows & ((tag[edge] & 15) != EdgeKind.READ)]])
        columns, _ = spread(base[of].astype(np.int64), base[of + 1].astype(np.int64))
        found = distinct_nodes([start, columns, *_around(index, start[~rows])], index.node_count)
        frontier = found[~mark[found]]
        mark[frontier] = True
    return mark


def _around(index: Index, nodes: Array) -> list[Array]:
    """Return the containers and the fields of some columns."""
    if not len(index.nested):
        return []
    return [np.array([*index.containers(n), *index.fields(n)], np.int64) for n in distinct(nodes).tolist()]

"""Shortest ways from a source to the nodes that have its taint: how columns came by their classes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from govtool.arrays.csr import spread
from govtool.arrays.numpy_threads import np
from govtool.arrays.sets import distinct, distinct_nodes
from govtool.graph.index import Index
from govtool.model.kinds import VALUE_FLOW, EdgeKind
from govtool.policy.classes.propagate import Propagation
from govtool.policy.classes.taints import Mode, Taint, becomes, possible_group
from govtool.query.evidence import WayStep, step

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


def moves(spread_: Propagation, state: TaintState) -> Iterator[tuple[TaintState, int]]:
    """Return the next places of a taint, with their edges. The fixpoint of ``propagate`` is the closure of this."""
    index = spread_.index
    node, mode, taint = state
    rows = index.is_rows(node)
    around = [node]
    if not rows and len(index.nested):
        around += [*index.containers(node), *index.fields(node)]
    for source in around:
        for edge in index.out_edges(source):
            yield from _move(spread_, mode, taint, edge, any_column=False)
    if not rows and index.meta["opaque_rows"]:
        for edge in index.row_edges(index.node_dataset[node]):
            yield from _move(spread_, mode, taint, edge, any_column=True)


def _move(
    spread_: Propagation, mode: Mode, taint: Taint, edge: int, *, any_column: bool
) -> Iterator[tuple[TaintState, int]]:
    index = spread_.index
    behind = becomes(mode, index.kind(edge), any_column=any_column)
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


@dataclass(frozen=True, slots=True)
class Classed:
    """A column (or the rows of a dataset) has a class."""

    column: str
    classes: tuple[str, ...]
    """The classes of its data now: the class at its source, or what declassifiers made of it."""
    origin: str
    """The class at its source."""
    mode: str
    """``value``, ``influence`` or ``unknown``."""
    passed: tuple[str, ...]
    """Declassifiers passed on the way."""
    source: str
    """The first column that has the class by itself."""
    steps: tuple[WayStep, ...]


def why(spread: Propagation, nodes: Collection[int], *, direct_only: bool = False) -> list[Classed]:
    """The classes of some nodes, each with its shortest way; sorted by column, mode and class.

    Args:
        spread: The fixpoint.
        nodes: Columns and row sets.
        direct_only: Leave out influences and what is unknown.
    """
    index, wanted = spread.index, frozenset(nodes)
    if not wanted:
        return []
    useful = leading_to(index, wanted)
    found: list[Classed] = []
    for name in sorted({*spread.seeds.names(), *spread.possible.seeds.names()}):
        for arrival in _arrivals(spread, name, wanted, useful, direct_only=direct_only):
            node, mode, taint = arrival.state
            source = index.name(node)
            if arrival.edges:
                source = _start(spread, arrival.edges[0], name)
            found.append(
                Classed(
                    column=index.name(node),
                    classes=tuple(sorted(spread.lowered(taint))),
                    origin=name,
                    mode=mode.name.lower(),
                    passed=tuple(sorted(taint.passed)),
                    source=source,
                    steps=tuple(step(index, e) for e in arrival.edges),
                )
            )
    order = [m.name.lower() for m in Mode]
    return sorted(found, key=lambda c: (c.column, order.index(c.mode), c.classes, c.origin))


def _arrivals(
    spread: Propagation, name: str, wanted: frozenset[int], useful: Array, *, direct_only: bool
) -> list[Arrival]:
    """The shortest ways of a class to nodes: from columns that have it by themselves, then from those that may."""
    taint, possible = Taint(name, 0, frozenset()), Taint(name, possible_group(0), frozenset())
    starts = [TaintState(n, Mode.VALUE, taint) for n in spread.seeds.having(name).tolist() if useful[n]]
    first = [start for start in starts if not _arrives(spread, start)]
    arrivals = ways(spread, first, wanted, lambda s: not direct_only or s.mode is Mode.VALUE, useful)
    # Columns of a circle have no first one.
    arrivals += _further(
        ways(spread, starts, wanted, lambda s: not direct_only or s.mode is Mode.VALUE, useful), arrivals
    )
    if not direct_only:
        unseen = spread.possible.seeds.having(name).tolist()
        hidden = (TaintState(n, Mode.UNKNOWN, possible) for n in unseen if useful[n])
        arrivals += _further(ways(spread, hidden, wanted, lambda s: True, useful), arrivals)
    return arrivals


def _further(found: Iterable[Arrival], known: Iterable[Arrival]) -> list[Arrival]:
    """The arrivals at nodes, and in modes, at which none is known yet."""
    arrived = {(a.state.node, a.state.mode) for a in known}
    return [a for a in found if (a.state.node, a.state.mode) not in arrived]


def _arrives(spread: Propagation, start: TaintState) -> bool:
    """Return whether a classified column gets its class from another column as well."""
    index, name = spread.index, start.taint.name
    family = [t for t in spread.taints if t.name == name and t.group == 0]
    for edge in index.in_edges(start.node):
        source = index.edge_source[edge]
        if index.kind(edge) not in VALUE_FLOW or source == start.node:
            continue
        around = (source, *index.containers(source), *index.fields(source))
        if any(spread.has(n, Mode.VALUE, t) for n in around for t in family):
            return True
    return False


def _start(spread: Propagation, edge: int, name: str) -> str:
    """The classified column where a way begins: the source of its first edge, or what that is a part of."""
    index = spread.index
    source = index.edge_source[edge]
    near = (source, *index.containers(source), *index.fields(source))
    fit = [n for n in near if name in spread.seeds.get(n, ())]
    if not fit and index.is_rows(source):
        fit = [n for n in index.columns(index.node_dataset[source]) if name in spread.seeds.get(n, ())]
    return index.name(fit[0] if fit else source)

"""Classes of columns, and the ways by which they came."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from govtool.model.kinds import VALUE_FLOW
from govtool.policy.propagate import Propagation
from govtool.policy.provenance_paths import Array, Arrival, TaintState, leading_to, ways
from govtool.policy.taints import Mode, Taint, possible_group
from govtool.query.evidence import WayStep, step


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
    """The classified column that a way's first edge leaves: the edge's source, or what it is part of."""
    index = spread.index
    source = index.edge_source[edge]
    near = (source, *index.containers(source), *index.fields(source))
    fit = [n for n in near if name in spread.seeds.get(n, ())]
    if not fit and index.is_rows(source):
        fit = [n for n in index.columns(index.node_dataset[source]) if name in spread.seeds.get(n, ())]
    return index.name(fit[0] if fit else source)

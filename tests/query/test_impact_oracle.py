"""Impact on random graphs with cycles against slow, obvious algorithms: networkx closures and fixpoints."""

from __future__ import annotations

from unittest.mock import patch

import networkx as nx
import pytest
from depth import examples
from graph_samples import DATASETS, graph, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.graph.builder.fold import FoldedGraph
from govtool.graph.index import Index
from govtool.graph.paths import ancestors
from govtool.graph.walks.rules import SourceRelation
from govtool.graph.walks.walk import walk
from govtool.model import CONTRIBUTED, Derivation, EdgeKind
from govtool.query.changes.change import CHANGES, Change, ReachState, goal, rules, seed_states
from govtool.query.changes.impact import expand, impact
from govtool.query.networkx import to_networkx
from govtool.query.path import paths
from govtool.query.selection.select import Subject

Node = tuple[str, str]
relaxed = settings(deadline=None, max_examples=examples(150))
derivations_ = random_graph()
subjects_ = st.integers(0, 10**6)
changes_ = st.sampled_from([Change(c, {"rename": "n", "retype": "geometry"}.get(c)) for c in CHANGES])


def subject(index: Index, number: int) -> Subject | None:
    """One of the columns that edges leave or enter, or else of any."""
    busy = {*index.edge_source, *index.edge_target}
    nodes = [n for n in range(index.node_count) if not index.is_rows(n)]
    nodes = [n for n in nodes if n in busy] or nodes
    if not nodes:
        return None
    node = nodes[number % len(nodes)]
    return Subject(index.node_dataset[node], node, index.name(node))


def pair(index: Index, about: Subject) -> Node:
    return index.dataset_name(about.dataset), index.path(about.node)


def closure_graph(index: Index, semantics: str) -> nx.DiGraph:
    """One arc for each step that the semantics allow, structs and opaque row sets spelled out."""
    full = to_networkx(index)
    arcs = nx.DiGraph()
    arcs.add_nodes_from(full)
    for source, target, data in full.edges(data=True):
        if data["kind"] is EdgeKind.UNION_ALL and semantics == "precise":
            continue
        starts = {source}
        if full.nodes[source]["rows"]:
            if data["kind"] is not EdgeKind.READ:
                starts |= {n for n in full if n[0] == source[0]}
        else:
            starts |= {
                n for n in full
                if n[0] == source[0] and (n[1] in ancestors(source[1]) or source[1] in ancestors(n[1]))
            }  # fmt: skip
        arcs.add_edges_from((start, target) for start in starts)
    return arcs


@relaxed
@given(derivations_, subjects_, st.sampled_from(["precise", "lineagex"]))
def test_what_logic_reaches_is_the_closure(derivations: list[Derivation], number: int, semantics: str) -> None:
    index = graph(*derivations)
    about = subject(index, number)
    if about is None:
        return
    arcs = closure_graph(index, semantics)
    start = (about.dataset, index.path(about.node))
    reached = {f"{index.dataset_name(n[0])}.{n[1]}" for n in nx.descendants(arcs, start) if not index.is_elided(n[0])}
    answer = impact(index, about, semantics=semantics)
    assert {entry.column for entry in answer.columns} == reached - {about.text}


@pytest.mark.parametrize("small", [0, 10**6])
@settings(deadline=None, max_examples=examples(60))
@given(derivations=derivations_)
def test_upstream_is_downstream_turned_round(small: int, derivations: list[Derivation]) -> None:
    index = graph(*derivations)
    nodes = [n for n in range(index.node_count) if not index.is_rows(n) and not index.is_unknown(n)]
    nodes = [n for n in nodes if not index.is_elided(index.node_dataset[n])]

    def listed(node: int, direction: str) -> set[int]:
        """The columns of an answer; what contains a field, or is part of it, is reached with it."""
        about = Subject(index.node_dataset[node], node, index.name(node))
        found = {e.node for e in expand(index, impact(index, about, direction=direction, small=small))}
        return {near for n in found for near in (n, *index.containers(n), *index.fields(n))}

    down, up = ({n: listed(n, direction) for n in nodes} for direction in ("down", "up"))
    for y in nodes:
        # Columns of the subject's own relation may lie on a cycle with it: it is never listed itself.
        others = {x for x in nodes if index.node_dataset[x] != index.node_dataset[y]}
        assert up[y] & others == {x for x in others if y in down[x]}, index.name(y)


def fixpoint(derivations: list[Derivation], index: Index, seeds: set[tuple[ReachState, Node]], change: Change) -> dict:
    """States and hops by relaxation until nothing changes; straight from derivations and ``change.goal``."""
    nodes = {(index.dataset_name(index.node_dataset[n]), index.path(n)) for n in range(index.node_count)}
    temporary = {d.target for d in derivations if d.target_kind == "temporary"}
    rows_state = ReachState.PASSES if change.kind == "rename" else ReachState.ROWS
    tops = {d: {n for n in nodes if n[0] == d and n[1] != "*" and not ancestors(n[1])} for d in DATASETS}
    edges = [(d, e.source, (d.target, e.target_path), e.kind, e.star) for d in derivations for e in d.edges]
    for d in derivations:
        reads = {e.source.dataset for e in d.edges if e.kind is EdgeKind.READ}
        for dataset in {e.source.dataset for e in d.edges} - reads - {d.target}:
            edges.append((d, (dataset, "*"), (d.target, "*"), EdgeKind.READ, False))

    def outputs(d: Derivation) -> set[Node]:
        return {(d.target, c.path) for c in d.columns} or {
            (d.target, e.target_path) for e in d.edges if e.target_path != "*"
        }

    def whole(d: Derivation) -> bool:
        made = {n for n in outputs(d) if n in tops[d.target]}
        return d.mode == "replace" or (d.mode == "append" and bool(made) and made == tops[d.target])

    def relation(node: Node, source: Node) -> SourceRelation | None:
        if node[0] != source[0]:
            return None
        if node == source:
            return SourceRelation.ROWS if node[1] == "*" else SourceRelation.SELF
        if node[1] == "*":
            return None
        if source[1] == "*":
            return SourceRelation.ANY_COLUMN
        if node[1] in ancestors(source[1]):
            return SourceRelation.PART
        return SourceRelation.WHOLE if source[1] in ancestors(node[1]) else None

    hops = dict.fromkeys(seeds, 0)

    def relax(key: tuple[ReachState, Node], before: int) -> bool:
        cost = before + (key[1][0] not in temporary)
        if cost < hops.get(key, cost + 1):
            hops[key] = cost
            return True
        return False

    busy = True
    while busy:
        busy = False
        for (state, node), cost in list(hops.items()):
            for d, source, target, kind, star in edges:
                how = relation(node, tuple(source))
                if how is None or kind is EdgeKind.UNION_ALL:
                    continue
                if state is ReachState.RETYPED and how is SourceRelation.SELF and kind in CONTRIBUTED:
                    copied = kind is EdgeKind.IDENTITY and target[1] != "*" and d.mode == "replace"
                    found = (ReachState.RETYPED if copied else ReachState.CHANGES, False)
                else:
                    found = goal(change.kind, state, how, kind, star=star)
                if found is None:
                    continue
                if not found[1]:
                    busy |= relax((found[0], target), cost)
                    continue
                if target[1] != "*":
                    busy |= relax((found[0], target), cost)
                elif not whole(d):  # of a statement without outputs the rows are all that there is to tell
                    busy |= relax((rows_state if outputs(d) else ReachState.ROWS, target), cost)
                for other in derivations:
                    if other.statement != d.statement:
                        continue
                    if whole(other):
                        busy |= relax((found[0], (other.target, "*")), cost)
                        continue
                    for output in outputs(other):
                        busy |= relax((found[0], output), cost)
                    if other.mode in ("append", "delete"):
                        busy |= relax((rows_state, (other.target, "*")), cost)
    return hops


@settings(deadline=None, max_examples=examples(250))
@given(derivations_, subjects_, changes_, st.booleans())
def test_states_and_hops_are_the_fixpoint_of_the_rules(
    derivations: list[Derivation], number: int, change: Change, large: bool
) -> None:
    with patch("govtool.graph.builder.build.fold", as_said):
        index = graph(*derivations)
    about = subject(index, number)
    if about is None:
        return
    start = seed_states(change)[0]
    n = index.node_count
    reach = walk(index, [start * n + about.node], rules(change), small=0 if large else 10**6)
    got = {
        (state, (index.dataset_name(index.node_dataset[i]), index.path(i))): reach.hops(state * n + i)
        for state in ReachState
        for i in range(n)
        if state * n + i in reach
    }
    if change.kind == "retype":
        from govtool.query.changes.types import retype_action

        reach = walk(
            index, [start * n + about.node], rules(change, check=lambda e: retype_action(index, "geometry", e)),
            small=0 if large else 10**6,
        )  # fmt: skip
        got = {
            (state, (index.dataset_name(index.node_dataset[i]), index.path(i))): reach.hops(state * n + i)
            for state in ReachState
            for i in range(n)
            if state * n + i in reach
        }
    assert got == fixpoint(derivations, index, {(start, pair(index, about))}, change)


def as_said(target, mode, group, time, resets, temporary, makes, edge_derivation, edge_source, datasets) -> FoldedGraph:
    """No fold: every derivation stands. The fold has tests of its own."""
    return FoldedGraph(mode >= 0, target, edge_source, [], frozenset())


@relaxed
@given(derivations_, subjects_, changes_, st.sampled_from(["down", "up"]), st.none() | st.integers(0, 3), st.booleans())
def test_both_walkers_give_the_same_answer(
    derivations: list[Derivation], number: int, change: Change, direction: str, depth: int | None, dataset: bool
) -> None:
    index = graph(*derivations)
    about = subject(index, number)
    if about is None:
        return
    if dataset and change.kind != "retype":
        about = Subject(about.dataset, None, index.dataset_name(about.dataset))
    arguments = {"direction": direction, "depth": depth, "change": change if direction == "down" else None}
    small = impact(index, about, **arguments)
    assert impact(index, about, **arguments, small=0) == small
    cut = impact(index, about, **arguments, small=0, limit=2)
    assert cut.columns == small.columns[:2]
    assert cut.summary == small.summary
    assert cut.truncated == len(small.columns) - len(cut.columns)
    for entry in small.columns:
        assert entry.hops == len(entry.via) == len(entry.path) - 1
        assert depth is None or entry.hops <= depth
        assert entry.evidence
        assert entry.kinds


@relaxed
@given(derivations_, subjects_, subjects_)
def test_paths_are_simple_and_as_short_as_can_be(derivations: list[Derivation], first: int, second: int) -> None:
    index = graph(*derivations)
    source, target = subject(index, first), subject(index, second)
    if source is None or target is None or source == target:
        return
    a, b = pair(index, source), pair(index, target)
    found = paths(index, source, target, 20)
    arcs = closure_graph(index, "precise")
    ends = {(target.dataset, b[1]), (target.dataset, "*")}
    start = (source.dataset, a[1])

    def price(_: object, node: tuple[int, str], __: object) -> int:
        return 0 if index.is_elided(node[0]) else 1

    lengths = nx.single_source_dijkstra_path_length(arcs, start, weight=price)
    reachable = [lengths[end] for end in ends if end in lengths]
    assert bool(found.ways) == bool(reachable)
    assert [w.length for w in found.ways] == sorted(w.length for w in found.ways)
    if reachable:
        assert found.ways[0].length == min(reachable)
    assert len({tuple(h.target for h in w.hops) for w in found.ways}) == len(found.ways)
    for way in found.ways:
        assert all(hop.steps and hop.evidence for hop in way.hops)


@pytest.mark.parametrize("change", ["drop", "rename:n", "retype:int", "logic"])
def test_no_change_reaches_less_than_logic_does(change: str) -> None:
    @relaxed
    @given(derivations_, subjects_)
    def check(derivations: list[Derivation], number: int) -> None:
        index = graph(*derivations)
        about = subject(index, number)
        if about is None:
            return
        covered = set()
        for entry in impact(index, about, change=Change.parse(change)).columns:
            covered.add(entry.column)
            if entry.is_rows:
                dataset = index.find_dataset(entry.dataset)
                covered |= {index.name(n) for n in index.columns(dataset)}
        assert {e.column for e in impact(index, about).columns} <= covered | {about.text}

    check()

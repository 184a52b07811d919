"""Propagation against its definition: reachability over states in networkx, spelled out slowly."""

from __future__ import annotations

import random
import threading
from collections import defaultdict

import networkx as nx
import numpy as np
import pytest
from depth import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from policy_samples import MASKS, TODAY, policy, random_graph, random_seeds

from govtool.app.versions.index import index_of
from govtool.arrays import threads
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.graph import order
from govtool.graph.paths import ancestors
from govtool.model import VALUE_FLOW, ColumnRef, Derivation, Edge, EdgeKind, OutputColumn, Statement
from govtool.policy.classes import fixpoint
from govtool.policy.classes.propagate import propagate
from govtool.policy.classes.taints import Mode
from govtool.policy.classes.transfer import transfers
from govtool.query.networkx import to_networkx
from govtool.query.selection.patterns import ColumnPaths

POLICY = policy(MASKS)
relaxed = settings(
    deadline=None, max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture]
)

VALUE, INFLUENCE, UNKNOWN = Mode

WAYS = {
    "frontiers": {"SWEEP": 0},
    "a sweep": {"SWEEP": 10**9, "MOST": 1},
    "a sweep by threads": {"SWEEP": 10**9, "MOST": 3, "PART": 1, "FEW": 1},
}
"""By what the fixpoint is reached; in small parts, so that small graphs have many."""


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """All ways in turn."""
    set_way(monkeypatch, request.param)
    return request.param


def set_way(monkeypatch, name: str) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 3)
    for constant, value in WAYS[name].items():
        home = next(module for module in (fixpoint, threads, order) if hasattr(module, constant))
        monkeypatch.setattr(home, constant, value)


def lowered(
    name: str, passed: frozenset[str], data: dict, groups: dict[int, int | None], doubtful: set[int]
) -> frozenset[str] | None:
    """The declassifiers of MASKS, written out by hand; ``k?`` where it is not known whether a group is large enough."""
    if "detokenize" in data["functions"]:
        passed -= {"keyed"}
    masked = bool(passed - {"k?"})
    if "tokenize" in data["functions"] and name in ("p.contact", "h"):
        passed |= {"keyed"}
        masked = True
    if "sha2" in data["functions"] and (name == "p.contact" or (masked and name != "p.id")):
        passed |= {"hashed"}
        masked = True
    counted = data["kind"] is EdgeKind.AGGREGATION and "count" in data["functions"] and "max" not in data["functions"]
    if counted and (groups.get(data["derivation"]) or 0) >= 5 and (name.startswith("p.") or masked):
        return passed | {"k?"} if data["derivation"] in doubtful else None
    return passed


def joined_rows(index, graph, groups) -> set[int]:
    """Derivations whose rows are those of a join, or are made of some."""
    rows = {node for node in graph if graph.nodes[node]["rows"]}
    reads = nx.DiGraph()
    reads.add_nodes_from(rows)
    joined, read, tied = set(), defaultdict(set), defaultdict(set)
    for source, target, data in graph.edges(data=True):
        if target in rows:
            made = data["derivation"], target
            if data["kind"] is EdgeKind.READ:
                reads.add_edge(source, target)
                read[made].add(source[0])
            elif data["kind"] in (EdgeKind.JOIN, EdgeKind.FILTER):
                tied[made].add(source[0])
            if data["kind"] is EdgeKind.JOIN:
                joined.add(target)
    joined |= {made[1] for made, datasets in read.items() if len(datasets) > 1 and datasets - tied[made]}
    before = {node: node in joined or not joined.isdisjoint(nx.ancestors(reads, node)) for node in rows}
    found = set()
    for derivation in groups:
        counted = index.statement(derivation).min_group_of
        sources = {
            source
            for source, target, data in graph.edges(data=True)
            if target in rows and data["kind"] is EdgeKind.READ and data["derivation"] == derivation
        }
        if any(one.joined for one in counted) or any(before[source] for source in sources):
            found.add(derivation)
    return found


def naive(index, seeds) -> set:
    """Every (node, mode, class, passed) that is reached."""
    graph = to_networkx(index)
    keys = list(graph)
    groups = {d: index.statement(d).min_group for d in set(index.edge_derivation)}
    chosen = {  # of a group some are taken in
        (data["derivation"], target)
        for _, target, data in graph.edges(data=True)
        if data["kind"] in (EdgeKind.CONDITIONAL, EdgeKind.WINDOW)
    }
    read, tied = defaultdict(set), defaultdict(set)
    for source, target, data in graph.edges(data=True):
        if graph.nodes[target]["rows"]:
            if data["kind"] is EdgeKind.READ:
                read[data["derivation"]].add(source[0])
            elif data["kind"] in (EdgeKind.JOIN, EdgeKind.FILTER):
                tied[data["derivation"]].add(source[0])
    for derivation, datasets in read.items():  # joined without a condition, rows are counted again
        if len(datasets) > 1 and datasets - tied[derivation]:
            groups[derivation] = None
    doubtful = joined_rows(index, graph, groups)
    number = {key: i for i, key in enumerate(keys)}
    states = nx.DiGraph()

    def successors(state):
        node, mode, name, passed = state
        key = keys[node]
        around = {key}
        if not graph.nodes[key]["rows"]:
            around |= {
                n for n in keys
                if n[0] == key[0] and not graph.nodes[n]["rows"] and (n[1] in ancestors(key[1]) or key[1] in ancestors(n[1]))
            }  # fmt: skip
        for one in around:
            for _, target, data in graph.out_edges(one, data=True):
                kind = data["kind"]
                if kind is EdgeKind.UNION_ALL:
                    continue
                if kind is EdgeKind.OPAQUE or mode is UNKNOWN:
                    yield number[target], UNKNOWN, name, passed
                elif mode is VALUE and kind in VALUE_FLOW:
                    whole = {} if (data["derivation"], target) in chosen else groups
                    after = lowered(name, passed, data, whole, doubtful)
                    if after is not None:
                        yield number[target], VALUE, name, after
                elif mode is VALUE and kind is EdgeKind.READ:
                    continue
                else:
                    yield number[target], INFLUENCE, name, passed
        if not graph.nodes[key]["rows"]:
            for _, target, data in graph.out_edges((key[0], "*"), data=True):
                if data["kind"] not in (EdgeKind.READ, EdgeKind.UNION_ALL):
                    yield number[target], UNKNOWN, name, passed

    stack = [(n, VALUE, name, frozenset()) for n, names in seeds.items() for name in names]
    states.add_nodes_from(stack)
    starts = list(stack)
    while stack:
        state = stack.pop()
        for other in successors(state):
            if other not in states:
                stack.append(other)
            states.add_edge(state, other)
    return set(starts).union(*(nx.descendants(states, s) for s in starts))


def reached(index, seeds, edge_transfers=None) -> set:
    moved = edge_transfers or transfers(index, (d.value for d in POLICY.declassify), TODAY, ColumnPaths(index))
    spread = propagate(index, POLICY.lattice, moved, seeds)
    return {
        (node, mode, taint.name, taint.passed | {f"{name}?" for name in taint.unsure})
        for mode in Mode
        for taint in spread.taints
        for node in spread.having(mode, [taint]).tolist()
    }


@relaxed
@given(random_graph(), st.data())
def test_propagation_is_the_naive_fixpoint(way, derivations, data):
    index = index_of(derivations)
    seeds = data.draw(random_seeds(index))
    assert reached(index, seeds) == naive(index, seeds)


@relaxed
@given(random_graph(), st.data())
def test_propagation_is_monotone_and_the_union_of_its_parts(way, derivations, data):
    index = index_of(derivations)
    one, other = data.draw(random_seeds(index)), data.draw(random_seeds(index))
    both = {n: tuple({*one.get(n, ()), *other.get(n, ())}) for n in {*one, *other}}
    assert reached(index, one) <= reached(index, both)
    assert reached(index, both) == reached(index, one) | reached(index, other)


@relaxed
@given(random_graph(), st.data())
def test_the_order_of_what_is_said_does_not_matter(way, derivations, data):
    index = index_of(derivations)
    seeds = data.draw(random_seeds(index))
    shuffled = list(derivations)
    random.Random(7).shuffle(shuffled)
    other = index_of(shuffled)
    names = {index.ref(n): c for n, c in seeds.items() if not index.is_elided(index.node_dataset[n])}
    again = {other.find(ref): classes for ref, classes in names.items()}
    seeds = {index.find(ref): classes for ref, classes in names.items()}

    def reported(graph, found):
        return sorted((graph.name(n), m, c, tuple(sorted(p))) for n, m, c, p in found)

    if {d.target_kind for d in derivations} == {"table"}:
        assert reported(index, reached(index, seeds)) == reported(other, reached(other, again))


@relaxed
@given(random_graph(), st.data())
def test_more_classes_than_a_word_has_bits(way, derivations, data):
    index = index_of(derivations)
    seeds = data.draw(random_seeds(index))
    if not seeds:
        return
    many = {n: (*c, *(f"p.n{i}" for i in range(90))) for n, c in seeds.items()}
    found = reached(index, many)
    assert {f for f in found if not f[2].startswith("p.n")} == reached(index, seeds)
    assert len({f[2] for f in found if f[2].startswith("p.n")}) == 90


def test_what_a_column_decides_over_itself_is_found(way):
    text = """
        create table b (y text); create table a (y text);
        insert into a (y) select y from b;
        update a set y = case when y = 'x' then 'z' end;
        create table c as select y from a
    """
    index = index_of(extract([Script("q.sql", text)], Options(dialect="postgres")).derivations)
    found = reached(index, {index.find(ColumnRef("b", "y")): ("p.id",)})
    reported = {(index.name(node), mode) for node, mode, _, _ in found}
    assert {("a.y", VALUE), ("a.y", INFLUENCE), ("c.y", VALUE), ("c.y", INFLUENCE)} <= reported


def made_of(target: str, number: int, edges: list[Edge]) -> Derivation:
    statement = Statement(f"f{number}", "insert", "postgres", f"{number}.sql")
    return Derivation(target, "table", "append", statement, (OutputColumn("x"),), edges=tuple(edges))


def warehouse(datasets: int, seed: int) -> list[Derivation]:
    """Tables of tables before them, some of later ones or of themselves; nodes that many edges enter."""
    rng = random.Random(seed)
    kinds = [EdgeKind.IDENTITY] * 4 + [EdgeKind.CONDITIONAL]
    found = []
    for number in range(10, datasets):
        edges = []
        for _ in range(rng.choice((1, 3, 30))):
            other = rng.randrange(number) if rng.random() < 0.97 else rng.randrange(datasets)
            source = ColumnRef(f"t{other}", rng.choice("xyz"))
            edges.append(Edge(source, rng.choice("xxxxyz"), rng.choice(kinds)))
        edges.append(Edge(ColumnRef(f"t{rng.randrange(number)}", "x"), "*", EdgeKind.FILTER))
        edges.append(Edge(ColumnRef(f"t{rng.randrange(number)}", "y"), "x", EdgeKind.OPAQUE, reason="opaque"))
        found.append(made_of(f"t{number}", number, edges))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_all_ways_reach_the_same_bits(seed):
    index = index_of(warehouse(300, seed))
    columns = [n for n in range(index.node_count) if not index.is_rows(n)]
    seeds = {n: (f"p.n{i}",) for i, n in enumerate(random.Random(seed).sample(columns, 90))}
    moved = transfers(index, (d.value for d in POLICY.declassify), TODAY, ColumnPaths(index))
    found = {}
    for name in WAYS:
        with pytest.MonkeyPatch.context() as patch:
            set_way(patch, name)
            found[name] = [propagate(index, POLICY.lattice, moved, seeds).sets for _ in range(3)]
    first = found["frontiers"][0]
    assert len(first) == 2
    assert all(any(word[mode].any() for word in first) for mode in Mode)
    for rounds in found.values():
        for sets in rounds:
            np.testing.assert_array_equal(sets, first)


def chain(width: int) -> list[Derivation]:
    """Many tables of one, and one of them all."""
    every = [ColumnRef(f"m{i}", "x") for i in range(width)]
    middle = [
        made_of(one.dataset, i, [Edge(ColumnRef("a", "x"), "x", EdgeKind.IDENTITY)]) for i, one in enumerate(every)
    ]
    return [*middle, made_of("z", width, [Edge(one, "x", EdgeKind.IDENTITY) for one in every])]


def test_parts_are_worked_on_by_threads_and_what_goes_wrong_there_is_told(monkeypatch):
    set_way(monkeypatch, "a sweep by threads")
    index = index_of(chain(20))
    pull, used = fixpoint.Word._pull, set()

    def watched(word, part):
        used.add(threading.current_thread() is threading.main_thread())
        return pull(word, part)

    monkeypatch.setattr(fixpoint.Word, "_pull", watched)
    seeds = {index.find(ColumnRef("a", "x")): ("p.id",)}
    assert (index.find(ColumnRef("z", "x")), VALUE, "p.id", frozenset()) in reached(index, seeds)
    assert used == {True, False}, "a level of one part is no work for threads"

    def failing(word, part):
        if threading.current_thread() is not threading.main_thread():
            raise MemoryError("no room")
        return pull(word, part)

    monkeypatch.setattr(fixpoint.Word, "_pull", failing)
    with pytest.raises(MemoryError, match="no room"):
        reached(index, seeds)


@pytest.mark.parametrize(("cores", "part"), [(1, 1), (3, order.PART)])
def test_one_core_or_little_to_do_needs_no_threads(cores, part, monkeypatch):
    set_way(monkeypatch, "a sweep by threads")
    monkeypatch.setattr(threads, "cores", lambda: cores)
    monkeypatch.setattr(order, "PART", part)
    monkeypatch.setattr(threading.Thread, "start", lambda thread: pytest.fail("a thread was started"))
    index = index_of(chain(20))
    seeds = {index.find(ColumnRef("a", "x")): ("p.id",)}
    assert (index.find(ColumnRef("z", "x")), VALUE, "p.id", frozenset()) in reached(index, seeds)

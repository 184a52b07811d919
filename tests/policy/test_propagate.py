"""Propagation against its definition: reachability over states in networkx, spelled out slowly."""

from __future__ import annotations

import random

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_samples import MASKS, TODAY, policy, random_graph, random_seeds

from govtool.app.index import index_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.graph.paths import ancestors
from govtool.model import VALUE_FLOW, ColumnRef, EdgeKind
from govtool.policy import fixpoint
from govtool.policy.propagate import propagate
from govtool.policy.tokens import Mode
from govtool.policy.transfer import transfers
from govtool.query.networkx import to_networkx
from govtool.query.patterns import ColumnPaths

POLICY = policy(MASKS)
relaxed = settings(deadline=None, max_examples=150)

VALUE, INFLUENCE, UNKNOWN = Mode


def lowered(name: str, passed: frozenset[str], data: dict, groups: dict[int, int | None]) -> frozenset[str] | None:
    """The declassifiers of MASKS, written out by hand."""
    masked = bool(passed)
    if "tokenize" in data["functions"] and name in ("p.contact", "h"):
        passed |= {"keyed"}
        masked = True
    if "sha2" in data["functions"] and (name == "p.contact" or (masked and name != "p.id")):
        passed |= {"hashed"}
        masked = True
    counted = data["kind"] is EdgeKind.AGGREGATION and "count" in data["functions"] and "max" not in data["functions"]
    if counted and (groups[data["derivation"]] or 0) >= 5 and (name.startswith("p.") or masked):
        return None
    return passed


def naive(index, seeds, union_all=False) -> set:
    """Every (node, mode, class, passed) that is reached."""
    graph = to_networkx(index)
    keys = list(graph)
    groups = {d: index.statement(d).min_group for d in set(index.edge_derivation)}
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
                if kind is EdgeKind.UNION_ALL and not union_all:
                    continue
                if kind is EdgeKind.OPAQUE or mode is UNKNOWN:
                    yield number[target], UNKNOWN, name, passed
                elif mode is VALUE and kind in VALUE_FLOW:
                    after = lowered(name, passed, data, groups)
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
        (node, mode, token.name, token.passed)
        for mode in Mode
        for token in spread.tokens
        for node in spread.having(mode, [token]).tolist()
    }


@relaxed
@given(random_graph(), st.data())
def test_propagation_is_the_naive_fixpoint(derivations, data):
    index = index_of(derivations)
    seeds = data.draw(random_seeds(index))
    assert reached(index, seeds) == naive(index, seeds)


@relaxed
@given(random_graph(), st.data())
def test_propagation_is_monotone_and_the_union_of_its_parts(derivations, data):
    index = index_of(derivations)
    one, other = data.draw(random_seeds(index)), data.draw(random_seeds(index))
    both = {n: tuple({*one.get(n, ()), *other.get(n, ())}) for n in {*one, *other}}
    assert reached(index, one) <= reached(index, both)
    assert reached(index, both) == reached(index, one) | reached(index, other)


@relaxed
@given(random_graph(), st.data())
def test_the_order_of_what_is_said_does_not_matter(derivations, data):
    index = index_of(derivations)
    seeds = data.draw(random_seeds(index))
    shuffled = list(derivations)
    random.Random(7).shuffle(shuffled)
    other = index_of(shuffled)
    names = {index.ref(n): c for n, c in seeds.items() if not index.is_elided(index.node_dataset[n])}
    again = {other.find(ref): classes for ref, classes in names.items()}
    seeds = {index.find(ref): classes for ref, classes in names.items()}

    def told(graph, found):
        return sorted((graph.name(n), m, c, tuple(sorted(p))) for n, m, c, p in found)

    if {d.target_kind for d in derivations} == {"table"}:
        assert told(index, reached(index, seeds)) == told(other, reached(other, again))


@relaxed
@given(random_graph(), st.data())
def test_more_classes_than_a_word_has_bits(derivations, data):
    index = index_of(derivations)
    seeds = data.draw(random_seeds(index))
    if not seeds:
        return
    many = {n: (*c, *(f"p.n{i}" for i in range(90))) for n, c in seeds.items()}
    found = reached(index, many)
    assert {f for f in found if not f[2].startswith("p.n")} == reached(index, seeds)
    assert len({f[2] for f in found if f[2].startswith("p.n")}) == 90


def test_what_a_column_decides_over_itself_is_found_by_a_sweep_too(monkeypatch):
    monkeypatch.setattr(fixpoint, "SWEEP", 10**9)
    text = """
        create table b (y text); create table a (y text);
        insert into a (y) select y from b;
        update a set y = case when y = 'x' then 'z' end;
        create table c as select y from a
    """
    index = index_of(extract([Script("q.sql", text)], Options(dialect="postgres")).derivations)
    found = reached(index, {index.find(ColumnRef("b", "y")): ("p.id",)})
    told = {(index.name(node), mode) for node, mode, _, _ in found}
    assert {("a.y", VALUE), ("a.y", INFLUENCE), ("c.y", VALUE), ("c.y", INFLUENCE)} <= told

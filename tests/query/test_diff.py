"""The difference of two versions, against the difference of two graphs as networkx sees them."""

from __future__ import annotations

import zlib
from dataclasses import replace

import pytest
from graph_samples import graph, random_graph, view
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from govtool.app.diff import diff_commits
from govtool.app.index import open_index
from govtool.model.columnar import DERIVATIONS, encode
from govtool.query.diff import difference, facts
from govtool.query.networkx import to_networkx
from govtool.store import Changes, Fragment, Store


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path))


def commit(store, derivations, source="etl"):
    """Files spread over three fragments, as an ingest does."""
    buckets = {}
    for derivation in derivations:
        buckets.setdefault(zlib.crc32(derivation.statement.file.encode()) % 3, []).append(derivation)
    fragments = tuple(Fragment(source, DERIVATIONS, encode(part), len(part)) for _, part in sorted(buckets.items()))
    return store.commit(Changes((source,), fragments), message="", author="", batch="").commit


def edges(index):
    found = to_networkx(index)
    names = dict(found.nodes(data="name"))
    return {(names[start], names[end], kind.label) for start, end, kind in found.edges(data="kind")}


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(random_graph(), random_graph(), st.sets(st.integers(0, 6)), st.booleans())
def test_it_is_the_difference_of_the_graphs(before, after, kept, indexed):
    """Some files stay as they are; their fragments may be shared, or not."""
    files = {f"{number}.sql" for number in kept}
    after = [d for d in before if d.statement.file in files] + [d for d in after if d.statement.file not in files]
    store = Store.init("memory://")
    old, new = commit(store, before), commit(store, after)
    if indexed:
        open_index(store, old), open_index(store, new)
    found = diff_commits(store, old, new)
    left, right = graph(*before), graph(*after)
    assert found == difference(facts(left), facts(right))
    told = {(c.change, c.source, c.name, c.kind) for c in found.changes if c.what == "edge" and c.change != "changed"}
    assert told == {("removed", *e) for e in edges(left) - edges(right)} | {
        ("added", *e) for e in edges(right) - edges(left)
    }
    assert diff_commits(store, new, new).changes == ()


def test_every_change_has_the_statement_that_caused_it():
    old = view("v", "x y:int", "t.a -> x identity", "t.b -> y identity", file="v.sql", line=3, fingerprint="1")
    new = view("v", "x z:text", "t.a -> x aggregation", "t.c -> z identity", file="v.sql", line=9, fingerprint="2")
    found = difference(facts(graph(old)), facts(graph(new)))
    assert {(c.change, c.what, c.source, c.name) for c in found.changes} == {
        ("added", "column", None, "t.c"),
        ("removed", "column", None, "t.b"),
        ("added", "column", None, "v.z"),
        ("removed", "column", None, "v.y"),
        ("removed", "edge", "t.a", "v.x"),
        ("added", "edge", "t.a", "v.x"),
        ("removed", "edge", "t.b", "v.y"),
        ("added", "edge", "t.c", "v.z"),
    }
    for change in found.changes:
        assert change.evidence[0].line == (9 if change.change == "added" else 3)


def test_a_type_that_changes():
    old, new = view("v", "x:int", "t.a -> x identity"), view("v", "x:text", "t.a -> x identity", fingerprint="new")
    (change,) = difference(facts(graph(old)), facts(graph(new))).changes
    assert (change.what, change.change, change.name) == ("column", "changed", "v.x")
    assert (change.before, change.after) == ("int", "text")


def test_a_table_that_becomes_a_view():
    new = view("v", "x", "t.a -> x identity")
    old = replace(new, target_kind="table")
    (change,) = difference(facts(graph(old)), facts(graph(new))).changes
    assert (change.what, change.before, change.after) == ("dataset", "table", "view")


def test_it_costs_the_change(monkeypatch):
    """With the indexes at hand, only fragments that differ are read, however many there are."""
    store = Store.init("memory://")
    for n in range(40):
        commit(store, [view(f"v{n}", "x", "t.a -> x identity", fingerprint=str(n))], source=f"s{n}")
    old = store.head()
    new = commit(store, [view("v7", "x", "t.b -> x identity", fingerprint="other")], source="s7")
    open_index(store, old), open_index(store, new)
    read = []
    real = Store.read_many
    monkeypatch.setattr(Store, "read_many", lambda self, refs: read.extend(refs) or real(self, refs))
    assert len(diff_commits(store, old, new).changes) == 3
    assert len(read) == 2

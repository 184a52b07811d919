"""The difference of two versions, against the difference of two graphs as networkx sees them."""

from __future__ import annotations

import zlib

import pytest
from depth import examples
from graph_samples import DATASETS, edge, graph, random_edge, random_graph, view
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from govtool.app.questions.diff import diff_commits
from govtool.app.versions.index import open_index
from govtool.model import ColumnRef, Edge, EdgeKind, OutputColumn, columnar
from govtool.model.columnar import DERIVATIONS, encode
from govtool.query.networkx import to_networkx
from govtool.query.versions.diff import Difference, difference, facts, unlike
from govtool.query.versions.statements import statement_changes
from govtool.store import Changes, Fragment, Store


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path))


def commit(store, derivations, source="etl", cut=0):
    """Files spread over three fragments, as an ingest does; in another way for each ``cut``."""
    buckets = {}
    for derivation in derivations:
        buckets.setdefault(zlib.crc32(f"{derivation.statement.file}{cut}".encode()) % 3, []).append(derivation)
    fragments = tuple(Fragment(source, DERIVATIONS, encode(part), len(part)) for _, part in sorted(buckets.items()))
    return store.commit(Changes((source,), fragments), message="", author="", batch="").commit


def differences(left, right):
    """What both graphs say in full, compared without digests and without fragments."""
    found = difference(facts(left), facts(right)).changes
    names = {index.dataset_name(d) for index in (left, right) for d in range(index.dataset_count)}
    return Difference.of((*found, *statement_changes(left, right, names, shown=found)))


def edges(index):
    found = to_networkx(index)
    names = dict(found.nodes(data="name"))
    return {(names[start], names[end], kind.label) for start, end, kind in found.edges(data="kind")}


@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    assert found == differences(left, right)
    reported = {
        (c.change, c.source, c.name, c.kind) for c in found.changes if c.what == "edge" and c.change != "changed"
    }
    assert reported == {("removed", *e) for e in edges(left) - edges(right)} | {
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
    old = new._replace(target_kind="table")
    (change,) = difference(facts(graph(old)), facts(graph(new))).changes
    assert (change.what, change.before, change.after) == ("dataset", "table", "view")


def test_it_costs_the_change(monkeypatch):
    """With the indexes at hand no fragment is read; without, those that differ, and a few columns of the others."""
    store = Store.init("memory://")
    for n in range(40):
        commit(store, [view(f"v{n}", "x", f"t{n}.a -> x identity", fingerprint=str(n))], source=f"s{n}")
    old = store.head()
    new = commit(store, [view("v7", "x", "t7.b -> x identity", fingerprint="other")], source="s7")
    whole, some = [], []
    real = columnar.read_table

    def reading(data, *, columns=None, **more):
        (whole if columns is None else some).append(data)
        return real(data, columns=columns, **more)

    monkeypatch.setattr(columnar, "read_table", reading)
    assert len(diff_commits(store, old, new).changes) == 4
    # To see what differs, and to see what is said of it.
    assert (len(whole), len(some)) == (4, 39)
    open_index(store, old), open_index(store, new)
    whole.clear(), some.clear()
    assert len(diff_commits(store, old, new).changes) == 4
    assert (whole, some) == ([], [])


MODES = ("replace", "replace", "append", "update", "delete", "declare", "drop", "rename")


@st.composite
def script(draw):
    """Statements of a few files in the order of their lines, of all modes, with types, sessions and open stars."""
    found = []
    for number in range(draw(st.integers(2, 8))):
        target = draw(st.sampled_from(DATASETS))
        mode = draw(st.sampled_from(MODES))
        if mode == "rename":
            edges = [Edge(ColumnRef(draw(st.sampled_from(DATASETS)), "*"), "*", EdgeKind.READ)]
        else:
            star = [Edge(ColumnRef(draw(st.sampled_from(DATASETS)), "?"), "?", EdgeKind.OPAQUE, reason="star")]
            edges = draw(st.lists(random_edge(), max_size=3)) + (star if draw(st.integers(0, 3)) == 0 else [])
        typed = [f"{c}:{draw(st.sampled_from(['int', 'text']))}" for c in draw(st.sets(st.sampled_from("xy")))]
        kind = draw(st.sampled_from(["view", "table"]))
        made = view(
            target,
            " ".join(sorted(typed)),
            *([] if mode == "drop" else edges),
            file=f"{draw(st.integers(0, 2))}.sql",
            line=number,
            fingerprint=str(draw(st.integers(0, 2))),
            kind=draw(st.sampled_from(["create_view", "insert", "select"])),
            mode=mode,
            target_kind="temporary" if target.startswith("t") and draw(st.booleans()) else kind,
        )
        session = draw(st.sampled_from([None, None, "s"]))
        found.append(made._replace(statement=made.statement._replace(session=session)))
    return found


@st.composite
def edited(draw, before):
    """Statements that were left out, added, brought into another order, or just moved."""
    after = [d for d in before if draw(st.integers(0, 5))]
    if draw(st.booleans()):
        after += draw(script())[:2]
    if draw(st.integers(0, 2)) == 0:
        after = draw(st.permutations(after))
    down = draw(st.integers(0, 3))
    return [d._replace(statement=d.statement._replace(line=down + 2 * n)) for n, d in enumerate(after)]


@settings(max_examples=examples(120), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), script(), st.integers(0, 2), st.integers(0, 2), st.sampled_from(["both", "none", "one"]))
def test_it_is_what_the_whole_graphs_say(data, before, cut, recut, indexed):
    """Whatever became of lines, files, fragments, and of tables that are temporary, dropped or renamed."""
    after = data.draw(edited(before))
    store = Store.init("memory://")
    old, new = commit(store, before, cut=cut), commit(store, after, cut=recut)
    for version in {"both": (old, new), "one": (old,), "none": ()}[indexed]:
        open_index(store, version)
    assert diff_commits(store, old, new) == differences(graph(*before), graph(*after))


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script(), st.integers(0, 2), st.integers(3, 5), st.booleans())
def test_other_fragments_are_no_difference(derivations, cut, recut, indexed):
    store = Store.init("memory://")
    old, new = commit(store, derivations, cut=cut), commit(store, derivations, cut=recut)
    if indexed:
        open_index(store, old), open_index(store, new)
    assert diff_commits(store, old, new).changes == ()


@settings(max_examples=examples(80), deadline=None)
@given(st.data(), script())
def test_datasets_with_equal_digests_say_the_same(data, before):
    left, right = graph(*before), graph(*data.draw(edited(before)))
    names = unlike(left, right)
    assert difference(facts(left, names), facts(right, names)) == difference(facts(left), facts(right))


def test_digests_see_each_thing_that_may_differ():
    """Each of these is another graph, if nothing else is."""
    one = view("v", "x:int", edge("t.a -> x transformation", functions=("lower",)))

    def other(**changes):
        return one._replace(edges=(one.edges[0]._replace(**changes),))

    different = [
        one._replace(target="w"),
        one._replace(target_kind="table"),
        one._replace(target_kind="temporary"),
        one._replace(columns=(OutputColumn("x", "text"),)),
        one._replace(columns=(OutputColumn("x", "int"), OutputColumn("y"))),
        one._replace(edges=()),
        other(source=ColumnRef("t", "b")),
        other(source=ColumnRef("u", "a")),
        other(target_path="z"),
        other(kind=EdgeKind.AGGREGATION),
        other(functions=("upper",)),
        other(functions=("lower", "upper")),
        other(masking=True),
        other(reason="why"),
        one._replace(edges=(*one.edges, one.edges[0]._replace(functions=()))),
    ]
    assert all("v" in unlike(graph(one), graph(each)) for each in different)
    said = one.statement
    different = [one._replace(statement=said._replace(**new)) for new in ({"fingerprint": "f"}, {"literals": "0"})]
    assert all("v" in unlike(graph(one), graph(each)) for each in different)
    same = one._replace(statement=said._replace(line=7, file="g.sql", count=9))
    logged = [one._replace(statement=said._replace(first_seen="2026", fingerprint=text)) for text in "fg"]
    assert unlike(*map(graph, logged)) == set()
    again = one._replace(edges=(one.edges[0], one.edges[0]._replace(star=True, arm=1)))
    assert unlike(graph(one), graph(same)) == unlike(graph(one), graph(again)) == set()

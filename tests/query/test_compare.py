"""Static against runtime: what only one of them knows, from end to end."""

from __future__ import annotations

from depth import examples
from graph_samples import edge, graph, view
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.model import ColumnRef, Edge, EdgeKind
from govtool.query.compare import compare


def table(target, columns, *edges, **more):
    return view(target, columns, *edges, target_kind="table", mode="append", kind="insert", **more)


def stated(result):
    return {(one.side, one.flow.target, one.flow.source, one.flow.kind, one.reason) for one in result.only}


def test_a_way_through_a_view_is_one_edge():
    static = graph(
        view("v", "x", edge("s.a -> x identity"), edge("s.f -> * filter"), edge("s.* -> * read")),
        table("t", "x", edge("v.x -> x identity"), edge("v.* -> * read")),
    )
    runtime = graph(table("t", "x", edge("s.a -> x identity"), edge("s.f -> * filter"), edge("s.* -> * read")))
    result = compare(static, runtime)
    assert (result.datasets, result.both, result.differs) == (1, 3, False)


def test_what_one_side_does_not_speak_of_is_passed_through():
    static = graph(
        table("stage", "x", edge("s.a -> x identity"), edge("s.* -> * read")),
        table("t", "x", edge("stage.x -> x identity"), edge("stage.* -> * read")),
    )
    runtime = graph(table("t", "x", edge("s.a -> x identity"), edge("s.* -> * read")))
    result = compare(static, runtime)
    assert result.only == ()
    assert [(u.side, u.dataset, u.reason) for u in result.unmatched] == [("static", "stage", "never ran")]


def test_differences_and_their_reasons():
    lost = Edge(ColumnRef("s", "*"), "*", EdgeKind.OPAQUE, reason="code")
    static = graph(
        table("t", "x y", edge("s.a -> x identity"), edge("s.b -> y identity"), edge("s.f -> * filter")),
        table("u", "x", edge("s.a -> x identity")),
        table("w", "x", edge("s.a -> x identity"), lost),
    )
    runtime = graph(
        table("t", "x y", edge("s.a -> x identity"), edge("s.c -> y identity")),
        table("w", "x", edge("s.b -> x identity")),
        table("dyn", "x", edge("s.a -> x identity")),
    )
    result = compare(static, runtime)
    assert stated(result) >= {
        ("static", "t.y", "s.b", "value", "differs"),
        ("runtime", "t.y", "s.c", "value", "differs"),
        ("static", "t.*", "s.f", "rows", "rows not known"),
        ("runtime", "w.x", "s.b", "value", "partial: code"),
        ("static", "w.x", "s.a", "value", "differs"),
    }
    assert {(u.side, u.dataset, u.reason) for u in result.unmatched} == {
        ("static", "u", "never ran"), ("runtime", "dyn", "no text"),
    }  # fmt: skip


def test_names_that_the_graph_says_are_the_same_are_one():
    static = graph(table("sales.t", "x", edge("s.a -> x identity")))
    runtime = graph(
        table("wh.t", "x", edge("s.a -> x identity")),
        view("cat.t", "x", Edge(ColumnRef("wh.t", "x"), "x", EdgeKind.IDENTITY), kind="alias", target_kind="table"),
        view("sales.t", "x", Edge(ColumnRef("cat.t", "x"), "x", EdgeKind.IDENTITY), kind="alias", target_kind="table"),
    )
    result = compare(static, runtime)
    assert not result.differs
    assert result.both >= 1


edges = st.sets(st.tuples(st.sampled_from("abc"), st.sampled_from("xy")), max_size=6)


@settings(deadline=None, max_examples=examples(60))
@given(edges, edges)
def test_one_hop_is_a_difference_of_sets(one, other):
    def side(chosen):
        return graph(
            table("t", "x y", edge("s.a -> * filter"), *(edge(f"s.{a} -> {b} identity") for a, b in sorted(chosen)))
        )

    result = compare(side(one), side(other))
    values = {(o.side, o.flow.source[-1], o.flow.target[-1]) for o in result.only if o.flow.kind == "value"}
    assert values == {("static", *e) for e in one - other} | {("runtime", *e) for e in other - one}

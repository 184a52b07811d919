"""Ways between two columns, and what is known of one."""

from __future__ import annotations

from graph_samples import edge, graph, view

from govtool.model import Diagnostic, EdgeKind
from govtool.query.explain import explain
from govtool.query.path import paths

INDEX = graph(
    view("v", "a b", edge("t.x -> a transformation", functions=("lower",)), "t.x -> b identity", "t.y -> * filter"),
    view("w", "a", "v.a -> a identity", "v.b -> a conditional", "v.* -> * read"),
    view("also", "a", "v.a -> a identity", file="w2.sql"),
    view("z", "c", "w.a -> c aggregation", edge("u.* -> c opaque", reason="python-udf: f")),
)


def test_ways_come_shortest_first_with_every_edge_of_a_hop() -> None:
    found = paths(INDEX, "t.x", "z.c")
    assert [w.nodes for w in found.ways] == [("t.x", "v.a", "w.a", "z.c"), ("t.x", "v.b", "w.a", "z.c")]
    assert [w.length for w in found.ways] == [3, 3]
    first = found.ways[0].hops[0]
    assert [s.label for s in first.steps] == ["lower()"]
    assert [e.place for e in first.evidence] == ["v.sql:1"]
    assert not found.more


def test_a_limit_says_that_there_is_more() -> None:
    found = paths(INDEX, "t.x", "z.c", 1)
    assert len(found.ways) == 1
    assert found.more


def test_a_column_reaches_a_dataset_through_its_rows() -> None:
    assert [w.nodes for w in paths(INDEX, "t.y", "v").ways] == [("t.y", "v.*")]
    assert [w.nodes for w in paths(INDEX, "t.y", "w.a").ways] == [("t.y", "v.*", "w.*")]


def test_kinds_narrow_the_ways() -> None:
    assert [w.nodes for w in paths(INDEX, "t.x", "w.a", kinds=[EdgeKind.IDENTITY]).ways] == []
    found = paths(INDEX, "t.x", "w.a", kinds=[EdgeKind.IDENTITY, EdgeKind.CONDITIONAL])
    assert [w.nodes for w in found.ways] == [("t.x", "v.b", "w.a")]


def test_no_way_is_an_empty_answer() -> None:
    assert paths(INDEX, "z.c", "t.x").ways == ()


def test_explain_a_column() -> None:
    answer = explain(INDEX, "w.a")
    assert answer.dataset_kind == "view"
    assert [(s.source, s.kind.label) for s in answer.incoming] == [("v.a", "identity"), ("v.b", "conditional")]
    assert answer.reads == ("v",)
    assert answer.readers == ("z",)
    assert [(s.target, s.label) for s in answer.outgoing] == [("z.c", "aggregate")]
    assert [(d.statement.file, d.mode, d.names_column) for d in answer.definitions] == [("w.sql", "replace", True)]


def test_explain_shows_what_decides_over_rows_and_what_is_opaque() -> None:
    assert [(s.source, s.kind.label) for s in explain(INDEX, "v.a").rows] == [("t.y", "filter")]
    (opaque,) = explain(INDEX, "z.c").opaque
    assert (opaque.source, opaque.reason) == ("u.*", "python-udf: f")


def test_explain_a_dataset_and_the_limit() -> None:
    answer = explain(INDEX, "v")
    assert [c.path for c in answer.columns] == ["a", "b"]
    assert len(answer.incoming) == 2
    cut = explain(INDEX, "v", limit=1)
    assert len(cut.incoming) == 1
    assert cut.truncated == 1 + 2


def test_explain_gives_the_diagnostics_that_name_the_column() -> None:
    note = Diagnostic("ambiguous", "warning", "a may be any of 2 columns", "q.sql", 1, 8, "q.n", ("s.a", "t.a"))
    index = graph(
        view("q", "n", edge("s.a -> n opaque", reason="ambiguous"), edge("t.a -> n opaque"), diagnostics=(note,))
    )
    assert explain(index, "q.n").diagnostics == (note,)
    assert explain(index, "s.a").diagnostics == (note,)
    assert explain(index, "q").definitions[0].diagnostics == (note,)


def temporary(name: str, columns: str, *edges: str, **more):
    return view(name, columns, *edges, target_kind="temporary", file="job.sql", **more)


def test_explain_passes_through_temporary_tables() -> None:
    index = graph(
        temporary("t1", "a", edge("s.x -> a transformation", functions=("lower",)), "s.k -> * filter", "s.* -> * read"),
        temporary("t2", "a", "t1.a -> a identity", "t1.* -> * read", line=2),
        view(
            "v",
            "b",
            edge("t2.a -> b aggregation", functions=("max",)),
            "t2.* -> * read",
            "t2.a -> * join",
            file="job.sql",
            line=3,
        ),
    )
    answer = explain(index, "v.b")
    (made,) = answer.incoming
    assert (made.source, made.target, made.label) == ("s.x", "v.b", "lower() → max()")
    assert [made.evidence.line, *(one.line for one in made.more)] == [3, 2, 1]
    assert sorted((s.source, s.label) for s in answer.rows) == [("s.k", "filter"), ("s.x", "join key")]
    assert answer.reads == ("s",)
    assert [(s.target, s.label) for s in explain(index, "s.x").outgoing] == [
        ("v.b", "lower() → max()"),
        ("v.*", "join key"),
    ]
    assert [(s.target, s.label) for s in explain(index, "s.k").outgoing] == [("v.*", "filter")]
    assert [s.source for s in explain(index, "t2.a").incoming] == ["t1.a"]


def test_every_kind_of_way_through_temporary_tables_is_shown() -> None:
    index = graph(
        temporary("t1", "a", "s.x -> a identity"),
        temporary(
            "t2",
            "a",
            edge("t1.a -> a transformation", functions=("case",)),
            edge("t1.a -> a transformation", functions=("sha256",), masking=True),
            "t1.a -> a conditional",
            line=2,
        ),
        view("v", "b", "t2.a -> b identity", file="job.sql", line=3),
    )
    for steps in (explain(index, "v.b").incoming, explain(index, "s.x").outgoing):
        assert sorted((s.source, s.target, s.label, s.masking) for s in steps) == [
            ("s.x", "v.b", "case()", False),
            ("s.x", "v.b", "condition", False),
            ("s.x", "v.b", "sha256()", True),
        ]


def test_explain_shows_a_temporary_table_behind_which_nothing_is_known() -> None:
    unread = graph(temporary("t1", "a", "s.x -> a identity"))
    assert [s.target for s in explain(unread, "s.x").outgoing] == ["t1.a"]
    opaque = graph(
        temporary("t1", "a", "s.x -> a identity", edge("s.* -> a opaque", reason="python-udf: f")),
        view("v", "b", "t1.a -> b identity", file="job.sql", line=2),
    )
    assert sorted(s.source for s in explain(opaque, "v.b").incoming) == ["s.x", "t1.a"]

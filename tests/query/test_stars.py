"""Stars that could not be resolved: nothing that may be reached is left out, and nothing is claimed for certain."""

from __future__ import annotations

from graph_samples import edge, graph, view

from govtool.query.changes.impact import impact

STAR = edge("s.? -> ? opaque", reason="star-unresolved")


def reached(subject: str, *derivations) -> dict[str, str]:
    return {e.column: e.verdict.label for e in impact(graph(*derivations), subject).columns}


def test_a_column_named_elsewhere_may_pass_through_the_star() -> None:
    assert reached("s.x", view("t", "", STAR), view("w", "n", "s.x -> n identity")) == {
        "t.?": "unknown",
        "w.n": "changes",
    }


def test_it_arrives_under_its_own_name_where_that_is_known() -> None:
    found = reached(
        "s.x",
        view("t", "", STAR),
        view("w", "n", "t.x -> n identity"),
        view("o", "n", "t.y -> n identity", "s.x -> n identity"),
    )
    assert found == {"t.x": "unknown", "w.n": "unknown", "o.n": "changes"}


def test_a_column_that_the_statement_mentions_does_not_hide_in_the_star() -> None:
    derivation = view("t", "x", STAR, edge("s.x -> x identity", star=True))
    assert reached("s.x", derivation) == {"t.x": "changes"}


def test_unknown_columns_reach_the_columns_that_can_only_come_from_them() -> None:
    chain = (view("t", "", STAR), view("u", "", edge("t.? -> ? opaque")), view("w", "n", "u.z -> n identity"))
    assert reached("s.x", *chain, view("k", "n", "s.x -> n identity")) == {
        "t.?": "unknown", "u.?": "unknown", "u.z": "unknown", "w.n": "unknown", "k.n": "changes",
    }  # fmt: skip


def test_unknown_columns_are_not_counted() -> None:
    index = graph(view("t", "a", STAR, "s.k -> * filter"), view("w", "n", "s.x -> n identity"))
    answer = impact(index, "s.k")
    rows = next(e for e in answer.columns if e.is_rows)
    assert (rows.columns, rows.implied) == (1, 1)
    assert impact(index, "s.x", small=0) == impact(index, "s.x")
    assert impact(index, "s.x").summary.columns == 1

"""Verdicts, one rule a test."""

from __future__ import annotations

import pytest
from graph_samples import edge, graph, view

from govtool.errors import UsageError
from govtool.graph.index import Index
from govtool.model import ColumnRef, Derivation, Edge, EdgeKind, OutputColumn, Statement
from govtool.query.changes.change import Change
from govtool.query.changes.impact import expand, impact


def verdicts(index: Index, subject: str, change: str = "logic", **more) -> dict[str, str]:
    answer = impact(index, subject, change=Change.parse(change), **more)
    return {e.column: e.verdict.label for e in answer.columns}


PAPER = (
    view(
        "info", "name age oid wcid wdate wpage wreg",
        "customers.name -> name identity", "customers.age -> age identity", "orders.oid -> oid identity",
        *(edge(f"webact.{c} -> {c} identity", star=True) for c in ("wcid", "wdate", "wpage", "wreg")),
        "customers.cid -> * join", "orders.cid -> * join", "webact.wcid -> * join",
        "customers.* -> * read", "orders.* -> * read", "webact.* -> * read",
    ),
    view(
        "webact", "wcid wdate wpage wreg",
        *(f"webinfo.{c} -> {c} identity" for c in ("wcid", "wdate", "wpage", "wreg")),
        *(f"webinfo.{c} -> * set_operation" for c in ("wcid", "wdate", "wpage", "wreg")),
        *(f"web.{c} -> * set_operation" for c in ("cid", "date", "page", "reg")),
        "webinfo.* -> * read", "web.* -> * read",
    ),
    view(
        "webinfo", "wcid wdate wpage wreg",
        "customers.cid -> wcid identity", "web.date -> wdate identity", "web.page -> wpage identity",
        "web.reg -> wreg identity", "web.date -> * filter", "customers.cid -> * join", "web.cid -> * join",
        "customers.* -> * read", "web.* -> * read",
    ),
)  # fmt: skip
"""Example 1 of the LineageX paper."""


def test_the_example_of_the_paper() -> None:
    index = graph(*PAPER)
    answer = impact(index, "web.page")
    assert {e.column: (e.verdict.label, e.hops) for e in answer.columns} == {
        "webinfo.wpage": ("changes", 1),
        "webact.wpage": ("changes", 2),
        "info.wpage": ("changes", 3),
        "webact.*": ("rows", 1),
        "info.*": ("rows", 2),
    }
    every = {e.column for e in expand(index, answer)}
    assert every >= {f"webact.{c}" for c in ("wcid", "wdate", "wpage", "wreg")}
    assert every >= {f"info.{c}" for c in ("name", "age", "oid", "wcid", "wdate", "wpage", "wreg")}
    assert answer.summary.columns == 3 + 3 + 6
    assert answer.summary.no_path == 24 - 1 - 12


def test_the_answer_carries_the_way_and_its_evidence() -> None:
    index = graph(
        view("v", "email", edge("users.email -> email transformation", functions=("trim", "lower"))),
        view("w", "n", "v.email -> * join"),
    )
    first, second = impact(index, "users.email").columns
    assert first.path == ("users.email", "v.email")
    assert first.via == ("trim() → lower()",)
    assert [e.place for e in first.evidence] == ["v.sql:1"]
    assert second.path == ("users.email", "v.email", "w.*")
    assert second.via == ("trim() → lower()", "join key")
    assert second.kinds == (EdgeKind.JOIN,)
    assert (second.columns, second.implied, second.is_rows) == (1, 1, True)


def test_drop_breaks_every_output_of_a_statement_that_names_the_column_and_its_readers() -> None:
    index = graph(
        view("v", "a b", "t.x -> a identity", "t.y -> b identity"),
        view("w", "n", "v.b -> n identity"),
        view("other", "n", "t.y -> n identity"),
    )
    assert verdicts(index, "t.x", "drop") == {"v.a": "breaks", "v.*": "breaks", "w.*": "breaks"}


def test_drop_breaks_a_column_reached_through_a_star_alone() -> None:
    index = graph(
        view("v", "x y", edge("t.x -> x identity", star=True), edge("t.y -> y identity", star=True)),
        view("uses_x", "n", "v.x -> n identity"),
        view("uses_y", "n", "v.y -> n identity"),
    )
    assert verdicts(index, "t.x", "drop") == {"v.x": "breaks", "uses_x.n": "breaks", "uses_x.*": "breaks"}


def test_a_dropped_column_changes_the_rows_of_a_distinct_star() -> None:
    index = graph(view("v", "x y", edge("t.x -> x identity", star=True), edge("t.x -> * distinct", star=True)))
    assert verdicts(index, "t.x", "drop") == {"v.x": "breaks", "v.*": "rows"}


def test_a_failed_insert_breaks_its_columns_and_changes_the_rows() -> None:
    index = graph(
        view("t", "a b c", mode="declare", target_kind="table", kind="create_table"),
        view("t", "a b", "s.x -> a identity", mode="append", target_kind="table", kind="insert", file="i.sql"),
        view("reads_a", "n", "t.a -> n identity"),
        view("reads_c", "n", "t.c -> n identity"),
    )
    assert verdicts(index, "s.x", "drop") == {
        "t.a": "breaks", "t.b": "breaks", "t.*": "rows",
        "reads_a.n": "breaks", "reads_a.*": "breaks", "reads_c.*": "rows",
    }  # fmt: skip


def test_all_targets_of_one_statement_break_together() -> None:
    index = graph(
        view("left", "a", "t.x -> a identity", file="multi.sql", line=3, fingerprint="m"),
        view("right", "b", "t.y -> b identity", file="multi.sql", line=3, fingerprint="m"),
    )
    assert verdicts(index, "t.x", "drop") == {"left.a": "breaks", "left.*": "breaks", "right.*": "breaks"}


def test_dropping_a_dataset_breaks_star_readers_too() -> None:
    index = graph(
        view("v", "x", edge("t.x -> x identity", star=True)),
        view("n", "c", "t.* -> * read"),
        view("o", "c", "u.x -> c identity"),
    )
    assert verdicts(index, "t", "drop") == {"v.x": "breaks", "v.*": "breaks", "n.*": "breaks"}


def test_rename_breaks_the_first_hop_and_passes_beyond() -> None:
    index = graph(
        view("v", "a", "t.x -> a identity"), view("w", "b", "v.a -> b identity"), view("z", "c", "w.b -> c identity")
    )
    assert verdicts(index, "t.x", "rename:n") == {
        "v.a": "breaks", "v.*": "breaks", "w.b": "passes", "w.*": "passes", "z.c": "passes", "z.*": "passes",
    }  # fmt: skip


def test_a_star_takes_the_new_name_along_to_the_first_statement_that_names_it() -> None:
    index = graph(
        view("v", "x", edge("t.x -> x identity", star=True)),
        view("w", "b", "v.x -> b identity"),
        view("z", "c", "w.b -> c identity"),
    )
    found = verdicts(index, "t.x", "rename:n")
    assert (found["v.x"], found["w.b"], found["z.c"]) == ("breaks", "breaks", "passes")


def test_renaming_a_dataset_breaks_its_readers_only() -> None:
    index = graph(view("v", "x", edge("t.x -> x identity", star=True)), view("w", "b", "v.x -> b identity"))
    assert verdicts(index, "t", "rename:n") == {"v.*": "breaks", "w.*": "passes"}


def test_an_opaque_step_makes_everything_beyond_unknown() -> None:
    index = graph(
        view("v", "a", edge("t.x -> a opaque", reason="python-udf")),
        view("w", "b", "v.a -> b identity"),
        view("f", "c", "w.b -> * filter"),
    )
    for change in ("logic", "retype:int"):
        assert verdicts(index, "t.x", change) == {"v.a": "unknown", "w.b": "unknown", "f.*": "unknown"}
    assert impact(index, "t.x").columns[0].via == ("python-udf",)


def test_a_statement_that_names_a_column_of_unknown_fate_may_fail_in_all_its_outputs() -> None:
    index = graph(
        view("v", "a", edge("t.x -> a opaque", reason="python-udf")),
        view("w", "b c", "v.a -> b identity", "t.y -> c identity"),
        view("s", "a", edge("v.a -> a identity", star=True)),
    )
    for change in ("drop", "rename:n"):
        found = verdicts(index, "t.x", change)
        assert found == {"v.a": "unknown", "w.b": "unknown", "w.*": "unknown", "s.a": "unknown"}


def test_a_natural_join_compares_less_after_a_rename() -> None:
    index = graph(view("v", "id", "t.id -> id identity", edge("u.x -> * join", star=True)))
    assert verdicts(index, "u.x", "rename:n") == {"v.*": "rows"}


def test_an_opaque_edge_out_of_a_row_set_may_carry_any_column() -> None:
    index = graph(view("v", "a", edge("t.* -> a opaque", reason="execute")), view("w", "b", "t.x -> b identity"))
    assert verdicts(index, "t.x") == {"v.a": "unknown", "w.b": "changes"}
    assert [e.column for e in impact(index, "v.a", direction="up").columns] == ["t.*"]


def test_the_worst_verdict_wins() -> None:
    index = graph(
        view("v", "a", edge("t.x -> a opaque"), "t.x -> a identity", "t.x -> * filter"),
        view("w", "b", "t.x -> * filter", "v.a -> b identity"),
    )
    assert verdicts(index, "t.x") == {"v.a": "unknown", "v.*": "rows", "w.b": "unknown", "w.*": "rows"}


def test_a_column_is_as_bad_as_its_row_set() -> None:
    index = graph(view("v", "a b", "t.x -> a identity", edge("t.* -> * opaque")))
    assert verdicts(index, "t.x") == {"v.a": "unknown", "v.*": "unknown"}


@pytest.mark.parametrize(
    ("dialect", "new", "declared", "verdict"),
    [
        ("postgres", "text", "int", "breaks"),
        ("bigquery", "INT64", "STRING", "breaks"),
        ("postgres", "int", "text", "changes"),
        ("mysql", "text", "int", "changes"),
        ("postgres", "bigint", "int", "changes"),
        ("postgres", "geometry", "int", "changes"),
    ],
)
def test_retype_breaks_where_an_assignment_has_no_cast(dialect: str, new: str, declared: str, verdict: str) -> None:
    index = graph(
        view("t", f"a:{declared}", mode="declare", target_kind="table", kind="create_table"),
        view("v", "x", "s.x -> x identity", dialect=dialect),
        view("t", "a", "v.x -> a identity", mode="append", target_kind="table", file="i.sql", dialect=dialect),
    )
    found = verdicts(index, "s.x", f"retype:{new}")
    assert (found["v.x"], found["t.a"]) == ("changes", verdict)


def test_retype_breaks_a_sum_of_text() -> None:
    index = graph(view("v", "n", edge("t.x -> n aggregation", functions=("sum",))))
    assert verdicts(index, "t.x", "retype:varchar(20)")["v.n"] == "breaks"
    assert verdicts(index, "t.x", "retype:bigint")["v.n"] == "changes"
    cast = graph(view("v", "n", edge("t.x -> n aggregation", functions=("cast", "sum"))))
    assert verdicts(cast, "t.x", "retype:text")["v.n"] == "changes"


def test_union_all_counts_only_as_lineagex_reads_it() -> None:
    index = graph(view("v", "a", "t.x -> * union_all"))
    assert verdicts(index, "t.x") == {}
    assert verdicts(index, "t.x", semantics="lineagex") == {"v.*": "rows"}


def test_structs_contain_their_fields_and_siblings_do_not_chain() -> None:
    index = graph(
        view("whole", "a", "t.s -> a identity"),
        view("field", "b", "t.s.f -> b identity"),
        view("sibling", "c", "t.s.g -> c identity"),
    )
    assert verdicts(index, "t.s.f") == {"whole.a": "changes", "field.b": "changes"}
    assert verdicts(index, "t.s") == {"whole.a": "changes", "field.b": "changes", "sibling.c": "changes"}
    assert verdicts(index, "t.s.f", "drop") == {"whole.a": "changes", "field.b": "breaks", "field.*": "breaks"}


def test_temporary_datasets_are_passed_through() -> None:
    first = Derivation(
        "temp.s1.tmp", "temporary", "replace", Statement("1", "create_table_as", "", "job.sql", 1),
        (OutputColumn("a"),), edges=(edge("t.x -> a transformation", functions=("lower",)),),
    )  # fmt: skip
    second = Derivation(
        "out", "table", "append", Statement("2", "insert", "", "job.sql", 5),
        (OutputColumn("b"),), edges=(Edge(ColumnRef("temp.s1.tmp", "a"), "b", EdgeKind.IDENTITY),),
    )  # fmt: skip
    index = graph(first, second)
    (entry,) = impact(index, "t.x").columns
    assert (entry.column, entry.hops, entry.path) == ("out.b", 1, ("t.x", "out.b"))
    assert entry.via == ("lower()",)
    assert [s.target for s in entry.steps] == ["temp.s1.tmp.a", "out.b"]
    assert [e.line for e in entry.evidence] == [5, 1]
    up = impact(index, "out.b", direction="up").columns
    assert {e.column: e.hops for e in up} == {"t.*": 1, "t.x": 1}


def test_kinds_and_depth_narrow_the_walk() -> None:
    index = graph(*PAPER)
    assert verdicts(index, "web.page", kinds=[EdgeKind.IDENTITY]) == {
        "webinfo.wpage": "changes", "webact.wpage": "changes", "info.wpage": "changes",
    }  # fmt: skip
    assert set(verdicts(index, "web.page", depth=1)) == {"webinfo.wpage", "webact.*"}
    assert verdicts(index, "web.page", depth=0) == {}


def test_a_limit_cuts_the_list_and_not_the_summary() -> None:
    index = graph(*PAPER)
    whole, cut = impact(index, "web.page"), impact(index, "web.page", limit=2)
    assert cut.columns == whole.columns[:2]
    assert cut.truncated == 3
    assert cut.summary == whole.summary


def test_upstream_has_columns_kinds_and_rows_but_no_verdicts() -> None:
    answer = impact(graph(*PAPER), "webinfo.wpage", direction="up")
    assert {e.column: tuple(k.label for k in e.kinds) for e in answer.columns} == {
        "web.page": ("identity",), "web.date": ("filter",), "customers.cid": ("join",), "web.cid": ("join",),
        "web.*": ("read",), "customers.*": ("read",),
    }  # fmt: skip
    assert all(e.verdict is None for e in answer.columns)


@pytest.mark.parametrize("text", ["explode", "rename", "retype:", "drop:x", "", "logic:"])
def test_changes_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Change.parse(text)


def test_arguments_that_make_no_sense_are_refused() -> None:
    index = graph(*PAPER)
    for arguments in (
        {"direction": "sideways"},
        {"depth": -1},
        {"semantics": "vague"},
        {"change": Change("retype", "int")},
    ):
        with pytest.raises(UsageError):
            impact(index, "web", **arguments)

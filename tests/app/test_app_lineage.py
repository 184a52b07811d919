"""Derivations folded into the answer of ``govtool lineage``."""

from __future__ import annotations

import pytest

from govtool.answers.lineage import to_object
from govtool.app.lineage.relations import column_of, joined, summarise
from govtool.model import HIDDEN, ROWS, ColumnRef, Derivation, Diagnostic, Edge, EdgeKind, OutputColumn, Statement

K = EdgeKind
STATEMENT = Statement(fingerprint="ab", kind="create_view", dialect="postgres", file="x.sql")


def edge(source: str, target: str, kind: EdgeKind) -> Edge:
    dataset, _, path = source.rpartition(".")
    return Edge(ColumnRef(dataset, path), target, kind)


def made(target: str, kind: str, columns: str, *edges: Edge, mode: str = "replace") -> Derivation:
    return Derivation(
        target=target,
        target_kind=kind,
        mode=mode,
        statement=STATEMENT,
        columns=tuple(OutputColumn(name) for name in columns.split()),
        edges=edges,
    )


def test_contributed_and_referenced_columns_are_told_apart():
    view = made(
        "v",
        "view",
        "a n",
        edge("t.a", "a", K.IDENTITY),
        edge("t.b", "a", K.CONDITIONAL),
        edge("t.d", ROWS, K.FILTER),
        edge("t.*", ROWS, K.READ),
    )
    assert to_object(summarise([view], id=7)) == {
        "id": 7,
        "edges": [["t.a", "v.a"], ["t.b", "v.a"]],
        "kinds": [["identity"], ["conditional"]],
        "referenced": {"v": ["t.d"]},
        "unclear": [],
        "columns": {"v": ["a", "n"]},
        "tables": {"sources": ["t"], "targets": ["v"]},
        "diagnostics": [],
        "error": None,
    }


def test_two_ways_from_one_column_to_another_are_one_edge_of_two_kinds():
    view = made("v", "view", "a", edge("t.a", "a", K.CONDITIONAL), edge("t.a", "a", K.IDENTITY))
    [found] = summarise([view]).edges
    assert found.kinds == ("identity", "conditional")


def test_a_bare_select_has_no_name():
    query = made("query:ab", "query", "a", edge("t.a", "a", K.IDENTITY))
    report = Diagnostic("ambiguous", "warning", "which id", target="query:ab.id", candidates=("t.id", "u.id"))
    answer = to_object(summarise([query], [report]))
    assert answer["edges"] == [["t.a", ".a"]]
    assert answer["columns"] == {"": ["a"]}
    assert answer["tables"] == {"sources": ["t"], "targets": []}
    assert answer["diagnostics"][0]["target"] == ".id"
    assert answer["error"] is None


def test_union_all_counts_in_the_lineagex_reading_only():
    view = made("v", "view", "a", edge("t.a", "a", K.IDENTITY), edge("t.a", ROWS, K.UNION_ALL))
    assert summarise([view]).referenced == ()
    assert [e.source for e in summarise([view], semantics="lineagex").referenced] == ["t.a"]


def test_fields_count_as_their_column():
    view = made("v", "view", "zip", edge("t.address.zip", "zip", K.IDENTITY))
    view = made("v", "view", "a.b", Edge(ColumnRef("t", "address.zip"), "a.b", K.IDENTITY))
    assert to_object(summarise([view]))["edges"] == [["t.address", "v.a"]]


@pytest.mark.parametrize(
    ("path", "column"),
    [("a", "a"), ("a.b.c", "a"), ("p['x.y'].id", "p"), ("items[].n", "items"), ('"o.d"".d".x', '"o.d"".d"')],
)
def test_the_column_of_a_path(path, column):
    assert column_of(path) == column


def test_temporary_tables_are_passed_through():
    temporary = made(
        "temp.s.x",
        "temporary",
        "a",
        edge("t.a", "a", K.AGGREGATION),
        edge("t.f", ROWS, K.FILTER),
        edge("t.*", ROWS, K.READ),
    )
    table = made("u", "table", "b", edge("temp.s.x.a", "b", K.TRANSFORMATION), edge("temp.s.x.*", ROWS, K.READ))
    answer = summarise([temporary, table])
    assert answer.edges == (("t.a", "u.b", ("aggregation",)),)
    assert answer.referenced == (("t.f", "u.*", ("filter",)),)
    assert (answer.sources, answer.targets) == (("t",), ("u",))


def test_a_column_behind_the_star_of_a_temporary_table_may_come_from_its_sources():
    star = Edge(ColumnRef("t", HIDDEN), HIDDEN, K.OPAQUE, reason="star-unresolved")
    temporary = made("temp.s.x", "temporary", "known", star)
    columns = (edge("temp.s.x.known", "a", K.IDENTITY), edge("temp.s.x.other", "b", K.IDENTITY))
    table = made("y", "table", "a b", *columns, edge("temp.s.x.more", ROWS, K.FILTER))
    found = [(each.target, each.source, each.kinds) for each in summarise([temporary, table]).unclear]
    assert found == [("y.*", "t.?", ("star-unresolved",)), ("y.b", "t.?", ("star-unresolved",))]


def test_a_temporary_table_that_nothing_reads_is_an_answer():
    temporary = made("temp.s.x", "temporary", "a", edge("t.a", "a", K.IDENTITY))
    assert summarise([temporary]).targets == ("temp.s.x",)


def test_temporary_tables_that_read_each_other_end():
    one = made("temp.s.x", "temporary", "a", edge("temp.s.y.a", "a", K.IDENTITY), edge("t.a", "a", K.IDENTITY))
    two = made("temp.s.y", "temporary", "a", edge("temp.s.x.a", "a", K.IDENTITY))
    out = made("u", "table", "a", edge("temp.s.y.a", "a", K.IDENTITY))
    assert [e.source for e in summarise([one, two, out]).edges] == ["t.a"]


@pytest.mark.parametrize(
    ("first", "second", "whole"),
    [
        (K.IDENTITY, K.TRANSFORMATION, K.TRANSFORMATION),
        (K.AGGREGATION, K.TRANSFORMATION, K.AGGREGATION),
        (K.CONDITIONAL, K.AGGREGATION, K.CONDITIONAL),
        (K.IDENTITY, K.WINDOW, K.WINDOW),
    ],
)
def test_kinds_of_two_steps_in_a_row(first, second, whole):
    assert joined(first, second) == whole


def test_the_error_is_the_first_thing_not_understood():
    reports = [Diagnostic("ambiguous", "warning", "?"), Diagnostic("parse-error", "error", "no", line=3, column=9)]
    assert to_object(summarise([], reports))["error"] == {
        "code": "parse-error",
        "message": "no",
        "line": 3,
        "column": 9,
    }


def test_a_dropped_table_is_not_written():
    assert summarise([made("t", "table", "", mode="drop")]).targets == ()

"""What ALTER does to a table that exists: moved to another schema, or given a column that is computed."""

from __future__ import annotations

import pytest

from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script


def edges(text: str, dialect: str) -> set[str]:
    found = extract([Script("a.sql", text)], Options(dialect=dialect))
    assert not found.diagnostics
    return {
        f"{edge.source.dataset}.{edge.source.path} -> {derivation.target}.{edge.target_path}"
        for derivation in found.derivations
        for edge in derivation.edges
        if "*" not in (edge.source.path, edge.target_path)
    }


@pytest.mark.parametrize(
    ("dialect", "moved"),
    [
        ("postgres", "alter table a.s set schema b;"),
        ("postgres", "alter table if exists only a.s set schema b;"),
        ("tsql", "alter schema b transfer a.s;"),
        ("tsql", "alter schema b transfer object::a.s;"),
    ],
)
def test_a_table_that_is_moved_to_another_schema_takes_its_rows_along(dialect, moved):
    filled = "create table a.s (c int); create table a.r (c int); insert into a.s (c) select c from a.r;"
    found = edges(f"{filled}\n{moved}\ncreate view v as select c from b.s;", dialect)
    assert found == {"a.r.c -> b.s.c", "b.s.c -> v.c"}


def test_a_view_that_is_moved_to_another_schema_is_made_of_what_it_was():
    text = "create view a.m as select c from s; alter view a.m set schema b; create view v as select c from b.m;"
    assert edges(text, "postgres") == {"s.c -> b.m.c", "b.m.c -> v.c"}


@pytest.mark.parametrize(
    ("dialect", "added"),
    [
        ("tsql", "add z as (x + 1)"),
        ("postgres", "add column z int generated always as (x + 1) stored, add column y int"),
        ("mysql", "add column z int as (x + 1)"),
    ],
)
def test_a_computed_column_that_is_added_is_made_of_its_expression(dialect, added):
    text = f"create table q (x int); alter table q {added}; create view v as select z from q;"
    assert edges(text, dialect) == {"q.x -> q.z", "q.z -> v.z"}


@pytest.mark.parametrize(
    "body", ["((select max(c) from s))", "(1 + (select max(c) from s))", "((select max(c) from s where k = n))"]
)
def test_a_function_of_bigquery_with_a_query_as_its_value_reads_its_tables(body):
    text = f"create temp function f(n int64) as {body}; insert into d (x) select f(1);"
    assert "s.c -> d.x" in edges(text, "bigquery")


def test_a_table_function_of_bigquery_returns_rows():
    text = "create table function f() as (select c from s); insert into d (x) select c from f();"
    assert edges(text, "bigquery") == {"s.c -> d.x"}


@pytest.mark.parametrize(
    "made",
    ["create table t (x text default f());", "create table t (k int); alter table t add column x text default f();"],
)
def test_a_default_that_calls_a_function_holds_what_that_reads(made):
    function = "create function f() returns text language sql as 'select max(c) from s';"
    assert edges(f"{function} {made}", "postgres") == {"s.c -> t.x"}


def test_a_default_that_calls_what_reads_nothing_makes_no_edge():
    assert edges("create table t (k int default nextval('q'), x text default upper('a'))", "postgres") == set()


def test_psql_copies_files_beside_the_client():
    text = "select 1\\g\n\\copy (select c from s) to 'x.csv'\nselect 2;\n  \\copy d (x) from 'x.csv' csv\nselect 3;\n"
    assert edges(text, "postgres") == {'s.c -> "x.csv".c', '"x.csv".c -> d.x'}


@pytest.mark.parametrize(
    "head", ["case when (select max(c) from s) > 1 then", "case (select max(c) from s) when 1 then"]
)
def test_a_case_of_statements_depends_on_what_its_conditions_read(head):
    text = f"{head} insert into d (x) select y from e; end case;"
    found = extract([Script("a.sql", text)], Options(dialect="bigquery")).derivations
    assert ("s", "c", "*") in {(e.source.dataset, e.source.path, e.target_path) for d in found for e in d.edges}

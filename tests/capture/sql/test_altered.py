"""What ALTER does to a table that exists: moved to another schema, or given a column that is computed."""

from __future__ import annotations

import pytest

from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.model import EdgeKind


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


FUNCTION = "create function f() returns text language sql as 'select max(c) from s';"


@pytest.mark.parametrize(
    "change", ["alter column x set default f()", "alter column x type text using coalesce(f(), 'none')"]
)
def test_a_column_that_alter_gives_a_call_holds_what_that_reads(change):
    assert edges(f"{FUNCTION} create table t (x text); alter table t {change};", "postgres") == {"s.c -> t.x"}


@pytest.mark.parametrize(
    "made",
    [
        "create table t (x text check (f() < x));",
        "create table t (x text, check (f() < x));",
        "create table t (k int); alter table t add column x text check (f() < x);",
        "create table t (x text); alter table t add constraint k check (x > f());",
        "create table t (x text); create index i on t (coalesce(x, f()));",
        "create table t (x text); create unique index i on t (x) where x > f();",
    ],
)
def test_a_table_needs_the_columns_that_functions_of_its_constraints_and_indexes_read(made):
    found = extract([Script("a.sql", f"{FUNCTION} {made}")], Options(dialect="postgres")).derivations
    assert {(d.target, ref.text) for d in found for ref in d.references} == {("t", "s.c")}
    assert not [edge for derivation in found for edge in derivation.edges]


def test_a_constraint_of_own_columns_needs_nothing_else():
    text = f"{FUNCTION} create table t (x text check (x > 'a')); create index i on t (lower(x));"
    found = extract([Script("a.sql", text)], Options(dialect="postgres")).derivations
    assert not [ref for derivation in found for ref in derivation.references]


@pytest.mark.parametrize("copied", ["s (c)", "(select c from s)"])
def test_a_copy_to_the_client_reads_as_a_query_does(copied):
    found = extract([Script("a.sql", f"copy {copied} to stdout;")], Options(dialect="postgres")).derivations
    assert {(e.source.text, e.target_path) for d in found for e in d.edges} == {("s.c", "c"), ("s.*", "*")}


@pytest.mark.parametrize(
    ("dialect", "usual"), [("tsql", "dbo"), ("postgres", "public"), ("snowflake", "public"), ("duckdb", "main")]
)
@pytest.mark.parametrize(("made", "read"), [("{0}.s", "s"), ("s", "{0}.s")])
def test_a_table_may_be_that_of_the_usual_schema(dialect, usual, made, read):
    made, read = made.format(usual), read.format(usual)
    scripts = [
        Script("a.sql", f"create table {made} (c int);"),
        Script("b.sql", f"create view v as select c from {read};"),
    ]
    found = extract(scripts, Options(dialect=dialect))
    opaque = {
        (e.source.dataset.lower(), d.target.lower())
        for d in found.derivations
        for e in d.edges
        if e.kind is EdgeKind.OPAQUE
    }
    assert opaque == {(made, "v")}
    given = extract(scripts, Options(dialect=dialect, default_schema=usual))
    assert [d.status for d in given.derivations] == ["understood", "understood"]


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


def rename(dialect: str) -> set[str]:
    text = "create table s (a int); create view v as select a from s; alter table s rename column a to z;"
    return edges(f"{text} insert into s (z) select x from q;", dialect)


def test_views_read_a_renamed_column_under_its_new_name_where_they_follow_renames():
    assert rename("postgres") == {"s.a -> v.a", "s.a -> s.z", "s.z -> s.a", "q.x -> s.z"}
    assert rename("snowflake") == {"s.a -> v.a", "s.a -> s.z", "q.x -> s.z"}

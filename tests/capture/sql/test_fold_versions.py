"""Relations that a script defines again: every reader keeps what it read."""

from __future__ import annotations

import pytest

from govtool.app.lineage.relations import summarise
from govtool.app.versions.index import index_of
from govtool.capture.sql.extract import Extraction, Options, extract, extract_definitions
from govtool.capture.sql.files import Script
from govtool.capture.sql.resolve.logged import LoggedScript, LoggedStatement
from govtool.capture.sql.schemas.supplied import schema_from_mapping
from govtool.query.changes.impact import impact

SCHEMA = schema_from_mapping(
    {
        "t": {"a": None, "b": None, "c": None},
        "u": {"a": None, "d": None, "e": None},
        "z": {"p": None, "q": None},
    }
)


def run(sql: str, dialect: str) -> Extraction:
    return extract([Script("f.sql", sql)], Options(dialect=dialect, schema=SCHEMA))


def flows(extraction: Extraction) -> set[str]:
    return {f"{edge.source}->{edge.target}" for edge in summarise(extraction.derivations).edges}


def reached(extraction: Extraction, column: str) -> set[str]:
    return {entry.column for entry in impact(index_of(extraction.derivations), column).columns}


READ_BOTH = {"t.a->z.p", "u.d->z.q"}
TEMPORARY = (
    "create or replace temp {kind} v as select a from t; insert into z(p) select a from v;"
    "create or replace temp {kind} v as select d as a from u; insert into z(q) select a from v"
)
FILLED = (
    "create temp table x(a int); insert into x select a from t; insert into z(p) select a from x; {reset};"
    "insert into x select d from u; insert into z(q) select a from x"
)


@pytest.mark.parametrize(
    ("sql", "dialect"),
    [
        (TEMPORARY.format(kind="view"), "spark"),
        (TEMPORARY.format(kind="table"), "snowflake"),
        (TEMPORARY.format(kind="table"), "bigquery"),
        (FILLED.format(reset="truncate x"), "postgres"),
        (FILLED.format(reset="create or replace temp table x(a int)"), "snowflake"),
        (FILLED.format(reset="drop table x; create temp table x(a int)"), "redshift"),
        (
            "create temp table x as select a from t; insert into z(p) select a from x; truncate x;"
            "insert into x select d from u; insert into z(q) select a from x",
            "postgres",
        ),
        (
            "create temp table x as select a from t; insert into z(p) select a from x; drop table x;"
            "create temp table x as select d as a from u; insert into z(q) select a from x; drop table x",
            "postgres",
        ),
        (
            "select a into #x from t; insert into z(p) select a from #x; drop table #x;"
            "select d as a into #x from u; insert into z(q) select a from #x",
            "tsql",
        ),
        (
            "select a into #x from t; insert into z(p) select a from #x;"
            "if object_id('tempdb..#x') is not null drop table #x;"
            "select d as a into #x from u; insert into z(q) select a from #x; drop table #x",
            "tsql",
        ),
        (
            "create procedure r() begin create or replace temp table x as select a from t;"
            "insert into z(p) select a from x; create or replace temp table x as select d as a from u;"
            "insert into z(q) select a from x; end;",
            "bigquery",
        ),
        (
            "create temp table x as select a from t; if c then insert into z(p) select a from x;"
            "create or replace temp table x as select e as a from u; end if;"
            "create or replace temp table x as select d as a from u; insert into z(q) select a from x",
            "bigquery",
        ),
    ],
)
def test_each_reader_keeps_the_version_that_it_read(sql: str, dialect: str) -> None:
    extraction = run(sql, dialect)
    assert flows(extraction) == READ_BOTH
    assert reached(extraction, "t.a") == {"z.p"}
    assert reached(extraction, "u.d") == {"z.q"}


@pytest.mark.parametrize(
    ("first", "again", "dialect"),
    [
        ("create or replace temp view v as", "create or replace temp view v as", "spark"),
        ("create or replace temp table v as", "create or replace temp table v as", "snowflake"),
        ("create or replace temp table v as", "create or replace temp table v as", "bigquery"),
    ],
)
def test_a_temporary_relation_made_of_itself(first: str, again: str, dialect: str) -> None:
    extraction = run(
        f"{first} select a from t; {again} select a+1 as a from v; insert into z(p) select a from v", dialect
    )
    assert flows(extraction) == {"t.a->z.p"}
    assert reached(extraction, "t.a") == {"z.p"}


@pytest.mark.parametrize(
    ("sql", "dialect"),
    [
        ("create or replace table y as select a from t; create or replace table y as select a+1 as a from y", "spark"),
        ("insert overwrite table y select a from t; insert overwrite table y select upper(a) a from y", "spark"),
        (
            "create table y as select a from t; create or replace table y as select a+1 as a from y;"
            "create or replace table y as select a*2 as a from y",
            "snowflake",
        ),
    ],
)
def test_a_table_made_of_itself_keeps_its_name(sql: str, dialect: str) -> None:
    extraction = run(sql, dialect)
    assert flows(extraction) == {"t.a->y.a"}
    assert reached(extraction, "t.a") == {"y.a"}


def test_what_is_in_a_table_before_the_script_is_read_by_its_first_overwrite() -> None:
    assert flows(run("insert overwrite table y select upper(a) a from y", "spark")) == {"y.a->y.a"}
    found = flows(
        run(
            "insert overwrite table y select upper(a) a from y; insert into z(p) select a from y;"
            "insert overwrite table y select d from u",
            "spark",
        )
    )
    assert "y.a->z.p" in found


def test_a_staging_table_that_is_filled_again() -> None:
    extraction = run(
        "create table stg as select a from t; insert into z(p) select a from stg;"
        "create or replace table stg as select d as a from u; insert into z(q) select a from stg",
        "snowflake",
    )
    assert flows(extraction) == {"t.a->z.p", "u.d->stg.a", "stg.a->z.q"}
    assert reached(extraction, "t.a") == {"z.p"}
    assert reached(extraction, "u.d") == {"stg.a", "z.q"}


def test_rows_from_before_the_script_are_not_forgotten() -> None:
    found = flows(
        run(
            "insert into stg(a) select a from t; insert into z(p) select a from stg; truncate table stg;"
            "insert into stg(a) select d from u; insert into z(q) select a from stg",
            "snowflake",
        )
    )
    assert found == {"t.a->z.p", "stg.a->z.p", "u.d->stg.a", "stg.a->z.q"}


def test_a_view_outlives_its_table_with_both_meanings() -> None:
    extraction = run(
        "create table y as select a from t; create view v as select a from y; drop table y;"
        "create table y as select d as a from u",
        "postgres",
    )
    assert flows(extraction) == {"t.a->v.a", "y.a->v.a", "u.d->y.a"}
    assert reached(extraction, "t.a") == {"v.a"}
    assert reached(extraction, "u.d") == {"y.a", "v.a"}


@pytest.mark.parametrize("dialect", ["snowflake", "postgres", "redshift", "duckdb"])
@pytest.mark.parametrize("columns", ["a, b", "*"])
def test_a_renamed_temporary_table_is_passed_through(dialect: str, columns: str) -> None:
    extraction = run(
        f"create temp table x as select {columns} from k; alter table x rename to x2; insert into z(p) select b from x2",
        dialect,
    )
    assert flows(extraction) == {"k.b->z.p"}


def test_a_table_that_is_renamed_after_it_was_read_and_made_again() -> None:
    extraction = run(
        "create table y as select a from t; insert into z(p) select a from y; alter table y rename to y_old;"
        "create table y as select d as a from u; insert into z(q) select a from y",
        "snowflake",
    )
    assert flows(extraction) == {"t.a->y_old.a", "y_old.a->z.p", "u.d->y.a", "y.a->z.q"}


def test_who_reads_a_view_reads_what_it_is_made_of_then() -> None:
    extraction = run(
        "create temp view a as select a from t; create temp view b as select a from a; insert into z(p) select a from b;"
        "create or replace temp view a as select d as a from u; insert into z(q) select a from b",
        "spark",
    )
    assert flows(extraction) == READ_BOTH


def test_views_made_of_each_other_in_turn() -> None:
    extraction = run(
        "create or replace temp view v as select a from t; create or replace temp view w as select a from v;"
        "create or replace temp view v as select a from w; insert into z(p) select a from v",
        "spark",
    )
    assert "t.a->z.p" in flows(extraction)


def test_the_next_time_round_a_loop_reads_what_the_last_one_left() -> None:
    extraction = run(
        "create temp table x as select a from t; while c do insert into z(p) select a from x;"
        "create or replace temp table x as select d as a from u; end while;"
        "create or replace temp table x as select e as a from u; insert into z(q) select a from x",
        "bigquery",
    )
    assert flows(extraction) == {"t.a->z.p", "u.d->z.p", "u.e->z.q"}


def test_alternatives_of_a_template_add_up() -> None:
    found = flows(
        run(
            "{% if x %}create or replace temp table v as select a from t;{% else %}"
            "create or replace temp table v as select b as a from t;{% endif %}\n"
            "insert into z(p) select a from v;\ncreate or replace temp table v as select d as a from u;\n"
            "insert into z(q) select a from v;",
            "snowflake",
        )
    )
    assert {"t.a->z.p", "t.b->z.p", "u.d->z.q"} <= found
    assert not {"t.a->z.q", "u.d->z.p"} & found


def test_a_version_has_its_updates_and_what_shaped_its_rows() -> None:
    extraction = run(
        "create temp table x as select a, b from t where c = 1; update x set b = a; insert into z(p) select b from x;"
        "drop table x; create temp table x as select d as b from u where e = 1; insert into z(q) select b from x",
        "postgres",
    )
    assert flows(extraction) == {"t.a->z.p", "t.b->z.p", "u.d->z.q"}
    assert {e.source for e in summarise(extraction.derivations).referenced} >= {"t.c", "u.e"}


def test_nothing_changes_where_nobody_read_it_in_between() -> None:
    once = run("create or replace table y as select d as a from u; insert into z(q) select a from y", "snowflake")
    twice = run(
        "create or replace table y as select a from t; create or replace table y as select d as a from u;"
        "insert into z(q) select a from y",
        "snowflake",
    )
    assert flows(once) == flows(twice)
    assert {d.target for d in once.derivations} == {d.target for d in twice.derivations}


def test_a_long_session_keeps_each_version_once() -> None:
    rounds = 400
    text = "\n".join(
        f"create or replace temp table x as select c{n} as a from s; insert into z(p) select a from x;"
        for n in range(rounds)
    )
    extraction = extract([Script("f.sql", text)], Options(dialect="snowflake"))
    assert len(extraction.derivations) == 2 * rounds
    reads = {(d.statement.line, e.source.dataset) for d in extraction.derivations if d.target == "z" for e in d.edges}
    assert len(reads) == rounds


def test_sessions_of_a_log_have_versions_of_their_own() -> None:
    def session(name: str, table: str, *columns: str) -> LoggedScript:
        texts = [
            text
            for column in columns
            for text in (
                f"create or replace temp table x as select {column} as a from {table}",
                f"insert into z(p) select a from x where '{column}' = ''",
            )
        ]
        return LoggedScript(name, tuple(LoggedStatement(t, "q.log", n) for n, t in enumerate(texts, 1)), "snowflake")

    extraction, _ = extract_definitions([session("s1", "t", "a", "b"), session("s2", "u", "d", "e")], Options())
    assert {d.target for d in extraction.derivations} == {
        "z",
        "temp.s1.x",
        'temp.s1."x@1"',
        "temp.s2.x",
        'temp.s2."x@1"',
    }
    assert flows(extraction) == {"t.a->z.p", "t.b->z.p", "u.d->z.p", "u.e->z.p"}
    inserts = [d for d in extraction.derivations if d.target == "z"]
    assert [sorted({e.source.dataset for e in d.edges}) for d in inserts] == [
        ['temp.s1."x@1"'],
        ["temp.s1.x"],
        ['temp.s2."x@1"'],
        ["temp.s2.x"],
    ]


def test_versions_lie_in_the_namespace_of_the_ingest() -> None:
    text = TEMPORARY.format(kind="table")
    extraction = extract([Script("f.sql", text)], Options(dialect="snowflake", schema=SCHEMA, namespace="prod"))
    assert flows(extraction) == {"prod/t.a->prod/z.p", "prod/u.d->prod/z.q"}


def test_the_same_script_twice_says_the_same() -> None:
    text = TEMPORARY.format(kind="table")
    assert run(text, "snowflake").derivations == run(text, "snowflake").derivations


@pytest.mark.parametrize(
    ("between", "flow"),
    [
        ("drop table t;", "t.a->d.a"),
        ("drop table if exists t, other;", "t.a->d.a"),
        ("drop table t; create temp table t as select d as a from u;", "u.d->d.a"),
        ("drop table t; create temp table t as select a from t;", "t.a->d.a"),
        ("drop table app.t;", "u.a->d.a"),
        ("", "u.a->d.a"),
    ],
)
def test_behind_its_drop_the_name_of_a_temporary_table_means_the_other_one(between: str, flow: str) -> None:
    script = f"create temp table t as select a from u; {between} create table d as select a from t;"
    assert reached(run(script, "postgres"), flow.partition("->")[0]) == {"d.a"}
    assert flow in flows(run(script, "postgres"))


@pytest.mark.parametrize(
    "script",
    [
        "do $$ begin if x then drop table t; end if; end $$;",
        "create function f() returns void language plpgsql as $$ begin create temp table t (a int); end $$; drop table t;",
    ],
)
def test_a_drop_that_may_not_happen_or_last_leaves_a_temporary_table(script: str) -> None:
    made = f"create temp table t as select a from u; {script} create table d as select a from t;"
    assert reached(run(made, "postgres"), "u.a") == {"d.a"}


@pytest.mark.parametrize(
    ("tables", "path", "read"),
    [
        (["s2.m"], "s1, s2", "s2.m"),
        (["s1.m", "s2.m"], "s2, s1", "s2.m"),
        (["s1.m", "m"], "s1, public", "s1.m"),
        (["m"], "s1, public", "m"),
        (["m"], "public", "m"),
        (["public.m"], "s1, public, pg_temp", "public.m"),
        (["s2.m"], "s1, pg_temp", "s1.m"),
    ],
)
def test_a_function_reads_the_first_schema_of_its_path_that_has_the_table(
    tables: list[str], path: str, read: str
) -> None:
    made = "".join(f"create table {name} (a int);" for name in tables)
    body = f"create function f() returns int language sql set search_path = {path} as $$ select max(a) from m $$;"
    assert flows(run(f"{made}{body}create table d as select f() as x;", "postgres")) == {f"{read}.a->d.x"}

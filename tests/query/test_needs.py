"""What a table needs beside its columns: foreign keys, checks, policies, triggers, publications."""

from __future__ import annotations

import pytest

from govtool.app.versions.index import index_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.query.changes.change import Change
from govtool.query.changes.impact import expand, impact

P, T = "create table p (k int primary key, n int);", "create table t (a int, b int);"
F = "create function f() returns trigger language plpgsql as $$ begin if new.a < 0 then raise 'no'; end if; end $$;"
NEEDS = [
    ("postgres", f"{P} create table t (a int, b int references p (k));", "p.k"),
    ("sqlite", f"{P} create table t (a int, b int references p);", "p.k"),
    ("oracle", f"{P} {T} alter table t add (constraint c foreign key (b) references p);", "p.k"),
    ("tsql", f"{P} create table t (a int, b int foreign key references p (k));", "p.k"),
    ("postgres", f"{P} {T} alter table t add column c int references p (k);", "p.k"),
    ("postgres", "create table t (a int, b int, check (b > a));", "t.a"),
    ("postgres", "create table t (a int4range, b int, exclude using gist (a with &&) where (b > 0));", "t.b"),
    ("postgres", f"{T} create unique index i on t (a) where b > 0;", "t.b"),
    ("postgres", f"{T} create policy x on t for select using (a > 0) with check (b > 0);", "t.b"),
    ("postgres", f"{P} {T} create policy x on t using (a > (select count(*) from p));", "p"),
    ("postgres", f"{P} {T} alter policy x on t using (exists (select from p where p.n = t.a));", "p.n"),
    ("bigquery", f"{T} create row access policy x on t grant to ('user:a') filter using (b = 1);", "t.b"),
    ("tsql", f"{T} create security policy x add filter predicate f(b) on t with (state = on);", "t.b"),
    ("tsql", f"{P} {T} alter security policy x add filter predicate f(b) on t, drop filter predicate on p;", "t.b"),
    ("snowflake", "create table t (a int, b int) with row access policy x on (b);", "t.b"),
    ("snowflake", f"{T} alter table t modify column a set masking policy x using (a, b);", "t.b"),
    ("databricks", f"{T} alter table t set row filter s.f on (b);", "t.b"),
    ("databricks", "create table t (a int, b int) with row filter s.f on (b);", "t.b"),
    ("postgres", f"{T} create publication x for table t (a, b) where (a > 0);", "t.b"),
    ("postgres", f"{P} {T} create publication x for table p (k), only t (a, b), q (c);", "t.b"),
    ("postgres", f"{T} {F} create trigger x before insert on t for each row execute function f();", "t.a"),
    ("mysql", f"{T} {P} create trigger x after insert on t for each row insert into p (n) values (new.a);", "p.n"),
    ("postgres", f"{T} {P} create rule x as on update to t do also insert into p (n) values (new.a);", "p.n"),
]

U = "create table u (g int, h int);"
H = "create function h() returns int language sql as $$ select max(h) from u where g = 1 $$;"


def trigger(body: str) -> str:
    """A trigger of ``t`` that runs statements."""
    declared = "declare v int; r record;"
    function = f"create function f() returns trigger language plpgsql as $$ {declared} begin {body} return new; end $$;"
    return f"{T} {P} {U} {function} create trigger x after insert on t execute function f();"


NEEDS += [
    ("postgres", trigger("update t set b = 1 where a = 3;"), "t.a"),
    ("postgres", trigger("merge into t using u on t.b = u.g when matched then update set a = u.h;"), "u.g"),
    ("postgres", trigger("select h into v from u where g = 1;"), "u.g"),
    ("postgres", trigger("v := (select max(h) from u);"), "u.h"),
    ("postgres", trigger("perform 1 from u where g = 1;"), "u.g"),
    ("postgres", trigger("if exists (select 1 from u where g = 1) then raise 'no'; end if;"), "u.g"),
    ("postgres", trigger("for r in select h from u where g = 1 loop raise notice 'a'; end loop;"), "u.g"),
    ("postgres", trigger("for r in execute 'select h from u where g = 1' loop raise notice 'a'; end loop;"), "u.g"),
    ("postgres", H + trigger("if h() > 1 then insert into p (n) values (1); end if;"), "u.g"),
    ("postgres", H.replace("sql as $$", "plpgsql as $$ begin").replace("= 1", "= 1; end") + trigger("v := h();"), "u.g"),
    ("postgres", f"create procedure q() language sql as $$ delete from p where n = 1 $$; {trigger('call q();')}", "p.n"),
    ("tsql", f"{T} {U} create trigger x on t after insert as begin declare @v int; select @v = h from u; end", "u.h"),
    ("oracle", f"{T} {U} create trigger x after insert on t begin for r in (select h from u) loop null; end loop; end;", "u.h"),
    ("mysql", f"{T} {P} create procedure q() begin delete from p where n = 1; end; create trigger x after insert on t for each row call q();", "p.n"),
]  # fmt: skip


def verdicts(text: str, dialect: str, subject: str, change: str, small: int = 0) -> dict[str, str]:
    index = index_of(extract([Script("a.sql", text)], Options(dialect=dialect)).derivations)
    found = expand(index, impact(index, subject, change=Change.parse(change), small=small))
    return {e.column: e.verdict.label for e in found}


@pytest.mark.parametrize("change", ["drop", "rename:x"])
@pytest.mark.parametrize(("dialect", "text", "needed"), NEEDS)
def test_the_rows_of_a_table_depend_on_what_it_needs(dialect, text, needed, change):
    assert verdicts(text, dialect, needed, change).get("t.*") == "rows"


@pytest.mark.parametrize("small", [0, 10**6])
def test_a_table_that_is_made_with_a_foreign_key_does_not_break_with_it(small):
    text = f"{P} create table t (a int, b int references p (k), c int generated always as (a + 1) stored);"
    found = verdicts(f"{text} create view v as select c from t;", "postgres", "p.k", "drop", small)
    assert set(found.values()) == {"rows"}


@pytest.mark.parametrize("action", ["on delete cascade", "on delete set null", "on update cascade", ""])
def test_actions_of_foreign_keys_change_the_rows_that_refer_to_others(action):
    text = f"{P} create table t (a int, b int, constraint c foreign key (b) references p (k) {action});"
    text += "create view v as select a from t; delete from p where n > 0;"
    for subject in ("p.k", "p.n"):
        expected = {"t.*": "rows", "v.*": "rows"} if action else {}
        found = verdicts(text, "postgres", subject, "logic")
        assert {name: verdict for name, verdict in found.items() if name in ("t.*", "v.*")} == expected
    assert verdicts(text, "postgres", "p.k", "drop")["t.*"] == "rows"


def test_a_join_within_a_policy_has_no_condition_of_its_own():
    text = f"{P} {T} create table q (k int); create policy x on t using (a in (select n from p join q using (k)));"
    assert not extract([Script("a.sql", text)], Options(dialect="postgres")).diagnostics


def test_a_column_that_is_alone_in_its_constraints_is_needed_by_nothing():
    text = "create table t (a int unique check (a > 0), b int); create index i on t (abs(a));"
    assert verdicts(text, "postgres", "t.a", "drop") == {}


def test_a_publication_defines_no_table():
    text = f"{T} create publication x for table t (a) where (a > 0); create view v as select * from t;"
    (view,) = (d for d in extract([Script("a.sql", text)], Options(dialect="postgres")).derivations if d.target == "v")
    assert [column.path for column in view.columns] == ["a", "b"]


def test_calls_of_a_function_with_an_atomic_body_are_followed():
    text = f"{T} create function g() returns int language sql begin atomic %s; end; create view v as select g() as x;"
    assert verdicts(text % "select max(a) from t", "postgres", "t.a", "drop")["v.x"] == "breaks"
    several = extract([Script("a.sql", text % "select 1; select max(a) from t")], Options(dialect="postgres"))
    assert [note.code for note in several.diagnostics] == ["opaque"]


@pytest.mark.parametrize("change", ["drop", "rename:x"])
@pytest.mark.parametrize("column", ["n", "k", "m"])
def test_a_column_of_an_arm_whose_width_is_not_known_may_break_the_others(column, change):
    """``COLUMNS`` with a lambda leaves ``k`` out, which is not read: the arm is taken to be wider than it is."""
    text = f"{T} create table p (k int, n int, m int); create view w as select columns(c -> c <> 'k') from p;"
    text += "create table u (y int, z int); create view v as select * from u union all select * from w;"
    found = verdicts(text, "duckdb", f"p.{column}", change)
    assert {found.get("v.y"), found.get("v.z")} <= {"unknown", "breaks"}

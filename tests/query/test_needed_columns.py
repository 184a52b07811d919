"""Statements that need a column without handing it on: they fill it, inherit it, or run under a condition on it."""

from __future__ import annotations

import pytest

from govtool.app.versions.index import index_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.graph.index import Index
from govtool.query.changes.change import Change
from govtool.query.changes.impact import expand, impact
from govtool.query.selection.selectors import select_many

TABLES = "create table s (c int, k int); create table d (x int, y int); "
FILLS = TABLES + "insert into d (x, y) select c, k from s;"
PLACED = TABLES + "insert into d select c, k from s;"
INHERITS = TABLES + "create table kid (z int) inherits (s); create table kk () inherits (kid);"
BROKEN, ROWS = "breaks", "rows"


def sql(text: str, dialect: str = "postgres") -> Index:
    return index_of(extract([Script("a.sql", text)], Options(dialect=dialect)).derivations)


def verdicts(index, subject: str, change: str, small: int) -> dict[str, str]:
    found = expand(index, impact(index, subject, change=Change.parse(change), small=small))
    return {entry.column: entry.verdict.label for entry in found if not entry.is_rows}


@pytest.mark.parametrize("small", [0, 10**6])
@pytest.mark.parametrize(
    ("text", "subject", "change", "found"),
    [
        (FILLS, "d.x", "drop", {"d.y": BROKEN}),
        (FILLS, "d.x", "rename:n", {"d.y": BROKEN}),
        (PLACED, "d.x", "drop", {"d.y": BROKEN}),
        (PLACED, "d.x", "rename:n", {}),
        (TABLES + "update d set x = 1, y = 2;", "d.x", "drop", {"d.y": BROKEN}),
        (TABLES + "delete from d where x in (select c from s);", "s.c", "rename:n", {"d.x": ROWS, "d.y": ROWS}),
        # Another statement ceases to fill d.x: it is still there, and the second INSERT works.
        (FILLS + "create table t (z int); insert into d (x) select z from t;", "t.z", "drop", {"d.x": BROKEN, "d.y": ROWS}),
        # Made of a query that lacks it, the column is gone, and the UPDATE fails.
        (TABLES + "create table e as select * from s; update e set c = 1, k = 2;", "s.c", "drop", {"e.c": BROKEN, "e.k": BROKEN}),
        (INHERITS, "s.c", "drop", {"kid.c": BROKEN, "kk.c": BROKEN}),
        (INHERITS, "s.c", "rename:n", {"kid.c": BROKEN, "kk.c": BROKEN}),
        (INHERITS, "s.c", "retype:text", {"kid.c": "changes", "kk.c": "changes"}),
        (INHERITS, "s.c", "logic", {}),
        (INHERITS, "kid.z", "drop", {"kk.z": BROKEN}),
    ],
)  # fmt: skip
def test_what_fails_without_a_column(text, subject, change, found, small):
    assert verdicts(sql(text), subject, change, small) == found


def test_a_column_that_is_only_filled_is_unused():
    index = sql(FILLS)
    assert {index.name(node) for node in select_many(index, ["unused:"]).nodes(index)} == {"d.x", "d.y"}


CONDITIONS = {
    "postgres": "create procedure p() language plpgsql as $$ begin if exists (select 1 from s where c = 1) then"
    " insert into d (x) values (1); end if; end $$;",
    "tsql": "create procedure p as begin if exists (select 1 from s where c = 1) insert into d (x) values (1); end",
    "mysql": "create procedure p() begin while (select count(c) from s) > 3 do insert into d (x) values (1); end while; end",
    "oracle": "create procedure p is begin if 1 > 2 then null; elsif 0 < 1 then null; end if;"
    " if 1 = (select max(c) from s) then null; else insert into d (x) values (1); end if; end;",
}


@pytest.mark.parametrize("dialect", CONDITIONS)
def test_a_condition_decides_about_the_rows_of_what_runs_under_it(dialect):
    index = sql(TABLES + CONDITIONS[dialect], dialect)
    assert verdicts(index, "s.c", "logic", 10**6) == {"d.x": ROWS, "d.y": ROWS}
    assert verdicts(index, "s.c", "drop", 10**6)["d.x"] == BROKEN


def test_conditions_have_a_bound_that_is_told():
    nested = "if exists (select 1 from s) then " * 80 + "insert into d (x) values (1); " + "end if; " * 80
    found = extract([Script("a.sql", TABLES + f"do $$ begin {nested} end $$;")], Options(dialect="postgres"))
    assert any("more than 64 conditions" in note.message for note in found.diagnostics)


@pytest.mark.parametrize(
    ("body", "is_read"),
    [
        ("declare t constant text := 's'; begin execute 'insert into d (x) select c from ' || t; end", True),
        ("declare t text := 's'; begin execute format('insert into d (x) select c from %I', t); end", True),
        ("declare t text := 's'; begin t := p; execute 'insert into d (x) select c from ' || t; end", False),
        (
            "declare t text := 's'; begin select z into t from q; execute 'insert into d (x) select c from ' || t; end",
            False,
        ),
        ("begin execute 'insert into d (x) select c from ' || t; end", False),
    ],
)
def test_dynamic_sql_of_variables_that_hold_one_text(body, is_read):
    index = sql(TABLES + f"create procedure g(p text) language plpgsql as $$ {body} $$;")
    assert ("d.x" in verdicts(index, "s.c", "logic", 10**6)) == is_read


def test_a_numbered_column():
    index = sql(TABLES + "create table z as select #2 as w from s;", "duckdb")
    assert verdicts(index, "s.k", "logic", 10**6) == {"z.w": "changes"}

"""Parameters of other tools in front of a table's name, and SQL*Plus's variables with values from outside."""

from __future__ import annotations

import pytest

from govtool.capture.sql.templates.placeholders import fill
from govtool.capture.sql.templates.template import render


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("CREATE TABLE @cdm.visit (a INT)", "CREATE TABLE cdm.visit (a INT)"),
        ("INSERT INTO @a.t(x) SELECT y FROM @given.u JOIN\n@c.[v] ON 1 = 1", "INSERT INTO a.t(x) SELECT y FROM real.u JOIN\nc.[v] ON 1 = 1"),
        ("DROP TABLE IF EXISTS @a.t", "DROP TABLE IF EXISTS a.t"),
        ("SELECT a FROM @x.nodes('/a') t(c)", "SELECT a FROM @x.nodes('/a') t(c)"),
        ("SELECT @x.value('a') FROM @t", "SELECT @x.value('a') FROM @t"),
        ("SELECT 'from me@x.y', a FROM t@db.x", "SELECT 'from me@x.y', a FROM t@db.x"),
        ("SET @x.y = 1", "SET @x.y = 1"),
    ],
)  # fmt: skip
def test_schemas_as_parameters(text: str, filled: str) -> None:
    assert fill(text, {"given": "real"}, "tsql") == filled


@pytest.mark.parametrize("dialect", ["snowflake", "mysql"])
def test_stages_and_variables_are_no_schemas(dialect: str) -> None:
    assert fill("SELECT a FROM @stage.b", {"stage": "x"}, dialect) == "SELECT a FROM @stage.b"


def test_variables_of_sqlplus_with_values() -> None:
    text = "SELECT a FROM &s..t WHERE b = '&&B.c' AND d = &other AND e = &1"
    assert fill(text, {"S": "hr", "b": 5, "1": "x\ny"}, "oracle") == (
        "SELECT a FROM hr.t WHERE b = '5c' AND d = &other AND e = &1"
    )
    assert fill(text, {"S": "hr", "b": 5}, "postgres") == text


_READ, _WRITTEN = "which relation is read is not known", "which relation is written is not known"


@pytest.mark.parametrize(
    ("dialect", "text", "filled", "noted"),
    [
        ("tsql", "INSERT INTO d_$(day) SELECT x FROM a", "INSERT INTO d_day SELECT x FROM a", [_WRITTEN]),
        ("tsql", "SELECT x FROM [d_$(day)]", "SELECT x FROM [d_day]", [_READ]),
        ("tsql", "SELECT x FROM a, $(t) b", "SELECT x FROM a, t b", [_READ]),
        ("tsql", "EXEC('INSERT INTO d_$(day) SELECT 1')", "EXEC('INSERT INTO d_day SELECT 1')", [_WRITTEN]),
        ("tsql", "PRINT 'from d_$(day)'", "PRINT 'from d_day'", []),
        ("tsql", ":setvar day 3\nSELECT x FROM d_$(Day)", ":setvar day 3\nSELECT x FROM d_3", []),
        ("postgres", "SELECT $1($(x))", "SELECT $1($(x))", []),
        ("postgres", 'INSERT INTO :"t" SELECT 1', 'INSERT INTO "t" SELECT 1', [_WRITTEN]),
        ("postgres", "SELECT b.x FROM a, ${t} b, c", "SELECT b.x FROM a, t b, c", [_READ]),
        ("postgres", "SELECT x FROM a JOIN b ON f(a.x, 1), d_{{ t }}", "SELECT x FROM a JOIN b ON f(a.x, 1), d_t", [_READ]),
        ("postgres", "SELECT {{ t }} FROM a, d_${u} b", "SELECT t FROM a, d_u b", [_READ, "columns are read is not known"]),
        ("postgres", "SELECT extract(year FROM d), {{ c }} FROM a", "SELECT extract(year FROM d), c FROM a", ["columns are read is not known"]),
        ("postgres", "SELECT a IS DISTINCT FROM b, {{ c }} FROM a", "SELECT a IS DISTINCT FROM b, c FROM a", ["columns are read is not known"]),
        ("postgres", "COPY d_{{ day }} FROM '/x.csv'", "COPY d_day FROM '/x.csv'", [_WRITTEN]),
        ("postgres", "TRUNCATE d_${day}", "TRUNCATE d_day", [_WRITTEN]),
        ("postgres", "ALTER TABLE d_${day} RENAME TO e", "ALTER TABLE d_day RENAME TO e", [_WRITTEN]),
        ("mysql", "UPDATE a, ${t} b SET a.x = b.x", "UPDATE a, t b SET a.x = b.x", [_READ]),
        ("mysql", "INSERT INTO a VALUES (1) ON DUPLICATE KEY UPDATE x = 1, ${c} = 2", "INSERT INTO a VALUES (1) ON DUPLICATE KEY UPDATE x = 1, c = 2", []),
    ],
)  # fmt: skip
def test_names_of_relations_that_nobody_gave(dialect: str, text: str, filled: str, noted: list[str]) -> None:
    found = render(text, dialect=dialect)
    assert [variant.text for variant in found.variants] == [filled]
    messages = [hole.note.message for hole in found.holes]
    assert len(messages) == len(noted)
    assert all(any(message.endswith(note) for message in messages) for note in noted)


@pytest.mark.parametrize(
    ("dialect", "text", "schemas"),
    [
        ("tsql", "USE [$(db)]\nSELECT x FROM [$(other)].dbo.t, $(third).dbo.u", ("db", "other", "third")),
        ("postgres", "SELECT x FROM ${s}.t", ("s",)),
        ("postgres", "SELECT x FROM @cdm.t, {{ s }}.u", ("cdm", "s")),
        ("postgres", "SELECT ${a}.x FROM a", ()),
    ],
)
def test_schemas_that_nobody_gave(dialect: str, text: str, schemas: tuple[str, ...]) -> None:
    assert render(text, dialect=dialect).qualifiers == schemas
    assert render(text, dict.fromkeys(schemas, "x"), dialect=dialect).qualifiers == ()

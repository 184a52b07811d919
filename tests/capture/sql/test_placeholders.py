"""Parameters of other tools in front of a table's name, and SQL*Plus's variables with values from outside."""

from __future__ import annotations

import pytest

from govtool.capture.sql.templates.placeholders import fill


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

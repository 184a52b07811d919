"""Schemas from every shape they come in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from govtool.capture.sql.schemas.supplied import Schema, load_schema, schema_from_mapping
from govtool.errors import UsageError


def plain(schema: Schema) -> dict[str, dict[str, str | None]]:
    return {name: dict(columns) for name, columns in schema.tables.items()}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (None, {}),
        ({}, {}),
        ({"t": ["a", "B"]}, {"t": {"a": None, "b": None}}),
        ({"s.t": {"a": "int", "b": None}}, {"s.t": {"a": "int", "b": None}}),
        ({"c": {"s": {"t": ["a"]}}}, {"c.s.t": {"a": None}}),
        ({"t": {"a": {"type": "int"}}}, {"t": {"a": "int"}}),
        ({"t": {"columns": [{"name": "a", "type": "int"}, {"name": "b"}]}}, {"t": {"a": "int", "b": None}}),
        ({"t": []}, {"t": {}}),
        ({'"Odd Name"."T"': ["a"]}, {'"Odd Name"."T"': {"a": None}}),
    ],
)
def test_mappings(obj: object, expected: dict[str, dict[str, str | None]]):
    assert plain(schema_from_mapping(obj)) == expected


def test_defaults_fill_names_up():
    obj = {"t": ["a"], "s.t": ["a"], "c.s.t2": ["a"]}
    assert list(schema_from_mapping(obj, "", "dw", "crm").tables) == ["dw.crm.t", "dw.s.t", "c.s.t2"]


@pytest.mark.parametrize(
    "obj", [5, "t", [1], {"t": 5}, {"t": [5]}, {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": []}}}}}}}}}]
)
def test_other_shapes_are_usage_errors(obj: object):
    with pytest.raises(UsageError) as caught:
        schema_from_mapping(obj)
    assert caught.value.code == "usage.schema"


def test_information_schema_rows_keep_their_order_and_their_case():
    rows = [
        {
            "TABLE_SCHEMA": "CRM",
            "TABLE_NAME": "USERS",
            "COLUMN_NAME": "EMAIL",
            "ORDINAL_POSITION": 2,
            "DATA_TYPE": "TEXT",
        },
        {
            "TABLE_SCHEMA": "CRM",
            "TABLE_NAME": "USERS",
            "COLUMN_NAME": "ID",
            "ORDINAL_POSITION": 1,
            "DATA_TYPE": "NUMBER",
        },
        {"TABLE_SCHEMA": "CRM", "TABLE_NAME": "USERS", "COLUMN_NAME": "odd", "ORDINAL_POSITION": 3, "DATA_TYPE": None},
    ]
    assert plain(schema_from_mapping(rows, "snowflake")) == {
        "crm.users": {"id": "NUMBER", "email": "TEXT", '"odd"': None}
    }


def test_csv(tmp_path: Path):
    path = tmp_path / "columns.csv"
    path.write_text("table_schema,table_name,column_name,data_type\ncrm,users,id,int\ncrm,users,email,text\n")
    assert plain(load_schema(path, "postgres")) == {"crm.users": {"id": "int", "email": "text"}}


def test_dbt_catalog(tmp_path: Path):
    path = tmp_path / "catalog.json"
    node = {
        "metadata": {"database": "DW", "schema": "MART", "name": "ORDERS"},
        "columns": {"B": {"name": "B", "index": 2, "type": "INT"}, "A": {"name": "A", "index": 1, "type": "TEXT"}},
    }
    path.write_text(json.dumps({"metadata": {}, "nodes": {"model.x.orders": node}, "sources": {}}))
    assert plain(load_schema(path, "snowflake")) == {"dw.mart.orders": {"a": "TEXT", "b": "INT"}}


def test_ddl(tmp_path: Path):
    path = tmp_path / "ddl.sql"
    path.write_text(
        """SET search_path TO crm;
CREATE TABLE a (x int, "Y z" numeric(10, 2), PRIMARY KEY (x));
ALTER TABLE a ADD COLUMN q text;
ALTER TABLE a RENAME COLUMN x TO xx;
ALTER TABLE a DROP COLUMN q;
ALTER TABLE a RENAME TO b;
CREATE TABLE sh.c (LIKE b);
CREATE TABLE gone (a int); DROP TABLE gone;
CREATE TABLE broken (a int,;
"""
    )
    schema = load_schema(path, "postgres")
    columns = {"xx": "INT", '"Y z"': "DECIMAL(10, 2)"}
    assert plain(schema) == {"crm.b": columns, "sh.c": columns}
    assert [(d.code, d.file, d.line) for d in schema.diagnostics] == [("parse-error", "ddl.sql", 9)]


@pytest.mark.parametrize(
    ("name", "text"), [("s.json", "{"), ("s.csv", "a,b\n1,2\n"), ("s.txt", "hello"), ("s.json", "[1]")]
)
def test_what_is_no_schema_is_a_usage_error(tmp_path: Path, name: str, text: str):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_schema(path)
    assert caught.value.location is not None


def test_a_missing_file_is_a_usage_error(tmp_path: Path):
    with pytest.raises(UsageError):
        load_schema(tmp_path / "none.json")


def test_defaults_are_taken_as_written(tmp_path: Path):
    ddl = tmp_path / "ddl.sql"
    ddl.write_text("create table T (A int); create table other.U (B int)")
    assert set(load_schema(ddl, "snowflake", "DW", "PUBLIC").tables) == {"dw.public.t", "dw.other.u"}
    assert set(load_schema(ddl, "snowflake", None, "DW.PUBLIC").tables) == {"dw.public.t", "other.u"}


def test_an_empty_file_is_no_schema(tmp_path: Path):
    (tmp_path / "s.json").write_text("")
    with pytest.raises(UsageError, match="no schema"):
        load_schema(tmp_path / "s.json")

"""Names that one dialect defines itself are columns in the others."""

from __future__ import annotations

import pytest

from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script


@pytest.mark.parametrize(
    ("dialect", "columns"),
    [
        ("", "level oid rowid uid user"),
        ("spark", "level oid rowid uid user"),
        ("snowflake", "level oid rowid uid user"),
        ("bigquery", "level oid rowid uid user"),
        ("postgres", "level oid rowid uid"),
        ("tsql", "level oid rowid uid"),
        ("duckdb", "level oid uid"),
        ("sqlite", "level uid user"),
        ("oracle", "oid"),
    ],
)
def test_of_a_table_whose_columns_are_not_known(dialect: str, columns: str):
    text = "create table x as select uid, level, user, oid, rowid, current_date as d from t"
    made = extract([Script("a.sql", text)], Options(dialect=dialect))
    read = {edge.source.path for each in made.derivations for edge in each.edges if edge.source.path != "*"}
    assert (sorted(read), made.diagnostics) == (columns.split(), ())

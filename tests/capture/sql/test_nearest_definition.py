"""Files of unlike projects that define tables of one name: each reads the table of its own folder."""

from __future__ import annotations

import pytest

from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script

DEFINITIONS = [
    Script("h/ddl.sql", "CREATE TABLE customer (c_name INT, c_key INT)"),
    Script("ds/1/ddl.sql", "CREATE TABLE customer (c_sk INT)"),
    Script("ds/2/ddl.sql", "CREATE TABLE customer (c_sk INT, c_more INT)"),
]


def columns_read(file: str, definitions: list[Script]) -> list[str]:
    """The columns of a view of all of a table, in a file."""
    found = extract([*definitions, Script(file, "CREATE VIEW v AS SELECT * FROM customer")], Options())
    (view,) = [d for d in found.derivations if d.target.endswith("v")]
    return [column.path for column in view.columns]


@pytest.mark.parametrize(
    ("file", "columns"),
    [
        ("h/q.sql", ["c_name", "c_key"]),
        ("h/sub/q.sql", ["c_name", "c_key"]),
        ("ds/1/q.sql", ["c_sk"]),
        ("ds/2/deep/q.sql", ["c_sk", "c_more"]),
    ],
)
def test_a_table_is_that_of_the_nearest_folder(file: str, columns: list[str]) -> None:
    assert columns_read(file, DEFINITIONS) == columns
    assert columns_read(file, DEFINITIONS[::-1]) == columns


def test_of_definitions_that_are_equally_near_the_first_is_read() -> None:
    assert columns_read("ds/q.sql", DEFINITIONS) == ["c_sk"]
    assert columns_read("q.sql", DEFINITIONS) == ["c_name", "c_key"]
    assert columns_read("ds/q.sql", DEFINITIONS[::-1]) == ["c_sk", "c_more"]


def test_a_definition_of_the_same_file_is_the_nearest() -> None:
    text = "CREATE TABLE customer (own INT); CREATE VIEW v AS SELECT * FROM customer"
    found = extract([*DEFINITIONS, Script("h/q.sql", text)], Options())
    (view,) = [d for d in found.derivations if d.target.endswith("v")]
    assert [column.path for column in view.columns] == ["own"]

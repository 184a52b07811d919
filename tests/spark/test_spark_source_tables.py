"""The tables of the data source in a store that keeps none of them; no Spark is needed for that."""

from __future__ import annotations

import pytest

from govtool.app.spark_source import tables, write
from govtool.errors import UnknownNameError, UsageError
from govtool.model.fact import Fact


@pytest.mark.parametrize(
    ("table", "column"), [("versions", "dataset"), ("runs", "job"), ("facts", Fact._fields[0]), ("edges", "kind")]
)
def test_tables_that_govtool_knows_have_a_schema_where_nothing_is_kept(table: str, column: str) -> None:
    assert column in tables.schema(table, None).names


def test_the_message_names_the_tables_there_are() -> None:
    with pytest.raises(UnknownNameError, match=r"'record' in this version \(did you mean versions\?\)"):
        tables.schema("record", None)


@pytest.mark.parametrize("table", ["nodes", "reach", "plans", "openlineage", "workflow_runs", "graph_nodes"])
def test_tables_of_commands_are_not_written(table: str) -> None:
    with pytest.raises(UsageError, match="written by commands of govtool only"):
        write.check_columns(table, ["word"])


def test_the_message_tells_missing_columns_from_unknown_ones() -> None:
    with pytest.raises(UsageError, match=r"missing: column, .*; unknown: colour$"):
        write.check_columns("facts", ["dataset", "colour"])

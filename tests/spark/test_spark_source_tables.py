"""The tables of the data source in a store that keeps none of them; no Spark is needed for that."""

from __future__ import annotations

import pytest

from govtool.app.spark_source import tables
from govtool.errors import UnknownNameError
from govtool.model.fact import Fact


@pytest.mark.parametrize(
    ("table", "column"), [("versions", "dataset"), ("runs", "job"), ("facts", Fact._fields[0]), ("edges", "kind")]
)
def test_tables_that_govtool_knows_have_a_schema_where_nothing_is_kept(table: str, column: str) -> None:
    assert column in tables.schema(table, None).names


def test_the_message_names_the_tables_there_are() -> None:
    with pytest.raises(UnknownNameError, match=r"'record' in this version \(did you mean versions\?\)"):
        tables.schema("record", None)

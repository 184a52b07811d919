"""Tables of Delta Lake, Iceberg and other connectors in captured plans: rows of theirs have no positions, stated."""

from __future__ import annotations

import pytest

from govtool.records.plan import leaves, writes
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.nodes import LocalRows, Write
from govtool.records.plan.term_pieces import Unread
from govtool.records.plan.types import LONG

DELTA = "org.apache.spark.sql.delta.files.TahoeLogFileIndex"


@pytest.mark.parametrize(
    ("index", "kind"),
    [
        (DELTA, "org.apache.spark.sql.delta.DeltaParquetFileFormat"),
        (DELTA, "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"),  # of early versions
    ],
)
def test_files_of_delta_are_never_read_as_plain_parquet(index, kind):
    files = {"index": index, "format": "Parquet", "formatClass": kind, "files": [["file:/a", 1, 2, []]], "roots": []}
    with pytest.raises(Unread, match="rows of a table of Delta Lake have no positions"):
        leaves.relation({"relation": {"$files": files}}, (), 0, None)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"$object": "org.apache.iceberg.spark.source.SparkTable"}, "a table of Iceberg have no positions: SparkTable"),
        ({"$object": "com.example.Sheet"}, "a source that is no files have no positions: Sheet"),
        (None, "a source that is no files have no positions: DataSourceV2Relation"),
    ],
)
def test_tables_of_connectors_state_what_they_are(table, reason):
    assert leaves.no_table({"table": table}) == f"rows of {reason}"


def test_sources_by_their_relation():
    name = "org.apache.spark.sql.execution.datasources.jdbc.JDBCRelation"
    with pytest.raises(Unread, match="rows of a database have no positions: JDBCRelation"):
        leaves.relation({"relation": {"$object": name}}, (), 0, None)


def test_what_is_written_to_another_connector_has_the_rows_of_its_plan():
    rows = LocalRows(0, (Attribute(1, "a", LONG),), ((1,),))
    assert writes.into_table({}, {"table": {"$object": "com.example.Sheet"}}, rows) == Write(
        rows, "", "", "append", ("a",)
    )

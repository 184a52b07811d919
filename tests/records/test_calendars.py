"""Days and times of the calendar before 1582 in Parquet files: Spark reads others than the files hold."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded import SESSION, Warehouse

from govtool.records.execute.chain import ExecutorChain, PlanEngine
from govtool.records.plan import types as t
from govtool.records.plan.nodes import Session
from govtool.records.sql.dialect import NotExact
from govtool.store import Store

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")
from govtool.records.execute.duckdb import DuckExecutor

OLD, NEW = datetime.date(1500, 3, 1), datetime.date(2020, 1, 1)
LEGACY = {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}


def leaf_of(tmp_path, days, facts, kind=None, **options):
    place = tmp_path / "days"
    place.mkdir()
    column = pa.array(days, kind or pa.date32())
    table = pa.table({"day": column, "n": pa.array(range(len(days)), pa.int64())})
    pq.write_table(table.replace_schema_metadata(facts), place / "part-0.parquet", **options)
    return Warehouse(tmp_path, Store.init(str(tmp_path / "store"))).relation(place)


def is_exact(leaf, session=SESSION):
    try:
        DuckExecutor(session).fetch(leaf)
    except NotExact as error:
        return "old calendar, in column day" not in str(error)
    return True


@pytest.mark.parametrize(
    ("days", "facts", "exact"),
    [
        ([OLD, NEW], {"org.apache.spark.version": "4.0.0"}, True),
        ([OLD, NEW], LEGACY, False),
        ([NEW, None], LEGACY, True),
        ([None, None], LEGACY, True),
        ([OLD, NEW], {"org.apache.spark.version": "2.4.8"}, False),
        ([NEW], {"org.apache.spark.version": "2.4.8"}, True),
        ([OLD, NEW], {}, True),
    ],
)
def test_days_that_spark_shifts_are_left_to_spark(tmp_path, days, facts, exact):
    assert is_exact(leaf_of(tmp_path, days, facts)) is exact


def test_without_statistics_no_day_is_known_to_be_late(tmp_path):
    assert not is_exact(leaf_of(tmp_path, [NEW], LEGACY, write_statistics=False))


def test_times_are_shifted_until_1900_and_in_lists_too(tmp_path):
    early = datetime.datetime(1890, 1, 1)
    assert not is_exact(leaf_of(tmp_path, [early], LEGACY, pa.timestamp("us")))
    (tmp_path / "b").mkdir()
    assert not is_exact(leaf_of(tmp_path / "b", [[NEW]], LEGACY, pa.list_(pa.date32())))


def test_the_mode_of_the_session_counts_for_files_that_spark_did_not_write(tmp_path):
    mode = (("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY"),)
    assert not is_exact(leaf_of(tmp_path, [OLD], {}), Session("4.0.1", True, "UTC", settings=mode))


def test_other_columns_of_such_files_are_read(tmp_path):
    leaf = leaf_of(tmp_path, [OLD], LEGACY)
    narrow = replace(leaf, columns=leaf.columns[1:])
    assert DuckExecutor(SESSION).fetch(narrow) == [(0,)]
    assert narrow.columns[0].type == t.LONG
    engines = (PlanEngine("DuckDB", lambda: DuckExecutor(SESSION)),)
    assert ExecutorChain(engines).fetch(narrow) == [(0,)]

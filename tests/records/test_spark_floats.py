"""NaN in files that Spark did not write: their statistics do not count it, and Spark's own filters skip such rows."""

from __future__ import annotations

import math
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from govtool.records.execute.spark_executor import SparkExecutor
from govtool.records.plan import types as t
from govtool.records.plan.from_sql import from_sql, table
from govtool.records.plan.nodes import File, Session


@pytest.fixture(scope="module")
def floats(tmp_path_factory):
    """Relations over a file with NaN, by name."""
    path = tmp_path_factory.mktemp("floats") / "floats.parquet"
    rows = [(0, 1.5), (1, math.nan), (2, -1.0), (3, None)]
    columns = {"id": [n for n, _ in rows], "x": [x for _, x in rows]}
    schema = pa.schema({"id": pa.int32(), "x": pa.float64()})
    pq.write_table(pa.table(columns, schema=schema), path)
    stat = path.stat()
    file = File(0, path.as_uri(), stat.st_size, stat.st_mtime_ns // 1_000_000)
    kinds = t.Struct((t.Field("id", t.INTEGER), t.Field("x", t.DOUBLE)))
    return {"floats": replace(table("floats", kinds), format="parquet", files=(file,))}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM floats WHERE x > 1.5D",
        "SELECT id FROM floats WHERE x <=> double('NaN')",
    ],
)
def test_rows_with_nan_are_found(spark, floats, sql):
    executor = SparkExecutor(Session("4.0", ansi=True, zone="UTC"), spark)
    assert executor.fetch(from_sql(sql, floats)) == [(1,)]

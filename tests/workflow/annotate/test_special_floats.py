"""Aggregates that become NaN or infinite, or stop being so, without some records."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import govtool

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

ROWS = {
    "nan": (math.nan, 1e300),
    "few": (math.inf, 2.0),
    "less": (-math.inf, 2.0),
    "both": (math.inf, math.nan),
    "same": (math.nan, math.nan),
}


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_what_is_near_to_nothing_is_another_value(tmp_path, kind):
    groups = [name for name, values in ROWS.items() for _ in values]
    values = [min(value, 1e30) if value == 1e300 else value for own in ROWS.values() for value in own]
    pq.write_table(pa.table({"g": groups, "x": pa.array(values, kind)}), tmp_path / "r.parquet")
    sql = "select g, min(x) a, max(x) b, sum(x) c, avg(x) d from r group by g"

    def is_same(one, other):
        return math.isclose(one, other, rel_tol=1e-6) or (math.isnan(one) and math.isnan(other))

    for gone in range(len(values)):
        answer = govtool.whatif_delete(sql, tmp_path, [f"r:{gone}"], mode="propagate")
        own = {row.before[0]: row for row in answer.result.rows}[groups[gone]]
        (one,) = [value for n, value in enumerate(values) if groups[n] == groups[gone] and n != gone]
        assert all(is_same(value, one) for value in own.after[1:])
        assert own.status == ("kept" if groups[gone] == "same" else "recomputed")

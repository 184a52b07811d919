"""What Spark keeps is evaluated once: numbers of rows that were handed out stay with their rows."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from govtool.errors import EngineError
from govtool.records.execute.spark import prepared
from govtool.records.execute.spark_executor import SparkExecutor, require_running
from govtool.records.plan import types as t
from govtool.records.plan.expressions import passed
from govtool.records.plan.from_sql import from_sql, table
from govtool.records.plan.nodes import Distinct, File, Project, Session, outputs
from govtool.records.sql.dialect import NotExact
from govtool.records.trace.normal import spare_ids
from govtool.workflow.annotate.tables import TableStore

ROWS = ["a", "b", "c", "d"]


@pytest.fixture
def letters(tmp_path):
    """A query over a file, and the file."""
    path = tmp_path / "letters.parquet"
    pq.write_table(pa.table({"letter": ROWS}), path)
    stat = path.stat()
    file = File(0, path.as_uri(), stat.st_size, stat.st_mtime_ns // 1_000_000)
    leaf = table("letters", t.Struct((t.Field("letter", t.STRING),)))
    plan = from_sql("select letter from letters", {"letters": replace(leaf, format="parquet", files=(file,))})
    return plan, path


@pytest.fixture
def executor(spark):
    made = SparkExecutor(Session("4.0", ansi=True, zone="UTC"), spark)
    yield made
    made.close()


def _plan_below(executor, node) -> str:
    return str(executor.frame(node)._jdf.queryExecution().optimizedPlan().toString())


def test_rows_that_were_numbered_are_read_and_not_evaluated_again(executor, letters):
    plan, path = letters
    (letter,) = outputs(plan)
    numbered = TableStore(executor, spare_ids(plan)).numbered(plan)
    first = numbered.store.fetch(numbered.node, [numbered.number, letter]).to_pylist()
    pq.write_table(pa.table({"letter": ROWS[::-1]}), path)
    assert numbered.store.fetch(numbered.node, [numbered.number, letter]).to_pylist() == first


def test_rows_kept_of_kept_rows_are_read_below_a_with(executor, letters):
    plan, path = letters
    again = executor.keep(Distinct(executor.keep(plan)))
    path.unlink()
    assert sorted(executor.fetch(Project(again, tuple(map(passed, again.columns))))) == [(each,) for each in ROWS]
    assert "parquet" not in _plan_below(executor, again)


def test_rows_that_are_lost_are_an_error_and_no_other_rows(executor, letters):
    kept = executor.keep(letters[0])
    (frame,) = executor._kept.values()
    frame._jdf.queryExecution().analyzed().rdd().unpersist(True)
    with pytest.raises(NotExact, match="Spark: "):
        executor.fetch(kept)


def test_data_frames_of_rdds_stay_in_the_session_of_the_program(spark):
    rows = spark.sparkContext.parallelize([("a",)])
    of_program = rows.toDF(["letter"]).sparkSession
    assert prepared(spark, Session("4.0", ansi=True, zone="UTC")) is not of_program
    assert rows.toDF(["letter"]).sparkSession is of_program


def test_a_session_that_was_stopped_is_refused():
    stopped = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=None))
    with pytest.raises(EngineError, match="was stopped"):
        require_running(stopped)

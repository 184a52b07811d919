"""What is fetched in one call is what is asked call by call, over plans that differ."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from govtool.spark.live.job.digest_key import Digests
from govtool.spark.live.jvm.janino import instance_in
from govtool.spark.live.jvm.prefetch import EXECUTION, Prefetched, Prefetcher, stored_executions
from govtool.spark.live.numbers import Numbers
from govtool.spark.live.plans import catalyst, physical


class _Heard:
    """A listener that keeps the executions that succeeded."""

    def __init__(self) -> None:
        self.executions: list[Any] = []

    def onSuccess(self, funcName: str, qe: Any, durationNs: int) -> None:
        self.executions.append(qe)

    def onFailure(self, funcName: str, qe: Any, exception: Any) -> None:
        pass

    class Java:
        implements = ["org.apache.spark.sql.util.QueryExecutionListener"]  # noqa: RUF012


def _write_plain(spark: Any, folder: Path) -> None:
    spark.range(20).selectExpr("id", "id % 3 AS k", "concat('ö', id) AS `na me`").write.parquet(str(folder / "a"))
    frame = spark.read.parquet(str(folder / "a"))
    for number, bound in enumerate((3, 4)):  # the same shape, another literal
        frame.where(frame.id > bound).write.parquet(str(folder / f"above{number}"))
    frame.select("k").write.mode("append").option("compression", "gzip").parquet(str(folder / "other column"))
    frame.selectExpr("id", "cast(k AS string) AS k").write.parquet(str(folder / "other type"))


def _write_more_files(spark: Any, folder: Path) -> None:
    for _ in range(2):
        spark.range(5).repartition(3).write.mode("append").json(str(folder / "files"))
        spark.read.json(str(folder / "files")).write.mode("overwrite").csv(str(folder / "copy"), header=True)


def _write_by_partition(spark: Any, folder: Path) -> None:
    spark.range(9).selectExpr("id", "id % 3 AS part").write.partitionBy("part").parquet(str(folder / "parts"))
    frame = spark.read.parquet(str(folder / "parts")).where("part = 1")
    frame.groupBy("part").count().write.parquet(str(folder / "counted"))


def _write_tables(spark: Any, folder: Path) -> None:
    spark.range(4).selectExpr("id", "id AS v").write.saveAsTable("prefetched")
    spark.sql("INSERT INTO prefetched SELECT id + 1, 7 FROM prefetched")
    spark.sql("CREATE OR REPLACE TEMP VIEW seen AS SELECT v FROM prefetched WHERE id > 1")
    spark.table("seen").write.parquet(str(folder / "seen"))
    spark.sql("DROP TABLE prefetched")


def _join_adaptively(spark: Any, folder: Path) -> None:
    spark.range(50).selectExpr("id", "id % 5 AS k").write.parquet(str(folder / "left"))
    left = spark.read.parquet(str(folder / "left"))
    joined = left.groupBy("k").count().join(left.hint("merge"), "k").join(left.select("k").distinct(), "k", "left")
    joined.orderBy("k").write.parquet(str(folder / "joined"))
    left.unionAll(left).coalesce(1).write.parquet(str(folder / "union"))
    left.cache().count()
    left.where("id IN (SELECT max(id) FROM range(9))").write.parquet(str(folder / "subquery"))
    left.unpersist()


def _act_without_files(spark: Any, folder: Path) -> None:
    spark.createDataFrame([(1, "x"), (2, None)], "a int, b string").groupBy("b").count().collect()
    exploded = "SELECT explode(array(1, 2)) AS e"
    spark.sql(f"SELECT e, count(*) FROM ({exploded}) GROUP BY GROUPING SETS ((), (e))").collect()
    spark.range(3).write.format("noop").mode("overwrite").save()
    spark.sql("SHOW TABLES").collect()


def _act_with_settings(spark: Any, folder: Path) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        spark.range(3).selectExpr("cast('x' AS int) AS n").write.parquet(str(folder / "loose"))
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


_PROGRAMS = (
    _write_plain, _write_more_files, _write_by_partition, _write_tables, _join_adaptively, _act_without_files,
    _act_with_settings,
)  # fmt: skip


@pytest.fixture(scope="module")
def heard(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Any]]:
    """The executions of all programs."""
    from pyspark.java_gateway import ensure_callback_server_started

    session = spark.newSession()
    ensure_callback_server_started(session.sparkContext._gateway)
    listener = _Heard()
    manager = session._jsparkSession.listenerManager()
    manager.register(listener)
    for number, program in enumerate(_PROGRAMS):
        program(session, tmp_path_factory.mktemp(f"program{number}"))
    session._jsparkSession.sparkContext().listenerBus().waitUntilEmpty(60_000)
    yield listener.executions
    listeners = manager.listListeners()
    manager.unregister(listeners[len(listeners) - 1])


def _recorded(execution: Any) -> dict[str, Any]:
    found = catalyst.captured(execution.analyzed(), Digests(b"key"))
    found["metrics"] = physical.measured(execution.executedPlan())
    return {**found, "id": execution.id(), "query": str(Numbers().mark(execution))}


def test_fetched_executions_are_recorded_as_live_ones(spark: Any, heard: list[Any]) -> None:
    prefetcher = Prefetcher(spark.sparkContext._gateway)
    assert len(heard) >= 20
    for execution in heard:
        fetched = prefetcher.fetched(execution, EXECUTION)
        assert isinstance(fetched, Prefetched)
        assert _recorded(fetched) == _recorded(execution)


def test_plans_are_written_as_spark_writes_them(spark: Any, heard: list[Any]) -> None:
    """The first plan of a class is compared by the writer itself; what it writes after that is compared here."""
    writer = instance_in(spark.sparkContext._gateway, "PlanJson")
    plans = [execution.analyzed() for execution in heard]
    before = int(str(writer.toString()).split(" ", 1)[0])  # of other tests in this session
    for plan in plans:
        writer.apply(plan)
    compared = int(str(writer.toString()).split(" ", 1)[0])
    for plan in plans:
        assert writer.apply(plan) == plan.toJSON()
    again, others = str(writer.toString()).split(" ", 1)
    assert others.startswith("[] ")  # every class that is written here is written as Spark does
    assert int(again) == compared  # nothing was compared again: these classes are trusted, or left to Spark
    assert compared - before < len(plans)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 'ö\u2028\"\\\\\t\u0001' AS t, date'2020-02-03' AS d, timestamp'2020-02-03 04:05:06' AS s, 1.5 AS m",
        "SELECT CASE WHEN id > 1 THEN 'a' WHEN id > 0 THEN NULL ELSE 'b' END AS c, cast(id AS double) / 3 AS f FROM range(3)",
        "SELECT a.id FROM range(3) a LEFT ANTI JOIN range(2) b ON a.id = b.id WHERE a.id IN (1, 2, 3)",
        "WITH w AS (SELECT id, row_number() OVER (PARTITION BY id % 2 ORDER BY id) AS n FROM range(5)) SELECT * FROM w",
        "SELECT transform(array(1, 2), x -> x + id) AS t, named_struct('k', id) AS s FROM range(2)",
        "SELECT (SELECT max(id) FROM range(4)) AS m, interval 1 day AS i, X'00ff' AS b, float('nan') AS n, 1e300 AS e",
    ],
)
def test_values_in_plans_are_written_as_spark_writes_them(spark: Any, query: str) -> None:
    writer = instance_in(spark.sparkContext._gateway, "PlanJson")
    plan = spark.sql(query)._jdf.queryExecution().analyzed()
    for _ in range(2):
        assert json.loads(writer.apply(plan)) == json.loads(plan.toJSON())


def test_a_write_of_files_is_one_call(spark: Any, heard: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from py4j.java_gateway import GatewayClient

    prefetcher = Prefetcher(spark.sparkContext._gateway)
    joined = next(each for each in heard if "/joined" in each.analyzed().toString())
    prefetcher.fetched(joined, "id")
    original, calls = GatewayClient.send_command, []

    def counted(self: Any, command: str, *args: Any, **kwargs: Any) -> Any:
        calls.append(command)
        return original(self, command, *args, **kwargs)

    gc.collect()
    monkeypatch.setattr(GatewayClient, "send_command", counted)
    _recorded(prefetcher.fetched(joined, EXECUTION))
    assert len([each for each in calls if not each.startswith("m\n")]) == 1  # "m" forgets an object


def test_fetched_numbers_are_those_of_the_store(spark: Any, heard: list[Any]) -> None:
    store = spark._jsparkSession.sharedState().statusStore()
    live, fetched = Numbers(), Numbers()
    start = int(store.executionsList(max(0, int(store.executionsCount()) - 30), 1).apply(0).executionId())
    live._next = fetched._next = start  # the session is shared: most executions are of other tests
    live.look(store)
    request = stored_executions(list(range(start, start + 12)))
    fetched.look(Prefetcher(spark.sparkContext._gateway).fetched(store, request))
    marks = [live.mark(execution) for execution in heard]
    assert all(mark.query for mark in marks) or not any(mark.query for mark in marks)
    found = [live.take(mark) for mark in marks]
    assert [fetched.take(mark) for mark in marks] == found
    assert len([each for each in found if each is not None]) > 10


def test_what_is_not_fetched_is_asked(spark: Any) -> None:
    prefetcher = Prefetcher(spark.sparkContext._gateway)
    text = spark._jvm.java.lang.StringBuilder('a"\\\n\tö' + "é" * 300 + "\U0001f600")
    fetched = prefetcher.fetched(text, "length\ntoString\nnothing\ncharAt:#0\nindexOf:ö\ncharAt:#99999")
    assert fetched.toString() == text.toString()
    assert fetched.length() == text.length()
    assert fetched.indexOf("ö") == 5
    assert fetched.substring(0, 2) == 'a"'
    with pytest.raises(Exception, match="99999"):
        fetched.charAt(99999)
    with pytest.raises(Exception, match="nothing"):
        fetched.nothing()


def test_texts_that_are_too_long_together_are_asked(spark: Any) -> None:
    texts = spark._jvm.java.lang.StringBuilder("x")
    texts.append("y" * (9 << 20))
    fetched = Prefetcher(spark.sparkContext._gateway).fetched(texts, "toString\nsubstring:#1\nlength")
    assert "toString" in fetched._fields
    assert "substring:#1" not in fetched._fields
    assert (len(fetched.toString()), len(fetched.substring(1))) == (1 + (9 << 20), 9 << 20)


def test_sequences_and_arguments(spark: Any) -> None:
    prefetcher = Prefetcher(spark.sparkContext._gateway)
    fields = spark.createDataFrame([], "a int, `b\\c` string")._jdf.schema()
    fetched = prefetcher.fetched(fields, "toSeq\n *\n  name\n isEmpty\nsize")
    names = fetched.toSeq()
    assert [names.apply(number).name() for number in range(names.size())] == ["a", "b\\c"]
    assert names.isEmpty() is False
    with pytest.raises(Exception, match="2"):
        names.apply(2)
    assert spark._jvm.java.util.Objects.equals(fetched, fields)  # an argument of a call


def test_where_nothing_compiles_objects_are_as_they_are() -> None:
    class Gateway:
        jvm = None

    value = object()
    prefetcher = Prefetcher(Gateway())
    assert [prefetcher.fetched(value, EXECUTION) for _ in range(2)] == [value, value]

"""Live writes whose rows go to no place that a plan names: each is a run, and what cannot be followed is a break."""

from __future__ import annotations

import pytest

from bench import programs


@pytest.fixture(scope="module")
def ran(spark, tmp_path_factory):
    """Every such write, in a session of its own: what the session says, in order."""
    from govtool.spark.live.listener import Recorder
    from govtool.spark.live.spool import Spool

    spool, folder = tmp_path_factory.mktemp("spool"), tmp_path_factory.mktemp("placeless")
    session = spark.newSession()
    session.range(5).selectExpr("id AS k", "id * 2 AS v").write.parquet(f"{folder}/in")
    session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60_000)  # the input's write is not one of these
    recorder = Recorder(Spool(str(spool)))
    recorder.attach(session)
    active = session._get_j_spark_session_class(session._jvm).setActiveSession
    active(session._jsparkSession)  # where Spark looks for data sources in Python
    try:
        _write(session, folder)
    finally:
        active(spark._jsparkSession)
    recorder.finish(60)
    assert (recorder.lost, recorder.spool.lost) == (0, 0)
    return [each for each in programs.live(spool) if each.outcome != "ignored"]  # batches, which are of their queries


def _write(session, folder):
    class Forgets:
        def process(self, row):
            pass

    _python_sink(session)
    table = session.read.parquet(f"{folder}/in")
    table.select("k").write.format("noop").mode("overwrite").save()
    table.select("v").write.format("nowhere").mode("append").save()
    for form in ("memory", "noop", "foreach"):
        stream = session.readStream.schema("k long, v long").parquet(f"{folder}/in").select("v").writeStream
        stream = stream.foreach(Forgets()) if form == "foreach" else stream.format(form).queryName(f"q_{form}")
        stream = stream.option("checkpointLocation", f"{folder}/check/{form}").trigger(availableNow=True)
        stream.start().awaitTermination()


def _python_sink(session):
    from pyspark.sql.datasource import DataSource, DataSourceWriter, WriterCommitMessage

    class Writer(DataSourceWriter):
        def write(self, iterator):
            for _ in iterator:
                pass
            return WriterCommitMessage()

    class Nowhere(DataSource):
        @classmethod
        def name(cls):
            return "nowhere"

        def writer(self, schema, overwrite):
            return Writer()

    session.dataSource.register(Nowhere)


def sources(executed):
    made = executed.derivation
    return {(edge.source.dataset.rpartition("/")[2], edge.source.path, edge.kind.label) for edge in made.edges}


@pytest.mark.slow
def test_rows_that_are_thrown_away_are_a_query(ran):
    assert ran[0].derivation.target_kind == "query"
    assert sources(ran[0]) == {("in", "k", "identity"), ("in", "*", "read")}
    assert (ran[0].run.breaks, [each.rows for each in ran[0].run.inputs]) == ((), [5])


@pytest.mark.slow
def test_a_data_source_that_names_no_place_is_a_break_with_its_name(ran):
    (note,) = ran[1].run.breaks
    assert (note.code, note.message) == (
        "break.target", "the data source nowhere writes rows, and does not say where to",
    )  # fmt: skip
    assert [each.dataset.rpartition("/")[2] for each in ran[1].run.inputs] == ["in"]
    assert ran[1].outcome == "opaque"


@pytest.mark.slow
def test_streams_into_memory_or_nothing_are_queries_and_a_function_is_a_break(ran):
    assert [[note.code for note in each.run.breaks] for each in ran[2:]] == [[], [], ["break.rdd"]]
    for each in ran[2:]:
        assert each.derivation.target_kind == "query"
        assert sources(each) == {("in", "v", "identity"), ("in", "*", "read")}
        assert [read.rows for read in each.run.inputs] == [5]

"""Every write of a batch job and of streams, one action each: its session and its event log against the truth.

The programs of ``fixtures/spark/writes``, with truth written by hand.
"""

from __future__ import annotations

import pytest

from bench import programs, writes

WRITES = writes.load()


@pytest.fixture(scope="module")
def job(spark, spark_home, tmp_path_factory):
    """All programs, run in a session of their own: all actions, by source."""
    from govtool.spark.live.listener import Recorder
    from govtool.spark.live.spool import Spool

    spool, folder = tmp_path_factory.mktemp("spool"), tmp_path_factory.mktemp("writes")
    writes.inputs(folder)
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    session.conf.set("spark.sql.streaming.numRecentProgressUpdates", "2")  # fewer than there are batches
    programs.prepare(session, writes.DATABASE)
    level = session.sparkContext._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString()
    session.sparkContext.setLogLevel("OFF")  # two writes fail as they should
    recorder = Recorder(Spool(str(spool)))
    recorder.attach(session)
    try:
        ran = writes.run_all(session, recorder, folder)
        recorder.finish(60)
    finally:
        session.sparkContext.setLogLevel(level)
    assert (recorder.lost, recorder.spool.lost) == (0, 0)
    return ran, {"live": programs.live(spool), "log": programs.logged(spark_home / "events")}, folder


def found(job, source, title):
    """The writes of a program, as a source has them."""
    ran, actions, folder = job
    program, numbers = next((program, numbers) for program, numbers in ran if program.title == title)
    return program, writes.of(actions[source], program, numbers, folder)


def test_the_job_has_writes_of_every_kind():
    batch = [write for program in WRITES if program.file == "batch" for write in program.expected]
    assert len(batch) >= 45
    assert max(len(program.expected) * program.batches for program in WRITES if program.file == "streams") == 15
    assert len({program.title for program in WRITES}) == len(WRITES)


@pytest.mark.slow
@pytest.mark.parametrize("source", ["live", "log"])
@pytest.mark.parametrize("title", [program.title for program in WRITES])
def test_every_write_is_one_action_with_its_own_edges_and_rows(job, title, source):
    program, given = found(job, source, title)
    assert writes.differences(program, given, source) == []


@pytest.mark.slow
def test_both_sources_name_the_same_runs(job):
    for program in WRITES:
        if not program.sink:
            live, log = (found(job, source, program.title)[1] for source in ("live", "log"))
            assert {each.executed.run.id.partition(".")[0] for each in live} == {
                each.executed.run.id.partition(".")[0] for each in log
            }, program.title


@pytest.mark.slow
@pytest.mark.parametrize("source", ["live", "log"])
def test_each_write_of_a_batch_knows_the_batch_and_how_far_the_stream_was_read(job, source):
    _, given = found(job, source, "five sinks of one foreachBatch, with two static sides, one of them cached")
    batches = [each.executed.run.batches for each in given]
    assert [(each.first, each.last) for each in batches] == [(n, n) for n in range(3) for _ in range(5)]
    assert len({(each.query, each.run) for each in batches}) == 1
    offsets = [each.offsets[0] for each in batches[::5]]
    assert {each.source.rpartition("/")[2] for each in offsets} == {"sales]"}
    assert [(each.start, each.end) for each in offsets] == [
        ("", '{"logOffset":0}'),
        ('{"logOffset":0}', '{"logOffset":1}'),
        ('{"logOffset":1}', '{"logOffset":2}'),
    ]


@pytest.mark.slow
def test_a_write_in_a_thread_of_its_own_knows_its_batch_too(job):
    _, given = found(job, "live", "two streams one after the other, each with two writes by threads at once")
    queries = {each.target: each.executed.run.batches.run for each in given}
    assert queries["out/ids"] == queries["out/days"] != queries["out/return_ids"] == queries["out/return_days"]


@pytest.mark.slow
def test_a_stream_into_files_has_the_rows_of_all_its_batches(job):
    _, (stream,) = found(job, "live", "a stream into files, with a static side of its own folder")
    run = stream.executed.run
    assert (run.batches.first, run.batches.last) == (0, 2)
    assert run.batches.offsets[0][1:] == ("", '{"logOffset":2}', 6)
    assert {read.dataset.rpartition("/")[2]: read.rows for read in run.inputs} == {"sales": 6, "customers.csv": None}

"""Batches of streaming queries: the progress that Spark reports, in event logs and in spools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from spark_logs import ended, event, gathered, started

from govtool.capture.spark.live.batches import Streams
from govtool.capture.spark.live.runs import LiveRuns
from govtool.capture.spark.live.spool import Process
from govtool.capture.spark.streams import BatchKey, BatchProgress, batches_from, folder_of
from govtool.model.run import Offsets
from govtool.spark.live.streams import progress_facts

QUERY, RUN = "10b986f8-28ef-4a5d-8793-1c4be817cca1", "84d78c90-0a11-4c22-8374-2611795c2480"


def reported(batch: int, *, sink: str = "ForeachBatchSink", rows: int = 2) -> dict[str, object]:
    """The progress of a batch, as Spark reports it."""
    source = {
        "description": "FileStreamSource[file:/data/in]",
        "startOffset": None if not batch else json.dumps({"logOffset": batch - 1}),
        "endOffset": json.dumps({"logOffset": batch}),
        "numInputRows": rows,
    }
    return {"id": QUERY, "runId": RUN, "batchId": batch, "sources": [source], "sink": {"description": sink}}


def described(batch: int) -> str:
    return f"\nid = {QUERY}\nrunId = {RUN}\nbatch = {batch}"


def test_the_batch_that_a_description_names() -> None:
    assert BatchKey.described("daily" + described(7)) == BatchKey(QUERY, RUN, 7)
    assert BatchKey.described("save at job.py:1") is None
    assert BatchKey.read([QUERY, RUN, True]) is BatchKey.read(["", RUN, 1]) is BatchKey.read(None) is None


@pytest.mark.parametrize(
    ("description", "folder"),
    [
        ("FileStreamSource[file:/data/in]", "file:/data/in"),
        ("FileSink[s3a://lake/out]", "s3a://lake/out"),
        ("KafkaV2[Subscribe[clicks]]", ""),
        ("ForeachBatchSink", ""),
        ("", ""),
    ],
)
def test_the_folder_of_a_source_or_sink(description: str, folder: str) -> None:
    assert folder_of(description) == folder


def test_an_event_and_a_line_of_a_spool_are_the_same_progress() -> None:
    progress = BatchProgress.reported(reported(3))
    assert progress == BatchProgress.read(progress_facts(json.dumps(reported(3))))
    assert progress is not None
    assert progress.offsets[0].offsets == Offsets(
        "FileStreamSource[file:/data/in]", '{"logOffset": 2}', '{"logOffset": 3}', 2
    )
    assert (progress.offsets[0].path, progress.sink) == ("file:/data/in", "")


@pytest.mark.parametrize("broken", [{}, {"id": QUERY}, {"id": QUERY, "runId": RUN, "batchId": "1", "sources": 3}])
def test_progress_that_is_none(broken: dict[str, object]) -> None:
    assert BatchProgress.reported(broken) is None


@pytest.mark.parametrize("sources", [None, 3, "x", [3], [{"description": 1, "numInputRows": "2"}]])
def test_progress_whose_sources_are_none(sources: object) -> None:
    progress = BatchProgress.reported({**reported(1), "sources": sources, "sink": 3})
    assert progress is not None
    assert all(each.path == "" and each.offsets.rows is None for each in progress.offsets)


def test_batches_are_joined_from_the_first_to_the_last_in_any_order() -> None:
    joined = batches_from([p for n in (2, 0, 1) if (p := BatchProgress.reported(reported(n))) is not None])
    assert joined is not None
    assert (joined.query, joined.run, joined.first, joined.last) == (QUERY, RUN, 0, 2)
    assert joined.offsets == (Offsets("FileStreamSource[file:/data/in]", "", '{"logOffset": 2}', 6),)
    assert batches_from([]) is None


def test_rows_of_a_stream_are_those_of_more_batches_than_spark_keeps() -> None:
    process = Process("1", progress=[progress_facts(json.dumps(reported(n))) for n in range(250)])
    streams = Streams.of(process)
    line = {"name": "stream", "run": RUN}
    assert streams.measured(line)["metrics"] == {"scans": [{"paths": ["file:/data/in"], "rows": 500}]}
    batches = streams.batches_of(line)
    assert batches is not None
    assert (batches.first, batches.last) == (0, 249)


def test_a_query_that_is_started_again_from_its_checkpoint_is_another_run() -> None:
    runs = LiveRuns(Process("1"))
    lines = [{"name": "stream", "application": "app-1", "query": QUERY, "run": run} for run in ("r1", "r2")]
    assert [runs.id_of(line) for line in lines] == ["app-1/r1", "app-1/r2"]


def test_an_offset_beyond_all_measure_is_left_out() -> None:
    long = {**reported(1), "sources": [{"description": "x", "startOffset": "9" * 5000, "endOffset": {"p": {"0": 4}}}]}
    assert progress_facts(json.dumps(long))["sources"] == [{"source": "x", "start": "", "end": '{"p":{"0":4}}', "rows": None}]  # fmt: skip


# ---- event logs ----------------------------------------------------------------------------------------------------


def batch_plan(*files: str) -> str:
    """A batch that reads files, one a scan."""
    scans = "".join(
        f"({n}) Scan parquet \nOutput [1]: [a#{n}]\nLocation: InMemoryFileIndex [file:{file}]\nReadSchema: struct<a:int>\n\n"
        for n, file in enumerate(files, 1)
    )
    if len(files) == 1:
        return f"== Physical Plan ==\nScan parquet  (1)\n\n\n{scans}"
    top = len(files) + 1
    tree = f"Union ({top})\n" + "".join(
        f"{':' if n < len(files) else '+'}- Scan parquet  ({n})\n" for n in range(1, top)
    )
    return f"== Physical Plan ==\n{tree}\n\n{scans}({top}) Union\n\n"


def log(folder: Path, plan: str, *progress: dict[str, object]) -> object:
    start = json.loads(started(3, plan))
    start["description"] = described(1)
    name = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
    lines = [event("SparkListenerLogStart", **{"Spark Version": "4.3.0"}), json.dumps(start).encode() + b"\n", ended(3)]
    lines += [
        json.dumps({"Event": name, "progress": each}, separators=(",", ":")).encode() + b"\n" for each in progress
    ]
    (folder / "app-1").write_bytes(b"".join(lines))
    (run,) = gathered(folder / "app-1").runs
    return run


STREAM, STATIC = "/data/in/part-1.parquet", "/data/regions.parquet"


def test_only_the_files_of_a_stream_are_those_of_its_folder(tmp_path: Path) -> None:
    run = log(tmp_path, batch_plan(STREAM, STATIC), reported(1, sink="FileSink[file:/data/out]"))
    assert [read.dataset for read in run.inputs] == ["file:///data/in", "file:///data/regions.parquet"]
    assert [written.dataset for written in run.outputs] == ["file:///data/out"]
    assert run.breaks == ()
    assert (run.batches.query, run.batches.first, run.batches.offsets[0].end) == (QUERY, 1, '{"logOffset": 1}')


def test_without_progress_it_is_a_break_which_files_are_a_stream(tmp_path: Path) -> None:
    run = log(tmp_path, batch_plan(STREAM, STATIC))
    assert {note.code for note in run.breaks} == {"break.streaming-sink", "break.source"}
    assert (run.batches.run, run.batches.last, run.batches.offsets) == (RUN, 1, ())


def test_the_one_source_of_a_batch_is_a_folder_even_without_progress(tmp_path: Path) -> None:
    run = log(tmp_path, batch_plan(STREAM))
    assert [read.dataset for read in run.inputs] == ["file:///data/in"]
    assert {note.code for note in run.breaks} == {"break.streaming-sink"}


def test_a_login_in_the_place_of_a_stream_is_not_kept() -> None:
    source = {"description": "FileStreamSource[s3a://key:hunter2@lake/in]", "endOffset": "1"}
    progress = BatchProgress.reported({**reported(1), "sources": [source]})
    spooled = progress_facts(json.dumps({**reported(1), "sources": [source]}))
    assert progress is not None
    assert "hunter2" not in repr(progress.offsets[0].offsets)
    assert "hunter2" not in json.dumps(spooled)

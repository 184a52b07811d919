"""Positions of rows that DataFrames wrote, without Spark: numbers of a spool as those of a store, and traces by them."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from govtool.app.rdd.programs import ProgramNotes
from govtool.app.records import frame_positions
from govtool.app.records.frame_positions import NotKept
from govtool.app.records.runs import find_writer
from govtool.app.records.tables import RecordTables
from govtool.app.records.writes import ProcessActions
from govtool.app.runs.job import remove_spool
from govtool.errors import UsageError
from govtool.model.token import ROW_BITS
from govtool.records.lineage import Lineage
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.nodes import File, Relation, Session
from govtool.records.trace.normal import Ids
from govtool.records.trace.positions import RESULT, KeptTrace, PairTable
from govtool.records.trace.segment import Grade
from govtool.spark.live.records import file_numbers, packing
from govtool.store import Changes, Store


def _relation(folder, leaf, first, files):
    """A relation of files of one column: names with their values."""
    found = []
    for number, (name, values) in enumerate(files.items()):
        pq.write_table(pa.table({"v": pa.array(values, pa.int64())}), folder / name)
        facts = (folder / name).stat()
        found.append(File(number, (folder / name).as_uri(), facts.st_size, facts.st_mtime_ns // 1_000_000))
    schema = t.Struct((t.Field("v", t.LONG),))
    return Relation(leaf, f"file://{folder}", "parquet", tuple(found), (Attribute(first, "v", t.LONG),), schema)


def _flat(counts):
    """Rows of tasks that write into one folder."""
    return [((task, "", -1), rows) for task, rows in counts.items()]


@pytest.fixture
def written(tmp_path):
    """The files of three tasks: one wrote two files, one none."""
    names = {
        "part-00000-a-c000.parquet": [1, 2, 3],
        "part-00000-a-c001.parquet": [4, 5],
        "part-00002-a-c000.parquet": [6],
    }
    return _relation(tmp_path, 0, 1, names)


def test_rows_of_tasks_are_rows_of_their_files(written):
    tasks = frame_positions._Tasks(written, _flat({0: 5, 1: 0, 2: 1}))
    ids = np.array([0, 2, 3, 4, 2 << 33])
    assert [(int(one) >> ROW_BITS, int(one) & 7) for one in tasks.rows(ids)] == [(0, 0), (0, 2), (1, 0), (1, 1), (2, 0)]


@pytest.mark.parametrize("counts", [{0: 4, 2: 1}, {0: 5, 1: 1, 2: 1}])
def test_files_that_are_not_those_of_the_tasks_are_refused(written, counts):
    with pytest.raises(NotKept, match="rows of the tasks"):
        frame_positions._Tasks(written, _flat(counts))


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (["k=1/part-00000-a-c000.parquet", "k=2/part-00000-a-c000.parquet"], "several files at once"),
        (["part-00000-a-c000.parquet", "part-00000-b-c000.parquet"], "several files at once"),
        (["k=1/part-00000-a.c000.snappy.parquet", "k=2/part-00000-a.c000.snappy.parquet"], "names of the written"),
        (["part-00000-a_00000.c000.snappy.parquet"], "names of the written"),
        (["00000-0-a-00001.parquet"], "names of the written"),
    ],
)
def test_files_of_sorted_rows_are_refused(tmp_path, names, why):
    """The sum of their rows is that of the task; the order is not."""
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
    written = _relation(tmp_path, 0, 1, {name: [1, 2] for name in names})
    with pytest.raises(NotKept, match=why):
        frame_positions._Tasks(written, _flat({0: 2 * len(names)}))


@pytest.mark.parametrize(
    ("kind", "name", "text", "why"),
    [
        ("csv", "part-00000-a-c000.csv", "1,a\n2,b\n", ""),
        ("csv", "part-00000-a-c000.csv", "n,t\n1,a\n2,b\n", "rows of the tasks"),
        ("csv", "part-00000-a-c000.csv", '1,"a\nb"\n2,b\n', "rows of the tasks"),
        ("csv", "part-00000-a-c000.csv", "1,a\n\n", "rows of the tasks"),
        ("csv", "part-00000-a-c000.csv.gz", "1,a\n2,b\n", "cannot be counted"),
        ("text", "part-00000-a-c000.txt", "a\n\n", ""),
        ("text", "part-00000-a-c000.txt", "a\rb\nc\n", "rows of the tasks"),
        ("json", "part-00000-a-c000.json.gz", "", ""),
    ],
)
def test_lines_that_are_no_rows_are_refused(tmp_path, kind, name, text, why):
    """Two rows were written: whatever else is in a file would move them."""
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    file = File(0, (tmp_path / name).as_uri(), len(text), 0)
    written = Relation(0, "out", kind, (file,), (Attribute(1, "v", t.STRING),), t.Struct(()))
    if not why:
        assert frame_positions._Tasks(written, _flat({0: 2})).rows(np.array([1])).tolist() == [1]
        return
    with pytest.raises(NotKept, match=why):
        frame_positions._Tasks(written, _flat({0: 2}))


@pytest.mark.parametrize("end", ["", "_00002"])
def test_rows_of_folders_and_buckets_are_rows_of_their_files(tmp_path, end):
    """A task writes one folder after the other; within one, files follow each other by their numbers."""
    bucket = 2 if end else -1
    names = {
        f"k=1/part-00000-a{end}.c000.snappy.parquet": [1, 2],
        f"k=2/part-00000-a{end}.c000.snappy.parquet": [3],
        f"k=2/part-00000-a{end}.c001.snappy.parquet": [4],
        f"k=2/part-00001-a{end}.c000.snappy.parquet": [5],
    }
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
    written = _relation(tmp_path, 0, 1, names)
    counts = [((0, "k=2", bucket), 2), ((0, "k=1", bucket), 2), ((1, "k=2", bucket), 1)]
    tasks = frame_positions._Tasks(written, counts)
    found = tasks.rows(np.array([0, 1, 2, 3, 1 << 33]))
    assert [(int(one) >> ROW_BITS, int(one) & 7) for one in found] == [(1, 0), (2, 0), (0, 0), (0, 1), (3, 0)]
    others = [
        [((0, "k=2", bucket), 1), ((0, "k=1", bucket), 3), ((1, "k=2", bucket), 1)],
        [((0, "k=2", bucket), 2), ((0, "k=3", bucket), 2), ((1, "k=2", bucket), 1)],
        [((0, "k=2", bucket), 2), ((0, "k=1", 0 if end else 2), 2), ((1, "k=2", bucket), 1)],
        counts[:2],
    ]
    for other in others:
        with pytest.raises(NotKept):
            frame_positions._Tasks(written, other)


def _at(seconds):
    return datetime.fromtimestamp(1_700_000_000 + seconds, UTC).isoformat(timespec="milliseconds")


@pytest.mark.parametrize(
    ("begin", "end", "run"), [(0, 2, "r1"), (3, 5, "r4"), (1.001, 1.1, "r1"), (2, 3, "a write"), (8, 9, "a write")]
)
def test_a_refusal_is_of_the_run_that_began_meanwhile(begin, end, run):
    """Of a write that failed or was not heard of there is none: the next run is another write."""
    executed = [
        SimpleNamespace(run=SimpleNamespace(id=f"r{n}", started=_at(n), outputs=outputs))
        for n, outputs in [(4, ("b",)), (1, ("a",)), (2.5, ()), (6, ("c",))]
    ]
    process = ProcessActions("1-2", {}, executed)
    line = {"from": 1_700_000_000 + begin, "to": 1_700_000_000 + end, "missing": "a reason"}
    assert frame_positions._refusals(process, line) == [f"positions of {run} are not kept: a reason"]


def test_lines_about_positions_are_in_a_folder_of_their_own(tmp_path):
    """Plans are not read for them, and a line that is too long or torn costs no other."""
    (tmp_path / "1-1.jsonl").write_text('{"e":"positions","from":1,"to":2,"missing":"a plan"}\n')
    process, notes = ProcessActions("1-2", {}, []), ProgramNotes()
    frame_positions.add_frame_positions(RecordTables(), tmp_path, [process], notes)
    assert notes.problems == []
    (tmp_path / "positions").mkdir()
    lines = [
        '{"e":"positions","n":null,"break":"plan-too-large"}',
        '{"e":"pos',
        '{"e":"positions","from":1,"to":2,"missing":"x"}',
    ]
    (tmp_path / "positions" / "1-1.jsonl").write_text("\n".join(lines))
    (tmp_path / "positions" / "2-1.jsonl").write_text(lines[-1])
    frame_positions.add_frame_positions(RecordTables(), tmp_path, [process], notes)
    assert notes.problems == [
        "positions of a write are not kept: the list of its inputs' files is too large",
        "positions of a write are not kept: x",
    ]


def test_a_spool_is_removed_with_its_positions(tmp_path):
    folder = tmp_path / "spool" / "private" / "positions"
    folder.mkdir(parents=True)
    for name in ("1-1.jsonl", "1-2.positions"):
        (folder / name).touch()
    remove_spool(tmp_path / "spool")
    assert not (tmp_path / "spool").exists()


def test_bits_of_the_job_are_those_of_the_store():
    """Code within a job imports nothing else of govtool."""
    assert (file_numbers.ROW_BITS, file_numbers.FILE_BITS) == (ROW_BITS, 64 - ROW_BITS)
    assert packing.PARTITION_BITS == 33  # of Spark's monotonically_increasing_id


def test_a_file_that_was_not_listed_is_refused():
    highest = (1 << 30) - 1  # the number's upper bit is the id's sign
    ids = np.array([(7 << ROW_BITS) | 3, (9 << ROW_BITS) | 1, -(1 << ROW_BITS) | 2])
    found = frame_positions._translated(ids, {7: 1, 9: 0, highest: 2})
    assert found.tolist() == [(1 << ROW_BITS) | 3, 1, (2 << ROW_BITS) | 2]
    with pytest.raises(NotKept, match="not listed"):
        frame_positions._translated(np.array([8 << ROW_BITS]), {7: 1})


def test_rows_of_the_driver_are_numbered_through():
    ids = np.array([0, 1, (2 << 33) | 1])
    assert frame_positions._driver_rows(ids, [(0, 2), (1, 3), (2, 2)]).tolist() == [0, 1, 6]


@pytest.mark.parametrize("many", [1, 700])
def test_pairs_are_traced_back_and_forward(tmp_path, many):
    """Two groups over three rows each, of two files; many rows: the pairs are read from a file."""
    pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")
    from govtool.records.execute.duckdb import DuckExecutor

    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    half = 3 * many
    source = _relation(tmp_path / "in", 0, 1, {"a.parquet": range(half), "b.parquet": range(half, 2 * half)})
    output = _relation(tmp_path / "out", 1, 2, {"part-00000-x.parquet": [10, 20]})
    groups = np.array([[row % 2 + 100, (row // half) << ROW_BITS | row % half] for row in range(2 * half)], np.int64)
    tables = (
        PairTable(RESULT, 3, np.array([[0, 100], [1, 101]], np.int64)),
        PairTable(3, 0, groups, Grade("superset", "for a test")),
    )
    ids = Ids(count(10))
    stage, _ = KeptTrace(tables, {3: "aggregate"}, {0: source}, ids).stage(output)
    executor = DuckExecutor(Session("4.0.0", True, "UTC"))
    lineage = Lineage(stage, executor, ids, "run", "out", written=output, kept=True)
    found = lineage.where("v = 20").go_back_all()
    assert sorted(found.arrow()["v"].to_pylist()) == [row for row in range(2 * half) if row % 2]
    assert [(step.operator, step.exactness) for step in found.answer().steps] == [
        ("output", "exact"), ("kept positions", "exact"), ("aggregate", "superset")
    ]  # fmt: skip
    (group,) = found.answer(1).inputs
    assert (group.count, group.truncated, group.why) == (half, half > 1, "for a test")
    reached = lineage.input(source.dataset, f"v = {half}").go_next_all()
    assert reached.arrow()["v"].to_pylist() == [20 if half % 2 else 10]
    with pytest.raises(UsageError, match="not replayed"):
        lineage.all().replay(exclude={"in": "v = 1"})


def test_a_write_without_records_names_the_reason(tmp_path):
    store = Store.init(str(tmp_path / "store"))
    tables = RecordTables()
    tables.add_untraceable("app-1/0", "file:///data/sink", "a stream wrote it: use foreachBatch")
    commit = store.commit(Changes((), tables.fragments("run:x")), message="m", author="a", batch="x", summary={}).commit
    for output, run in [("file:///data/sink", None), (None, "app-1/0")]:
        with pytest.raises(
            UsageError, match="app-1/0 → file:///data/sink cannot be traced: a stream wrote it"
        ) as raised:
            find_writer(store, commit, output, run)
        assert (raised.value.code, raised.value.hint) == ("usage.untraceable", "use foreachBatch")

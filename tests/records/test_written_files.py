"""The files that a recorded write left: values of partitions, and listings of which later writes replaced a part."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from recorded import BY_LAND

from govtool.app.records.runs import find_writer
from govtool.app.records.writes import written_files
from govtool.app.records.written_files import in_order, written_files_now
from govtool.app.replay.recorded_run import replay_run
from govtool.app.replay.request import ReplayRequest
from govtool.app.trace.measured_groups import is_there
from govtool.capture.openlineage.identity import DatasetName
from govtool.capture.spark.identity import DatasetPlace, path_name
from govtool.errors import UsageError
from govtool.model.run import Run, RunOutput
from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.execute.places import place_of
from govtool.records.lake.written import LiveTables
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.nodes import LocalRows, Plan, Session, Write
from govtool.records.plan.writes import insert
from govtool.records.split_plans import files_made, in_part, readable, relation_of, relation_text
from govtool.records.trace.normal import spare_ids

DAY = (date(2026, 1, 2) - date(1970, 1, 1)).days


def left_in(folder, kind, names, made, column="p"):
    """The listing of a write by a column ``p`` whose folders have some names, each with a file."""
    for name in names:
        (folder / f"p={name}").mkdir(parents=True)
        (folder / f"p={name}" / "part-0.parquet").write_bytes(b"PAR1")
    columns = (Attribute(1, "n", t.LONG), Attribute(2, column, kind))
    place = DatasetPlace(path_name(str(folder)), "file")
    root = Write(LocalRows(0, columns, ()), str(folder), "parquet", "overwrite", ("n", column), ("p",))
    now = datetime.now(UTC)
    run = Run("a/1", "j", "complete", "plan", outputs=(RunOutput(place.id, files=made),))
    run = replace(run, started=str(now - timedelta(minutes=1)), ended=str(now + timedelta(minutes=1)))
    return written_files(Plan(root, Session("4.0", True, "Europe/Berlin")), place.id, place, run)


@pytest.mark.parametrize(
    ("kind", "names", "values"),
    [
        (t.DATE, ["2026-01-02", "__HIVE_DEFAULT_PARTITION__"], [DAY, None]),
        (t.SHORT, ["-3", "7"], [-3, 7]),
        (t.LONG, ["9007199254740993"], [9007199254740993]),
        (t.BOOLEAN, ["true", "false"], [True, False]),
        (t.Decimal(5, 2), ["1.10", "-0.05"], [Decimal("1.10"), Decimal("-0.05")]),
        (t.TIMESTAMP_NTZ, ["1970-01-01 00%3A00%3A01.5"], [1_500_000]),
        (t.TIMESTAMP, ["1970-01-01 01%3A00%3A00"], [0]),
        (t.STRING, ["a%2Fb%3Dc", "007", "2026-01-02"], ["007", "2026-01-02", "a/b=c"]),
    ],
)
def test_values_of_partition_folders(tmp_path, kind, names, values):
    left = left_in(tmp_path / "out", kind, names, len(names))
    assert sorted((file.partition[0] for file in left.files), key=repr) == sorted(values, key=repr)
    assert files_made(left) == len(names)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (t.DATE, "2026-1-2x"),
        (t.INTEGER, "a"),
        (t.BYTE, "300"),
        (t.DOUBLE, "1"),
        (t.TIMESTAMP, "2026-10-25 02%3A30%3A00"),
    ],
)
def test_values_that_cannot_be_read_leave_no_listing(tmp_path, kind, name):
    assert left_in(tmp_path / "out", kind, [name], 1) is None


def test_a_place_without_a_root_has_no_listing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    place = DatasetPlace(DatasetName("file", "out"), "file")
    root = Write(LocalRows(0, (), ()), "out", "parquet", "overwrite", (), ())
    run = Run("a/1", "j", "complete", "plan", started="2020-01-01T00:00:00Z", ended="2099-01-01T00:00:00Z")
    (tmp_path / "out" / "part-0.parquet").write_bytes(b"PAR1")
    assert written_files(Plan(root, Session("4.0", True, "Europe/Berlin")), place.id, place, run) is None


def test_folders_are_called_as_the_writer_was_told(tmp_path):
    """``partitionBy("p")`` of a column ``P``: who reads the folder finds a column ``p``."""
    left = left_in(tmp_path / "out", t.LONG, ["1", "2"], 2, column="P")
    assert [file.partition for file in left.files] == [(1,), (2,)]
    assert ([each.name for each in left.columns], left.partitioned) == (["n", "p"], ("p",))


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["City", "id", "State"], ["city", "id", "state"]),  # partitionBy("state", "city") moves both to the end
        (["a", "b", "c"], ["id", "state", "city"]),  # of a table, by place
        (["id", "state"], None),
    ],
)
def test_columns_of_files_are_those_of_the_plan_in_any_case(names, found):
    columns = [Attribute(number, name, t.LONG) for number, name in enumerate(["id", "state", "city"])]
    order = in_order(columns, names)
    assert (order and [each.name for each in order]) == found


def test_fewer_files_than_the_write_made_are_a_part_and_more_are_not_its_own(tmp_path):
    assert files_made(left_in(tmp_path / "a", t.LONG, ["1"], 3)) == 3
    assert left_in(tmp_path / "b", t.LONG, ["1", "2"], 1) is None
    assert files_made(left_in(tmp_path / "c", t.LONG, ["1", "2"], None)) == 2


def test_an_output_that_is_in_part_of_another_write_is_traced_only_by_run(shop):
    write = shop.run(BY_LAND, "mixed", "views", "users", run="app-2/0")
    left = in_part(write.output_files, 2)
    assert relation_of(relation_text(left, write.plan.session), "mixed").options == left.options
    shop.commit(replace(write, output_files=left))
    store, commit = shop.store, shop.store.head("main")
    with pytest.raises(UsageError, match="in part that of app-2/0") as caught:
        find_writer(store, commit, "mixed", None)
    assert caught.value.hint == "trace all that it wrote: --run app-2/0"
    assert find_writer(store, commit, "mixed", "app-2/0").run == "app-2/0"
    assert find_writer(store, commit, "report", None).run == "app-1/0"


@pytest.mark.parametrize("kept", [0, 1])
def test_what_a_later_write_of_the_job_replaced_counts_as_written(shop, kept):
    """The files that are left are not taken for all that the write made, so that nothing is compared with them alone."""
    write = shop.run(BY_LAND, "mixed", "views", "users", run="app-2/0")
    whole = write.output_files
    left = replace(whole, files=whole.files[:kept])
    shop.commit(replace(write, output_files=in_part(left, len(whole.files) + 1)))
    run = find_writer(shop.store, shop.store.head("main"), "mixed", "app-2/0")
    root = write.plan.root
    assert written_files_now(run, root, spare_ids(root)) is None
    assert written_files_now(run, root, spare_ids(root), {place_of(file) for file in left.files}) is not None
    assert is_there(run, LiveTables()) == bool(kept)
    replayed = replay_run(shop.store, shop.store.head("main"), ReplayRequest("app-2/0", (("users", "true"),)))
    assert not replayed.replay.recorded
    assert len(replayed.replay.gone) == replayed.replay.before > 0


@pytest.mark.parametrize("made", [1, 3])
def test_written_csv_is_read_as_it_was_written(tmp_path, made):
    """A header and another separator; of the listing a part, too."""
    columns = (Attribute(1, "n", t.LONG), Attribute(2, "s", t.STRING))
    options = {"$map": [["header", "true"], ["SEP", ";"], ["path", "out"], ["fs.access.token", "x"]]}
    fields = {
        "catalogTable": None, "outputPath": str(tmp_path), "staticPartitions": {"$map": []}, "options": options,
        "fileFormat": {"$format": "CSV"}, "mode": {"$enum": "Overwrite"}, "outputColumnNames": ["n", "s"],
    }  # fmt: skip
    root = insert(fields, LocalRows(0, columns, ()), ())
    assert root.options == (("SEP", ";"), ("header", "true"))
    (tmp_path / "part-0.csv").write_text("n;s\n1;a,b\n2;\n")
    place, now = DatasetPlace(path_name(str(tmp_path)), "file"), datetime.now(UTC)
    run = Run("a/1", "j", "complete", "plan", outputs=(RunOutput(place.id, files=made),))
    run = replace(run, started=str(now - timedelta(minutes=1)), ended=str(now + timedelta(minutes=1)))
    session = Session("4.0", True, "UTC")
    left = written_files(Plan(root, session), place.id, place, run)
    again = relation_of(relation_text(left, session), place.id)
    assert files_made(again) == made
    assert DuckExecutor(session).fetch(readable(again)) == [(1, "a,b"), (2, None)]


def test_options_of_formats_that_describe_themselves_are_left_out(tmp_path):
    fields = {
        "catalogTable": None, "outputPath": str(tmp_path), "staticPartitions": {"$map": []},
        "options": {"$map": [["compression", "zstd"]]}, "fileFormat": {"$format": "Parquet"},
        "mode": {"$enum": "Append"}, "outputColumnNames": [],
    }  # fmt: skip
    assert insert(fields, LocalRows(0, (), ()), ()).options == ()

"""``snapshot`` and ``verify``: data and its provenance belong together."""

from __future__ import annotations

import json

import pytest
from answers import check


@pytest.fixture
def data(project, govtool):
    govtool("init")
    folder = project / "data" / "raw"
    folder.mkdir(parents=True)
    (folder / "part-0.csv").write_text("id,email\n1,a@b\n")
    (folder / "_SUCCESS").write_text("")
    return folder


def state(govtool, *arguments):
    done = govtool("verify", *arguments, "-f", "json")
    answer = check(done.out, "verify-1")
    assert done.code == (0 if answer["state"] == "match" else 1)
    return answer["state"]


def test_the_four_states(govtool, data):
    govtool("snapshot", "data", "--run", "other")  # so that there is a commit
    assert state(govtool, "data/raw") == "no-provenance"
    assert govtool("snapshot", "data/raw", "--run", "load-1").code == 0
    assert state(govtool, "data/raw") == "match"
    (data / "part-0.csv").write_text("id,email\n1,x@y\n")  # the same size
    assert state(govtool, "data/raw") == "data-changed"
    assert govtool("snapshot", "data/raw", "--run", "load-2").code == 0
    assert state(govtool, "data/raw") == "match"
    assert state(govtool, "data/raw", "--at", "2") == "data-changed"
    for file in data.iterdir():
        file.unlink()
    assert state(govtool, "data/raw") == "data-missing"
    assert govtool("verify", "data/nothing").code == 2
    assert "data is gone" in govtool("verify", "data/raw").out


def test_what_a_run_wrote_and_is_gone_is_provenance_without_data(govtool, project):
    event = {
        "eventType": "COMPLETE",
        "eventTime": "2026-11-01T00:00:00Z",
        "run": {"runId": "0193400a-0000-7000-8000-000000000042"},
        "job": {"namespace": "n", "name": "nightly"},
        "inputs": [],
        "outputs": [{"namespace": "file", "name": str(project / "out")}],
    }
    (project / "event.json").write_text(json.dumps(event))
    assert govtool("init", "--no-sources").code == 0
    assert govtool("ingest", "openlineage", "event.json").code == 0
    assert state(govtool, "out") == "data-missing"
    done = govtool("verify", "out")
    assert "0193400a-0000-7000-8000-000000000042" in done.out
    assert "a run wrote it, but the data is gone, and its content was not recorded" in done.out
    (project / "out").mkdir()
    (project / "out" / "part-0.csv").write_text("1")
    assert state(govtool, "out") == "no-provenance"


def test_the_same_again_is_no_commit(govtool, data):
    govtool("snapshot", "data/raw", "--run", "load-1")
    assert "recorded already" in govtool("snapshot", "data/raw", "--run", "load-1").out
    assert "commit 2" in govtool("snapshot", "data/raw", "--run", "load-2").out


def test_markers_of_writers_are_no_data(govtool, data):
    govtool("snapshot", "data/raw", "--run", "load-1")
    (data / "_committed_1").write_text("x")
    (data / ".part-0.csv.crc").write_text("x")
    assert state(govtool, "data/raw") == "match"
    (data / "day=1").mkdir()
    (data / "day=1" / "part-1.csv").write_text("2,b")
    assert state(govtool, "data/raw") == "data-changed"


def test_provenance_is_in_the_graph(govtool, data, project):
    govtool("snapshot", "data/raw", "--run", "load-1")
    (project / "data" / "clean.csv").write_text("1")
    done = govtool("snapshot", "data/clean.csv", "--run", "clean-1", "--from", "data/raw")
    assert done.err == ""
    assert f"file://{project}/data/clean.csv" in govtool("impact", str(project / "data/raw")).out
    assert check(govtool("store", "fsck", "-f", "json").out, "fsck-1")["unknown_ancestors"] == []


def test_an_unknown_ancestor_is_kept_as_such_and_reported(govtool, data, project):
    (project / "data" / "clean.csv").write_text("1")
    done = govtool("snapshot", "data/clean.csv", "--run", "clean-1", "--from", "data/raw")
    assert done.code == 0
    assert "nothing recorded" in done.err
    fsck = govtool("store", "fsck", "-f", "json")
    assert fsck.code == 3
    (unknown,) = check(fsck.out, "fsck-1")["unknown_ancestors"]
    assert (unknown["dataset"], unknown["ancestor"]) == tuple(
        f"file://{project}/data/{name}" for name in ("clean.csv", "raw")
    )
    assert "1 unknown ancestor" in govtool("store", "fsck").out
    assert govtool("store", "fsck", "--ignore-unknown").code == 0
    assert govtool("snapshot", "data/raw", "--run", "load-1").code == 0
    (data / "part-9.csv").write_text("9")
    assert govtool("snapshot", "data/raw", "--run", "load-2").code == 0  # the one that arrived is not the newest
    assert govtool("store", "fsck").code == 0


def test_a_delta_table_is_its_version(govtool, data, project):
    log = project / "lake" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text('{"add": 1}')
    (project / "lake" / "part-0.parquet").write_bytes(b"x")
    govtool("snapshot", "lake", "--run", "write-0", "--name", "sales.orders")
    answer = check(govtool("verify", "lake", "--name", "sales.orders", "-f", "json").out, "verify-1")
    assert (answer["state"], answer["found"]["kind"], answer["found"]["version"]) == ("match", "delta", 0)
    (project / "lake" / "part-1.parquet").write_bytes(b"not committed to the table")
    assert state(govtool, "lake", "--name", "sales.orders") == "match"
    (log / f"{1:020}.json").write_text('{"add": 2}')
    assert state(govtool, "lake", "--name", "sales.orders") == "data-changed"


def test_the_files_of_a_delta_table_are_compared_with_its_log(govtool, data, project):
    lake = project / "lake"
    (lake / "_delta_log").mkdir(parents=True)
    (lake / "_delta_log" / f"{0:020}.json").write_text('{"add": {"path": "p%201.parquet", "size": 3}}')
    (lake / "p 1.parquet").write_bytes(b"abc")
    govtool("snapshot", "lake", "--run", "write-0")
    assert state(govtool, "lake") == "match"
    assert "1 file compared" in govtool("verify", "lake").out
    (lake / "p 1.parquet").write_bytes(b"abcd")
    assert state(govtool, "lake") == "data-changed"
    assert "of another size: p 1.parquet" in govtool("verify", "lake").out
    (lake / "p 1.parquet").unlink()
    answer = check(govtool("verify", "lake", "-f", "json").out, "verify-1")
    assert (answer["state"], answer["files"]) == (
        "data-missing",
        {"checked": 1, "missing": ["p 1.parquet"], "resized": []},
    )
    shown = govtool("verify", "lake")
    assert shown.code == 1
    assert "the table's log is what was recorded, but 1 file of the table is gone" in shown.out


def test_an_iceberg_table_is_named_by_its_current_snapshot(govtool, data, project):
    metadata = project / "ice" / "metadata"
    metadata.mkdir(parents=True)
    (metadata / "v3.metadata.json").write_text('{"current-snapshot-id": 7, "location": "/lake/ice", "snapshots": []}')
    govtool("snapshot", "ice", "--run", "write-1")
    answer = check(govtool("verify", "ice", "-f", "json").out, "verify-1")
    assert (answer["state"], answer["found"]["version"], answer["files"]["checked"]) == ("match", 7, 0)
    assert "its files could not be compared" in govtool("verify", "ice").out
    assert (govtool("verify", "ice").code, govtool("verify", "ice", "--strict").code) == (0, 3)


def test_an_iceberg_table_is_its_version(govtool, data, project):
    metadata = project / "ice" / "metadata"
    metadata.mkdir(parents=True)
    (metadata / "v1.metadata.json").write_text("{}")
    govtool("snapshot", "ice", "--run", "write-1")
    assert state(govtool, "ice") == "match"
    (metadata / "v2.metadata.json").write_text("{}")
    assert state(govtool, "ice") == "data-changed"


def test_what_cannot_be_recorded(govtool, data, tmp_path):
    assert govtool("snapshot", "data/nothing", "--run", "r").code == 2
    outside = tmp_path / "outside.csv"
    outside.write_text("1")
    assert govtool("snapshot", outside, "--run", "r", "--name", "x.y").code == 0
    assert govtool("snapshot", "data/raw", "--run", " ").code == 2


def test_what_runs_left_is_verified_under_every_name_of_it(govtool, data):
    """A run that says which content it left counts like `record`; a table is found by its alias's place."""
    from govtool.app.datasets.places import path_id
    from govtool.app.datasets.snapshot import read_identity
    from govtool.model import Derivation, Edge, EdgeKind, Statement
    from govtool.model.columnar import encode
    from govtool.model.derivation import ColumnRef
    from govtool.model.run import RUNS, Run, RunInput, RunOutput, encode_runs
    from govtool.store import Changes, Fragment, Store

    place = path_id(str(data))
    ran = Run(
        "app-1/3", "load.py → sales.raw", "complete", "plan", ended="2026-11-20T01:00:00Z",
        inputs=(RunInput("crm.users"),), outputs=(RunOutput("sales.raw", "overwrite", identity=read_identity(str(data))),),
    )  # fmt: skip
    alias = Derivation(
        "sales.raw", "table", "update", Statement("alias", "alias", "", place, how="plan"),
        edges=(Edge(ColumnRef(place, "*"), "*", EdgeKind.READ),),
    )  # fmt: skip
    Store.open(".govtool").commit(
        Changes((), (Fragment("s", RUNS, encode_runs([ran]), 1), Fragment("s", "derivations", encode([alias]), 1))),
        message="m", author="a", batch="b",
    )  # fmt: skip
    for name in ("sales.raw", "SALES.RAW"):
        assert state(govtool, name) == "match"
    assert state(govtool, "data/raw", "--name", "sales.raw") == "match"
    answer = json.loads(govtool("verify", "sales.raw", "-f", "json").out)
    assert (answer["run"], answer["ancestors"][0]["dataset"]) == ("app-1/3", "crm.users")
    (data / "part-0.csv").write_text("id,email\n1,x@y\n")
    assert state(govtool, "sales.raw") == "data-changed"
    assert govtool("verify", "crm.users").code == 2
    assert govtool("verify", "nothing").code == 2


def test_the_former_name_of_the_command_still_works(govtool, data):
    done = govtool("record", "data/raw", "--run", "load-1")
    assert done.code == 0
    assert done.err.splitlines()[0] == "govtool record is now govtool snapshot"
    assert state(govtool, "data/raw") == "match"
    assert govtool("record", "data/raw", "--run", "load-1", "-q").err == ""
    assert " record " not in govtool("--help").out
    assert "--derived-from" in govtool("record", "--help").out
    assert govtool("store", "record").code == 2


def test_the_same_data_under_both_names_is_no_commit(govtool, data):
    govtool("snapshot", "data/raw", "--run", "load-1")
    assert "recorded already" in govtool("record", "data/raw", "--run", "load-1").out


def test_rows_in_other_files_are_the_same_rows(govtool, data):
    (data / "part-0.csv").write_text("1,a\n2,b\n3,c\n")
    assert govtool("snapshot", "data/raw", "--run", "load-1", "--rows").code == 0
    (data / "part-0.csv").write_text("3,c\n1,a\n")
    (data / "part-1.csv").write_text("2,b\n")
    assert state(govtool, "data/raw") == "data-changed"
    done = govtool("verify", "data/raw", "--rows", "-f", "json")
    assert (done.code, check(done.out, "verify-1")["state"]) == (0, "rows-match")
    (data / "part-1.csv").write_text("2,x\n")
    assert govtool("verify", "data/raw", "--rows").code == 1


def test_rows_need_a_digest_and_a_format(govtool, data):
    govtool("snapshot", "data/raw", "--run", "load-1")
    (data / "part-0.csv").write_text("other\n")
    assert "no digest of its rows was recorded" in govtool("verify", "data/raw", "--rows").err
    (data / "part-0.avro").write_bytes(b"Obj")
    assert "cannot be read" in govtool("snapshot", "data/raw", "--run", "load-2", "--rows").err


def names_of_data(govtool):
    found = json.loads(govtool("ls", "-f", "json").out)["items"]
    return sorted(each["name"] for each in found if "raw" in each["name"])


def test_a_snapshot_has_the_name_that_runs_give_a_path(govtool, data, project):
    event = {
        "eventType": "COMPLETE",
        "eventTime": "2026-11-01T00:00:00Z",
        "run": {"runId": "0193400a-0000-7000-8000-000000000043"},
        "job": {"namespace": "n", "name": "nightly"},
        "inputs": [{"namespace": "file", "name": str(data)}],
        "outputs": [{"namespace": "file", "name": str(project / "out")}],
    }
    (project / "event.json").write_text(json.dumps(event))
    assert govtool("snapshot", "data/raw", "--run", "load-1").code == 0
    assert govtool("ingest", "openlineage", "event.json").code == 0
    assert names_of_data(govtool) == [f"file://{data}"]
    assert state(govtool, "data/raw") == "match"
    # With a root, later events name it relatively, and what the graph calls it absolutely keeps its name.
    (project / "govtool.toml").write_text('[paths]\nroot = "."\n')
    assert govtool("snapshot", "data/raw", "--run", "load-2").code == 0
    assert names_of_data(govtool) == [f"file://{data}"]


def test_a_snapshot_outside_of_the_working_directory_has_a_name(govtool, data, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "a.csv").write_text("1")
    assert govtool("snapshot", str(elsewhere), "--run", "load-1").code == 0
    assert state(govtool, str(elsewhere)) == "match"

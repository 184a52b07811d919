"""Stores that earlier versions wrote still open, answer alike and take new commits (fixtures/stores)."""

from __future__ import annotations

import json
import shlex
import shutil
import tarfile
from pathlib import Path

import pytest

from govtool.app.spark_source import tables
from govtool.names import current_id, renewed_text
from govtool.store import Store

STORES = Path(__file__).parents[2] / "fixtures" / "stores"
OLD = STORES / "28effe3"
VERSION_TABLES = {"records", "versions"}


def questions(folder: Path) -> list[tuple[str, str]]:
    """Names and command lines of the questions to an old store."""
    lines = (folder / "questions.txt").read_text().splitlines()
    return [(name, question) for name, question in (line.split(None, 1) for line in lines)]


@pytest.fixture
def old(project):
    """The project that 28effe3 left, in the working directory."""
    with tarfile.open(OLD / "project.tar.gz") as archive:
        archive.extractall(project, filter="data")
    return project


def differences(expected: object, found: object, at: str = "") -> list[str]:
    """Places where an answer lost or changed a value; keys that came in addition are none."""
    if isinstance(expected, dict) and isinstance(found, dict):
        lost = [f"{at}/{key} is gone" for key in expected if key not in found]
        return lost + [
            line for key in expected if key in found for line in differences(expected[key], found[key], f"{at}/{key}")
        ]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = zip(expected, found, strict=True)
        return [line for n, pair in enumerate(pairs) for line in differences(*pair, f"{at}/{n}")]
    return [] if expected == found else [f"{at}: {expected!r} became {found!r}"]


def named_as_today(answer: object) -> object:
    """An answer of 28effe3 under the names that paths have today: ``file:///data/x`` was ``file//data/x``."""
    if isinstance(answer, dict):
        return {
            key: renewed_text(value or "") or None if key == "file" else named_as_today(value)
            for key, value in answer.items()
        }
    if isinstance(answer, list):
        return [named_as_today(value) for value in answer]
    return renewed_text(current_id(answer)).replace(" file/data/", " file:data/") if isinstance(answer, str) else answer


def _as_lineage_only(answer: dict) -> None:
    """Leave out what 28effe3 did not compare: facts, runs and versions of datasets. They come last."""
    answer["changes"] = [c for c in answer["changes"] if c["what"] in ("dataset", "column", "edge")]
    if "truncated" in answer:
        more = ("facts", "runs", "versions")
        answer["truncated"] -= sum(sum(answer["summary"][what].values()) for what in more)


THEN_TOO_MUCH = {"impact-upstream"}
"""Answers that are others today: upstream of a column, 28effe3 listed every column of every dataset that is read."""


@pytest.mark.parametrize(("name", "question"), [each for each in questions(OLD) if each[0] not in THEN_TOO_MUCH])
def test_the_answers_are_those_of_then(govtool, old, name, question):
    expected = named_as_today(json.loads((OLD / "answers" / f"{name}.json").read_text()))
    assert isinstance(expected, dict)
    answer = json.loads(govtool(*shlex.split(question), "-f", "json").out.replace(str(old), "/project"))
    del expected["govtool"]  # the version of the program
    if answer["schema"] == "fsck/1":  # 28effe3 did not look at what runs read
        answer["unknown_ancestors"] = [
            each for each in answer["unknown_ancestors"] if "/prov#" not in (each["digest"] or "")
        ]
    if answer["schema"] == "impact/1":  # 28effe3 always answered [] and null
        for column in [*expected["columns"], *answer["columns"]]:
            column.pop("classes", None)
            column.pop("owner", None)
        expected.pop("diagnostics")
        # Of columns without a path 28effe3 said that they are unaffected, whatever was not understood.
        expected["summary"]["no_path"] = expected["summary"].pop("unaffected")
    if answer["schema"] == "diff/1":
        _as_lineage_only(answer)
    assert differences(expected, answer) == []


def live_versions(branch: str = "main") -> list[tuple[str, str]]:
    """Source and table of every live dataset version."""
    store = Store.open(".govtool")
    head = store.head(branch)
    assert head is not None
    return sorted((ref.source, ref.table) for ref in store.fragments(head) if ref.table in VERSION_TABLES)


@pytest.mark.parametrize("command", ["snapshot", "record"])
def test_a_new_snapshot_replaces_the_old_record(govtool, old, command):
    source = 'record:"file:data/clean.csv"'
    assert (source, "records") in live_versions()
    (old / "data" / "clean.csv").write_text("id,total\n1,11.0\n")
    assert govtool("verify", "data/clean.csv").code == 1
    done = govtool(command, "data/clean.csv", "--run", "clean-3", "--from", "data/raw")
    assert done.code == 0
    assert "nothing recorded" not in done.err  # data/raw is still tied to the commit that 28effe3 made
    assert live_versions() == [(source, "versions"), ('record:"file:data/raw"', "records")]
    assert '"snapshot"' in govtool("show", "-f", "json").out
    answer = json.loads(govtool("verify", "data/clean.csv", "-f", "json").out)
    assert (answer["state"], answer["run"]) == ("match", "clean-3")
    assert answer["ancestors"][0]["commit"] is not None
    before = json.loads(govtool("verify", "data/clean.csv", "--at", "v1", "-f", "json").out)
    assert (before["state"], before["run"]) == ("data-changed", "clean-2")


def name_relatively(project):
    """Name new data of the project as the old versions of the test named theirs."""
    with (project / "govtool.toml").open("a") as settings:
        settings.write('\n[paths]\nroot = "."\n')


def test_data_that_no_old_version_recorded_has_the_new_source(govtool, old):
    name_relatively(old)
    (old / "data" / "new.csv").write_text("id\n1\n")
    assert govtool("snapshot", "data/new.csv", "--run", "new-1", "--from", "data/clean.csv").code == 0
    assert ("snapshot:file:data/new.csv", "versions") in live_versions()
    assert len(live_versions()) == 3
    assert govtool("verify", "data/new.csv").code == 0
    unknown = json.loads(govtool("store", "fsck", "-f", "json").out)["unknown_ancestors"]
    assert {each["ancestor"] for each in unknown} == {
        "file:data/raw.csv"
    }  # of PROV documents: their writing is not known


def test_old_and_new_snapshots_of_one_dataset_merge_as_one_source(govtool, old):
    (old / "data" / "clean.csv").write_text("id,total\n1,12.0\n")
    assert govtool("snapshot", "data/clean.csv", "--run", "on-dev", "--branch", "dev").code == 0
    assert govtool("branch", "merge", "dev", "--prefer", "source").code == 0
    assert len(live_versions()) == 2
    answer = json.loads(govtool("verify", "data/clean.csv", "-f", "json").out)
    assert (answer["state"], answer["run"]) == ("match", "on-dev")


def test_two_sources_of_one_dataset_become_one(govtool, old):
    # A branch from before any snapshot, merged into one that still has the record of 28effe3.
    name_relatively(old)
    assert govtool("branch", "create", "early", "before-dbt").code == 0
    (old / "data" / "clean.csv").write_text("id,total\n1,13.0\n")
    assert govtool("snapshot", "data/clean.csv", "--run", "early-1", "--branch", "early").code == 0
    assert govtool("branch", "merge", "early").code == 0
    assert len(live_versions()) == 3
    assert json.loads(govtool("verify", "data/clean.csv", "-f", "json").out)["run"] == "early-1"
    assert govtool("snapshot", "data/clean.csv", "--run", "late-1").code == 0
    assert live_versions() == [('record:"file:data/raw"', "records"), ("snapshot:file:data/clean.csv", "versions")]


def test_spark_reads_both_tables_as_one(govtool, old):
    (old / "data" / "clean.csv").write_text("id,total\n1,14.0\n")
    assert govtool("snapshot", "data/clean.csv", "--run", "clean-3").code == 0
    version = tables.resolve(str(old / ".govtool"), None, None)
    with pytest.warns(FutureWarning, match="'records' is now 'versions'"):
        assert tables.check_table("records") == "versions"
    assert tables.check_table("versions") == "versions"
    assert {"dataset", "run", "digest", "ancestors"} <= set(tables.schema("versions", version).names)
    read = [
        row
        for cut in tables.cuts("versions", version, [])
        for rows in tables.rows("versions", cut)
        for row in rows["run"].to_pylist()
    ]
    assert sorted(read) == ["clean-3", "load-1"]


def test_new_commits_merges_and_upkeep(govtool, old):
    (old / "new.sql").write_text("create view mart.new_users as select u.email from crm.users u;")
    assert govtool("ingest", "sql", "new.sql", "--dialect", "postgres").code == 0
    assert "mart.new_users.email" in govtool("impact", "crm.users.email", "--all", "-f", "csv").out
    assert govtool("branch", "merge", "dev").code == 0
    assert "mart.dev_orders" in govtool("ls", "mart.dev_orders", "-f", "csv").out
    assert govtool("store", "compact").code == 0
    assert govtool("store", "fsck", "--ignore-unknown").code == 0
    assert govtool("store", "gc").code == 0
    assert govtool("verify", "data/clean.csv").code == 0
    assert govtool("store", "copy", "copied").code == 0
    assert govtool("verify", "data/clean.csv", "--store", "copied").code == 0


PLACES = STORES / "84e1cb2"


@pytest.fixture
def places(project):
    """The project that 84e1cb2 left: a path was called ``file//tmp/shop/orders``."""
    with tarfile.open(PLACES / "project.tar.gz") as archive:
        archive.extractall(project, filter="data")
    return project


def test_paths_are_uris_and_both_spellings_ask_for_them(govtool, places):
    names = [entry["name"] for entry in json.loads(govtool("ls", "kind:file", "-f", "json").out)["items"]]
    assert "file:///tmp/shop/orders" in names
    assert not [name for name in names if not name.startswith("file:///")]
    questions = [
        ("impact", "{}tmp/shop/orders.customer"),
        ("explain", "{}tmp/shop/report"),
        ("ls", "{}tmp/shop/r*", "--columns"),
        ("path", "{}tmp/shop/orders.customer", "{}tmp/shop/report.top"),
        ("runs", "--dataset", "{}tmp/shop/report"),
        ("verify", "data/users.parquet", "--name", "{}tmp/flow/data/users"),
    ]
    for question in questions:
        answers = [
            govtool(*(part.format(prefix) for part in question), "-f", "json").out
            for prefix in ("file:///", "file//", "file:/")
        ]
        assert answers[0].startswith("{")
        assert answers[0] == answers[1] == answers[2]
        assert "file//" not in answers[0].replace("file:///", "")


def test_jobs_of_before_are_found_by_both_names(govtool, places):
    answers = [
        govtool("show", f"shop_nightly.py:{name}", "-f", "json").out
        for name in ("file//tmp/shop/report", "file:///tmp/shop/report")
    ]
    assert answers[0] == answers[1]
    assert json.loads(answers[0])["run"]["job"] == "shop_nightly.py:file:///tmp/shop/report"


def test_policies_and_baselines_keep_their_meaning(govtool, places):
    assert govtool("check").code == 1  # its patterns begin with file//
    assert govtool("check", "--baseline", "baseline.json").code == 0


def test_a_new_ingest_leaves_one_dataset(govtool, places):
    before = json.loads(govtool("ls", "-f", "json").out)["items"]
    log = Path("logs/spark-4.3.0.gz")
    log.parent.mkdir()
    shutil.copy(STORES.parent / "spark" / log, log)
    assert govtool("ingest", "spark", str(log)).code == 0
    assert json.loads(govtool("ls", "-f", "json").out)["items"] == before
    assert govtool("ingest", "spark", str(log), "--source", "again").code == 0
    after = [entry["name"] for entry in json.loads(govtool("ls", "-f", "json").out)["items"]]
    assert after == [entry["name"] for entry in before]
    assert govtool("snapshot", "data/views.parquet", "--name", "file:///tmp/flow/data/users", "--run", "r2").code == 0
    assert [source for source, table in live_versions() if table == "versions"] == [
        "snapshot:file//tmp/flow/data/users"
    ]
    changes = json.loads(govtool("diff", "HEAD~1", "HEAD", "-f", "json").out)["changes"]
    assert not [change for change in changes if change["what"] == "dataset"]


def test_tables_for_spark_have_the_names_of_the_graph(places):
    version = tables.resolve(str(places / ".govtool"), None, None)
    columns = {"edges": "source_dataset", "evidence": "dataset", "versions": "dataset", "runs": "outputs"}
    for table, column in columns.items():
        found = [
            rows[column].to_pylist() for cut in tables.cuts(table, version, []) for rows in tables.rows(table, cut)
        ]
        assert "file:///tmp/" in str(found)
        assert "file//" not in str(found)


@pytest.mark.parametrize(
    ("command", "former", "name"),
    [
        ("prov fixtures/prov/nightly-19.json", "nightly-19.json", "prov:fixtures/prov/nightly-19.json"),
        ("spark fixtures/spark/logs/spark-3.5.9.gz", "spark-3.5.9.gz", "spark:fixtures/spark/logs/spark-3.5.9.gz"),
    ],
    ids=["prov", "spark"],
)
def test_a_source_without_files_is_taken_over_by_its_first_ingest(old, govtool, command, former, name):
    place = old / command.split()[1]
    place.parent.mkdir(parents=True)
    shutil.copy(STORES.parents[1] / place.relative_to(old), place)
    assert govtool("ingest", *command.split()).code == 0
    listed = {row["source"] for row in json.loads(govtool("sources", "list", "-f", "json").out)["sources"]}
    assert name in listed
    assert former not in listed

"""``[paths] root``: relative names of local files, and absolute ones that find them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from govtool.model.former_names import with_current_names
from govtool.names import current_id, dataset_id, former_id
from govtool.query.selection.patterns import Pattern
from govtool.store import Store

OTHER = "/elsewhere/in"
"""A path that is not below the root; relative names must not be taken for it."""


def event(run: str, source: str, target: str) -> dict[str, object]:
    """One run that copies the column ``id`` of a path to another."""
    read = {"namespace": "file", "name": source}
    lineage = {"fields": {"id": {"inputFields": [{**read, "field": "id"}]}}, "_producer": "p", "_schemaURL": "s"}
    return {
        "eventType": "COMPLETE",
        "eventTime": "2026-01-01T00:00:00Z",
        "run": {"runId": f"3f5e83fa-3480-44ff-99c5-ff94390{run}"},
        "job": {"namespace": "jobs", "name": f"copy-{run}"},
        "inputs": [read],
        "outputs": [{"namespace": "file", "name": target, "facets": {"columnLineage": lineage}}],
        "producer": "p",
        "schemaURL": "s",
    }


@pytest.fixture
def ingest(govtool, project):
    """Ingest three copies, the first two below the project."""

    def run() -> None:
        here = project.as_posix()
        assert govtool("init").code == 0
        events = [
            event("4e5e8", f"{here}/data/in", f"{here}/data/out"),
            event("4e5e9", f"{here}/data/out", f"{here}/mart/end"),
            event("4e5ea", OTHER, "/elsewhere/out"),
        ]
        Path("events.json").write_text("\n".join(map(json.dumps, events)))
        assert govtool("ingest", "openlineage", "events.json", "--source", "events").code == 0

    return run


def set_root() -> None:
    """Make names of files below the project relative."""
    Path("govtool.toml").write_text('[paths]\nroot = "."\n')


def names(govtool, *selectors: str) -> list[str]:
    """The names that selectors select."""
    return [item["name"] for item in json.loads(govtool("ls", *selectors, "-f", "json").out)["items"]]


@pytest.mark.parametrize("before", [False, True], ids=["set-before", "set-afterwards"])
def test_terms_of_selectors_take_absolute_names(govtool, project, ingest, before):
    if not before:
        set_root()
    ingest()
    set_root()
    stem = f"file://{project.as_posix()}"
    shown = f"{stem}/" if before else "file:"
    one, two, end = f"{shown}data/in", f"{shown}data/out", f"{shown}mart/end"
    for prefix in (stem, stem.replace("file://", "file:"), stem.replace("file://", "file/"), shown.rstrip("/")):
        at = prefix if prefix.endswith(":") else f"{prefix}/"
        assert names(govtool, f"{at}data/in") == [one]
        assert names(govtool, f"{at}data/in.id") == [f"{one}.id"]
        assert names(govtool, f"+{at}data/out") == [one, two]
        assert names(govtool, f"1+{at}mart/end") == [two, end]
        assert names(govtool, f"@{at}data/out") == [one, two, end]
        assert names(govtool, f"{at}data/in {at}mart/end") == [one, end]
        assert names(govtool, f"{at}data/*,{at}data/in+") == [one, two]
        assert names(govtool, f"{at}**", "--exclude", f"{at}data/out") == (
            [one, end] if at != "file:" else sorted([one, end, f"file://{OTHER}", "file:///elsewhere/out"])
        )
        if prefix == stem:
            assert names(govtool, f"path:{at}data/out") == [two]
    assert names(govtool, "file:///elsewhere/**") == ["file:///elsewhere/in", "file:///elsewhere/out"]
    assert "did you mean  file:///nowhere\n" not in govtool("ls", "path:file:///nowhere").err


def test_what_is_there_is_taken_before_what_the_root_makes_of_a_name(govtool, project, ingest):
    ingest()
    set_root()
    absolute = f"file://{project.as_posix()}/data/in"
    (project / "data").mkdir()
    (project / "data" / "in").write_text("id\n1\n")
    assert govtool("snapshot", "data/in", "--name", absolute, "--run", "r1").code == 0
    assert govtool("verify", "data/in", "--name", absolute).code == 0
    assert absolute in names(govtool)
    assert "file:data/in" not in names(govtool)
    for name in ("mart/new", "mart/new"):  # no dataset yet: it gets the relative name
        assert govtool("snapshot", "data/in", "--name", f"file://{project.as_posix()}/{name}", "--run", "r2").code == 0
    assert names(govtool, "file:mart/new") == ["file:mart/new"]


POLICY = """
version: 1
name: files
classes: {personal: {}}
zones:
  end: {datasets: ["STEM/mart/*"]}
classify:
  - columns: ["STEM/data/in.*", "STEM/**.no"]
    class: personal
rules:
  - id: end
    title: Nothing personal at the end
    deny: {flow: {class: personal, to: {zone: end}}}
    severity: error
"""
WAIVER = """
waivers:
  - {rule: end, columns: ["STEM/mart/end.id"], reason: known, approved_by: a, expires: 2999-01-01}
"""


def test_policies_with_absolute_names_hold_for_relative_ones(govtool, project, ingest):
    set_root()
    ingest()
    for text, code in ((POLICY, 1), (POLICY + WAIVER, 0), (POLICY.replace("data/in", "data/i"), 0)):
        Path("policy.yaml").write_text(text.replace("STEM", f"file://{project.as_posix()}"))
        done = govtool("check", "--policy", "policy.yaml", "-f", "json")
        assert done.code == code, done.out + done.err
        assert "waiver-unused" not in done.out
    Path("policy.yaml").write_text(POLICY.replace("STEM", "file:///elsewhere"))
    classified = json.loads(govtool("classes", "--policy", "policy.yaml", "-f", "json").out)
    assert "file:data/" not in json.dumps(classified)


def test_openlineage_is_exported_with_absolute_paths(govtool, project, ingest):
    set_root()
    ingest()
    out = govtool("export", "openlineage").out
    assert f'"{project.as_posix()}/data/in"' in out
    assert '"data/in"' not in out


def test_a_snapshot_of_before_under_a_relative_name_is_replaced(govtool, project, monkeypatch):
    assert govtool("init").code == 0
    (project / "d.csv").write_text("id\n1\n")
    with monkeypatch.context() as then:
        then.setattr("govtool.app.datasets.snapshot._sources", lambda dataset: [f"snapshot:{former_id(dataset)}"])
        assert govtool("snapshot", "d.csv", "--name", "file:d/users", "--run", "r1").code == 0
    (project / "d.csv").write_text("id\n2\n")
    assert govtool("snapshot", "d.csv", "--name", "file/d/users", "--run", "r2").code == 0
    store = Store.open(".govtool")
    head = store.head("main")
    assert head is not None
    assert [ref.source for ref in store.fragments(head) if ref.table == "versions"] == ["snapshot:file/d/users"]


PATHS = st.lists(st.text("ab.", min_size=1, max_size=3), min_size=1, max_size=3).map("/".join)


@given(st.sampled_from(["file", "hdfs", "hdfs://nn:8020", "s3://lake", "default"]), PATHS, st.booleans())
def test_former_names_turn_back(namespace, path, rooted):
    name = f"/{path}" if rooted or "://" in namespace else path
    now = dataset_id(name, namespace)
    rooted_there = namespace.startswith(("file", "hdfs"))
    then = f"{namespace}/{name}" if rooted_there else now  # as 0.1.0 wrote it
    assert (former_id(now), current_id(then)) == (then, now)
    assert former_id(f"{now}.* + {now}.*") == f"{then}.* + {then}.*"


@given(PATHS, PATHS, PATHS)
def test_a_pattern_matches_a_relative_name_as_it_does_the_absolute_one(root, path, pattern):
    text = f"file:///{pattern}*"
    under_root = Pattern(text, f"/{root}")
    assert under_root.matches(f"file:{path}") == Pattern(text).matches(f"file:///{root}/{path}")
    assert under_root.matches(f"file:///{path}") == Pattern(text).matches(f"file:///{path}")


def test_slices_with_nulls_are_renamed():
    whole = pa.array([["file//a"], None, ["file//b", "c"], ["file/d"], None])
    for start in range(5):
        table = with_current_names(pa.table({"inputs": whole[start:]}))
        expected = [["file:///a"], None, ["file:///b", "c"], ["file:d"], None]
        assert table["inputs"].to_pylist() == expected[start:]

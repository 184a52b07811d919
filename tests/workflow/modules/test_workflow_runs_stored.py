"""Runs of workflows in a store: what a killed run leaves, how runs are found, what cannot be read."""

from __future__ import annotations

import json

import pytest

import govtool
from govtool.app.workflow_runs.state import write_atomically
from govtool.app.workflow_runs.stored import commit_workflow_run, find_workflow_run, read_workflow_runs
from govtool.app.workflow_runs.tracking import commit_interrupted
from govtool.errors import AmbiguousNameError, IntegrityError, UnknownNameError
from govtool.model.workflow_run import (
    BoundaryRelation,
    ModuleInvocation,
    RelationFile,
    WorkflowRun,
    decode_workflow_runs,
    encode_workflow_run,
    run_from,
    run_text,
)
from govtool.store import Store


def made(name="w", number=1, status="complete", **more):
    relation = BoundaryRelation("/d/é", "parquet", "", (RelationFile("file:///d/%C3%A9", 3, 4),))
    first = ModuleInvocation(
        1, "a", "A", 1, (("In", "/d/é", ""),), (), (("S", "A.S", "/d/é"),), (("Out", "/d/é"),), ("Out",)
    )
    second = ModuleInvocation(2, "a", "A", 2)
    values = {
        "id": f"{name}-2026112{number}-aa", "workflow": name, "status": status, "mode": "records",
        "applications": ("app-1",), "started": f"2026-11-2{number}", "ended": "", "error": "",
        "edges": (("a", "b", "Out"),), "invocations": (first, second), "relations": {relation.path: relation}, "whole": 1,
    }  # fmt: skip
    return WorkflowRun(**{**values, **more})


def test_a_run_reads_back_as_it_was():
    run = made()
    assert run_from(run_text(run)) == run
    assert decode_workflow_runs(encode_workflow_run(run)) == [run]
    assert encode_workflow_run(run) == encode_workflow_run(made())
    assert run.executions == (1,)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"{}"])
def test_what_is_no_run_is_refused(data):
    with pytest.raises(IntegrityError):
        decode_workflow_runs(data)


@pytest.mark.parametrize(
    "change",
    [
        {"id": None},
        {"started": 3},
        {"applications": [[]]},
        {"edges": [["a", "b", {}]]},
        {"whole": "1"},
        {"relations": []},
    ],
)
def test_values_of_other_types_are_no_run(change):
    body = json.loads(run_text(made()))
    if change == {"relations": []}:
        change = {"relations": [{**body["relations"][0], "files": [["file:///d/x", "3", 4]]}]}
    with pytest.raises(TypeError):
        run_from(json.dumps(body | change))


def test_runs_are_found_by_id_by_its_beginning_and_by_the_workflow(tmp_path):
    store = Store.init(str(tmp_path / "store"))
    for run in (made(number=1), made(number=2), made("other", 3)):
        commit_workflow_run(store, run, "main")
    head = store.head("main")
    assert [run.id for run in read_workflow_runs(store, head)[0]] == [
        "other-20261123-aa",
        "w-20261122-aa",
        "w-20261121-aa",
    ]
    for text, found in (("w", "w-20261122-aa"), ("w~1", "w-20261121-aa"), ("w-20261121-aa", "w-20261121-aa")):
        assert find_workflow_run(store, head, text).id == found
    assert find_workflow_run(store, head, "oth").workflow == "other"
    with pytest.raises(AmbiguousNameError):
        find_workflow_run(store, head, "w-2026")
    for text in ("w~2", "x", "", "othr"):
        with pytest.raises(UnknownNameError):
            find_workflow_run(store, head, text)
    graph = govtool.open(store.uri)
    assert len(graph.workflow_runs("w").runs) == 2
    assert graph.workflow_runs(limit=1).truncated == 2


def test_what_a_killed_run_left_is_committed_by_the_next(tmp_path):
    store = Store.init(str(tmp_path / "store"))
    root = tmp_path / "state"
    (root / "runs" / made().id).mkdir(parents=True)
    write_atomically(root / "runs" / f"{made().id}.json", run_text(made(status="running")))
    write_atomically(root / "runs" / "torn.json", run_text(made())[:40])
    (found,) = commit_interrupted(store, root, 1)
    assert (found.status, found.executions) == ("aborted", (1,))
    ((stored,), _) = read_workflow_runs(store, store.head("main"))
    assert (stored.id, stored.status) == (made().id, "aborted")
    assert [each.name for each in (root / "runs").iterdir()] == ["torn.json"]
    assert commit_interrupted(store, root, 1) == ()


@pytest.mark.parametrize(("last", "whole"), [(0, ()), (1, (1,))])
def test_an_execution_is_whole_if_the_pointer_names_it(tmp_path, last, whole):
    """The process was killed before the pointer moved, or after."""
    store = Store.init(str(tmp_path / "store"))
    (tmp_path / "state" / "runs").mkdir(parents=True)
    write_atomically(tmp_path / "state" / "runs" / "w.json", run_text(made(status="running")))
    (found,) = commit_interrupted(store, tmp_path / "state", last)
    assert found.executions == whole

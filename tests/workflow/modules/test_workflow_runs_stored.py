"""Runs of workflows in a store: what a killed run leaves, how runs are found, what cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import govtool
from govtool.app.datasets.places import path_id
from govtool.app.records.tables import RecordTables
from govtool.app.upkeep.forget import ForgetRequest, forget_text
from govtool.app.upkeep.store import check
from govtool.app.workflow_graphs.graphs import import_graph
from govtool.app.workflow_runs.state import write_atomically
from govtool.app.workflow_runs.stored import commit_workflow_run, find_workflow_run, read_workflow_runs
from govtool.app.workflow_runs.tracking import commit_interrupted
from govtool.cli.main import main
from govtool.errors import AmbiguousNameError, IntegrityError, UnknownNameError
from govtool.model.records import PRIVATE_VALUES, PrivateValues, RecordRun, decode_private
from govtool.model.workflow_run import (
    WORKFLOW_RUNS,
    BoundaryRelation,
    ModuleInvocation,
    RelationFile,
    WorkflowRun,
    decode_workflow_runs,
    encode_workflow_run,
    run_from,
    run_text,
)
from govtool.store import Changes, Fragment, Store
from govtool.workflow.storage.parquet import GRAPHS


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


@pytest.fixture
def spoilt(tmp_path):
    """Three runs; the record of one is damaged, and that of another is the record of a run of another workflow."""
    store = Store.init(str(tmp_path / "store"))
    for run in (made(number=1), made(number=2), made("other", 3)):
        commit_workflow_run(store, run, "main")
    source, other = "workflow-run:x:x-20261124-aa", encode_workflow_run(made("other", 3))
    store.commit(Changes((source,), (Fragment(source, WORKFLOW_RUNS, other, 1),)), message="m", author="a", batch="x")
    (ref,) = [each for each in store.fragments(store.head()) if each.source == "workflow-run:w:w-20261122-aa"]
    (tmp_path / "store" / ref.key).write_bytes(b"PAR1")
    return store, ref.key


def test_runs_are_listed_beside_damaged_ones(spoilt, capsys):
    store, key = spoilt
    answer = govtool.open(store.uri).workflow_runs()
    assert [run.id for run in answer.runs] == ["other-20261123-aa", "w-20261121-aa"]
    assert [(each.workflow, each.id) for each in answer.damaged] == [("w", "w-20261122-aa"), ("x", "x-20261124-aa")]
    assert answer.damaged[0].object == key
    assert "it is that of the run other-20261123-aa" in answer.damaged[1].reason
    schema = Path(__file__).parents[3] / "docs" / "schemas" / "workflow-runs-1.json"
    jsonschema.validate(json.loads(json.dumps(answer.to_dict())), json.loads(schema.read_text()))
    assert not govtool.open(store.uri).workflow_runs("other").damaged
    for words, code, shown in ((["list"], 3, "not listed: w w-20261122-aa · "), (["list", "other"], 0, "other-2026")):
        assert main(["workflow", *words, "--store", store.uri]) == code
        assert shown in " ".join(capsys.readouterr().out.split())


def test_graphs_are_listed_beside_damaged_ones(spoilt, tmp_path, capsys):
    store, key = spoilt
    file = tmp_path / "g.json"
    file.write_text('{"nodes": [{"id": "a", "kind": "p", "type": "wi", "label": "t"}], "edges": []}')
    for name in ("sound", "lost"):
        import_graph(store, str(file), name=name)
    (ref,) = [ref for ref in store.fragments(store.head()) if ref.table == GRAPHS and ref.source == "graph:lost"]
    (tmp_path / "store" / ref.key).write_bytes(b"PAR1")
    assert main(["graph", "list", "--store", store.uri, "--format", "json"]) == 3
    answer = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in answer["graphs"]] == ["sound", "run:other-20261123-aa", "run:w-20261121-aa"]
    assert [(each["name"], each["object"]) for each in answer["damaged"][:2]] == [
        ("lost", ref.key),
        ("run:w-20261122-aa", key),
    ]
    schema = Path(__file__).parents[3] / "docs" / "schemas" / "graphs-1.json"
    jsonschema.validate(answer, json.loads(schema.read_text()))
    assert main(["graph", "list", "--store", store.uri]) == 3
    assert "not listed: lost · " in " ".join(capsys.readouterr().out.split())


def test_a_damaged_run_is_named_where_it_may_be_meant(spoilt):
    store, key = spoilt
    head = store.head()
    assert find_workflow_run(store, head, "w-20261121-aa").id == "w-20261121-aa"
    assert find_workflow_run(store, head, "other").id == "other-20261123-aa"
    for text in ("w", "w~1", "w-20261122-aa", "w-20261122"):
        with pytest.raises(IntegrityError, match="w-20261122-aa cannot be read") as refused:
            find_workflow_run(store, head, text)
        assert refused.value.location == key
    with pytest.raises(AmbiguousNameError):
        find_workflow_run(store, head, "w-2026")
    found = check(store, anchor=None, contents=True, progress=None).problems
    assert [each.key for each in found if each.key == key] == [key]
    assert any("it is that of the run other-20261123-aa" in each.message for each in found)


def test_a_run_is_forgotten_by_the_name_of_its_workflow(tmp_path):
    """Two workflows ran in one application: the values of the other one stay."""
    store = Store.init(str(tmp_path / "store"))
    places = {name: str(tmp_path / name) for name in ("w", "other")}
    for number, name in enumerate(places, 1):
        relation = BoundaryRelation(places[name], "parquet", "", ())
        first = ModuleInvocation(1, "a", "A", 1, (), (), (), (("Out", relation.path),), ("Out",))
        more = {"edges": (), "invocations": (first,), "relations": {relation.path: relation}}
        commit_workflow_run(store, made(name, number, **more), "main")
        run = RecordRun(f"app-1/{number}", "p", path_id(places[name]), (), "", "")
        private = PrivateValues(run.run, f'["secret of {name}"]')
        tables = RecordTables(runs={run.run: run}, private={run.run: private})
        source = f"workflow:{name}"
        store.commit(Changes((source,), tables.fragments(source)), message="m", author="a", batch=name)

    def left():
        refs = [ref for ref in store.fragments(store.head()) if ref.table == PRIVATE_VALUES]
        return sorted(each.values for ref in refs for each in decode_private(store.read(ref)))

    with pytest.raises(UnknownNameError) as missed:
        forget_text(store, ForgetRequest(runs=("othre",), author="ann"))
    assert "other" in missed.value.nearest
    with pytest.raises(UnknownNameError):
        forget_text(store, ForgetRequest(runs=("w-2026",), author="ann"))  # no beginnings: it cannot be undone
    assert forget_text(store, ForgetRequest(runs=("w",), author="ann")).held == ()
    assert left() == ['["secret of other"]']
    assert forget_text(store, ForgetRequest(runs=("other-20261122-aa",), author="ann")).held == ()
    assert left() == []


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

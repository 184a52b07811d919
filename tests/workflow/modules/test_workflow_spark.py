"""Workflows over DataFrames, run and captured: the car dealerships of the paper's Example 2.1, hostile modules, bags."""

from __future__ import annotations

import json

import pytest
from cli.answers import check

import govtool
from bench.workflowgen.car import CarFamily, workflow
from bench.workflowgen.family import read_parquet
from govtool.app.record_tables import read_record_runs
from govtool.cli.main import main
from govtool.errors import EngineError, UsageError
from govtool.store import Store

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install govtool[spark]")

SPEC = {
    "dealers": {
        "1": {"cars": [["C1", "C1", "Accord"], ["C2", "C2", "Civic"], ["C3", "C3", "Civic"]]},
        "2": {"cars": [["D1", "D1", "Civic"], ["D2", "D2", "Civic"]], "sold": [["S1", "D1", "B0"]]},
        "3": {"cars": []},
        "4": {"cars": [["F1", "F1", "Golf"]]},
    },
    "execs": [{"request": ["R1", "P1", "B1", "Civic"], "choice": ["Y1", "B1", 20500, 1]}],
}
"""The tables of Example 2.3 at dealer 1: an Accord and two Civics, a request of P1 for a Civic. Others compete."""


@pytest.fixture(scope="module")
def dealers(spark, tmp_path_factory):
    """The workflow, run tracked with records in one folder and untracked in another."""
    folder = tmp_path_factory.mktemp("dealers")
    CarFamily().write(SPEC, folder / "in")
    store = Store.init(str(folder / "store")).uri
    runs = {}
    for mode in ("records", "untracked"):
        runs[mode] = govtool.run_workflow(
            workflow(), folder / "in", state=folder / mode, mode=mode, store=store, spark=spark
        )
    return folder, runs


def outputs(answer):
    """Rows of each relation that an invocation made, and of the state that it left, by node."""
    found = {}
    for each in answer.run.invocations:
        for name, path in each.outputs:
            found[f"{each.node}.{name}"] = sorted(map(str, read_parquet_of(path)))
        for name, _, path in each.new_state:
            found[f"{each.node}.{name}"] = sorted(map(str, read_parquet_of(path)))
    return found


def read_parquet_of(path):
    from pathlib import Path

    return read_parquet(Path(path))


def test_example_2_1_by_hand(dealers):
    folder, runs = dealers
    rows = {
        f"{each.node}.{name}": read_parquet_of(path)
        for each in runs["records"].run.invocations
        for name, path in each.outputs
    }
    # Two Civics: 20400 - 2·200 = 20000. Dealer 2: 20400 - 2·200 + 150 = 20150, and 1. Without cars: 20400 and 2, 3.
    assert [rows[f"bid{n}.Bids_{n}"][0]["Amount"] for n in (1, 2, 3, 4)] == [20000, 20151, 20402, 20403]
    assert rows["agg.BestBid"] == [{"BidId": "B1", "Amount": 20000}]
    assert rows["xor.Orders"] == [{"UserId": "P1", "BidId": "B1", "Model": "Civic", "Dealer": 1, "Amount": 20000}]
    assert rows["car.Sold"] == [{"BidId": "B1", "Dealer": 1, "CarId": "C2", "Price": 20000}]
    state = json.loads((folder / "records" / "current.json").read_text())
    assert state["invocations"]["M_dealer1"] == 2
    assert read_parquet_of(state["state"]["M_dealer1.SoldCars"]["path"]) == [{"CarId": "C2", "BidId": "B1"}]


def test_untracked_equals_tracked(dealers):
    _, runs = dealers
    assert "records" in runs
    pairs = [{name.split(".", 1)[1]: rows for name, rows in outputs(runs[mode]).items()} for mode in runs]
    assert pairs[0] == pairs[1]


def test_only_the_tracked_run_is_in_the_store(dealers, capsys):
    folder, runs = dealers
    store = ["--store", str(folder / "store"), "--format", "json"]
    capsys.readouterr()
    assert main(["workflow", "list", *store]) == 0
    listed = check(capsys.readouterr().out, "workflow-runs-1")
    assert [(run["id"], run["status"], run["mode"]) for run in listed["runs"]] == [
        (runs["records"].run.id, "complete", "records")
    ]
    assert main(["workflow", "show", "car", *store]) == 0
    shown = check(capsys.readouterr().out, "workflow-run-1")["run"]
    assert shown["modules"]["M_dealer1"] == 2
    assert [each["node"] for each in shown["invocations"]][:3] == ["and", "choice", "bid1"]
    assert main(["workflow", "show", "cra", "--store", str(folder / "store")]) == 2
    assert "car" in capsys.readouterr().err


def test_each_boundary_has_its_plan(dealers):
    folder, runs = dealers
    store = Store.open(str(folder / "store"))
    written = {run.output for run in read_record_runs(store, store.head("main"))}
    from govtool.app.dataset_places import path_id

    made = [path for each in runs["records"].run.invocations for _, path in each.outputs]
    assert {path_id(path) for path in made} <= written


def test_nothing_listens_after_a_run(inputs, tmp_path, spark):
    manager = spark._jsparkSession.listenerManager()
    before = len(manager.listListeners())
    store = Store.init(str(tmp_path / "store")).uri
    run(one_module(lambda frame: frame), inputs, spark, "columns", store=store)
    assert len(manager.listListeners()) == before


def test_rows_of_an_output_are_traced_to_the_state(dealers, capsys):
    pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")
    folder, runs = dealers
    (bids,) = [p for each in runs["records"].run.invocations if each.node == "bid1" for _, p in each.outputs]
    capsys.readouterr()
    words = ["trace", "back", bids, "--where", "Amount = 20000", "--store", str(folder / "store"), "--format", "json"]
    assert main(words) == 0
    inputs = {
        each["dataset"].rpartition("/")[2]: each["rows"] for each in json.loads(capsys.readouterr().out)["inputs"]
    }
    assert sorted(row["CarId"] for row in inputs["M_dealer1.Cars.parquet"]) == ["C2", "C3"]


# ---- hostile --------------------------------------------------------------------------------------------------------


def one_module(function, schema="n bigint", state=()):
    return govtool.Workflow("w", [govtool.module("M", {"In": "n bigint"}, state, {"Out": schema})(function)])


@pytest.fixture
def inputs(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "In.csv").write_text("n\n1\n2\n")
    return folder


def run(flow, inputs, spark, mode="untracked", **options):
    return govtool.run_workflow(flow, inputs, state=inputs.parent / "state", mode=mode, spark=spark, **options)


HOSTILE = {
    "another column": (lambda frame: frame.withColumnRenamed("n", "m"), r"Out has the columns \(m bigint\)"),
    "another type": (lambda frame: frame.selectExpr("cast(n as string) n"), r"\(n string\); \(n bigint\) are declared"),
    "a list": (lambda frame: [1], "Out is list, no DataFrame"),
    "a failure in Spark": (lambda frame: frame.selectExpr("cast(n / 0 as bigint) n"), "Out could not be made"),
    "a missing column": (lambda frame: frame.select("nope"), "failed: AnalysisException"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_modules_that_return_what_they_must_not(spark, inputs, case):
    function, message = HOSTILE[case]
    with pytest.raises(EngineError, match=message):
        run(one_module(function), inputs, spark)
    assert not (inputs.parent / "state" / "current.json").exists()


def test_inputs_of_another_schema_are_refused(spark, inputs):
    (inputs / "In.csv").write_text("m\n1\n")
    with pytest.raises((UsageError, EngineError)):
        run(one_module(lambda frame: frame), inputs, spark)


def test_a_failure_is_in_the_store_with_what_was_whole(spark, inputs, tmp_path):
    def fail_later(frame, seen):
        if seen.count():
            raise ValueError("a second time")
        return {"Out": frame, "Seen": seen.unionAll(frame)}

    store = Store.init(str(tmp_path / "store")).uri
    flow = one_module(fail_later, state={"Seen": "n bigint"})
    with pytest.raises(EngineError, match="ValueError: a second time"):
        run(flow, inputs, spark, "columns", store=store, executions=3)
    answer = govtool.open(store).workflow_run("w")
    assert (answer.run.status, answer.run.executions, answer.run.whole) == ("failed", (1,), 1)
    assert "a second time" in answer.run.error
    assert not list((inputs.parent / "state" / "runs").iterdir())


# ---- bags -----------------------------------------------------------------------------------------------------------


def test_cogroup_and_flatten(spark):
    from govtool.workflow import cogroup, flatten

    cars = spark.createDataFrame([("Civic", 1), ("Civic", 2), ("Golf", 3), (None, 4)], "model string, `car.id` int")
    wishes = spark.createDataFrame([("Civic", "ann"), ("Polo", "bob"), (None, "eve")], "model string, user string")
    groups = cogroup(cars, wishes, by="model", names=["cars", "wishes"])
    found = {row.model: (sorted(c[1] for c in row.cars), [w.user for w in row.wishes]) for row in groups.collect()}
    assert found == {"Civic": ([1, 2], ["ann"]), "Golf": ([3], []), "Polo": ([], ["bob"]), None: ([4], ["eve"])}
    flat = flatten(groups.select("wishes", "cars"), "cars")
    assert flat.columns == ["wishes", "model", "car.id"]
    assert sorted(row[2] for row in flat.collect()) == [1, 2, 3, 4]
    assert flatten(groups.select("cars"), "cars", outer=True).count() == 5
    for wrong in (
        lambda: cogroup(by="a"),
        lambda: cogroup(cars, by="nope"),
        lambda: cogroup(cars, cars, by="model", names=["a", "a"]),
        lambda: cogroup(cars, by="model", names=["model"]),
        lambda: flatten(groups, "model"),
    ):
        with pytest.raises(UsageError):
            wrong()


# ---- the graph ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def graph(dealers):
    """The provenance graph of the tracked run."""
    pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")
    from govtool.app.workflows.run_graph import workflow_graph

    folder, runs = dealers
    store = Store.open(str(folder / "store"))
    return workflow_graph(store, store.head("main"), runs["records"].run)


def types_of(graph):
    from govtool.workflow.vocabulary import TYPES

    return [TYPES[number] for number in graph.type.tolist()]


def test_the_graph_has_a_node_for_each_invocation_and_token(graph, dealers):
    found = graph.graph
    types = types_of(found)
    assert types.count("m") == 13
    assert types.count("wi") == 2  # a request and an answer
    assert types.count("st") == 7  # six cars and one that was sold
    modules = {found.module_of(n) for n, kind in enumerate(types) if kind == "m"}
    assert modules == {"M_and", "M_choice", "M_agg", "M_xor", "M_car", *(f"M_dealer{n}" for n in range(1, 5))}
    for node, kind in enumerate(types):
        into = int(found.edges.backward[node + 1]) - int(found.edges.backward[node])
        assert (
            (into == 0) if kind in ("wi", "st", "m") else (into > 0 or found.label_of(node) in ("const", "⊖"))
        )  # 1 ⊖ 0
    assert graph.coarse == {}


def test_deletions_agree_with_a_run_without_the_rows(graph, dealers):
    """The contract: what is called deleted, kept or recomputed is so in the definitions' own terms."""
    from itertools import combinations

    from workflowgen_reference import car

    from govtool.workflow.deletion import delete
    from govtool.workflow.modules.run_rows import output_deletions

    found = graph.graph
    tokens = {found.label_of(n): n for n, kind in enumerate(types_of(found)) if kind in ("wi", "st")}
    node_of = {token: tokens[label] for token, label in labels(tokens).items()}
    before = car(SPEC, (), 1)
    statuses = {"deleted": 0, "kept": 0, "recomputed": 0, "unknown": 0}
    for size in (1, 2):
        for gone in combinations(node_of, size):
            deletion = delete(found, [node_of[token] for token in gone])
            after = {key(each): each.value for each in car(SPEC, gone, 1)}
            rows = output_deletions(found, graph.outputs, deletion)
            assert {(name, row.before) for name, own in rows.items() for _, row in own.rows} == {
                (each.relation, (*each.key, each.value)) for each in before
            }
            for name, own in rows.items():
                for execution, row in own.rows:
                    statuses[row.status] += 1
                    place = (execution, name, row.before[:-1])
                    if row.status == "deleted":
                        assert place not in after, gone
                    elif row.status != "unknown":
                        assert row.after == (*place[2], after[place]), gone
                        assert (row.status == "kept") == (row.after == row.before)
                gains = {(1, name, row[:-1]): row[-1] for row in own.gains}
                assert gains.items() <= after.items()
            assert deletion.gains_possible or set(after) <= {key(each) for each in before}
    assert statuses["kept"] > 10
    assert statuses["deleted"] > 10
    assert statuses["unknown"] < sum(statuses.values()) / 2


def key(row):
    return row.exec, row.relation, tuple(row.key)


def test_a_deletion_of_a_run_has_the_rows_of_its_outputs(dealers, graph, capsys):
    folder, _ = dealers
    tokens = [graph.graph.label_of(n) for n, kind in enumerate(types_of(graph.graph)) if kind == "wi"]
    command = ["whatif", "delete", tokens[0], "--run", "car", "--store", str(folder / "store")]
    for _ in range(2):  # built, and from the cache
        capsys.readouterr()
        assert main([*command, "--format", "json"]) == 0
        found = check(capsys.readouterr().out, "whatif-graph-1")["relations"]
        assert set(found) == {"BestBid", "Sold"}
        assert found["Sold"]["columns"] == ["BidId", "Dealer", "CarId", "Price"]
        assert found["Sold"]["tuples"][0] == {"execution": 1, "before": ["B1", 1, "C2", 20000], "status": "deleted"}


def labels(tokens):
    """The label of each token of the spec: its row in the file of its relation."""
    places = {"R1": ("1/Requests", 0), "Y1": ("1/Answer", 0), "S1": ("M_dealer2.SoldCars", 0)}
    for dealer, own in SPEC["dealers"].items():
        places.update({row[0]: (f"M_dealer{dealer}.Cars", n) for n, row in enumerate(own["cars"])})
    return {
        token: next(each for each in tokens if f"/{name}.parquet@" in each and each.endswith(f":0/{row}"))
        for token, (name, row) in places.items()
    }


def test_a_changed_file_is_refused(dealers, tmp_path):
    from dataclasses import replace

    from govtool.app.workflows.run_graph import workflow_graph

    folder, runs = dealers
    run = runs["records"].run
    store = Store.open(str(folder / "store"))
    path = next(path for path in run.relations if path.endswith("Requests.parquet"))
    other = replace(run.relations[path], files=(run.relations[path].files[0]._replace(size=1),))
    with pytest.raises(UsageError, match="was written again"):
        workflow_graph(store, store.head("main"), replace(run, relations={**run.relations, path: other}))
    with pytest.raises(UsageError, match="no records of rows"):
        workflow_graph(store, store.head("main"), runs["untracked"].run)


def test_nested_rows_of_text_files_keep_their_own_provenance(spark, tmp_path):
    """FLATTEN of COGROUP: a row is gone with its own record, and stays without those beside it in the bag."""
    pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")
    from govtool.app.workflows.run_graph import workflow_graph
    from govtool.workflow import cogroup, flatten
    from govtool.workflow.deletion import delete

    def nest(cars, wishes):
        groups = cogroup(cars, wishes, by="model", names=["cars", "wishes"])
        return flatten(groups.select("cars"), "cars")

    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "Cars.csv").write_text("model,car\nCivic,1\nCivic,2\nGolf,3\n")
    (folder / "Wishes.csv").write_text("model,user\nCivic,ann\n,eve\n")
    inputs = {"Cars": "model string, car int", "Wishes": "model string, user string"}
    flow = govtool.Workflow("nested", [govtool.module("Nest", inputs, (), {"Flat": "model string, car int"})(nest)])
    store = Store.init(str(tmp_path / "store"))
    answer = govtool.run_workflow(flow, folder, state=tmp_path / "state", mode="records", store=store.uri, spark=spark)
    found = workflow_graph(store, store.head("main"), answer.run)
    assert found.coarse == {}
    (output,) = found.outputs
    assert sorted(output.rows) == [("Civic", 1), ("Civic", 2), ("Golf", 3)]
    tokens = {found.graph.label_of(n): n for n, kind in enumerate(types_of(found.graph)) if kind == "wi"}
    for row, lost in ((0, ("Civic", 1)), (1, ("Civic", 2)), (2, ("Golf", 3))):
        token = next(node for label, node in tokens.items() if "/Cars.csv@" in label and label.endswith(f":0/{row}"))
        deletion = delete(found.graph, [token])
        gone = {output.rows[n] for n, node in enumerate(output.nodes.tolist()) if node in deletion.removed}
        assert gone == {lost}

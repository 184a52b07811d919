"""Workflows over DataFrames, run and captured: the car dealerships of the paper's Example 2.1, hostile modules, bags."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.answers import check

import govtool
from bench.workflowgen.car import CarFamily, workflow
from bench.workflowgen.family import read_parquet
from govtool.app.records.runs import recorded
from govtool.app.workflow_runs.addresses import parse_address
from govtool.app.workflow_runs.frames import first_line
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
    written = {run.output for run in recorded(store, store.head("main"))}
    from govtool.app.datasets.places import path_id

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
    (inputs / "In.csv").write_text("_tok,n\na,1\n")
    with pytest.raises(UsageError, match=r"has the columns \(_tok, n\); \(n bigint\) are declared"):
        run(one_module(lambda frame: frame), inputs, spark)


def test_what_spark_found_wrong_is_named(spark, inputs):
    (inputs / "In.csv").write_text("n\n1\n0\n")
    flow = one_module(lambda frame: frame.selectExpr("cast(1 / n as bigint) as n"))
    with pytest.raises(EngineError, match=r"Out could not be made: .*Division by zero"):
        run(flow, inputs, spark)


def test_what_a_function_raised_in_a_worker_is_named():
    text = (
        "\n  An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
        '  File "w.py", line 5, in f\n    return 1 / n\n           ~~^~~\nZeroDivisionError: division by zero\n'
    )
    assert first_line(ValueError(text)) == "ValueError: ZeroDivisionError: division by zero"


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
    from govtool.app.workflow_runs.run_graph import workflow_graph

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


def test_the_graph_of_a_run_is_written_and_listed(dealers, capsys, tmp_path):
    folder, runs = dealers
    store = ["--store", str(folder / "store")]
    run = runs["records"].run
    counts = {}
    for nodes in ("read", "all"):
        file = tmp_path / f"{nodes}.json"
        command = ["graph", "export", "--run", "car", "--state-nodes", nodes, "-o", str(file), *store]
        assert main(command) == 0
        body = json.loads(file.read_text())
        counts[nodes] = [(each["module"], each["inv"]) for each in body["nodes"] if each["type"] == "s"]
        addresses = {(each["module"], each["inv"]) for each in body["nodes"] if each["type"] == "m"}
        assert addresses == {(each.module, each.number) for each in run.invocations}
    # Every state tuple that an invocation found, read or not; cells of computed columns have nodes beside.
    found = [
        (each.module, each.number) for each in run.invocations for *_, path in each.state for _ in read_parquet_of(path)
    ]
    assert set(found) == set(counts["all"])
    assert all(counts["all"].count(pair) >= found.count(pair) for pair in found)
    assert counts["all"].count(("M_dealer4", 1)) == 1  # a Golf, which the request for a Civic does not read
    assert ("M_dealer4", 1) not in counts["read"]
    capsys.readouterr()
    assert main(["graph", "list", *store, "-f", "json"]) == 0
    (entry,) = check(capsys.readouterr().out, "graphs-1")["graphs"]
    assert entry["name"] == f"run:{run.id}"
    assert entry["nodes"] > 100
    for words in (
        ["--state-nodes", "some", "--run", "car"],
        ["x.json", "--state-nodes", "all"],
        [],
        ["x", "--run", "car"],
    ):
        assert main(["graph", "export", *words, *store]) == 2


def test_deletions_agree_with_a_run_without_the_rows(dealers):
    """The contract: what is called deleted, kept or recomputed is so in the definitions' own terms."""
    from itertools import combinations

    from workflowgen_reference import car

    folder, _ = dealers
    opened = govtool.open(str(folder / "store"))
    tokens = labels(records_of(folder))
    before = car(SPEC, (), 1)
    sets = [*combinations(tokens, 1), *list(combinations(tokens, 2))[::3]]
    answers = opened.workflow_deletions("car", [[tokens[each] for each in gone] for gone in sets], mode="propagate")
    statuses = {"deleted": 0, "kept": 0, "recomputed": 0}
    for gone, answer in zip(sets, answers, strict=True):
        assert not answer.is_unclear(), gone
        after = {key(each): each.value for each in car(SPEC, gone, 1)}
        found = {}
        for name, own in answer.relations.items():
            for execution, row in own.rows:
                statuses[row.status] += 1
                if row.after is not None:
                    found[execution, name, row.after[:-1]] = row.after[-1]
                    assert (row.status == "kept") == (row.after == row.before)
            found.update({(1, name, row[:-1]): row[-1] for row in own.gains})
            standing = {(*each.key, each.value) for each in before if each.relation == name}
            assert {row.before for _, row in own.rows} == standing
        assert found == after, gone
    assert min(statuses.values()) > 3


def key(row):
    return row.exec, row.relation, tuple(row.key)


def records_of(folder):
    """The tokens of the records that went into the run."""
    from govtool.app.workflow_runs.deletion import InputRecords
    from govtool.app.workflow_runs.opened import opened_run

    store = Store.open(str(folder / "store"))
    with opened_run(store, store.head("main"), "car") as opened:
        return list(InputRecords(opened).places)


def test_a_deletion_of_a_run_has_the_rows_of_its_outputs(dealers, capsys, tmp_path):
    folder, _ = dealers
    request = labels(records_of(folder))["R1"]
    command = ["whatif", "delete", request, "--run", "car", "--store", str(folder / "store")]
    capsys.readouterr()
    assert main([*command, "--format", "json"]) == 0
    found = check(capsys.readouterr().out, "whatif-run-1")
    assert set(found["relations"]) == {"BestBid", "Sold"}
    assert found["replayed"] == []
    sold = found["relations"]["Sold"]
    assert sold["columns"] == ["BidId", "Dealer", "CarId", "Price"]
    assert sold["tuples"] == [{"execution": 1, "node": "car", "before": ["B1", 1, "C2", 20000], "status": "deleted"}]
    lists = tmp_path / "lists.jsonl"
    lists.write_text(json.dumps([request]) + "\n" + json.dumps([labels(records_of(folder))["F1"]]) + "\n")
    store = ["--run", "car", "--store", str(folder / "store")]
    orders = ["--outputs", "M_dealer1.SoldCars", "--mode", "propagate", "-f", "json"]
    assert main(["whatif", "delete", *store, "--from", str(lists), *orders]) == 0
    gone, kept = (json.loads(line)["relations"]["M_dealer1.SoldCars"] for line in capsys.readouterr().out.splitlines())
    assert [row["status"] for row in gone["tuples"]] == ["deleted"]
    assert [row["status"] for row in kept["tuples"]] == ["kept"]


BAD = {
    "an unknown token": (["{}x"], "{}"),
    "a token twice": (["{}", "{}"], "is gone already"),
    "another run": (["{}", "--run", "cra"], "car"),
    "an unknown relation": (["{}", "--outputs", "Solt"], "Sold"),
    "an unknown mode": (["{}", "--mode", "autom"], "auto"),
    "an option of a query": (["{}", "--data", "."], "--data is not for a run"),
    "no token": ([], "name records"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_deletions_of_a_run(dealers, capsys, case):
    folder, _ = dealers
    words, message = BAD[case]
    token = labels(records_of(folder))["C2"]
    given = [each.replace("{}", token) for each in words]
    command = ["whatif", "delete", "--run", "car", *given, "--store", str(folder / "store")]
    capsys.readouterr()
    assert main(command) == 2
    assert message.replace("{}", token) in capsys.readouterr().err


# ---- why ------------------------------------------------------------------------------------------------------------


def test_why_a_row_of_a_run_is_there(dealers, capsys):
    folder, _ = dealers
    store = ["--run", "car", "--store", str(folder / "store")]
    tokens = labels(records_of(folder))
    capsys.readouterr()
    assert main(["why", "Bids_2[P1]", *store, "-f", "json"]) == 0
    answer = check(capsys.readouterr().out, "why-1")
    assert (answer["relation"], answer["execution"], answer["node"]) == ("Bids_2", 1, "bid2")
    (there,) = [row for row in answer["tuples"] if row["present"]]
    assert there["values"][-1] == 20151
    # Two Civics and one that was sold: 20400 - 2·200 + 150, and 1 for the dealer.
    wish = f"δ({tokens['R1']})"
    for token in (tokens["D1"], tokens["D2"]):
        assert f"{token}*{wish}⊗1" in there["aggregates"]["Amount"]
    assert there["polynomial"].startswith(tokens["R1"])
    names = "how,bool,where,prob,shapley,banzhaf,responsibility"
    chances = folder / "prob.json"
    chances.write_text(json.dumps(dict.fromkeys(tokens.values(), 0.5)))
    words = ["why", "bid2/Bids_2@1[BidId=B1]", *store, "-f", "json", "--as", names, "--values", f"prob={chances}"]
    assert main(words) == 0
    row = next(each for each in json.loads(capsys.readouterr().out)["tuples"] if each["present"])
    # It hangs on the request, on the car that was sold, and on its sale; the other Civic changes its amount only.
    assert row["prob"] == pytest.approx(0.5**3)
    assert row["shapley"] == pytest.approx({tokens[each]: 1 / 3 for each in ("R1", "D1", "S1")} | {tokens["D2"]: 0})
    assert row["where"]["BidId"] == [f"{tokens['R1']}.BidId"]
    assert row["where"]["Amount"] == []


def test_a_second_question_about_a_run_annotates_nothing(dealers, capsys, monkeypatch, tmp_path):
    from govtool.workflow.modules import run_circuit

    folder, _ = dealers
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    token = labels(records_of(folder))["C2"]
    store = ["--run", "car", "--store", str(folder / "store"), "-f", "json"]
    questions = [
        ["why", "Sold", *store, "--as", "polynomial,count"],
        ["whatif", "delete", token, "--mode", "propagate", *store],
        ["whatif", "delete", token, *store],
    ]
    capsys.readouterr()
    first = []
    for words in questions:
        assert main(words) == 0
        first.append(capsys.readouterr().out)
    kept = sorted((tmp_path / "cache" / "commits").glob("*-circuit"))
    assert len(kept) == 2  # of one relation, and of all outputs
    with monkeypatch.context() as patch:
        patch.setattr(run_circuit, "build_run_circuit", None)
        for words, expected in zip(questions, first, strict=True):
            assert main(words) == 0
            assert capsys.readouterr().out == expected
    for place in kept:  # damage is noticed, and the circuit is made anew
        file = place / "circuit"
        file.write_bytes(file.read_bytes()[:-1])
    for words, expected in zip(questions[:2], first, strict=False):
        assert main(words) == 0
        assert capsys.readouterr().out == expected


WHY_BAD = {
    "Bids_9[P1]": "Bids_4",
    "Bids_2@4": "1",
    "Bids_2[P2]": "P1",
    "Bids_2[User=P1]": "UserId",
    "Orders": "and/Orders@1",
    "bid2/Orders": "and",
    "Bids_2[": "names no rows",
    "Bids_2['P1]": "a quote is not closed",
}


@pytest.mark.parametrize("rows", WHY_BAD)
def test_bad_addresses(dealers, capsys, rows):
    folder, _ = dealers
    capsys.readouterr()
    assert main(["why", rows, "--run", "car", "--store", str(folder / "store")]) == 2
    assert WHY_BAD[rows] in capsys.readouterr().err


@pytest.mark.parametrize("value", ["it's", 'a "b"', 'it\'s "x"', "a=b", "x]", "[y", "#1", "a, b", "\x1b[31m", "''", ""])
def test_any_value_can_be_written_in_a_key(value):
    """In either quote, which is doubled within."""
    for quote in "'\"":
        text = f"Rel[k={quote}{value.replace(quote, quote * 2)}{quote}]"
        assert parse_address(text).key == (("k", value),), text
        bare = text.replace("k=", "", 1)
        assert parse_address(bare).key == ((0, value),), bare


def test_options_of_why_that_do_not_go_together(dealers, capsys):
    folder, _ = dealers
    store = ["--store", str(folder / "store")]
    for words in (
        ["why", "Sold", *store],
        ["why", "--run", "car", *store],
        ["why", "Sold", "--run", "car", "--sql", "q.sql", *store],
        ["why", "--sql", "q.sql", "--data", ".", *store],
        ["why"],
    ):
        capsys.readouterr()
        assert main(words) == 2, words
        assert "error[usage.arguments]" in capsys.readouterr().err


# ---- replay ---------------------------------------------------------------------------------------------------------

READINGS = {
    "1/Readings.csv": "name,value\na,5\nb,7\nc,1\n",
    "2/Readings.csv": "name,value\nd,9\ne,2\nf,3\n",
    "Limits.csv": "name,most\na,6\nd,6\n",
}


def readings():
    """A workflow whose second module takes a top-k, which annotations do not capture, over a state that grows."""

    received = {"Readings": "name string, value int", "Limits": "name string, most int"}

    @govtool.module("Keep", received, {"All": "name string, value int"}, ["Known", "Bounds"])
    def keep(rows, limits, every):
        both = every.unionAll(rows)
        return {"All": both, "Known": both, "Bounds": limits}

    @govtool.module("Top", {"Known": "name string, value int"}, (), {"Best": "name string, value int"})
    def top(rows):
        return rows.orderBy(rows.value.desc()).limit(2)

    @govtool.module("Sums", {"Known": "name string, value int", "Bounds": "name string, most int"}, (), ["Total"])
    def sums(rows, limits):
        from pyspark.sql import functions as f

        kept = rows.join(limits, "name", "left_anti")
        return kept.groupBy().agg(f.sum("value").alias("total"), f.count("*").alias("n"))

    edges = [("Keep", "Top", "Known"), ("Keep", "Sums", ["Known", "Bounds"])]
    return govtool.Workflow("readings", [keep, top, sums], edges)


def reread(gone):
    """The outputs of the executions without some readings or limits, in the definition's own terms."""
    rows = {}
    for name, text in READINGS.items():
        lines = [line.split(",") for line in text.splitlines()[1:]]
        rows[name] = [(key, int(number)) for key, number in lines if key not in gone.get(name, "")]
    found, known = {}, []
    for execution in (1, 2):
        known = known + rows[f"{execution}/Readings.csv"]
        best = sorted(known, key=lambda row: -row[1])[:2]
        limits = {key for key, _ in rows["Limits.csv"]}
        left = [value for key, value in known if key not in limits]
        found[execution] = {"Best": sorted(best), "Total": [(sum(left) if left else None, len(left))]}
    return found


def test_replays_leave_nothing_unknown(spark, tmp_path):
    pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")
    for name, text in READINGS.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(text)
    store = Store.init(str(tmp_path / "store"))
    flow = readings()
    govtool.run_workflow(flow, tmp_path / "in", state=tmp_path / "state", mode="records", store=store.uri, spark=spark)
    opened = govtool.open(store.uri)
    from govtool.app.workflow_runs.deletion import InputRecords
    from govtool.app.workflow_runs.opened import opened_run

    with opened_run(store, store.head("main"), "readings") as run:
        places = InputRecords(run).places
    token = {(path.partition("/in/")[2], row): token for token, (path, row) in places.items()}
    cases = {
        "a reading that is the best": {"2/Readings.csv": "d"},
        "a limit": {"Limits.csv": "d"},
        "readings of both": {"1/Readings.csv": "bc", "2/Readings.csv": "e"},
    }
    names = {name: [line[0] for line in text.splitlines()[1:]] for name, text in READINGS.items()}
    lists = [
        [token[name, names[name].index(key)] for name, own in gone.items() for key in own] for gone in cases.values()
    ]
    open_rows = opened.workflow_deletions("readings", lists, mode="propagate")
    is_open = [any(row.status == "unknown" for _, row in one.relations["Best"].rows) for one in open_rows]
    assert any(is_open)
    for mode in ("auto", "replay"):
        answers = opened.workflow_deletions("readings", lists, mode=mode, program=flow, spark=spark)
        for (case, gone), answer, unknown in zip(cases.items(), answers, is_open, strict=True):
            assert not answer.is_unclear(), (mode, case)
            after = reread(gone)
            for name in ("Best", "Total"):
                own = answer.relations[name]
                left = [row.after for _, row in own.rows if row.after is not None] + list(own.gains)
                assert sorted(left, key=str) == sorted(after[1][name] + after[2][name], key=str), (mode, case, name)
            called = {each.partition("#")[0] for each in answer.replayed}
            if mode == "auto":  # the rows that it reads are certain, and so is the sum
                assert called == ({"Top"} if unknown else set()), case
    assert answers[0].replayed == ("Keep#2", "Top#2", "Sums#2")


def test_what_cannot_be_made_again_is_named(spark, tmp_path):
    pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

    def mark(rows):
        from pyspark.sql import functions as f

        return rows.select("n", f.rand().alias("r")).orderBy("r").limit(1).select("n")

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "In.csv").write_text("n\n1\n2\n")
    flow = one_module(mark)
    store = Store.init(str(tmp_path / "store"))
    run(flow, tmp_path / "in", spark, "records", store=store.uri)
    from govtool.app.workflow_runs.deletion import InputRecords
    from govtool.app.workflow_runs.opened import opened_run

    with opened_run(store, store.head("main"), "w") as opened:
        (token, _) = InputRecords(opened).places
    answer = govtool.open(store.uri).workflow_delete("w", [token], program=flow, spark=spark)
    assert answer.is_unclear()
    assert "not deterministic" in answer.not_replayable["M/Out@1"]


def test_what_a_module_did_with_collected_rows_is_decided_by_a_new_call(spark, tmp_path):
    """The half of the total that a row has to exceed is a constant of the plan, which no deletion changes."""

    def large(rows):
        from pyspark.sql import functions as f

        total = rows.agg(f.sum("n")).collect()[0][0]
        return rows.where(f.col("n") > total / 2)

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "In.csv").write_text("n\n3\n4\n9\n")
    flow, store = one_module(large), Store.init(str(tmp_path / "store")).uri
    made = run(flow, tmp_path / "in", spark, "records", store=store).run
    assert [each.ran_jobs for each in made.invocations] == [True]
    from govtool.app.workflow_runs.deletion import InputRecords
    from govtool.app.workflow_runs.opened import opened_run

    with opened_run(Store.open(store), Store.open(store).head("main"), "w") as opened:
        _, middle, last = InputRecords(opened).places

    def answer(token, **how):
        found = govtool.open(store).workflow_delete("w", [token], program=flow, spark=spark, **how).relations["Out"]
        return {row.status for _, row in found.rows}, list(found.gains)

    assert answer(middle, mode="propagate") == ({"unknown"}, [])
    assert answer(last) == answer(last, mode="replay") == ({"deleted"}, [(4,)])
    assert answer(middle) == ({"kept"}, [])
    drawn = govtool.provenance_graph("run:w", store=store).delete(middle).to_dict()["relations"]["Out"]
    assert [row["status"] for row in drawn["tuples"]] == ["unknown"]


def test_what_a_module_left_in_a_global_variable_is_unknown_and_not_called_again(spark, tmp_path):
    left = {"n": 0}

    @govtool.module("Count", inputs=["In"], outputs=["All"])
    def count(rows):
        left["n"] = rows.count()
        return rows

    @govtool.module("Above", inputs=["Other"], outputs=["Large"])
    def above(rows):
        return rows.where(f"n > {left['n']}")

    @govtool.module("Both", inputs=["All", "Large"], outputs=["Out"])
    def both(rows, large):
        return rows.union(large)

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "In.csv").write_text("n\n1\n2\n")
    (tmp_path / "in" / "Other.csv").write_text("n\n2\n3\n4\n")
    edges = [("Count", "Both", "All"), ("Above", "Both", "Large")]
    flow = govtool.Workflow("w", [count, above, both], edges, keep={"Above": ["Large"]})
    store = Store.init(str(tmp_path / "store")).uri
    run(flow, tmp_path / "in", spark, "records", store=store)
    from govtool.app.workflow_runs.deletion import InputRecords
    from govtool.app.workflow_runs.opened import opened_run

    with opened_run(Store.open(store), Store.open(store).head("main"), "w") as opened:
        tokens = list(InputRecords(opened).places)
    first = next(each for each in tokens if "In.csv" in each)
    last = next(each for each in tokens if "Other.csv" in each and each.endswith("/2"))

    def statuses(token, **how):
        answer = govtool.open(store).workflow_delete("w", [token], program=flow, spark=spark, **how)
        return [row.status for _, row in answer.relations["Large"].rows], dict(answer.not_replayable)

    for mode in ("propagate", "auto", "replay"):
        found, refused = statuses(first, mode=mode)
        assert found == ["unknown", "unknown"]
        assert ("Above/Large@1" in refused) == (mode != "propagate")
    assert sorted(statuses(last, mode="propagate")[0]) == sorted(statuses(last)[0]) == ["deleted", "kept"]
    drawn = govtool.provenance_graph("run:w", store=store).delete(first).to_dict()["relations"]["Large"]
    assert [row["status"] for row in drawn["tuples"]] == ["unknown", "unknown"]


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

    from govtool.app.workflow_runs.run_graph import workflow_graph

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
    from govtool.app.workflow_runs.run_graph import workflow_graph
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


def test_rows_of_bags_keep_the_values_that_were_computed_before(spark, tmp_path):
    """FLATTEN of rows with a total over all rows, and a count over their group: as without the record."""
    pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    from govtool.workflow import cogroup, flatten

    def nest(cars, wishes):
        every, own = Window.partitionBy(f.lit(1)), Window.partitionBy("model")
        known = cars.select("model", f.sum("car").over(every).alias("total"), f.count("car").over(own).alias("n"))
        groups = cogroup(known, wishes, by="model", names=["cars", "wishes"])
        return flatten(groups.select("cars"), "cars")

    cars = ["Civic,1", "Civic,2", "Golf,4", "Polo,8"]
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "Cars.csv").write_text("\n".join(["model,car", *cars]) + "\n")
    (folder / "Wishes.csv").write_text("model,user\nCivic,ann\nGolf,eve\n")
    inputs = {"Cars": "model string, car int", "Wishes": "model string, user string"}
    module = govtool.module("Nest", inputs, (), {"Flat": "model string, total bigint, n bigint"})(nest)
    flow = govtool.Workflow("nested", [module])
    store = Store.init(str(tmp_path / "store")).uri
    govtool.run_workflow(flow, folder, state=tmp_path / "state", mode="records", store=store, spark=spark)
    graph = govtool.open(store)
    known = graph.workflow_why("nested", "Flat", semirings=["which"])
    tokens = sorted({token for row in known.tuples for token in row.annotations["which"] if "/Cars.csv" in token})
    assert len(tokens) == len(cars)
    for mode in ("propagate", "replay"):
        answers = graph.workflow_deletions(
            "nested", [[token] for token in tokens], mode=mode, program=flow, spark=spark
        )
        for gone, answer in enumerate(answers):
            left = [line.split(",") for at, line in enumerate(cars) if at != gone]
            total = sum(int(car) for _, car in left)
            expected = sorted((model, total, sum(own == model for own, _ in left)) for model, _ in left)
            (found,) = answer.relations.values()
            rows = [row.after for _, row in found.rows if row.after is not None] + list(found.gains)
            assert (sorted(rows), answer.is_unclear()) == (expected, False), (mode, gone)


def test_bags_that_another_module_made_are_evaluated_again(spark, tmp_path):
    """A list that is read from a file may hold NULLs, the list that was written could not: its new value is the same.

    Rows of bags within bags are the rows that went in.
    """
    pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")
    from govtool.workflow import cogroup, flatten

    def sizes(groups):
        deep = cogroup(groups.selectExpr("length(model) > 0 as any", "cars"), by="any", names=["groups"])
        rows = flatten(flatten(deep.select("groups"), "groups").select("cars"), "cars")
        return {"Sizes": groups.selectExpr("model", "size(cars) as n"), "Rows": rows}

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "Cars.csv").write_text("model,car\nCivic,1\nCivic,2\nGolf,3\n")
    cars = {"Cars": "model string, car int"}
    nest = govtool.module("Nest", cars, (), ["Groups"])(lambda rows: cogroup(rows, by="model", names=["cars"]))
    flow = govtool.Workflow(
        "sizes",
        [nest, govtool.module("Size", ["Groups"], (), ["Sizes", "Rows"])(sizes)],
        [("Nest", "Size", "Groups")],
        keep={"Nest": ["Groups"]},
    )
    store = Store.init(str(tmp_path / "store")).uri
    govtool.run_workflow(flow, tmp_path / "in", state=tmp_path / "state", mode="records", store=store, spark=spark)
    graph = govtool.open(store)
    known = graph.workflow_why("sizes", "Sizes[Civic]", semirings=["which"])
    gone = next(token for row in known.tuples for token in row.annotations["which"] if token.endswith("/0"))
    answer = graph.workflow_delete("sizes", [gone], mode="propagate")
    found = {row.before: (row.status, row.after) for _, row in answer.relations["Sizes"].rows}
    assert found == {
        ("Civic", 2): ("recomputed", ("Civic", 1)),
        ("Golf", 1): ("kept", ("Golf", 1)),
    }
    rows = {row.before: row.status for _, row in answer.relations["Rows"].rows}
    assert rows == {("Civic", 1): "deleted", ("Civic", 2): "kept", ("Golf", 3): "kept"}


def test_a_workflow_goes_on_through_the_runs_that_read_what_it_wrote(spark, tmp_path, capsys):
    """Two workflows in one session: the second reads what the first wrote into its state folder."""
    pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "In.csv").write_text("n\n1\n2\n3\n")
    store = Store.init(str(tmp_path / "store")).uri
    options = {"mode": "records", "store": store, "spark": spark}
    double = govtool.module("Double", {"In": "n bigint"}, (), ["Out"])(lambda rows: rows.selectExpr("n * 2 as m"))
    first = govtool.Workflow("first", {"double": double})
    answer = govtool.run_workflow(first, tmp_path / "in", state=tmp_path / "first", **options)
    opened = govtool.open(store)
    alone = opened.workflow_why("first", "Out", semirings=["which"], all_runs=True)  # nothing reads it as yet
    assert (len(alone.tuples), alone.notes) == (3, ())
    (path,) = [place for each in answer.run.invocations for _, place in each.outputs]
    total = govtool.module("Total", ["Out"], (), ["Sum"])(lambda rows: rows.selectExpr("sum(m) as total"))
    govtool.run_workflow(
        govtool.Workflow("second", {"total": total}), Path(path).parent, state=tmp_path / "second", **options
    )
    opened = govtool.open(store)
    for run in ("first", "second"):
        (row,) = opened.workflow_why(run, "Sum", semirings=["which"], all_runs=True).tuples
        assert len(row.annotations["which"]) == 3
        assert all("/In.csv@" in token for token in row.annotations["which"])
        gone = [token for token in row.annotations["which"] if token.endswith("/2")]
        deletion = opened.workflow_delete(run, gone, all_runs=True)
        (row,) = [row for _, row in deletion.relations["Sum"].rows]
        assert (row.status, row.before, row.after) == ("recomputed", (12,), (6,))
        assert any("its writes are actions" in note for note in deletion.notes)
        graph = govtool.provenance_graph(f"run:{run}", store=store, all_runs=True)
        assert set(graph.modules) == {"Out", "Sum"}
        capsys.readouterr()
        words = ["why", "Sum", "--run", run, "--all-runs", "--store", str(tmp_path / "store")]
        assert main([*words, "-f", "json"]) == 0
        assert any("its writes are actions" in note for note in json.loads(capsys.readouterr().out)["notes"])


@govtool.module("Pick", inputs=["Rows"], outputs=["One"])
def pick(rows):
    return rows.dropDuplicates(["g"])


@pytest.mark.parametrize(("mode", "rows"), [("records", 10), ("eager", 1)])
def test_eager_runs_keep_positions_of_rows_that_a_plan_does_not_determine(spark, tmp_path, mode, rows):
    (tmp_path / "in").mkdir()
    spark.range(30).selectExpr("cast(id % 3 as string) g", "id x").coalesce(1).write.parquet(
        str(tmp_path / "in" / "Rows.parquet")
    )
    flow = govtool.Workflow("pick", nodes={"pick": pick}, keep={"pick": ["One"]})
    store = Store.init(str(tmp_path / "store")).uri
    answer = govtool.run_workflow(flow, tmp_path / "in", state=tmp_path / "s", mode=mode, store=store, spark=spark)
    assert answer.run.mode == "records"
    assert govtool.open(store).trace_back("pick/One", "g = '1'").to_arrow().num_rows == rows

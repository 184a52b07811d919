"""RDD programs in a store: the log analysis of Titian (Figures 5 to 7, 9, 10, 12), recorded and traced by command."""

from __future__ import annotations

import gzip
import importlib
import json
import sys
from collections import Counter

import pytest
from recorders import own_recorder

import govtool
import govtool.spark
from govtool.app.records.tables import read_tables
from govtool.cli.main import main
from govtool.store import Store

LOGS = {
    "a.txt": "INFO 0 start\nERROR 3 disk of node-1\nERROR 4 disk of node-2\nINFO 0 heartbeat\nERROR 3 disk of node-1\n",
    "b.txt.gz": "ERROR 2 network of node-7\nERROR 7 unknown\nERROR 3 disk of node-1\n",
    "empty.txt": "",
}
JOB = """
from operator import add

CODES = [(2, "network failure"), (3, "disk failure"), (4, "disk failure"), (5, "power failure")]


def failed(line):
    return line.startswith("ERROR")


def code(line):
    return int(line.split()[1])


def one(pair):
    return pair[1][1], 1


def frequent(line):
    return not line.endswith(": 1")


def shown(pair):
    return f"{pair[0]}: {pair[1]}"


def main(lc, folder):
    lines = lc.textFile(f"{folder}/logs", 3)
    errors = lines.filter(failed)
    codes = lc.parallelize(CODES, 6)
    pairs = errors.keyBy(code).join(codes)
    pairs.map(one).reduceByKey(add).map(shown).saveAsTextFile(f"{folder}/counts")
    errors.saveAsTextFile(f"{folder}/errors")
    lc.textFile(f"{folder}/counts").filter(frequent).saveAsTextFile(f"{folder}/frequent")
    bound = 3
    lines.filter(lambda line: len(line) > bound).saveAsTextFile(f"{folder}/closure")
    return errors.take(3)
"""


@pytest.fixture(scope="module")
def store(spark, tmp_path_factory):
    """The folder of a program that was recorded into a store: its logs, its outputs, its source."""
    from pyspark import cloudpickle

    folder = tmp_path_factory.mktemp("stored")
    (folder / "logs").mkdir()
    for name, text in LOGS.items():
        data = text.encode()
        (folder / "logs" / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    (folder / "titian_job.py").write_text(JOB)
    assert main(["init", "--store", str(folder / "store")]) == 0
    with own_recorder():
        capture = govtool.spark.attach(
            spark, source="run:titian", store=str(folder / "store"), spool=str(folder / "spool"), records=True
        )
        sys.path.insert(0, str(folder))
        try:
            module = importlib.import_module("titian_job")
            cloudpickle.register_pickle_by_value(module)
            lc = govtool.spark.lineage_context(spark)
            (folder / "taken.json").write_text(json.dumps(module.main(lc, folder)))
            frame = lc.track(spark.range(3).rdd)
            frame.map(str).saveAsTextFile(f"{folder}/mixed")
            spark.sparkContext.textFile(f"{folder}/logs/a.txt").saveAsTextFile(f"{folder}/plain")
            assert capture.commit(identify=0) is not None
        finally:
            sys.path.remove(str(folder))
    return folder


@pytest.fixture
def command(store, monkeypatch, capsys):
    """Runs a command in the folder of the program; returns the exit code and the answer as JSON, or the errors."""
    monkeypatch.chdir(store)

    def run(*words, form="json"):
        capsys.readouterr()
        words = [str(store / word) if (store / word).exists() else word for word in words]
        code = main([*words, "--store", str(store / "store"), *(["--format", form] if form else [])])
        out, err = capsys.readouterr()
        return code, json.loads(out) if form == "json" and out.startswith("{") else out + err

    return run


def _reads(run, place):
    return any(each.dataset.endswith(str(place)) for each in run.inputs)


def _values(answer, dataset):
    return [row["value"] for each in answer["inputs"] if each["dataset"].endswith(dataset) for row in each["rows"]]


def test_a_count_is_traced_to_its_lines_and_verified(command):
    """Figures 5, 6 and 9: two codes share a description; lines that equal each other are told apart by their place."""
    code, found = command("trace", "back", "counts", "--where", "value like 'disk%'", "--verify")
    assert (code, found["verified"]) == (0, True)
    assert Counter(_values(found, "logs")) == {"ERROR 3 disk of node-1": 3, "ERROR 4 disk of node-2": 1}
    assert _values(found, "rows-2") == ["(3, 'disk failure')", "(4, 'disk failure')"]
    (logs,) = [each for each in found["inputs"] if each["dataset"].endswith("logs")]
    assert [(row["_file"].rpartition("/")[2], row["_row"]) for row in logs["rows"]] == [
        ("a.txt", 1),
        ("a.txt", 2),
        ("a.txt", 4),
        ("b.txt.gz", 2),
    ]
    assert {step["exactness"] for step in found["steps"]} == {"exact"}
    assert [step["operator"].partition(" ")[0] for step in found["steps"]] == ["output", "reduceByKey", "join"]


def test_one_boundary_ids_and_a_choice_of_nothing(command):
    """Figure 7, and a description that no line has."""
    code, found = command("trace", "back", "counts", "--where", "value like 'disk%'", "--step")
    assert (code, len(found["between"][0]["rows"])) == (0, 1)
    code, text = command("trace", "back", "errors", "--where", "value like '%node-2'", "--ids", form="")
    assert code == 0
    assert text.strip().endswith(":0/2")
    code, text = command("trace", "back", "counts", "--where", "value like 'power%'", form="")
    assert (code, "usage.no-rows" in text) == (2, True)
    code, text = command("trace", "back", "counts", "--where", "value like", form="")
    assert (code, "^" in text) == (2, True)


def test_a_line_is_followed_to_the_results(command, store):
    """Figures 10 and 12: forward, and the program run again without some lines."""
    line = "value = 'ERROR 3 disk of node-1'"
    code, text = command("trace", "forward", "logs", "--where", line)
    assert (code, "writes fit" in text) == (2, True)
    graph = govtool.open(store / "store")
    run = graph.records(store / "counts").answer(0).run
    code, found = command("trace", "forward", "logs", "--where", line, "--run", run)
    (output,) = found["outputs"]
    assert (code, found["selected"]) == (0, 3)
    assert [row["value"] for row in output["rows"]] == ["disk failure: 4"]
    assert output["rows"][0]["_file"].startswith("file:///")
    code, found = command("replay", run, "--without", "logs", "--where", line)
    assert code == 0
    assert ([row["value"] for row in found["gone"]["rows"]], [row["value"] for row in found["new"]["rows"]]) == (
        ["disk failure: 4"],
        ["disk failure: 1"],
    )
    (store / "other log.txt").write_text("ERROR 2 network of node-1\nERROR 4 disk of node-9\n")
    code, found = command("replay", run, "--with", f"logs={store / 'other log.txt'}")
    assert (code, [row["value"] for row in found["gone"]["rows"]], [row["value"] for row in found["new"]["rows"]]) == (
        0,
        ["disk failure: 4"],
        ["disk failure: 1"],
    )
    code, text = command("replay", run, "--with", "logs=nowhere.txt", form="")
    assert (code, "usage.path" in text) == (2, True)


@pytest.mark.long
def test_through_two_programs_of_one_job(command, store):
    code, found = command("trace", "back", "frequent", "--where", "value like 'disk%'", "--all-runs")
    (hop,) = found["hops"]
    assert (code, _values(found, "counts"), hop["selected"]) == (0, ["disk failure: 4"], 1)
    assert Counter(_values(hop, "logs")) == {"ERROR 3 disk of node-1": 3, "ERROR 4 disk of node-2": 1}
    run = hop["run"]
    line = "value like '%node-2'"
    code, found = command("trace", "forward", "logs", "--where", line, "--run", run, "--all-runs")
    (hop,) = found["hops"]
    assert (code, [row["value"] for row in hop["outputs"][0]["rows"]]) == (0, ["disk failure: 4"])


def test_records_of_results_that_the_driver_had(store, monkeypatch):
    monkeypatch.chdir(store)
    graph = govtool.open(store / "store")
    run = next(run for run in graph.runs().runs if not run.outputs and _reads(run, store / "logs"))
    taken = graph.records(run=run.id)
    assert taken.count() == 3
    back = taken.go_back_all()
    assert sorted(back.arrow().column("value").to_pylist()) == sorted(json.loads((store / "taken.json").read_text()))
    assert len(back.ids()) == 3


def test_what_cannot_be_traced_is_stated(command, store):
    code, text = command("trace", "back", "plain", "--where", "true", form="")
    assert (code, "usage.untraceable" in text, "lineage_context(sc)" in text) == (2, True, True)
    code, text = command("trace", "back", "closure", "--where", "true", form="")
    assert (code, "closes over bound" in text, "--records=eager" in text) == (3, True, True)
    code, text = command("trace", "back", "mixed", "--where", "true", form="")
    assert (code, "are not kept" in text, "--records=eager" in text) == (3, True, True)
    code, text = command("trace", "back", "nothing", "--where", "true", form="")
    assert (code, "usage.unknown-dataset" in text) == (2, True)


def test_the_graph_has_inputs_outputs_and_no_code(store):
    graph = govtool.open(store / "store")
    made = [(out.dataset.rpartition("/"), run) for run in graph.runs().runs for out in run.outputs]
    runs = {name: run for (folder, _, name), run in made if folder.endswith(str(store))}
    assert set(runs) == {"counts", "errors", "frequent", "closure", "mixed", "plain"}
    for name in ("counts", "plain"):
        assert [each.dataset.rpartition("/")[2] for each in runs[name].inputs] in (["logs"], ["a.txt"])
        assert runs[name].outputs[0].written is not None
    assert runs["counts"].inputs[0].listing.files == 3
    opened = Store.open(str(store / "store"))
    tables = read_tables(opened, opened.head("main"))
    programs = [run for run in tables.runs.values() if run.program]
    bodies = "".join(tables.plans[run.plan].body for run in programs)
    values = "".join(tables.private[run.run].values for run in programs)
    assert "titian_job.py" in bodies
    assert ("network failure" in values, "network failure" in bodies) == (True, False)
    assert not any(word in bodies + values for word in ("startswith", "lambda", "split"))


def test_a_function_that_changed(command, store):
    source = store / "titian_job.py"
    source.write_text(JOB.replace("return pair[1][1], 1", "return pair[1][1], 2"))
    try:
        code, text = command("trace", "back", "counts", "--where", "value like 'disk%'", form="")
        assert (code, "is not in titian_job.py as it was" in text, "eager" in text) == (3, True, True)
    finally:
        source.write_text(JOB)


def test_an_input_that_changed_is_refused_and_the_others_are_shown(command, store):
    """Last: the file is not what it was any more."""
    (store / "logs" / "a.txt").write_text("ERROR 3 disk of node-9\n")
    code, found = command("trace", "back", "counts", "--where", "value like 'disk%'")
    assert (code, found["refused"][0]["file"].rpartition("/")[2]) == (3, "a.txt")
    assert _values(found, "logs") == ["ERROR 3 disk of node-1"]
    assert {each["exactness"] for each in found["inputs"]} == {"incomplete"}
    (store / "logs" / "a.txt").unlink()
    code, found = command("trace", "back", "counts", "--where", "value like 'disk%'")
    assert (code, _values(found, "logs")) == (3, ["ERROR 3 disk of node-1"])

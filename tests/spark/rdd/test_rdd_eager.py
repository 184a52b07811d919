"""Positions that a run of an RDD program kept: traced without its functions, and without Spark."""

from __future__ import annotations

import json
from operator import add

import pytest
from rdd_programs import small
from recorders import own_recorder

import govtool
import govtool.spark
from govtool.app.rdd import open as rdd_open
from govtool.cli.main import main

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

LINES = ["a b a", "b", "", "c c c", "a b a", "skew " * 30, "é ü"]


@pytest.fixture(scope="module")
def store(spark, tmp_path_factory):
    """The folder of programs whose functions nobody finds again: closures of a test."""
    folder = tmp_path_factory.mktemp("eager")
    (folder / "in").mkdir()
    (folder / "in" / "one.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    (folder / "in" / "two.txt").write_text("b a\r\nlast", encoding="utf-8")
    (folder / "in" / "none.txt").write_text("")
    assert main(["init", "--store", str(folder / "store")]) == 0
    with own_recorder():
        capture = govtool.spark.attach(
            spark, source="run:eager", store=str(folder / "store"), spool=str(folder / "spool"), records="eager"
        )
        lc = govtool.spark.lineage_context(spark)
        lines = lc.textFile(f"{folder}/in", 4)
        words = lines.flatMap(lambda line: [word for word in line.split() if len(word) < len(LINES)])
        counts = words.map(lambda word: (word, 1)).reduceByKey(add)
        counts.saveAsTextFile(f"{folder}/counts")
        names = lc.track(spark.createDataFrame([("a", 1), ("b", 2), ("b", 2)], "k string, v int").rdd)
        counts.join(names.map(tuple)).map(str).saveAsTextFile(f"{folder}/joined")
        lines.filter(lambda line: small(line) >= 0).saveAsTextFile(f"{folder}/same")
        lines.mapPartitions(lambda rows: iter([sum(1 for _ in rows)])).saveAsTextFile(f"{folder}/sizes")
        counts.zipWithIndex().saveAsTextFile(f"{folder}/ranked")
        lc.textFile(f"{folder}/counts").map(len).saveAsTextFile(f"{folder}/lengths")
        lines.zip(lines).map(str).saveAsTextFile(f"{folder}/zipped")
        assert capture.commit(identify=0) is not None
        capture._recorder.replay.eager = False  # the writes of other tests in this process are not its
    return folder


@pytest.fixture
def command(store, monkeypatch, capsys):
    """Runs a trace where no program can be built again; returns exit code and answer."""

    def refuse(*_):
        raise AssertionError("the program was built again")

    monkeypatch.chdir(store)
    monkeypatch.setattr(rdd_open, "open_program", refuse)

    def run(*words):
        capsys.readouterr()
        words = [str(store / word) if (store / word).exists() else word for word in words]
        code = main([*words, "--store", str(store / "store"), "--format", "json"])
        return code, json.loads(capsys.readouterr().out or "{}")

    return run


def _places(answer, dataset="in"):
    return [
        (row["_file"].rpartition("/")[2], row["_row"], row["value"])
        for each in answer["inputs"]
        if each["dataset"].endswith(dataset)
        for row in each["rows"]
    ]


def _expected(word):
    lines = [("one.txt", n, line) for n, line in enumerate(LINES)] + [("two.txt", 0, "b a"), ("two.txt", 1, "last")]
    return [each for each in lines if word in each[2].split()]


@pytest.mark.parametrize("word", ["a", "b", "c", "skew", "é", "last"])
def test_every_word_comes_from_its_lines(command, word):
    code, found = command("trace", "back", "counts", "--where", f"value like '(''{word}''%'")
    assert (code, found["engine"]) == (0, "kept positions")
    assert _places(found) == _expected(word)
    assert {each["exactness"] for each in found["inputs"]} == {"exact"}


def test_rows_of_a_data_frame_and_lines_that_equal_each_other(command):
    code, found = command("trace", "back", "joined", "--where", "value like '(''b''%'")
    assert code == 0
    assert _places(found) == _expected("b")
    (rows,) = [each for each in found["inputs"] if each["dataset"].startswith("rows-")]
    assert (rows["count"], {row["value"] for row in rows["rows"]}) == (2, {"Row(k='b', v=2)"})
    code, found = command("trace", "back", "same", "--where", "value = 'a b a'")
    assert _places(found) == [("one.txt", 0, "a b a"), ("one.txt", 4, "a b a")]


@pytest.mark.parametrize(("output", "grade"), [("sizes", "superset"), ("zipped", "coarse")])
def test_what_is_not_exact_holds_all_that_is_and_says_so(command, output, grade):
    code, found = command("trace", "back", output, "--where", "length(value) > 0")
    assert (code, {each["exactness"] for each in found["inputs"]}) == (0, {grade})
    assert len(_places(found)) == len(LINES) + 2


def test_forward_and_numbers_behind_a_shuffle(command):
    code, found = command("trace", "forward", "in", "--where", "value = 'c c c'", "--run", _run(command, "counts"))
    assert (code, [row["value"] for row in found["outputs"][0]["rows"]]) == (0, ["('c', 3)"])
    code, found = command("trace", "forward", "in", "--where", "value = ''", "--run", _run(command, "counts"))
    assert (code, found["selected"], found["outputs"][0]["count"]) == (0, 1, 0)
    code, found = command("trace", "back", "ranked", "--where", "value like '((''c''%'")
    assert _places(found) == _expected("c")


def test_through_two_programs_of_one_job(command):
    code, found = command("trace", "back", "lengths", "--where", "value = '11'", "--all-runs")
    assert (code, [row[2] for row in _places(found, "counts")]) == (0, ["('last', 1)"])
    (hop,) = found["hops"]
    assert (_places(hop), hop["inputs"][0]["exactness"]) == (_expected("last"), "exact")
    code, found = command("trace", "forward", "in", "--where", "value = 'last'", "--run", hop["run"], "--all-runs")
    assert [row["value"] for row in found["hops"][0]["outputs"][0]["rows"]] == ["11"]


def _run(command, output):
    return command("trace", "back", output, "--where", "value like '%'")[1]["run"]


def test_a_file_that_changed_is_refused(command, store):
    """Last: the file is not what it was any more."""
    (store / "in" / "two.txt").write_text("b")
    code, found = command("trace", "back", "counts", "--where", "value like '(''b''%'")
    assert (code, _places(found)) == (3, [each for each in _expected("b") if each[0] == "one.txt"])
    assert {each["exactness"] for each in found["inputs"]} == {"incomplete"}

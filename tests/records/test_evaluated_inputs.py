"""Traces through files that a later run wrote again: the plan of the run that wrote them takes their place."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from recorded_programs import Program

import govtool
from govtool.app.records.evaluated_inputs import _Writers
from govtool.cli.main import main
from govtool.model.records import RecordRun
from govtool.records.execute.places import place_of
from govtool.records.plan import codec
from govtool.records.plan.nodes import File, Plan, Relation, Session, Union
from govtool.records.plan.types import Struct

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schemas" / "trace-1.json").read_text(encoding="utf-8"))
TOTALS = "SELECT user, sum(spent) AS total FROM views GROUP BY user"


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    return Program(tmp_path)


def traced(capsys, store, *words, code=0):
    capsys.readouterr()
    assert main(["trace", "back", *words, "--store", store, "-f", "json"]) == code
    return json.loads(capsys.readouterr().out)


def rows(answer):
    """The input rows by dataset."""
    parts = [answer, *answer["hops"]]
    groups = [group for part in parts for group in part["inputs"]]
    return {
        (group["dataset"].rpartition("/")[2], group["exactness"]): sorted(row["_row"] for row in group["rows"])
        for group in groups
    }


@pytest.mark.parametrize("words", [(), ("--all-runs",)])
def test_an_overwritten_input_is_evaluated_again(program, capsys, words):
    program.write(TOTALS, "stage", "views")
    program.write("SELECT a.user, b.total FROM stage a JOIN stage b ON a.user = b.user", "report", "stage")
    program.write("SELECT user, 1 AS total FROM views", "stage", "views")
    store = program.done()
    answer = traced(capsys, store, "report", "--where", "user = 'ann' AND total = 30", *words)
    assert rows(answer) == {("views", "exact"): [0, 1]}
    assert answer["refused"] == []
    assert [each["run"] for each in answer["evaluated"]] == ["app-1/0"]
    jsonschema.validate(answer, SCHEMA)
    assert main(["trace", "back", "report", "--where", "user = 'ann'", "--store", store, "--verify"]) == 0
    out = capsys.readouterr().out
    assert "stage is gone, and was evaluated again by the plan of app-1/0" in out
    assert "verified" in out


def test_records_in_python_go_through_them_too(program):
    program.write(TOTALS, "stage", "views")
    program.write("SELECT user, total FROM stage WHERE total > 20", "report", "stage")
    program.write("SELECT user, 1 AS total FROM views", "stage", "views")
    rows = govtool.open(program.done()).records("report")
    behind = rows.where("user = 'ann'").go_back_all()
    assert behind.arrow("views").column("spent").to_pylist() == [10, 20]
    assert rows.replay(exclude=behind).gone == (("ann", 30),)


def test_several_runs_that_are_gone_and_files_that_are_not(program, capsys):
    program.write("SELECT user, spent FROM views WHERE page = 1", "first", "views")
    program.write("SELECT user, spent + 1 AS spent FROM first", "stage", "first")
    program.write("SELECT user, spent FROM views WHERE page = 2", "stage", "views", mode="append")
    program.write("SELECT user, max(spent) AS most FROM stage GROUP BY user", "report", "stage")
    folder = program.warehouse.folder
    (folder / "first" / "app-1-0.parquet").unlink()
    (folder / "stage" / "app-1-1.parquet").unlink()
    answer = traced(capsys, program.done(), "report", "--where", "user = 'ann'")
    assert {key: len(found) for key, found in rows(answer).items()} == {("views", "exact"): 1, ("stage", "exact"): 1}
    assert [each["run"] for each in answer["evaluated"]] == ["app-1/0", "app-1/1"]


@pytest.mark.parametrize(
    ("stage", "why"),
    [
        ("SELECT user, spent FROM views LIMIT 2", "limit without an order"),
        ("SELECT name AS user, 1 AS spent FROM users", "what app-1/0 read is gone, too"),
    ],
)
def test_what_cannot_be_evaluated_again_is_refused_with_the_reason(program, capsys, stage, why):
    program.write(stage, "stage", "users" if "users" in stage else "views")
    program.write("SELECT user, count(*) AS n FROM stage GROUP BY user", "report", "stage")
    program.write("SELECT user, 1 AS spent FROM views", "stage", "views")
    store = program.done()
    if "users" in stage:
        (program.warehouse.folder / "users" / "part-0.parquet").unlink()
    answer = traced(capsys, store, "report", "--where", "n > 0", code=3)
    assert "evaluated" not in answer
    (refused,) = answer["refused"]
    assert why in refused["reason"]


def test_a_part_of_what_a_run_wrote_is_not_evaluated_again(program, capsys):
    program.write("SELECT user FROM views", "stage", "views")
    run = program.warehouse.runs[-1]
    program.warehouse.runs[-1] = replace(run, outputs=(replace(run.outputs[0], files=2),))  # the other one was not read
    program.write("SELECT user, count(*) AS n FROM stage GROUP BY user", "report", "stage")
    (program.warehouse.folder / "stage" / "app-1-0.parquet").unlink()
    (refused,) = traced(capsys, program.done(), "report", "--where", "user = 'bob'", code=3)["refused"]
    assert refused["reason"] == "is gone: it is a part of what app-1/0 wrote"


def test_a_column_that_is_read_as_another_type_is_not_evaluated_again(program, capsys):
    program.write("SELECT user, spent FROM views", "stage", "views")
    program.write("SELECT user, count(*) AS n FROM stage GROUP BY user", "report", "stage")
    made = program.writes[0]
    other = program.warehouse.plan("SELECT spent AS user, spent FROM views", "views")
    program.writes[0] = replace(made, plan=replace(made.plan, root=replace(made.plan.root, child=other.root)))
    (program.warehouse.folder / "stage" / "app-1-0.parquet").unlink()
    (refused,) = traced(capsys, program.done(), "report", "--where", "user = 'bob'", code=3)["refused"]
    assert refused["reason"] == "is gone: its column user is read as another type"


def test_a_chain_of_thousands_of_runs_is_followed():
    runs, writers = {}, {}
    for number in range(2000):
        read, written = (File(0, f"file:///t/{each}", 1, 1) for each in (number, number + 1))
        leaf = Relation(0, f"t{number}", "parquet", (read,), (), Struct(()))
        listings = codec.dumps(Plan(Union((leaf,), ()), Session("", True, "UTC")))
        runs[f"r{number}"] = RecordRun(f"r{number}", "", f"t{number + 1}", ((0, f"t{number}"),), listings)
        writers[place_of(written)] = f"r{number}"
    found = _Writers(None, None, runs, of_file=writers)
    assert found.reads("r1999", ["t0"])
    assert not found.reads("r1999", ["another"])

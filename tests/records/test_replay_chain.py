"""Replays through the runs that wrote a run's inputs, against the runs again over the changed inputs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded_programs import Program, steps

from govtool.cli.main import main

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schemas" / "replay-1.json").read_text(encoding="utf-8"))


@pytest.fixture
def replayed(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))

    def command(store, *words, code=0):
        monkeypatch.chdir(tmp_path)
        capsys.readouterr()
        assert main(["replay", *words, "--store", store, "-f", "json", "--limit", "1000"]) == code
        out, err = capsys.readouterr()
        if code not in (0, 3) or not out:
            return err
        answer = json.loads(out)
        jsonschema.validate(answer, SCHEMA)
        return answer

    return command


def difference(answer):
    """What a replay takes from the rows, and adds to them."""

    def rows(found):
        return Counter(tuple(row.values()) for row in found)

    changed = answer["changed"]["rows"]
    gone = rows(answer["gone"]["rows"]) + rows(each["before"] for each in changed)
    return gone, rows(answer["new"]["rows"]) + rows(each["after"] for each in changed)


def without_ann(program):
    """The views of all others, as a program of its own has them."""
    folder = program.warehouse.folder / "views"
    for file in folder.glob("*.parquet"):
        table = pq.read_table(file)
        kept = [user != "ann" for user in table["user"].to_pylist()]
        pq.write_table(table.filter(pa.array(kept)), file)


@pytest.mark.parametrize("seed", range(10))
def test_a_chain_of_runs_is_what_the_runs_again_give(tmp_path, replayed, seed):
    program = Program(tmp_path / "recorded")
    found = [(sql, f"{target}{n}", inputs, mode) for n, (sql, target, inputs, mode) in enumerate(steps(Random(seed)))]
    renamed, actions = {"views": "views"}, []
    for sql, target, inputs, _ in found:  # each write is a dataset of its own
        for name in inputs:
            sql = sql.replace(f"FROM {name}", f"FROM {renamed[name]}").replace(f"JOIN {name}", f"JOIN {renamed[name]}")
        actions.append((sql, target, tuple(renamed[name] for name in inputs)))
        renamed[target[0]] = target
    for sql, target, inputs in actions:
        program.write(sql, target, *inputs)
    store = program.done()
    again = Program(tmp_path / "again")
    without_ann(again)
    for sql, target, inputs in actions:
        again.write(sql, target, *inputs)
    for number, (sql, target, _) in enumerate(actions):
        answer = replayed(store, f"app-1/{number}", "--all-runs", "--without", "views", "--where", "user = 'ann'")
        gone, new = difference(answer)
        assert program.rows(target) - gone + new == again.rows(target), sql
        assert gone <= program.rows(target)


def test_another_content_of_what_the_first_run_read(tmp_path, replayed):
    program = Program(tmp_path)
    program.write("SELECT user, spent FROM views WHERE spent > 6", "stage", "views")
    program.write("SELECT user, sum(spent) AS total FROM stage GROUP BY user", "report", "stage")
    pq.write_table(
        pa.table({"user": ["ann"], "page": pa.array([1], pa.int64()), "spent": pa.array([99], pa.int64())}),
        tmp_path / "other.parquet",
    )
    answer = replayed(program.done(), "app-1/1", "--all-runs", "--with", f"views={tmp_path / 'other.parquet'}")
    assert [(each["before"], each["after"]) for each in answer["changed"]["rows"]] == [
        ({"user": "ann", "total": 30}, {"user": "ann", "total": 99})
    ]
    assert [row["user"] for row in answer["gone"]["rows"]] == ["bob"]
    assert [each["run"] for each in answer["evaluated"]] == ["app-1/0"]


def test_a_dataset_that_only_earlier_runs_read_leads_to_the_option(tmp_path, replayed):
    program = Program(tmp_path)
    program.write("SELECT user, spent FROM views", "stage", "views")
    program.write("SELECT user FROM stage", "report", "stage")
    error = replayed(program.done(), "app-1/1", "--without", "views", "--where", "user = 'ann'", code=2)
    assert "app-1/1 did not read 'views'; app-1/0 did" in error
    assert "--all-runs" in error


def test_a_run_in_between_that_chose_rows_is_refused(tmp_path, replayed):
    program = Program(tmp_path)
    program.write("SELECT user, spent FROM views LIMIT 2", "stage", "views")
    program.write("SELECT user FROM stage", "report", "stage")
    words = ("app-1/1", "--all-runs", "--without", "views", "--where", "user = 'ann'")
    error = replayed(program.done(), *words, code=3)
    assert "stage cannot be evaluated again: a limit without an order" in error

"""``govtool diff RUN RUN --rows``: the rows of outputs that differ, and the input rows behind them."""

from __future__ import annotations

import csv
import io
import json
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pyarrow as pa
import pytest
from recorded import Warehouse
from rowdiffs import run as checked_against_brute_force

import govtool
from govtool.app.datasets.row_digest import digest_rows
from govtool.app.row_diff.inputs import input_changes
from govtool.app.row_diff.tolerance import beyond
from govtool.cli.main import main
from govtool.records.plan.nodes import File, Relation, Union
from govtool.records.plan.types import Struct
from govtool.store import Store

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schemas" / "run-diff-1.json").read_text(encoding="utf-8"))
KINDS = {"id": pa.int64(), "user": pa.string(), "spent": pa.int64()}
MONDAY = [(1, "ann", 10), (2, "ann", 20), (3, "bob", 30), (4, "eve", 5)]
TUESDAY = [(1, "ann", 10), (2, "ann", 25), (5, "zoe", 50), (4, "eve", 5)]
SPENT = "SELECT user, sum(spent) AS total, count(*) AS n FROM {day} GROUP BY user"


@pytest.fixture
def house(tmp_path, monkeypatch):
    """Two days of orders, each with a report in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    made = Warehouse(tmp_path, Store.init(str(tmp_path / ".govtool")))
    made.table("monday", KINDS, MONDAY)
    made.table("tuesday", KINDS, TUESDAY)
    made.commit(made.run(SPENT.format(day="monday"), "first", "monday", run="a-1/0"))
    made.commit(made.run(SPENT.format(day="tuesday"), "second", "tuesday", run="a-2/0"))
    return made


def differences(*runs, code=0, capsys=None, words=()):
    assert main(["diff", *runs, "--rows", "--format", "json", *words]) == code
    answer = json.loads(capsys.readouterr().out)
    jsonschema.validate(answer, SCHEMA)
    return answer["row_differences"]


def test_rows_by_the_key_of_the_group_with_the_input_rows_behind_them(house, capsys):
    (output,) = differences("a-1/0", "a-2/0", capsys=capsys)
    assert (output["verdict"], output["gone"], output["changed"], output["new"]) == ("different", 1, 1, 1)
    assert output["key"] == {"columns": ["user"], "is": "found"}
    changed, gone, new = output["rows"]
    assert changed["before"] == {"user": "ann", "total": 30, "n": 2}
    assert changed["after"]["total"] == 35
    (behind,) = changed["inputs"]
    before, after = {"id": 2, "user": "ann", "spent": 20}, {"id": 2, "user": "ann", "spent": 25}
    assert (behind["removed"], behind["added"]) == ([], [])
    assert behind["changed"] == [{"before": before, "after": after}]
    assert behind["same"] == 1
    assert gone["inputs"][0]["removed"] == [{"id": 3, "user": "bob", "spent": 30}]
    assert new["inputs"][0]["added"] == [{"id": 5, "user": "zoe", "spent": 50}]
    assert output["cause"].startswith("input: ")


def test_the_screen_shows_each_row_with_what_is_behind_it(house, capsys):
    assert main(["diff", "a-1/0", "a-2/0", "--rows"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  ~ user ann: total 30 → 35" in lines
    assert "      ~ tuesday: id 2, user ann, spent 20 → 25" in lines
    assert "1 gone, 1 changed, 1 new · by user (found)" in lines
    assert any(line.startswith("first cause: ") for line in lines)


def test_nan_is_no_change_of_a_cell(house, capsys):
    kinds = KINDS | {"spent": pa.float64()}
    rows = [(1, "ann", float("nan")), (2, "ann", 1.5), (3, "bob", float("nan"))]
    query = "SELECT user, count(*) AS n, max(spent) AS most, collect_list(spent) AS spent FROM {} GROUP BY user"
    for number, more in enumerate(([], [(4, "ann", float("nan"))]), 3):
        house.table(f"day-{number}", kinds, rows + more)
        write = house.run(query.format(f"`day-{number}`"), f"floats-{number}", f"day-{number}", run=f"a-{number}/0")
        house.commit(write)
    capsys.readouterr()
    assert main(["diff", "a-3/0", "a-4/0", "--rows"]) == 0
    printed = capsys.readouterr().out
    assert '  ~ user ann: n 2 → 3, spent ["nan", 1.5] → ["nan", 1.5, "nan"]\n' in printed
    assert "bob" not in printed


def test_rows_as_csv_in_a_file(house, tmp_path, capsys):
    file = tmp_path / "rows.csv"
    assert main(["diff", "a-1/0", "a-2/0", "--rows", "-o", str(file)]) == 0
    rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))))
    assert [(row["kind"], row["columns"]) for row in rows] == [("changed", "total"), ("gone", ""), ("new", "")]
    assert json.loads(rows[1]["before"]) == {"user": "bob", "total": 30, "n": 1}
    assert json.loads(rows[1]["inputs"])[0]["removed"][0]["id"] == 3


@pytest.mark.parametrize("form", ["jsonl", "plain", "markdown"])
def test_other_forms(house, capsys, form):
    assert main(["diff", "a-1/0", "a-2/0", "--rows", "--format", form]) == 0
    assert "zoe" in capsys.readouterr().out


def test_counts_are_whole_where_rows_are_cut(house, capsys):
    (output,) = differences("a-1/0", "a-2/0", capsys=capsys, words=["--limit", "0"])
    assert (output["gone"], output["changed"], output["new"], output["rows"]) == (1, 1, 1, [])


def test_a_declared_key_makes_pairs(house, tmp_path, capsys):
    for number, day in enumerate(("monday", "tuesday")):
        house.commit(house.run(f"SELECT id, user, spent FROM {day}", f"copy{number}", day, run=f"b-{number}/0"))
    (tmp_path / "govtool.toml").write_text('[keys]\ncopy1 = ["user", "id"]\n', encoding="utf-8")
    (output,) = differences("b-0/0", "b-1/0", capsys=capsys)
    assert output["key"] == {"columns": ["user", "id"], "is": "declared"}
    assert (output["gone"], output["changed"], output["new"]) == (1, 1, 1)


def test_a_declared_key_that_is_no_column_is_a_mistake(house, tmp_path, capsys):
    (tmp_path / "govtool.toml").write_text('[keys]\nsecond = "person"\n', encoding="utf-8")
    assert main(["diff", "a-1/0", "a-2/0", "--rows"]) == 2
    assert "usage.config-keys" in capsys.readouterr().err


def test_rows_that_nothing_tells_apart_are_gone_and_new(house, capsys):
    for number, day in enumerate(("monday", "tuesday")):
        house.commit(house.run(f"SELECT spent FROM {day}", f"bare{number}", day, run=f"b-{number}/0"))
    (output,) = differences("b-0/0", "b-1/0", capsys=capsys)
    assert (output["key"]["columns"], output["gone"], output["new"]) == ([], 2, 2)


def test_equal_outputs(house, capsys):
    house.commit(house.run(SPENT.format(day="monday"), "again", "monday", run="b-1/0"))
    (output,) = differences("a-1/0", "b-1/0", capsys=capsys)
    assert (output["verdict"], output["rows"], output["cause"]) == ("equal", [], "")
    assert govtool.open().diff("a-1/0", "a-2/0", rows=True).differs


def test_columns_that_only_one_run_has_are_not_compared_and_named(house, capsys):
    house.commit(house.run("SELECT user, sum(spent) AS total FROM monday GROUP BY user", "less", "monday", run="b-1/0"))
    (output,) = differences("a-1/0", "b-1/0", capsys=capsys)
    assert (output["verdict"], output["not_compared"], output["gone"]) == ("different", ["n"], 0)
    (output,) = differences("b-1/0", "a-2/0", capsys=capsys)
    assert output["changed"] == 1
    assert output["rows"][0]["inputs"][0]["changed"]


def test_a_change_of_code_leaves_the_inputs_the_same(house, capsys):
    house.commit(house.run(SPENT.format(day="monday").replace("sum", "max"), "other", "monday", run="b-1/0"))
    (output,) = differences("a-1/0", "b-1/0", capsys=capsys)
    (row,) = output["rows"]
    assert (row["before"]["total"], row["after"]["total"]) == (30, 20)
    assert row["inputs"][0] == {
        **row["inputs"][0], "removed": [], "added": [], "changed": [], "same": 2, "why": ""
    }  # fmt: skip


# ---- what has changed since ----------------------------------------------------------------------------


def overwritten(house, digest: bool):
    """The report of both days in one folder, the first overwritten by the second."""
    writes = []
    for number, day in enumerate(("monday", "tuesday")):
        write = house.run(SPENT.format(day=day), "report", day, run=f"c-{number}/0")
        if digest:
            last = house.runs[-1]
            text = digest_rows([house.folder / "report" / "out.parquet"], house.folder / "report")
            house.runs[-1] = replace(last, outputs=(replace(last.outputs[0], row_digest=text),))
        writes.append(write)
        house.commit(write)
    return writes


def test_an_output_that_was_overwritten_is_evaluated_again_and_checked_by_its_digest(house, capsys):
    overwritten(house, digest=True)
    (output,) = differences("c-0/0", "c-1/0", capsys=capsys)
    assert output["how"] == ["evaluated again, equal to the recorded digest", "written"]
    assert (output["why"], output["changed"]) == ("", 1)


def test_without_a_digest_the_answer_is_not_certain_and_names_the_setting(house, capsys):
    overwritten(house, digest=False)
    (output,) = differences("c-0/0", "c-1/0", capsys=capsys, code=3)
    assert output["changed"] == 1
    assert "[spark] row_digests" in output["why"]
    assert "NOT CERTAIN" in shown(capsys, "c-0/0", "c-1/0")


def test_an_evaluation_that_is_not_what_was_digested_is_unknown(house, capsys):
    overwritten(house, digest=True)
    last = house.runs[-2]
    house.runs[-2] = replace(last, outputs=(replace(last.outputs[0], row_digest="rows-1:3:00"),))
    house.commit(house.run(SPENT.format(day="monday"), "more", "monday", run="d-1/0"))
    (output,) = differences("c-0/0", "c-1/0", capsys=capsys, code=3)
    assert (output["verdict"], output["rows"]) == ("unknown", [])
    assert "recorded digest" in output["why"]


def test_an_output_and_its_input_that_are_both_gone_are_unknown(house, capsys):
    overwritten(house, digest=True)
    house.table("monday", KINDS, TUESDAY)
    (output,) = differences("c-0/0", "c-1/0", capsys=capsys, code=3)
    assert output["verdict"] == "unknown"
    assert "so is what it read" in output["why"]


def test_an_input_that_is_gone_leaves_the_rows_and_what_is_behind_them_is_unknown(house, capsys):
    (house.folder / "monday" / "part-0.parquet").unlink()
    (output,) = differences("a-1/0", "a-2/0", capsys=capsys, code=3)
    assert (output["verdict"], output["changed"]) == ("different", 1)
    assert all(row["why"] or any(each["why"] for each in row["inputs"]) for row in output["rows"])


def test_a_run_without_records_is_unknown(house, capsys):
    house.run(SPENT.format(day="monday"), "first", "monday", run="d-1/0", part="more")
    house.commit()
    (output,) = differences("a-1/0", "d-1/0", capsys=capsys, code=3)
    assert "no rows of d-1/0 are recorded: govtool run --records" in output["why"]


def shown(capsys, *runs):
    main(["diff", *runs, "--rows"])
    return capsys.readouterr().out


# ---- bad input -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code"), [(("HEAD~1", "HEAD"), "usage.arguments"), (("a-1/0", "a-9/0"), "usage.unknown-ref")]
)
def test_questions_that_have_no_answer(house, capsys, words, code):
    assert main(["diff", *words, "--rows"]) == 2
    assert code in capsys.readouterr().err


def test_values_of_all_types_are_found_again(house, capsys):
    """Dates, times, decimals, floats, bytes, lists and NULLs of rows that are traced by value."""
    sql = (
        "SELECT id, DATE '2026-01-02' AS d, CAST(spent AS DECIMAL(9,2)) AS m, spent / 3.0D AS f, "
        "CAST(DATE '2026-01-02' AS TIMESTAMP) AS t, CAST(NULL AS STRING) AS nothing FROM {day}"
    )
    for number, day in enumerate(("monday", "tuesday")):
        house.commit(house.run(sql.format(day=day), f"typed{number}", day, run=f"b-{number}/0"))
    (output,) = differences("b-0/0", "b-1/0", capsys=capsys)
    assert (output["gone"], output["changed"], output["new"]) == (1, 1, 1)
    assert all(not row["why"] and len(row["inputs"]) == 1 for row in output["rows"])


def test_differences_are_those_of_brute_force(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    outcome = checked_against_brute_force(range(12))
    assert outcome.wrong == []
    assert outcome.behind > 10
    assert list(tmp_path.iterdir()) == []


def test_floats_within_a_tolerance_are_equal(house, tmp_path, capsys):
    kinds = {"user": pa.string(), "x": pa.float64()}
    house.table("one", kinds, [("ann", 1000.0), ("bob", 2.0), ("bob", 2.0), ("eve", 0.0), ("nan", float("nan"))])
    house.table(
        "two", kinds, [("ann", 1000.001), ("bob", 2.0000001), ("bob", 3.0), ("eve", 0.0), ("nan", float("nan"))]
    )
    house.commit(house.run("SELECT user, x FROM one", "from_one", "one", run="t-1/0"))
    house.commit(house.run("SELECT user, x FROM two", "from_two", "two", run="t-2/0"))
    (exact,) = differences("t-1/0", "t-2/0", capsys=capsys)
    assert exact["gone"] + exact["changed"] == 3
    assert "tolerance" not in exact
    (near,) = differences("t-1/0", "t-2/0", capsys=capsys, words=["--tolerance", "1e-5"])
    assert (near["within_tolerance"], near["gone"] + near["changed"], near["verdict"]) == (2, 1, "different")
    assert [(row["kind"], row["before"], row["after"]) for row in near["rows"]] == [
        ("gone", {"user": "bob", "x": 2.0}, None),
        ("new", None, {"user": "bob", "x": 3.0}),
    ]
    (wide,) = differences("t-1/0", "t-2/0", capsys=capsys, words=["--tolerance", "0.5"])
    assert (wide["verdict"], wide["within_tolerance"], wide["rows"]) == ("equal", 3, [])
    assert main(["diff", "t-1/0", "t-2/0", "--rows", "--tolerance", "1e-5", "--exit-code"]) == 1
    assert "2 rows differ by no more than the tolerance of 1e-05" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [["--rows", "--tolerance", "1"], ["--rows", "--tolerance", "nan"], ["--tolerance", "0.1"]]
)
def test_a_tolerance_is_a_share_of_rows_that_are_compared(house, capsys, words):
    assert main(["diff", "a-1/0", "a-2/0", *words]) == 2
    assert "tolerance" in capsys.readouterr().err


def test_partners_within_a_tolerance_are_those_of_brute_force():
    chance = random.Random(11)
    for _ in range(300):
        tolerance = chance.choice([0.0, 1e-6, 0.1, 0.5])
        old, new = (
            [
                (chance.choice("ab"), chance.uniform(-2, 2) * 10 ** chance.randint(-3, 3))
                for _ in range(chance.randint(0, 6))
            ]
            for _ in range(2)
        )
        new += [(name, x * (1 + chance.uniform(-1, 1) * tolerance)) for name, x in old]
        left, come = beyond(old, new, tolerance)
        assert len(old) - len(left) == len(new) - len(come)
        apart = [
            (a, b)
            for a in left
            for b in come
            if a[0] == b[0] and abs(a[1] - b[1]) <= tolerance * max(abs(a[1]), abs(b[1]))
        ]
        assert not apart


def test_an_input_that_is_read_in_several_versions_is_not_compared():
    """A table beside itself as it was: which rows are behind a row is known, not which of them the other run had."""
    versions = (Relation(n, "t", "delta", (File(0, f"file:///t/{n}", 1, 1),), (), Struct(())) for n in (1, 2))
    run = SimpleNamespace(plan=SimpleNamespace(root=Union(tuple(versions), ())))
    change = input_changes(run, run)["t"]
    assert (change.known, change.why) == (False, "a run read several versions of it: their rows are not compared")

"""Traces across runs: as far as the store knows, each hop by the files that both runs recorded."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import jsonschema
import pyarrow as pa
import pytest
from recorded import Warehouse

import govtool
from govtool.app.trace import questions
from govtool.cli.main import main
from govtool.errors import EngineError, UsageError
from govtool.model.file_listing import FileListing, ListedFile
from govtool.records.plan.nodes import Relation
from govtool.records.plan.tree import rewrite_nodes
from govtool.records.split_plans import in_part
from govtool.store import Store

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schemas" / "trace-1.json").read_text(encoding="utf-8"))
ORDERS = [(1, "ann", 10), (2, "bob", 20), (3, "ann", 30), (4, "zoe", 5)]
PEOPLE = [("ann", "fr"), ("bob", "de"), ("zoe", "fr")]


@pytest.fixture
def house(tmp_path, monkeypatch):
    """orders → clean → by_land (with people) → big, and clean → names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    warehouse = Warehouse(tmp_path, Store.init(str(tmp_path / ".govtool")))
    warehouse.table("orders", {"id": pa.int64(), "name": pa.string(), "spent": pa.int64()}, ORDERS[:2], ORDERS[2:])
    warehouse.table("people", {"person": pa.string(), "land": pa.string()}, PEOPLE)
    warehouse.commit(warehouse.run("SELECT id, name, spent FROM orders WHERE spent > 5", "clean", "orders", run="a/0"))
    by_land = "SELECT land, sum(spent) AS total FROM clean JOIN people ON name = person GROUP BY land"
    warehouse.commit(warehouse.run(by_land, "by_land", "clean", "people", run="b/0"))
    warehouse.commit(warehouse.run("SELECT land, total FROM by_land WHERE total > 15", "big", "by_land", run="c/0"))
    warehouse.commit(warehouse.run("SELECT DISTINCT name FROM clean", "names", "clean", run="d/0"))
    return warehouse


def answered(report):
    answer = json.loads(json.dumps(report.to_dict()))
    jsonschema.validate(answer, SCHEMA)
    return answer


def name_of(dataset):
    return dataset.rpartition("/")[2]


def hops(answer):
    return [
        (hop["depth"], hop["run"], {name_of(g["dataset"]): g["count"] for g in [*hop["inputs"], *hop["outputs"]]})
        for hop in answer["hops"]
    ]


def ends(answer):
    return {name_of(end["dataset"]): (end["rows"], end["broken"]) for end in answer["ends"]}


def test_back_through_every_run(house):
    answer = answered(govtool.open().trace_back("big", "land = 'fr'", all_runs=True))
    assert hops(answer) == [(1, "b/0", {"clean": 2, "people": 1}), (2, "a/0", {"orders": 2})]
    assert ends(answer) == {"people": (1, False), "orders": (2, False)}
    rows = answer["hops"][1]["inputs"][0]["rows"]
    assert [(row["id"], Path(row["_file"]).name, row["_row"]) for row in rows] == [
        (1, "part-0.parquet", 0),
        (3, "part-1.parquet", 0),
    ]
    assert {step["exactness"] for hop in answer["hops"] for step in hop["steps"]} == {"exact"}


def test_tokens_are_those_of_every_run(house, capsys):
    assert main(["trace", "back", "big", "--where", "land = 'fr'", "--all-runs", "--ids", "--limit", "1000"]) == 0
    limited = capsys.readouterr().out
    assert main(["trace", "back", "big", "--where", "land = 'fr'", "--all-runs", "--ids"]) == 0
    tokens = capsys.readouterr().out.splitlines()
    assert limited.splitlines() == tokens
    names = [token.partition("@")[0].rpartition("/")[2].partition("[")[0] for token in tokens]
    assert sorted(set(names)) == ["by_land", "clean", "orders", "people"]


def test_forward_through_every_run(house):
    answer = answered(govtool.open().trace_forward("orders", "id = 1", all_runs=True))
    assert answer["run"] == "a/0"
    assert hops(answer) == [(1, "b/0", {"by_land": 1}), (1, "d/0", {"names": 1}), (2, "c/0", {"big": 1})]
    assert ends(answer) == {"big": (1, False), "names": (1, False)}


def test_an_input_that_several_runs_read_is_followed_through_all(house):
    report = govtool.open().trace_forward("clean", "name = 'bob'", all_runs=True)
    answer = answered(report)
    assert {answer["run"], *(hop["run"] for hop in answer["hops"])} == {"b/0", "d/0", "c/0"}


@pytest.fixture
def diamond(house):
    """Two runs more: one reads clean and by_land's reader, so that several paths lead to clean and to it."""
    both = (
        "SELECT c.id, b.total FROM clean AS c JOIN people ON c.name = person JOIN by_land AS b ON people.land = b.land"
    )
    house.commit(house.run(both, "both", "clean", "people", "by_land", run="e/0"))
    return house


def test_back_lists_a_row_once_and_counts_the_paths(diamond, capsys):
    answer = answered(govtool.open().trace_back("both", "id = 1", all_runs=True))
    (clean,) = [group for group in answer["inputs"] if name_of(group["dataset"]) == "clean"]
    assert [row["id"] for row in clean["rows"]] == [1]  # by_land is of both rows of fr's people
    by_land, first = answer["hops"]
    (again,) = [group for group in by_land["inputs"] if name_of(group["dataset"]) == "clean"]
    assert (again["count"], again["repeated"], [row["id"] for row in again["rows"]]) == (2, 1, [3])
    assert (by_land["run"], by_land["depth"], by_land["via"], by_land["paths"]) == ("b/0", 1, ["e/0"], 1)
    assert (first["run"], first["depth"], first["via"], first["paths"]) == ("a/0", 1, ["e/0", "b/0"], 2)
    assert [row["id"] for row in first["inputs"][0]["rows"]] == [1, 3]
    ids = [row["_id"] for each in (answer, *answer["hops"]) for group in each["inputs"] for row in group["rows"]]
    assert len(ids) == len(set(ids)) == 6
    assert main(["trace", "back", "both", "--where", "id = 1", "--all-runs"]) == 0
    shown = capsys.readouterr().out
    assert "2 rows, 1 of them above" in shown
    assert "6 rows in 6 places" in shown
    assert "paths" in shown


def test_forward_has_each_run_once_with_the_rows_of_all_paths(diamond):
    answer = answered(govtool.open().trace_forward("clean", "id = 3", all_runs=True))
    assert sorted([answer["run"], *(hop["run"] for hop in answer["hops"])]) == ["b/0", "c/0", "d/0", "e/0"]
    (both,) = [hop for hop in answer["hops"] if hop["run"] == "e/0"]
    assert (both["depth"], both["via"], both["paths"]) == (0, ["b/0"], 2)
    # 3 is read with its total, and the total of fr is also beside 1
    assert sorted(row["id"] for row in both["outputs"][0]["rows"]) == [1, 3]


def test_forward_to_an_output_that_was_overwritten_is_exact(house):
    house.commit(house.run("SELECT land FROM people", "by_land", "people", run="e/0"))
    answer = answered(govtool.open().trace_forward("orders", "id = 1", all_runs=True))
    (gone,) = [hop for hop in answer["hops"] if hop["run"] == "b/0"]
    (rows,) = gone["outputs"]
    assert (rows["exactness"], rows["why"], rows["rows"]) == ("exact", "", [{"land": "fr", "total": 40}])
    lost = {end["run"]: (end["reason"], end["broken"]) for end in answer["ends"]}
    assert lost["b/0"] == ("the files that it wrote are gone or were written again", True)  # c/0 read them
    single = answered(govtool.open().trace_forward("people", "person = 'bob'", run="b/0"))
    assert [(group["exactness"], group["rows"]) for group in single["outputs"]] == [
        ("exact", [{"land": "de", "total": 20}])
    ]


def test_a_trace_is_no_more_exact_than_the_rows_that_it_begins_with(house):
    house.commit(house.run("SELECT name FROM orders", "persons", "orders", run="e/0"))  # ann twice
    house.commit(house.run("SELECT name, count(*) AS n FROM persons GROUP BY name", "counts", "persons", run="f/0"))
    house.commit(house.run("SELECT n FROM counts", "numbers", "counts", run="g/0"))
    answer = answered(govtool.open().trace_forward("orders", "id = 1", all_runs=True))
    grades = {hop["run"]: (hop["outputs"][0]["exactness"], hop["outputs"][0]["why"]) for hop in answer["hops"]}
    assert grades["e/0"] == ("superset", "duplicates: other rows of the output have the same values")
    begins = (
        "it begins with rows of persons that are not exact: duplicates: other rows of the output have the same values"
    )
    assert grades["f/0"] == grades["g/0"] == ("superset", begins)
    assert grades["b/0"] == ("exact", "")


def test_an_overwritten_output_that_nobody_read_is_an_end_and_no_loss(house):
    house.commit(house.run("SELECT person AS name FROM people", "names", "people", run="e/0"))
    report = govtool.open().trace_forward("clean", "id = 1", all_runs=True)
    (end,) = [end for end in report.ends if end.run == "d/0"]
    assert (end.broken, end.reason) == (False, "no recorded run read it before its files were written again or removed")
    assert report.is_complete


@pytest.mark.parametrize("known", [True, False])
def test_what_a_later_write_of_the_same_job_replaced_was_read_all_the_same(house, known):
    """The files that are there at the end of a job are not all that its writes left."""
    first = house.run("SELECT person AS name FROM people", "staged", "people", run="e/0")
    (file,) = first.output_files.files
    listing = FileListing(1, file.size, file.modified, "", "", (ListedFile(file.uri, file.size, file.modified),))
    (output,) = house.runs[-1].outputs
    house.runs[-1] = replace(house.runs[-1], outputs=(replace(output, files=1, written=listing if known else None),))
    second = house.run("SELECT name FROM staged", "copied", "staged", run="e/1")
    third = house.run("SELECT name FROM copied WHERE name <> 'ann'", "staged", "copied", run="e/2")
    house.commit(replace(first, output_files=in_part(replace(first.output_files, files=()), 1)), second, third)
    report = govtool.open().trace_forward("people", "person = 'bob'", all_runs=True)
    (end,) = [end for end in report.ends if end.run == "e/0"]
    because = "the files that it wrote are gone"
    assert (end.broken, end.reason) == (
        True,
        f"{because} or were written again" if known else f"{because}, and are not known",
    )
    assert not report.is_complete


def test_an_overwritten_output_of_chosen_rows_is_a_superset(house):
    house.commit(house.run("SELECT id, name FROM clean LIMIT 2", "some", "clean", run="e/0"))
    house.commit(house.run("SELECT person AS name FROM people", "some", "people", run="f/0"))
    (rows,) = govtool.open().trace_forward("clean", "id = 1", run="e/0").outputs
    assert rows.exactness == "superset"


def test_a_file_that_was_written_again_breaks_the_trace_and_the_rest_goes_on(house):
    file = house.folder / "clean" / "out.parquet"
    facts = file.stat()
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns + 10**9))
    by_land = "SELECT land, sum(spent) AS total FROM clean JOIN people ON name = person GROUP BY land"
    house.commit(house.run(by_land, "later", "clean", "people", run="e/0"))
    report = govtool.open().trace_back("later", "land = 'fr'", all_runs=True)
    answer = answered(report)
    assert answer["hops"] == []
    assert ends(answer) == {"people": (1, False), "clean": (2, True)}
    (lost,) = [end for end in answer["ends"] if end["broken"]]
    assert "a/0 wrote it" in lost["reason"]
    assert not report.is_complete


def test_an_input_of_an_earlier_run_that_is_gone_is_refused_there(house, capsys):
    (house.folder / "orders" / "part-1.parquet").unlink()
    words = ["trace", "back", "big", "--where", "land = 'fr'", "--all-runs"]
    assert main([*words, "--format", "json"]) == 3
    answer = json.loads(capsys.readouterr().out)
    assert [Path(each["file"]).name for hop in answer["hops"] for each in hop["refused"]] == ["part-1.parquet"]
    assert main(words) == 3
    out = capsys.readouterr().out
    assert "through" in out
    assert "no recorded run wrote it" in out


def test_one_step_and_all_runs_exclude_each_other(house):
    with pytest.raises(UsageError):
        govtool.open().trace_back("big", "true", step=True, all_runs=True)


def test_a_file_is_the_same_however_spark_and_a_listing_spell_its_path(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    made = Warehouse(tmp_path, Store.init(str(tmp_path / ".govtool")))
    made.table("orders", {"id": pa.int64(), "name": pa.string()}, [(1, "ann"), (2, "bob")])
    made.commit(made.run("SELECT id, name FROM orders", "day=1, a+b é", "orders", run="a/0"))
    (tmp_path / "day=1, a+b é").rename(tmp_path / "read")
    read = made.run("SELECT name FROM read", "names", "read", run="b/0")
    (tmp_path / "read").rename(tmp_path / "day=1, a+b é")
    spelled = f"file:{tmp_path}/day=1,%20a+b%20%C3%A9/out.parquet"  # as Hadoop does; the listing has day%3D1%2C%20a%2Bb

    def of_hadoop(node):
        if not isinstance(node, Relation):
            return node
        return replace(node, files=tuple(replace(file, uri=spelled) for file in node.files))

    made.commit(replace(read, plan=replace(read.plan, root=rewrite_nodes(read.plan.root, of_hadoop))))
    back = answered(govtool.open().trace_back("names", "name = 'ann'", all_runs=True))
    assert hops(back) == [(1, "a/0", {"orders": 1})]
    assert ends(back) == {"orders": (1, False)}
    forward = answered(govtool.open().trace_forward("orders", "name = 'bob'", all_runs=True))
    assert [(hop["depth"], hop["run"]) for hop in forward["hops"]] == [(1, "b/0")]
    assert ends(forward) == {"names": (1, False)}


def test_rows_that_only_keep_others_out_reach_nothing(house):
    house.commit(
        house.run("SELECT id FROM orders WHERE id NOT IN (SELECT id FROM clean)", "new", "orders", "clean", run="e/0")
    )
    answer = answered(govtool.open().trace_forward("clean", "id = 1", run="e/0"))
    assert (answer["selected"], answer["outputs"]) == (1, [])


def test_a_run_through_which_a_trace_is_lost_costs_no_other(house, monkeypatch):
    lost = EngineError("its engine is gone", code="engine.gone")
    forward = questions._forward

    def failing(store, commit, run, request):
        if run.run == "d/0":
            raise lost
        return forward(store, commit, run, request)

    monkeypatch.setattr(questions, "_forward", failing)
    answer = answered(govtool.open().trace_forward("clean", "name = 'bob'", all_runs=True))
    assert (answer["run"], [end["reason"] for end in answer["ends"] if end["run"] == "d/0"]) == (
        "b/0",
        ["its engine is gone"],
    )
    monkeypatch.setattr(questions, "_forward", lambda *_: (_ for _ in ()).throw(lost))
    with pytest.raises(EngineError, match="its engine is gone"):
        govtool.open().trace_forward("clean", "name = 'bob'", all_runs=True)

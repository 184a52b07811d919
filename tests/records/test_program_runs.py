"""Recorded programs as workflows of a module per action: the chain of files, what is gone, and deletions re-run."""

from __future__ import annotations

import json
import random
import re
from collections import Counter

import pytest
from recorded import listing
from recorded_programs import Program, contradictions, steps

import govtool
from govtool.app.workflow_runs.programs.actions import module_names, short_names
from govtool.app.workflow_runs.programs.recorded import find_recorded_run
from govtool.cli.main import main
from govtool.errors import UnknownNameError
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.nodes import Relation
from govtool.records.plan.types import LONG, STRING, Field, Struct
from govtool.store import Store

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")


def shop(program):
    """Stage, a report of it, another stage in its place, and a log that is appended to and read."""
    spent = "SELECT user, sum(spent) AS spent, count(*) AS n FROM views GROUP BY user"
    program.write(spent, "stage", "views")
    lands = "SELECT land, sum(spent) AS total FROM stage JOIN users ON stage.user = users.name GROUP BY land"
    program.write(lands, "report", "stage", "users")
    program.write("SELECT user, page FROM views WHERE spent > 9", "stage", "views")
    program.write("SELECT user, count(*) AS pages FROM stage GROUP BY user", "pages", "stage")
    program.write("SELECT user, spent FROM views WHERE page = 1", "log", "views", mode="append")
    program.write("SELECT user, spent FROM views WHERE page = 2", "log", "views", mode="append")
    program.write("SELECT user, sum(spent) AS spent FROM log GROUP BY user", "totals", "log")
    return program


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return shop(Program(tmp_path_factory.mktemp("programs"))).done()


def opened(store):
    at = Store.open(store)
    return find_recorded_run(at, at.head("main"), "app-1")


def test_an_action_is_an_invocation_that_reads_what_others_wrote(store):
    run = opened(store).run
    assert [(each.module, each.number) for each in run.invocations] == [
        ("stage", 1), ("report", 1), ("stage.2", 1), ("pages", 1), ("log", 1), ("log", 2), ("totals", 1),
    ]  # fmt: skip
    edges = {(source, target) for source, target, _ in run.edges}
    assert edges == {("0", "1"), ("2", "3"), ("4", "6"), ("5", "6")}
    kept = {each.module for each in run.invocations if each.kept}
    assert kept == {"report", "stage.2", "pages", "log", "totals"}  # the first stage was replaced


def test_what_was_replaced_within_the_run_is_evaluated_again(store):
    found = opened(store)
    with found.opened() as (run, files):
        (path,) = [path for each in run.invocations if each.module == "stage" for _, path in each.outputs]
        assert not files.readable[path].is_own
        assert sorted(files.rows(run.relations[path]).values) == [("ann", 30, 2), ("bob", 37, 2), ("cid", 5, 1)]
    graph = found.graph()
    assert graph.coarse == {}
    assert {each.relation: sorted(each.rows) for each in graph.outputs if each.relation == "report"} == {
        "report": [("de", 35), ("fr", 37)]
    }


def test_the_same_commands_as_for_a_workflow(store, capsys):
    words = ["--store", store, "--format", "json"]
    assert main(["workflow", "list", *words]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["runs"]
    assert (listed["id"], listed["workflow"], listed["modules"]["log"]) == ("app-1", "job.py", 2)
    assert main(["workflow", "show", "job.py", *words]) == 0
    assert len(json.loads(capsys.readouterr().out)["run"]["invocations"]) == 7
    assert main(["zoom", "out", "--run", "app-1", "-m", "stage", *words]) == 0
    assert json.loads(capsys.readouterr().out)["removed_nodes"]
    assert main(["zoom", "out", "--run", "app-1", "-m", "stag", *words]) == 2
    assert "stage" in capsys.readouterr().err
    assert main(["workflow", "show", "jbo.py", *words]) == 2
    assert "job.py" in capsys.readouterr().err


def records(store):
    """Tokens of the files of views and users, by row."""
    with opened(store).opened() as (run, files):
        tokens = {}
        for path in files.layout.sources:
            tokens[path.rpartition("/")[2]] = list(files.rows(run.relations[path]).tokens)
    return tokens


def test_deletion_goes_through_the_files_of_the_run(store):
    tokens = records(store)
    graph = govtool.provenance_graph("run:app-1", store=store)
    answer = graph.delete(tokens["views"][0]).to_dict()["relations"]  # ann, 1, 10
    changed = {name: [row for row in each["tuples"] if row["status"] != "kept"] for name, each in answer.items()}
    assert changed["report"][0]["after"] == ["de", 25]
    assert [row["status"] for row in changed["log"]] == ["deleted"]
    assert changed["totals"][0]["after"] == ["ann", 20]


def test_rows_of_an_rdd_depend_on_all_that_the_run_had_read(tmp_path):
    program = Program(tmp_path)
    program.write("SELECT user, spent FROM views", "plain", "views")
    program.write_of_rdd([1, 2], "numbers")
    program.write("SELECT n FROM numbers_of WHERE n > 1", "large", "numbers_of")
    store = program.done()
    graph = opened(store).graph()
    assert list(graph.coarse) == ["numbers_of#1.numbers_of@1"]
    deleted = govtool.provenance_graph("run:app-1", store=store).delete(records(store)["views"][0]).to_dict()
    rows = deleted["relations"]
    assert {row["status"] for row in rows["numbers_of"]["tuples"]} == {"unknown"}
    assert {row["status"] for row in rows["large"]["tuples"]} == {"unknown"}


def statuses(answer, name):
    return {row.status for _, row in answer.relations[name].rows}


CODE = """
most = spark.sql("SELECT max(spent) AS most FROM views").first()[0]
print(most)
spark.sql("SELECT user, spent FROM views WHERE spent < 30").write.parquet(f"{base}/below")
spark.sql("SELECT user, count(*) AS n FROM below GROUP BY user").write.parquet(f"{base}/counts")
spark.sql("SELECT user, spent FROM views WHERE spent > 0").write.parquet(f"{base}/some")
"""


@pytest.mark.parametrize("mode", ["propagate", "auto", "replay"])
def test_what_was_made_with_a_collected_value_that_changes_is_not_known(tmp_path, mode, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = Program(tmp_path)
    program.collect("SELECT max(spent) AS most FROM views", "views")
    program.write("SELECT user, spent FROM views WHERE spent < 30", "below", "views")
    program.write("SELECT user, count(*) AS n FROM below GROUP BY user", "counts", "below")
    program.write("SELECT user, spent FROM views WHERE spent > 0", "some", "views")
    program.code(CODE)
    store = program.done()
    graph, tokens = govtool.open(store), records(store)["views"]
    answer = graph.workflow_delete("app-1", [tokens[2]], mode=mode)  # the 30 of bob
    assert statuses(answer, "below") == statuses(answer, "counts") == {"unknown"}
    assert answer.relations["counts"].gains_possible
    assert sum("a value that the program collected (query_0)" in why for why in answer.not_replayable.values()) == 2
    assert statuses(answer, "some") == {"kept", "deleted"}
    assert statuses(graph.workflow_delete("app-1", [tokens[2]], mode=mode, outputs=["counts"]), "counts") == {"unknown"}
    answer = graph.workflow_delete("app-1", [tokens[0]], mode=mode)
    assert "unknown" not in {status for name in answer.relations for status in statuses(answer, name)}


def test_what_a_program_may_decide_with_collected_rows_that_change_is_not_known(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = Program(tmp_path)
    program.write("SELECT user, spent FROM views WHERE page = 1", "before", "views")
    program.collect("SELECT count(*) AS n FROM views WHERE spent > 6", "views")
    program.write("SELECT name FROM users", "names", "users")
    program.write("SELECT name FROM names", "copied", "names")
    program.write("SELECT name, land FROM users", "free", "users")
    program.code(
        "n = views.where('spent > 6').count()\nprint(n)\nif n > 2:\n    users.write.parquet('out/names')\n"
        "else:\n    users.write.parquet('out/few')\ncopied.write.parquet('out/copied')\nusers.write.parquet('out/free')\n"
    )
    store = program.done()
    graph, tokens = govtool.open(store), records(store)["views"]
    answer = graph.workflow_delete("app-1", [tokens[0]])
    assert statuses(answer, "names") == statuses(answer, "copied") == {"unknown"}
    assert statuses(answer, "free") == {"kept"}
    assert statuses(answer, "before") == {"kept", "deleted"}
    reasons = {name.partition("/")[2].partition("@")[0]: why for name, why in answer.not_replayable.items()}
    assert set(reasons) == {"names", "copied"}
    assert "may have decided with what it collected (query_1)" in reasons["names"]
    assert "the program may also write few, as it decides about that with what it collected (query_1)" in answer.notes
    answer = graph.workflow_delete("app-1", [tokens[3]])  # the count stays
    assert all(statuses(answer, name) == {"kept"} for name in ("names", "copied", "free"))
    assert not answer.notes
    (tmp_path / "job.py").write_text("another")
    answer = graph.workflow_delete("app-1", [tokens[0]])
    assert statuses(answer, "free") == {"unknown"}
    assert statuses(answer, "before") == {"kept", "deleted"}
    assert any(
        "its code, as it ran, is not found below the working folder" in why for why in answer.not_replayable.values()
    )


@pytest.mark.parametrize("run", ["job.py", "app-1"])
def test_the_erasure_of_a_program_names_what_it_collected(tmp_path, capsys, run):
    program = Program(tmp_path)
    program.write("SELECT user, spent FROM views WHERE page = 1", "first", "views")
    program.collect("SELECT sum(spent) AS total FROM first", "first")
    program.write("SELECT user FROM views WHERE spent > 72 / 5", "large", "views")
    program.write("SELECT user, count(*) AS n FROM views GROUP BY user", "counts", "views")
    words = ["erase", "plan", "--subject", "views.user=ann", "--run", run, "--store", program.done(), "-f", "json"]
    assert main(words) in (0, 3)
    (query,) = json.loads(capsys.readouterr().out)["not_reached"]
    assert query["dataset"] == "app-1/1"
    assert re.search(r"constants in the plans of \S*/large stay as they were", query["why"])


def test_the_erasure_of_a_program_does_not_know_what_it_decided_with_rows_of_the_subject(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = Program(tmp_path)
    program.write("SELECT spent FROM views", "before", "views")
    program.collect("SELECT count(*) AS n FROM views", "views")
    program.write("SELECT name FROM users", "names", "users")
    program.write("SELECT name FROM names", "copied", "names")
    program.write("SELECT name, land FROM users", "free", "users")
    program.code("if views.count() > 2:\n    users.write.parquet('out/names')\nusers.write.parquet('out/free')\n")
    plan = govtool.open(program.done()).erase_plan("views.user=ann", no_subject="users", run="app-1").to_dict()
    found = {each["dataset"].rpartition("/")[2]: each["unknown"] for each in plan["datasets"]}
    (unknown,) = found["names"]
    assert unknown["why"] == "rows that app-1/1 collected may have decided whether the job writes it, or what"
    assert found["copied"]
    assert not found.get("free")


def test_what_is_gone_and_not_determined_is_lost_not_guessed(tmp_path):
    program = Program(tmp_path)
    program.write("SELECT user, spent FROM views LIMIT 2", "stage", "views")
    program.write("SELECT user, spent FROM stage", "copy", "stage")
    program.write("SELECT user, spent FROM views", "stage", "views")
    store = program.done()
    graph = opened(store).graph()
    assert "rows tie at a limit" in graph.coarse["copy#1.copy@1"]
    token = records(store)["views"][0]
    rows = govtool.provenance_graph("run:app-1", store=store).delete(token).to_dict()["relations"]
    assert {row["status"] for row in rows["copy"]["tuples"]} == {"unknown"}
    assert Counter(row["status"] for row in rows["stage"]["tuples"]) == {"deleted": 1, "kept": 4}


def test_a_note_names_outputs_of_which_a_later_write_replaced_a_part(tmp_path, capsys):
    program = Program(tmp_path)
    program.write("SELECT user, spent FROM views WHERE page = 1", "log", "views")
    program.write("SELECT user, spent FROM views WHERE page = 2", "log", "views", mode="overwrite_some")
    store = program.done()
    token = records(store)["views"][0]
    assert main(["whatif", "delete", token, "--run", "app-1", "--store", store, "-f", "json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert note == "log: rows of earlier writes that app-1/1 may have replaced are among its rows"


def test_an_input_that_is_gone_makes_a_black_box_of_what_read_it(tmp_path):
    program = Program(tmp_path)
    program.write("SELECT user FROM views UNION SELECT name FROM users", "names", "views", "users")
    program.write("SELECT user FROM views", "others", "views")
    store = program.done()
    (tmp_path / "users" / "part-0.parquet").unlink()
    graph = opened(store).graph()
    assert "is gone" in graph.coarse["names#1.names@0"]
    assert list(graph.coarse) == ["names#1.names@0"]


def read_as(program, kind, **options):
    """From here on, the program reads its file of text with a column of this type."""
    parquet = type(program.warehouse).relation
    columns = (Attribute(0, "who", STRING), Attribute(1, "n", kind))
    schema = Struct(tuple(Field(each.name, each.type) for each in columns))

    def relation(place):
        if place.name != "lines":
            return parquet(program.warehouse, place)
        files = listing(sorted(place.glob("*.csv")))
        return Relation(0, place.as_uri(), "csv", files, columns, schema, options=tuple(options.items()))

    program.warehouse.relation = relation


def lines_read_twice(folder, **second):
    program = Program(folder)
    (folder / "lines").mkdir()
    (folder / "lines" / "a.csv").write_text("who,n\nann,1\nbob,2\ncid,3\n")
    read_as(program, LONG, header="true", inferSchema="true")
    program.write("SELECT who, n FROM lines WHERE n > 1", "large", "lines")
    read_as(program, STRING, **second)
    program.write("SELECT who, n FROM lines", "all", "lines")
    program.write("SELECT a.who FROM large AS a JOIN all AS b ON a.who = b.who", "both", "large", "all")
    return program.done()


def test_a_record_that_is_read_in_two_ways_is_one(tmp_path):
    store = lines_read_twice(tmp_path, header="true")
    with opened(store).opened() as (run, files):
        first, second = (list(files.rows(run.relations[path]).tokens) for path in files.layout.sources)
    assert first == second
    for answer in (
        govtool.open(store).workflow_delete("app-1", [first[1]]).to_dict(),  # bob
        govtool.provenance_graph("run:app-1", store=store).delete(first[1]).to_dict(),
    ):
        changed = {
            name: [row["before"][0] for row in each["tuples"] if row["status"] == "deleted"]
            for name, each in answer["relations"].items()
        }
        assert changed == {"large": ["bob"], "all": ["bob"], "both": ["bob"]}
    (row,) = govtool.open(store).workflow_why("app-1", "both[bob]", semirings=["polynomial", "which"]).tuples
    assert row.annotations["polynomial"] == f"{first[1]}^2"
    assert row.annotations["which"] == [first[1]]


def test_records_that_are_split_otherwise_are_not_taken_for_the_same(tmp_path):
    store = lines_read_twice(tmp_path, header="false")
    with opened(store).opened() as (run, files):
        (first, _) = (list(files.rows(run.relations[path]).tokens) for path in files.layout.sources)
    rows = govtool.open(store).workflow_delete("app-1", [first[1]]).to_dict()["relations"]
    assert [row["status"] for row in rows["large"]["tuples"]].count("deleted") == 1
    assert {row["status"] for name in ("all", "both") for row in rows[name]["tuples"]} == {"unknown"}


def test_thirty_actions_of_a_loop_are_invocations_of_one_module(tmp_path):
    program = Program(tmp_path)
    program.write("SELECT user, spent FROM views", "state", "views")
    for step in range(30):
        program.write(f"SELECT user, spent + {step} AS spent FROM state", "state", "state")
    store = program.done()
    run = opened(store).run
    assert [each.number for each in run.invocations if each.module == "state.2"] == list(range(1, 31))
    rows = govtool.provenance_graph("run:app-1", store=store).delete(records(store)["views"][0]).to_dict()["relations"]
    assert Counter(row["status"] for row in rows["state"]["tuples"]) == {"deleted": 1, "kept": 4}


def test_names():
    names = short_names(["file:///a/x/out", "file:///a/y/out", "file:///a/z", "s3://b/z#1"])
    assert names == {"file:///a/x/out": "x/out", "file:///a/y/out": "y/out", "file:///a/z": "z", "s3://b/z#1": "z_1"}


def test_runs_of_programs_are_found(store):
    at = Store.open(store)
    head = at.head("main")
    for text in ("app-1", "app-1/3", "app", "job.py"):
        assert find_recorded_run(at, head, text).run.id == "app-1"
    assert module_names(find_recorded_run(at, head, "app-1").program)[0] == "stage"
    for text in ("job.py~1", "", "ap-1"):
        with pytest.raises(UnknownNameError):
            find_recorded_run(at, head, text)


# ---- against a run without the records ---------------------------------------------------------------------------------


def ran(folder, actions, views):
    program = Program(folder, views)
    for sql, target, inputs, mode in actions:
        program.write(sql, target, *(each for each in inputs if each in sql), mode=mode)
    return program


@pytest.mark.parametrize("seed", [*range(8), 165])  # 165: DISTINCT over values behind a HAVING
def test_deletions_agree_with_a_run_without_the_records(tmp_path, seed):
    assert contradicted(tmp_path, seed) == []


def contradicted(folder, seed):
    """Contradictions of one random program and two deletions."""
    draw = random.Random(seed)
    views = [(draw.choice("abc"), draw.randint(1, 3), draw.randint(0, 4)) for _ in range(6)]
    actions = steps(draw)
    if not actions:
        return []
    program = ran(folder / "whole", actions, views)
    store = program.done()
    tokens = records(store)
    own = [token for path, each in tokens.items() if path.startswith("views") for token in each]
    graph = govtool.provenance_graph("run:app-1", store=store)
    wrong = []
    for number in range(2):
        gone = sorted(draw.sample(range(len(views)), draw.randint(1, 2)))
        answer = graph.delete(*[own[each] for each in gone]).to_dict()["relations"]
        rest = [row for at, row in enumerate(views) if at not in gone]
        again = ran(folder / f"without{number}", actions, rest)  # cut into other files, which no query sees
        wrong += [(actions, gone, each) for each in contradictions(answer, again.rows)]
    return wrong

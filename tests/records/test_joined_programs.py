"""Programs that read what others wrote, asked with all runs: chains, what is not joined, and deletions re-run."""

from __future__ import annotations

import json
import os
import random
from collections import Counter

import pytest
from depth import LONG
from recorded_programs import VIEWS, Program, contradictions, steps

import govtool
from govtool.app.workflow_runs.programs.recorded import find_recorded_run
from govtool.cli.main import main
from govtool.store import Store

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

SPENT = "SELECT user, sum(spent) AS spent, count(*) AS n FROM views GROUP BY user"
LANDS = "SELECT land, sum(spent) AS total FROM stage JOIN users ON stage.user = users.name GROUP BY land"


def two_programs(folder, views=VIEWS):
    """A stage of one program, a report of it by another."""
    first = Program(folder, views)
    first.write(SPENT, "stage", "views")
    first.done()
    second = first.then("app-2", "report.py")
    second.write(LANDS, "report", "stage", "users")
    return second


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return two_programs(tmp_path_factory.mktemp("joined")).done()


def views_of(store, run="report.py"):
    """The tokens of the views, by row, with all runs."""
    at = Store.open(store)
    found = find_recorded_run(at, at.head("main"), run, all_runs=True)
    with found.opened() as (opened, files):
        (path,) = [path for path in files.layout.sources if path.endswith("/views")]
        return list(files.rows(opened.relations[path]).tokens)


def deleted(store, tokens, run="report.py", **options):
    answer = govtool.open(store).workflow_delete(run, tokens, all_runs=True, **options)
    return answer.to_dict()


def test_a_run_goes_on_through_the_run_that_wrote_its_input(store):
    own = govtool.provenance_graph("run:report.py", store=store)
    both = govtool.provenance_graph("run:report.py", store=store, all_runs=True)
    assert (own.modules, both.modules) == (("report",), ("report", "stage"))
    assert both.notes == ()
    tokens = views_of(store)
    answer = both.delete(tokens[0]).to_dict()["relations"]  # ann, 1, 10
    assert [row.get("after") for row in answer["report"]["tuples"] if row["status"] != "kept"] == [["de", 25]]
    assert both.depends(_node(both, tokens[3]), [tokens[3]]).depends is True


def _node(graph, token):
    """A row that was made of a record alone: cid's in the stage."""
    found = json.loads("".join(graph.export("json")))
    (record,) = [node["id"] for node in found["nodes"] if node["label"] == token]
    return next(str(edge[1]) for edge in found["edges"] if edge[0] == record)


def test_either_run_names_both(store):
    for run in ("report.py", "job.py", "app-1", "app-2"):
        relations = deleted(store, views_of(store, run)[:1], run, mode="propagate")["relations"]
        assert set(relations) == {"stage", "report"}


def test_why_names_the_records_of_the_first_program(store):
    tokens = views_of(store)
    (row,) = govtool.open(store).workflow_why("report.py", "report[fr]", semirings=["which"], all_runs=True).tuples
    assert set(row.annotations["which"]) & set(tokens) == {tokens[2], tokens[4]}  # those of bob


def test_the_commands_take_all_runs(store, capsys):
    token = views_of(store)[3]  # cid, 2, 5
    place = ["--store", store, "-f", "json"]
    assert main(["whatif", "delete", token, "--run", "report.py", *place]) == 2
    assert "--all-runs" in capsys.readouterr().err
    assert main(["whatif", "delete", token, "--run", "report.py", "--all-runs", *place]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [row["status"] for row in answer["relations"]["stage"]["tuples"]].count("deleted") == 1
    assert main(["why", "report[de]", "--run", "report.py", "--all-runs", *place]) == 0
    assert token in capsys.readouterr().out
    for words in (
        ["zoom", "out", "-m", "stage"], ["subgraph", token], ["depends", token, "--on", token], ["graph", "export"]
    ):  # fmt: skip
        assert main([*words, "--run", "report.py", "--all-runs", *place]) == 0, words
        assert json.loads(capsys.readouterr().out)
    for words in (["whatif", "delete", "crm.users", "--all-runs"], ["why", "--sql", "q.sql", "--all-runs"]):
        assert main([*words, "--store", store]) == 2
        assert "--all-runs" in capsys.readouterr().err


def test_a_stage_that_was_written_again_is_where_the_answer_begins(tmp_path, capsys):
    first = Program(tmp_path)
    first.write(SPENT, "stage", "views")
    first.done()
    (file,) = (tmp_path / "stage").glob("*.parquet")
    os.utime(file, ns=(1, 10**18))  # somebody else put a file of this name there
    second = first.then("app-2", "report.py")
    second.write(LANDS, "report", "stage", "users")
    store = second.done()
    graph = govtool.provenance_graph("run:report.py", store=store, all_runs=True)
    assert graph.modules == ("report",)
    (note,) = graph.notes
    assert "app-1/0 wrote it, but it was written again before it was read" in note
    assert main(["why", "report[de]", "--run", "report.py", "--all-runs", "--store", store, "-f", "json"]) == 0
    assert "written again before it was read" in json.loads(capsys.readouterr().out)["notes"][0]


def test_a_lost_hop_leaves_unknown_rows(tmp_path):
    first = Program(tmp_path)
    first.write("SELECT user, spent FROM views LIMIT 3", "stage", "views")
    first.done()
    second = first.then("app-2", "report.py")
    second.write(LANDS, "report", "stage", "users")
    store = second.done()
    for file in (tmp_path / "stage").glob("*.parquet"):
        file.unlink()
    rows = deleted(store, views_of(store)[:1])["relations"]["report"]["tuples"]
    assert {row["status"] for row in rows} == {"unknown"}


def test_a_run_that_was_repeated_is_told_from_the_one_before(tmp_path):
    first = Program(tmp_path)
    first.write(SPENT, "stage", "views")
    first.done()
    second = first.then("app-2", "report.py")
    second.write(LANDS, "report", "stage", "users")
    second.done()
    again = first.then("app-3", "again.py")
    again.write("SELECT user, max(spent) AS spent, count(*) AS n FROM views GROUP BY user", "stage", "views")
    store = again.done()
    at = Store.open(store)
    run = find_recorded_run(at, at.head("main"), "report.py", all_runs=True).run
    assert {node for each in run.invocations for node in [each.node]} == {"app-1:0", "0"}
    rows = deleted(store, views_of(store)[:1])["relations"]["report"]["tuples"]
    assert [row["after"] for row in rows if row["status"] == "recomputed"] == [["de", 25]]


def test_rows_of_an_rdd_of_another_run_depend_on_all_that_its_run_had_read(tmp_path):
    first = Program(tmp_path)
    first.write("SELECT user, spent FROM views", "plain", "views")
    first.write_of_rdd([1, 2], "numbers")
    first.done()
    second = first.then("app-2", "report.py")
    second.write("SELECT n FROM numbers_of WHERE n > 1", "large", "numbers_of")
    rows = deleted(second.done(), views_of(first.warehouse.store.uri)[:1])["relations"]["large"]["tuples"]
    assert {row["status"] for row in rows} == {"unknown"}


# ---- against a run of all programs without the records ----------------------------------------------------------------


def ran(folder, programs, views):
    last = None
    for number, actions in enumerate(programs, 1):
        last = Program(folder, views) if last is None else last.then(f"app-{number}", f"job{number}.py")
        for sql, target, inputs, mode in actions:
            last.write(sql, target, *(each for each in inputs if each in sql), mode=mode)
        last.done()
    return last


def chain(draw):
    """Programs, of which each reads what those before it wrote."""
    known, programs = ["views"], []
    for targets in ("tu", "tx", "yz")[: draw.randint(2, 3)]:
        actions = steps(draw, known, targets)
        programs.append(actions)
        known = [*dict.fromkeys([*known, *(target for _, target, _, _ in actions)])]
    return [actions for actions in programs if actions]


def contradicted(folder, seed):
    """Contradictions of some random programs and two deletions."""
    draw = random.Random(seed)
    views = [(draw.choice("abc"), draw.randint(1, 3), draw.randint(0, 4)) for _ in range(6)]
    programs = chain(draw)
    if len(programs) < 2:
        return []
    store = ran(folder / "whole", programs, views).warehouse.store.uri
    at = Store.open(store)
    found = find_recorded_run(at, at.head("main"), "app-1", all_runs=True)
    with found.opened() as (run, files):
        paths = [path for path in files.layout.sources if path.rpartition("/")[2].startswith("views")]
        own = [token for path in paths for token in files.rows(run.relations[path]).tokens]
    # What a folder holds is compared if all that was written into it is joined with the first program.
    written = Counter(target for actions in programs for _, target, _, _ in actions)
    joined = Counter(action.output.rpartition("/")[2] for action in found.program.actions)
    whole = {name for name in written if written[name] == joined[name]}
    graph = govtool.provenance_graph("run:app-1", store=store, all_runs=True)
    wrong = []
    for number in range(2):
        gone = sorted(draw.sample(range(len(own)), draw.randint(1, 2)))
        tokens = [own[each] for each in gone]
        rest = [row for at, row in enumerate(views) if at not in gone]
        again = ran(folder / f"without{number}", programs, rest)
        answers = [graph.delete(*tokens).to_dict(), deleted(store, tokens, "app-1")]
        for answer in answers:
            relations = {name: each for name, each in answer["relations"].items() if name in whole}
            wrong += [(programs, gone, each) for each in contradictions(relations, again.rows)]
    return wrong


@pytest.mark.parametrize("seed", range(8 if LONG else 3))
def test_deletions_agree_with_a_run_of_all_programs_without_the_records(tmp_path, seed):
    assert contradicted(tmp_path, seed) == []


def test_deletions_are_decided(tmp_path):
    """The share of rows that are unknown is small: agreement is of answers, not of silence."""
    counted = Counter()
    store = two_programs(tmp_path).done()
    for token in views_of(store):
        for each in deleted(store, [token])["relations"].values():
            counted.update(row["status"] for row in each["tuples"])
    assert counted["unknown"] == 0
    assert counted["recomputed"]
    assert counted["deleted"]
    assert counted["kept"]


def test_what_a_joined_program_decides_with_rows_that_it_collected(tmp_path, monkeypatch):
    """With all runs, the queries of each program count, for what it wrote and for what others made of that.

    Nothing but the query joins the program with the first: what it writes reads other files.
    """
    monkeypatch.chdir(tmp_path)
    first = Program(tmp_path)
    first.write(SPENT, "stage", "views")
    first.done()
    second = first.then("app-2", "report.py")
    second.collect("SELECT count(*) AS n FROM stage WHERE spent > 25", "stage")
    second.write("SELECT name FROM users", "names", "users")
    second.write("SELECT name, land FROM users", "free", "users")
    second.code(
        "n = stage.where('spent > 25').count()\nprint(n)\nif n > 1:\n    users.write.parquet('out/names')\n"
        "users.write.parquet('out/free')\n"
    )
    second.done()
    third = second.then("app-3", "copy.py")
    third.write("SELECT name AS copied FROM names", "copies", "names")
    store = third.done()
    tokens = views_of(store, "app-1")
    found = {}
    for token in (tokens[0], tokens[3]):  # of ann, whose sum falls below 25, and of cid, whose sum is 5
        answer = deleted(store, [token], "app-1")
        ends = {name.rpartition("/")[2].partition("@")[0]: each["tuples"] for name, each in answer["relations"].items()}
        found[token] = {name: {row["status"] for row in rows} for name, rows in ends.items()}
    assert found[tokens[0]]["names"] == found[tokens[0]]["copies"] == {"unknown"}
    assert found[tokens[3]]["names"] == found[tokens[3]]["copies"] == {"kept"}
    assert all("free" not in each for each in found.values())  # it hangs on nothing

    plan = govtool.open(store).erase_plan("views.user=ann", run="app-1", all_runs=True)
    unknown = {each.dataset.rpartition("/")[2] for each in plan.datasets if each.unknown}
    assert unknown == {"names", "copies"}
    assert [each.what for each in plan.not_reached] == ["app-2/0"]
    alone = govtool.open(store).erase_plan("views.user=ann", run="app-1")
    assert (alone.is_certain, alone.not_reached) == (True, ())

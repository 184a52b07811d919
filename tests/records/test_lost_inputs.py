"""Traces where input files are gone, changed or not readable: their rows are not shown, and those of others are."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded_programs import Program

from govtool.cli.main import main
from govtool.records.execute.inputs import changed
from govtool.records.leaves import with_relations
from govtool.records.plan.nodes import Break, File, Relation, outputs
from govtool.records.plan.types import Struct

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

JOINED = "SELECT b.land, sum(a.spent) AS total FROM views a JOIN users b ON a.user = b.name GROUP BY b.land"
USERS_KEPT = "SELECT a.user, a.spent, b.land FROM views a JOIN users b ON a.user = b.name"


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    return Program(tmp_path)


def asked(capsys, store, *words, code):
    capsys.readouterr()
    assert main(["trace", *words, "--store", store, "-f", "json"]) == code
    return json.loads(capsys.readouterr().out)


def found(groups):
    """The rows by the dataset's name."""
    return {group["dataset"].rpartition("/")[2]: sorted(row["_row"] for row in group["rows"]) for group in groups}


def lost(program, name, number=0):
    files = sorted((program.warehouse.folder / name).glob("*.parquet"))
    files[number].unlink()


@pytest.mark.parametrize(("file", "rows"), [(0, [0, 1, 2]), (1, [0, 1])])
def test_forward_without_a_run_goes_by_the_files_that_are_left(program, capsys, file, rows):
    program.write("SELECT user, spent FROM views", "copy", "views")
    store = program.done()
    lost(program, "views", 1 - file)
    answer = asked(capsys, store, "forward", "views", "--where", "true", code=3)
    assert len(found(answer["outputs"])["copy"]) == len(rows)
    assert [each["reason"] for each in answer["refused"]] == ["is gone"]
    assert {each["exactness"] for each in answer["outputs"]} == {"incomplete"}


def test_a_run_that_read_all_files_that_are_there_goes_before(program, capsys):
    program.write("SELECT user, spent FROM views", "copy", "views")
    lost(program, "views")
    program.write("SELECT user FROM views", "later", "views")
    answer = asked(capsys, program.done(), "forward", "views", "--where", "true", code=0)
    assert list(found(answer["outputs"])) == ["later"]


def test_without_any_of_its_files_an_input_is_of_no_run(program, capsys):
    program.write("SELECT user, spent FROM views", "copy", "views")
    store = program.done()
    lost(program, "views")
    lost(program, "views")
    assert main(["trace", "forward", "views", "--where", "true", "--store", store]) == 2
    assert "usage.no-run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sql", "condition", "gone", "rows"),
    [
        (JOINED, "land = 'de'", "users", {"views": [0, 0, 1, 1, 2]}),
        (JOINED, "land = 'de'", "views views", {"users": [0, 2]}),
        (USERS_KEPT, "user = 'ann' AND spent = 20", "users", {"views": [1]}),
        ("SELECT * FROM views WHERE user IN (SELECT name FROM users)", "spent = 7", "users", {"views": [1]}),
        ("SELECT user FROM views INTERSECT SELECT name FROM users", "user = 'bob'", "users",
         {"views": [0, 0, 1, 1, 2]}),
        ("SELECT a.user, b.land FROM views a LEFT JOIN users b ON a.user = b.name", "land = 'fr'", "users",
         {"views": [1, 2]}),
    ],
)  # fmt: skip
def test_rows_that_were_joined_with_lost_ones_are_shown(program, capsys, sql, condition, gone, rows):
    program.write(sql, "report", "views", "users")
    store = program.done()
    for name in gone.split():
        lost(program, name)
    answer = asked(capsys, store, "back", "report", "--where", condition, code=3)
    shown = {name: own for name, own in found(answer["inputs"]).items() if own}
    assert shown == rows
    assert {each["exactness"] for each in answer["inputs"]} == {"incomplete"}
    assert all(gone.split()[0] in each["why"] for each in answer["inputs"] if each["rows"])


def test_other_parts_of_a_union_stay_as_exact_as_they_were(program, capsys):
    program.write("SELECT user, spent FROM views UNION ALL SELECT name, 0 FROM users", "both", "views", "users")
    store = program.done()
    lost(program, "users")
    answer = asked(capsys, store, "back", "both", "--where", "user = 'bob'", code=3)
    assert found(answer["inputs"]) == {"views": [1, 2], "users": []}


def test_results_that_a_row_may_have_reached_with_lost_ones(program, capsys):
    program.write(JOINED, "report", "views", "users")
    store = program.done()
    lost(program, "views")
    lost(program, "views")
    answer = asked(capsys, store, "forward", "users", "--where", "name = 'bob'", code=3)
    (group,) = answer["outputs"]
    assert [(row["land"], row["total"]) for row in group["rows"]] == [("fr", 37)]
    assert (group["exactness"], "is not known" in group["why"]) == ("incomplete", True)


def test_a_file_that_may_not_be_read_is_not_gone(tmp_path, monkeypatch):
    place = tmp_path / "a.parquet"
    place.write_bytes(b"1234")
    now = place.stat()
    file = File(0, place.as_uri(), now.st_size, now.st_mtime_ns // 1_000_000)
    leaf = Relation(0, "a", "parquet", (file,), (), Struct(()))
    assert changed([leaf]) == []
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert [each.reason for each in changed([leaf])] == ["cannot be read: Permission denied"]


@pytest.mark.parametrize("is_all", [True, False])
def test_a_replay_may_replace_what_is_gone(program, capsys, tmp_path, is_all):
    program.write(JOINED, "report", "views", "users")
    store = program.done()
    other = tmp_path / "others.parquet"
    pq.write_table(pa.table({"name": ["ann", "bob"], "land": ["de", "it"]}), other)
    lost(program, "users")
    if not is_all:
        lost(program, "views")
    words = ["replay", "app-1/0", "--with", f"users={other}", "--store", store, "-f", "json"]
    capsys.readouterr()
    assert main(words) == (0 if is_all else 3)
    shown = capsys.readouterr()
    if not is_all:
        assert "--with views=FILE" in shown.err
        return
    answer = json.loads(shown.out)
    assert {kind: answer[kind]["rows"] for kind in ("gone", "new")} == {
        "gone": [{"land": "fr", "total": 37}],
        "new": [{"land": "it", "total": 37}],
    }
    assert [(row["before"]["total"], row["after"]["total"]) for row in answer["changed"]["rows"]] == [(35, 30)]


# ---- inputs that have no positions, and inputs with two names ------------------------------------------------------


def with_leaves(program, change):
    """The last write, with other leaves."""
    last = program.writes[-1]
    root = with_relations(last.plan.root, change)
    program.writes[-1] = replace(last, plan=replace(last.plan, root=root))


def test_rows_of_files_are_shown_beside_those_of_a_database(program, capsys):
    program.write(USERS_KEPT, "report", "views", "users")

    def without_positions(leaf):
        return Break("rows of a database", (), outputs(leaf)) if leaf.dataset.endswith("users") else leaf

    with_leaves(program, without_positions)
    store = program.done()
    answer = asked(capsys, store, "back", "report", "--where", "user = 'ann' AND spent = 20", code=3)
    assert found(answer["inputs"]) == {"views": [1]}
    assert [(each["exactness"], each["why"]) for each in answer["inputs"]] == [("incomplete", "rows of a database")]
    answer = asked(capsys, store, "forward", "views", "--where", "user = 'ann' AND spent = 20", code=3)
    assert [row["land"] for group in answer["outputs"] for row in group["rows"]] == ["de"]


def test_a_table_is_found_by_both_of_its_names(program, capsys):
    program.write("SELECT user, spent FROM views WHERE spent > 5", "by_path", "views")
    program.write("SELECT user, page FROM views", "by_name", "views")
    with_leaves(program, lambda leaf: replace(leaf, dataset="shop.views"))
    store = program.done()
    for name in ("shop.views", str(program.warehouse.folder / "views")):
        assert main(["trace", "forward", name, "--where", "user = 'ann'", "--store", store]) == 2
        assert "2 writes fit" in capsys.readouterr().err
        answer = asked(capsys, store, "forward", name, "--where", "user = 'ann'", "--all-runs", code=0)
        groups = [*answer["outputs"], *(group for hop in answer["hops"] for group in hop["outputs"])]
        assert {name: len(rows) for name, rows in found(groups).items()} == {"by_path": 2, "by_name": 2}


def test_a_table_is_found_by_the_folder_of_its_files(program, capsys):
    program.write("SELECT user, page FROM views", "pages", "views")
    with_leaves(program, lambda leaf: replace(leaf, dataset="shop.views"))
    last = program.writes[-1]
    program.writes[-1] = replace(last, output="shop.pages")
    store = program.done()
    folder = program.warehouse.folder
    answer = asked(capsys, store, "forward", str(folder / "views"), "--where", "user = 'ann'", code=0)
    assert [len(group["rows"]) for group in answer["outputs"]] == [2]
    answer = asked(capsys, store, "back", str(folder / "pages"), "--where", "user = 'ann'", code=0)
    assert (answer["output"], found(answer["inputs"])) == ("shop.pages", {"shop.views": [0, 1]})
    assert main(["trace", "back", str(folder / "pages" / "page=1"), "--where", "true", "--store", store]) == 2


def test_runs_that_read_the_input_and_cannot_be_traced_are_named(program, capsys):
    program.write("SELECT user, spent FROM views", "copy", "views")
    program.write("SELECT user, page FROM views", "states", "views")
    with_leaves(program, lambda leaf: Break("the stream keeps a state: of earlier batches", (), outputs(leaf)))
    program.writes[-1] = replace(program.writes[-1], breaks=("the stream keeps a state: of earlier batches",))
    answer = asked(capsys, program.done(), "forward", "views", "--where", "user = 'ann'", "--all-runs", code=3)
    ends = {(each["dataset"].rpartition("/")[2], each["reason"]) for each in answer["ends"] if each["broken"]}
    folder = program.warehouse.folder.as_uri()
    assert ends == {("views", f"app-1/1 → {folder}/states read it: the stream keeps a state")}
    assert len(found(answer["outputs"])["copy"]) == 2

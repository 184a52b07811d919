"""What a walk looked at, as it is kept for the next extraction: little, and nothing of it lost."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from govtool.capture.dbt.folders import project_folders
from govtool.capture.dbt.project import links_out, read_projects, unread_settings
from govtool.capture.sql.files import Script, read_scripts
from govtool.capture.sql.memos.reuse import extract_with_memos
from govtool.capture.sql.memos.script_memos import walks_of
from govtool.capture.sql.options import Options
from govtool.capture.sql.walk.usage import ShownByTape, Tape, TapeRecorder, UsedColumns


def test_what_is_asked_between_two_lookups_is_one_look_for_a_table():
    recorder = TapeRecorder()
    tape = recorder.tape = Tape(0)
    orders, other = UsedColumns("orders", recorder, ["id"]), UsedColumns("other", recorder)
    assert [orders.has("id"), orders.has("total"), other.has("k")] == [True, False, False]
    orders.add("total")
    tape.add_function("lower", "")
    tape.add_function("lower", "")
    tape.add_lookup(("t", "orders", 1, "digest", 0))
    assert orders.has("total")  # the walk itself showed it: no question
    assert not other.has("k")  # another statement may have shown it in the lookup
    tape.end()
    assert tape.looks == [
        ("f", "", ["lower"]),
        ("c", "orders", ["total"], ["id"], ["total"]),
        ("c", "other", ["k"], [], []),
        ("t", "orders", 1, "digest", 0),
        ("c", "other", ["k"], [], []),
    ]


def test_the_digest_of_columns_follows_them():
    used, shown = UsedColumns("t", columns=["a"]), ShownByTape()
    before = used.digest()
    shown.add(used, ["a", "b"])
    with_both = used.digest()
    used.add("c")
    assert len({before, with_both, used.digest()}) == 3
    shown.take_back()
    assert used.columns == {"a", "c"}
    assert used.digest() == UsedColumns("t", columns=["a", "c"]).digest()


def test_columns_that_somebody_else_names_meanwhile_stay_shown():
    used, outer, inner = UsedColumns("t"), ShownByTape(), ShownByTape()
    outer.add(used, ["a"])
    inner.add(used, ["a"])
    inner.keep()
    outer.take_back()
    assert used.columns == {"a"}


def test_what_a_second_walk_finds_as_the_first_did_is_kept_once():
    texts = {
        "a.sql": "create view v as select x.id, name from x join y on x.id = y.id;",
        "b.sql": "select y.name from y;",
    }
    scripts = [Script(file, text) for file, text in texts.items()]
    memo = extract_with_memos(scripts, Options(dialect="postgres"), "how").memos.scripts["a.sql"]
    ((*_, walks),) = json.loads(memo.to_text())[7]
    first, second = walks_of(walks)
    assert (walks[1][1], walks[1][3], first[3]) == (None, None, second[3])
    assert first[0] != second[0]  # the second knows by usage whose column it is


@pytest.mark.parametrize("data", [b"select 1", b"\xef\xbb\xbfselect 1", "select 1".encode("utf-16")])
def test_the_digest_of_a_text_is_the_same_wherever_it_comes_from(tmp_path: Path, data: bytes):
    (tmp_path / "a.sql").write_bytes(data)
    (script,) = read_scripts([tmp_path])
    assert isinstance(script, Script)
    assert script.digest == Script("b.sql", script.text).digest


def test_the_folders_below_what_is_read_are_listed_once_for_all_projects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "p" / "models" / "deep").mkdir(parents=True)
    (tmp_path / "p" / "dbt_project.yml").write_text("name: p")
    (tmp_path / "link").symlink_to(tmp_path / "p")
    (tmp_path / "node_modules" / "q").mkdir(parents=True)
    (tmp_path / "node_modules" / "q" / "dbt_project.yml").write_text("name: q")
    folders = project_folders([tmp_path])
    assert list(folders) == [tmp_path / "p"]
    listed: list[str] = []
    scandir = os.scandir

    def counted(path: Any = ".") -> Any:
        listed.append(str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", counted)
    (project,) = read_projects([tmp_path], tmp_path, folders=folders)
    assert project.own.name == "p"
    assert [*links_out([tmp_path], tmp_path, folders), *unread_settings([tmp_path], tmp_path, folders)] == []
    assert str(tmp_path) not in listed

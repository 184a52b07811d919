"""A slot of the log that was edited or removed: whoever passes it exits with 4 and says what to do."""

from __future__ import annotations

import json

import pytest
from answers import check

import govtool as api
from govtool.errors import IntegrityError


@pytest.fixture
def slots(project, govtool):
    """Five commits, and their slots."""
    (project / "s").mkdir()
    govtool("init")
    for number in range(5):
        ingest(project, govtool, number)
    found = sorted((project / ".govtool" / "log" / "main").glob("*.json"))
    assert len(found) == 5
    return found


def ingest(project, govtool, number):
    (project / "s" / "a.sql").write_text(f"create view v{number} as select a from t")
    return govtool("ingest", "sql", "s")


def edit(slot):
    """Another message under a digest of its own, as somebody who knows the format would write it."""
    from govtool.store.codec import seal

    body = json.loads(slot.read_bytes())
    del body["digest"]
    slot.chmod(0o600)
    slot.write_bytes(seal({**body, "message": "nothing happened"}))


BREAKS = pytest.mark.parametrize("spoil", [edit, lambda slot: slot.unlink()], ids=["edited", "removed"])


@BREAKS
@pytest.mark.parametrize(
    "command",
    [
        ("impact", "t.a", "--at", "2"),
        ("impact", "t.a", "--at", "1"),
        ("diff", "1", "5"),
        ("diff", "2", "3"),
        ("show", "2"),
        ("log",),
        ("ingest", "sql", "s"),
    ],
    ids=" ".join,
)
def test_whoever_passes_it_exits_with_4(govtool, slots, spoil, command):
    assert govtool(*command).code == 0
    spoil(slots[1])
    done = govtool(*command)
    assert done.code == 4
    assert "store.corrupt-chain" in done.err
    assert "log/main/000000000002.json" in done.err
    assert "restore the slot from a backup or a copy" in done.err


@BREAKS
def test_no_commit_is_made_on_top(project, govtool, slots, spoil):
    spoil(slots[2])
    done = ingest(project, govtool, 9)
    assert done.code == 4
    assert "error[store.corrupt-chain]" in done.err
    assert sorted(slots[0].parent.glob("*.json"))[-1] == slots[-1]
    with pytest.raises(IntegrityError):
        api.ingest_sql("s")
    assert govtool("impact", "t.a").code == 0  # the head needs no older slot
    assert govtool("diff").code == 0


@BREAKS
@pytest.mark.parametrize(
    "command",
    [
        ("revert", "HEAD"),
        ("branch", "create", "late"),
        ("branch", "merge", "early"),
        ("branch", "delete", "early"),
        ("sources", "drop", "sql:s"),
    ],
    ids=" ".join,
)
def test_no_other_command_commits_on_top(project, govtool, slots, spoil, command):
    assert govtool("branch", "create", "early").code == 0
    (project / "s" / "b.sql").write_text("create view w as select a from t")
    assert govtool("ingest", "sql", "s", "--branch", "early").code == 0
    spoil(slots[1])
    before = {path for path in (project / ".govtool").rglob("*") if path.suffix == ".json"}
    done = govtool(*command)
    assert done.code == 4
    assert "error[store.corrupt-chain]" in done.err
    assert "log/main/000000000002.json" in done.err
    assert {path for path in (project / ".govtool").rglob("*") if path.suffix == ".json"} == before


@BREAKS
def test_fsck_says_what_to_do(govtool, slots, spoil):
    spoil(slots[2])
    done = govtool("store", "fsck", "-f", "json")
    assert done.code == 4
    problems = check(done.out, "fsck-1")["problems"]
    assert {problem["key"] for problem in problems} == {"log/main/000000000003.json"}
    assert all("restore this object from a backup or a copy" in problem["hint"] for problem in problems)
    assert "restore this object" in govtool("store", "fsck").out


def test_the_first_slot_of_a_branch_and_what_lies_before_it(project, govtool, slots):
    govtool("branch", "create", "redesign")
    (project / "s" / "b.sql").write_text("create view w as select a from t")
    for number in range(2):
        (project / "s" / "b.sql").write_text(f"create view w{number} as select a from t")
        assert govtool("ingest", "sql", "s", "--branch", "redesign").code == 0
    assert govtool("impact", "t.a", "--at", "2", "--branch", "redesign").code == 0
    edit(slots[1])
    assert govtool("impact", "t.a", "--at", "1", "--branch", "redesign").code == 4
    assert govtool("impact", "t.a", "--at", "6", "--branch", "redesign").code == 0
    (project / "s" / "b.sql").write_text("create view w3 as select a from t")
    assert govtool("ingest", "sql", "s", "--branch", "redesign").code == 4


def test_dates_find_no_hole(govtool, slots):
    moment = json.loads(govtool("log", "-f", "json").out)["commits"][-1]["time"]
    assert govtool("impact", "t.a", "--at", moment).code == 0
    slots[1].unlink()
    assert govtool("impact", "t.a", "--at", moment).code == 4

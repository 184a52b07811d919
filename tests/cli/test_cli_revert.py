"""``govtool revert``: the sources of a commit get what they had before it, and nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.fixture
def warehouse(govtool):
    """Two sources; the second commit of ``a`` is a bad one."""
    govtool("init")
    for name, text in (("a", "create table t1 as select a from s1"), ("b", "create table t2 as select b from s2")):
        Path(name).mkdir()
        Path(name, "x.sql").write_text(text)
        govtool("ingest", "sql", name)
    Path("a", "x.sql").write_text("create table bad as select a from s1")
    govtool("ingest", "sql", "a")
    return govtool


def names(govtool) -> set[str]:
    return {json.loads(line)["name"] for line in govtool("ls", "--format", "jsonl").out.splitlines()}


def test_a_bad_ingest_is_undone_and_stays_in_the_log(warehouse):
    assert "bad" in names(warehouse)
    assert warehouse("revert", "HEAD").code == 0
    assert names(warehouse) == {"t1", "s1", "t2", "s2"}
    assert len(json.loads(warehouse("log", "--format", "json").out)["commits"]) == 4
    assert warehouse("diff", "2", "4", "--exit-code").code == 0
    assert warehouse("store", "fsck").code == 0


def test_a_dry_run_names_the_sources_and_commits_nothing(warehouse):
    done = warehouse("revert", "HEAD", "--dry-run")
    assert done.code == 0
    assert "would be undone in: sql:a" in done.out
    assert "govtool diff HEAD HEAD~1" in done.err
    assert "bad" in names(warehouse)
    assert len(json.loads(warehouse("log", "--format", "json").out)["commits"]) == 3
    assert warehouse("revert", "1", "--dry-run").code == 4, "a conflict is found without a commit, too"
    warehouse("revert", "HEAD")
    assert "nothing to undo" in warehouse("revert", "3", "--dry-run").err


def test_a_commit_that_began_a_source_is_undone_by_its_end(warehouse):
    assert warehouse("revert", "2").code == 0
    assert names(warehouse) == {"bad", "s1"}


def test_the_first_commit_can_be_undone(warehouse):
    warehouse("revert", "3")
    assert warehouse("revert", "1").code == 0
    assert names(warehouse) == {"t2", "s2"}


def test_what_was_changed_again_since_is_a_conflict(warehouse):
    refused = warehouse("revert", "1")
    assert refused.code == 4
    assert "store.conflict" in refused.err
    assert "sql:a" in refused.err
    assert "bad" in names(warehouse)


def test_a_revert_is_done_once_and_can_be_reverted(warehouse):
    warehouse("revert", "HEAD")
    again = warehouse("revert", "3")
    assert again.code == 0
    assert "nothing" in again.out + again.err
    assert warehouse("revert", "HEAD").code == 0
    assert "bad" in names(warehouse)


def test_the_same_input_is_ingested_again_after_its_revert(warehouse):
    warehouse("revert", "HEAD")
    warehouse("ingest", "sql", "a")
    assert "bad" in names(warehouse)


def test_an_unknown_commit_is_a_usage_error(warehouse):
    assert warehouse("revert", "99").code == 2

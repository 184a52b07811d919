"""``ingest sql`` of files that were there and cannot be read or understood any more: nothing is lost at the head."""

from __future__ import annotations

import json
import os

import pytest

import govtool as api
from govtool.answers.ingest import RefusedIngestError

BINARY = b"PK\x03\x04\0\0\0\1"


@pytest.fixture
def folder(project, govtool):
    """Three files: a table, views of it, and a view of these."""
    found = project / "s"
    found.mkdir()
    (found / "1.sql").write_text("create table crm.t (a text, b int); create view v as select * from crm.t")
    (found / "2.sql").write_text("create view w as select * from v;\ncreate view x as select upper(a) a from w")
    govtool("init")
    assert ingest(govtool).code == 0
    return found


def ingest(govtool, *options):
    return govtool("ingest", "sql", "s", "-d", "postgres", *options)


def reached(govtool, column="crm.t.a", *options):
    done = govtool("impact", column, "-f", "json", *options)
    assert done.code == 0, done.err
    return {entry["column"] for entry in json.loads(done.out)["columns"]}


def head(govtool):
    return json.loads(govtool("log", "-f", "json").out)["commits"][0]["seq"]


def unreadable(file):
    file.unlink()
    os.mkfifo(file)  # nothing that can be read, for root neither


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file.write_bytes(BINARY),
        lambda file: file.write_text("<html><body>503 Service Unavailable</body></html>"),
        lambda file: file.write_text("create view w as selec * frm vv; create view x as selec a"),
        unreadable,
    ],
    ids=["binary", "not-sql", "not-understood", "unreadable"],
)
def test_a_file_that_fails_keeps_what_it_said(govtool, folder, spoil):
    before = reached(govtool)
    assert before == {"v.a", "w.a", "x.a"}
    spoil(folder / "2.sql")
    done = ingest(govtool)
    assert done.code == 0
    assert reached(govtool) == before
    assert "1 file kept as before (stale)" in done.out
    assert "warning[stale] the earlier lineage of this file is kept: " in done.err
    notes = json.loads(govtool("coverage", "-f", "json").out)["diagnostics"]
    assert [(n["code"], n["file"]) for n in notes if n["code"] == "stale"] == [("stale", "2.sql")]
    again = ingest(govtool)
    assert (again.code, head(govtool)) == (0, 2)
    assert "nothing new" in again.out


def test_other_files_still_know_the_columns_of_one_that_fails(govtool, folder):
    (folder / "1.sql").write_bytes(BINARY)
    assert ingest(govtool).code == 0
    assert reached(govtool) == {"v.a", "w.a", "x.a"}
    (folder / "2.sql").write_text("create view y as select * from crm.t")
    assert ingest(govtool).code == 0
    assert reached(govtool, "crm.t.b") == {"v.b", "y.b"}


def test_it_is_kept_over_further_ingests_until_the_file_is_read_or_gone(govtool, folder):
    (folder / "2.sql").write_bytes(BINARY)
    ingest(govtool)
    (folder / "3.sql").write_text("create view z as select a from w")
    (folder / "2.sql").write_bytes(BINARY + b"2")
    ingest(govtool)
    assert reached(govtool) == {"v.a", "w.a", "x.a", "z.a"}
    (folder / "2.sql").write_text("create view w as select a, b from v")
    done = ingest(govtool)
    assert "stale" not in done.out + done.err
    assert reached(govtool) == {"v.a", "w.a", "z.a"}
    (folder / "2.sql").unlink()
    ingest(govtool)
    assert reached(govtool) == {"v.a"}


def test_one_statement_that_fails_keeps_its_lineage_alone(govtool, folder):
    (folder / "2.sql").write_text("create view w as select a from v;\ncreate view x as selec upper(a) a frm w")
    assert ingest(govtool).code == 0
    assert reached(govtool) == {"v.a", "w.a", "x.a", "x.*"}  # what it reads now may be in any column of x
    (folder / "2.sql").write_text("create view w as select b from v;\ncreate view x as selec upper(a) a frm w w")
    assert ingest(govtool).code == 0
    assert "x.a" in reached(govtool, "w.a")
    assert "w.a" not in reached(govtool)


def test_what_never_was_understood_keeps_nothing_else(govtool, folder):
    broken = "create view n as selec b frm v"
    (folder / "2.sql").write_text(f"create view w as select * from v;\ncreate view x as select a from w;\n{broken}")
    ingest(govtool)
    (folder / "2.sql").write_text(f"create view w as select * from v;\n{broken}")
    done = ingest(govtool)
    assert "stale" not in done.err
    assert "x.a" not in reached(govtool)


def test_facts_are_kept_too(govtool, folder):
    (folder / "2.sql").write_text("create view w as select * from v; comment on view w is 'ours'")
    ingest(govtool)
    (folder / "2.sql").write_bytes(BINARY)
    ingest(govtool)
    assert govtool("diff", "--exit-code").code == 0


def test_drop_unreadable_forgets_it(govtool, folder):
    (folder / "2.sql").write_bytes(BINARY)
    ingest(govtool)
    done = ingest(govtool, "--drop-unreadable")
    assert done.code == 0
    assert reached(govtool) == {"v.a"}
    for options in ((), ("--drop-unreadable",)):
        assert "nothing new" in ingest(govtool, *options).out
    (folder / "2.sql").unlink()
    result = api.ingest_sql("s", dialect="postgres", drop_unreadable=True)
    assert result.created


def test_drop_unreadable_commits_the_drop_of_the_last_file_too(govtool, folder):
    (folder / "1.sql").unlink()
    (folder / "2.sql").write_bytes(BINARY)
    assert ingest(govtool).code == 3
    assert ingest(govtool, "--drop-unreadable", "--strict").code == 3
    done = ingest(govtool, "--drop-unreadable")
    assert done.code == 0, done.err
    assert json.loads(govtool("ls", "-f", "json").out)["items"] == []


@pytest.mark.parametrize("options", [("--strict",), ("--min-coverage", "90")], ids=["strict", "min-coverage"])
def test_exit_code_3_commits_nothing(govtool, folder, options):
    (folder / "3.sql").write_text("create view z as selec a frm w")
    done = ingest(govtool, *options)
    assert done.code == 3
    assert "nothing was committed" in done.err
    assert "3.sql" in done.err
    assert head(govtool) == 1
    assert ingest(govtool).code == 0
    assert head(govtool) == 2
    assert ingest(govtool, *options).code == 3  # what stands does not suffice either


def test_nothing_understood_commits_nothing(govtool, folder):
    for file in folder.iterdir():
        file.write_bytes(BINARY)
    done = ingest(govtool)
    assert done.code == 3
    assert "nothing could be read; nothing was committed" in done.err
    assert head(govtool) == 1
    assert reached(govtool) == {"v.a", "w.a", "x.a"}
    with pytest.raises(RefusedIngestError) as caught:
        api.ingest_sql("s", dialect="postgres")
    assert caught.value.code == "evidence.coverage"
    assert [note.code for note in caught.value.diagnostics].count("not-sql") == 2
    assert head(govtool) == 1


def test_another_branch_keeps_what_it_had(govtool, folder):
    govtool("branch", "create", "redesign")
    (folder / "2.sql").write_text("create view w as select * from v; create view fresh as select a from w")
    ingest(govtool, "--branch", "redesign")
    (folder / "2.sql").write_bytes(BINARY)
    ingest(govtool, "--branch", "redesign")
    ingest(govtool)
    assert reached(govtool, "crm.t.a", "--branch", "redesign") == {"v.a", "w.a", "fresh.a"}
    assert reached(govtool) == {"v.a", "w.a", "x.a"}


def test_stale_evidence_is_marked_where_it_is_shown(govtool, folder):
    (folder / "2.sql").write_text("create view w as selec * frm v; create view x as selec a")
    assert "stale" not in govtool("impact", "crm.t.a").err
    assert ingest(govtool).code == 0
    note = "stale evidence, kept from an earlier ingest: 2.sql (why: govtool coverage --details)"
    assert govtool("impact", "crm.t.a").err.splitlines() == [note]
    assert govtool("explain", "w.a").err.splitlines() == [note]
    assert govtool("explain", "crm.t.b", "-q").err == ""
    assert govtool("explain", "crm.t").err == ""  # of 1.sql, which is as it was

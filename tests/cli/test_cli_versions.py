"""``diff``, ``branch``, ``tag``, ``store``, ``--branch`` and ``--at``."""

from __future__ import annotations

import json

import pytest
from answers import check


@pytest.fixture
def etl(project, govtool):
    """Two commits: users and audience; then audience has another column and users another transformation."""
    folder = project / "etl"
    folder.mkdir()
    (folder / "ddl.sql").write_text("create table crm.users (id int, email text);\n")
    (folder / "users.sql").write_text("create view stg.users as select id, lower(email) as email from crm.users;\n")
    (folder / "audience.sql").write_text("create view mart.audience as select email from stg.users;\n")
    govtool("init")
    govtool("ingest", "sql", "etl", "-d", "postgres")
    (folder / "users.sql").write_text("\n\ncreate view stg.users as select id, upper(email) as email from crm.users;\n")
    (folder / "audience.sql").write_text("create view mart.audience as select email, id from stg.users;\n")
    govtool("ingest", "sql", "etl", "-d", "postgres")
    return folder


def changes(answer):
    return {(c["change"], c["what"], c["source"], c["name"]): c for c in answer["changes"]}


def test_diff_tells_what_changed_and_which_statement_did_it(govtool, etl):
    answer = check(govtool("diff", "-f", "json").out, "diff-1")
    found = changes(answer)
    assert set(found) == {
        ("added", "column", None, "mart.audience.id"),
        ("added", "edge", "stg.users.id", "mart.audience.id"),
        ("changed", "edge", "crm.users.email", "stg.users.email"),
    }
    changed = found["changed", "edge", "crm.users.email", "stg.users.email"]
    assert (changed["before"], changed["after"], changed["kind"]) == ("lower()", "upper()", "transformation")
    assert [(e["file"], e["line"]) for e in changed["evidence"]] == [("users.sql", 3), ("users.sql", 1)]
    assert answer["summary"]["edges"] == {"added": 1, "removed": 0, "changed": 1}


def test_diff_the_other_way_round(govtool, etl):
    found = changes(json.loads(govtool("diff", "HEAD", "HEAD~1", "-f", "json").out))
    assert ("removed", "column", None, "mart.audience.id") in found


def test_what_moved_has_not_changed(govtool, etl):
    (etl / "ddl.sql").write_text("\n\n-- moved\ncreate table crm.users (id int, email text);\n")
    govtool("ingest", "sql", "etl", "-d", "postgres")
    done = govtool("diff", "--exit-code")
    assert done.code == 0
    assert done.out.splitlines()[-1] == "no difference"


def test_exit_code_and_formats(govtool, etl):
    assert govtool("diff", "--exit-code").code == 1
    assert govtool("diff").code == 0
    table = govtool("diff").out
    assert "crm.users.email → stg.users.email" in table
    assert "lower() → upper()" in table
    assert table.splitlines()[-1] == "columns +1 · edges +1 ~1"
    assert "| what |" in govtool("diff", "-f", "markdown").out
    assert len(govtool("diff", "-f", "csv").out.splitlines()) == 4
    assert len(govtool("diff", "-f", "jsonl").out.splitlines()) == 3
    assert check(govtool("diff", "--limit", "1", "-f", "json").out, "diff-1")["truncated"] == 2
    assert "2 not shown (--all)" in govtool("diff", "--limit", "1").out


def test_what_another_source_says_too_is_not_gone(govtool, etl, project):
    other = project / "other.sql"
    other.write_text("insert into mart.audience select email from stg.users;\n")
    govtool("ingest", "sql", "other.sql", "-d", "postgres")
    (etl / "audience.sql").unlink()
    govtool("ingest", "sql", "etl", "-d", "postgres")
    for _ in range(2):  # without local indexes, then with them
        found = changes(json.loads(govtool("diff", "-f", "json").out))
        assert ("removed", "edge", "stg.users.id", "mart.audience.id") in found
        assert ("removed", "edge", "stg.users.email", "mart.audience.email") not in found
        assert ("removed", "dataset", None, "mart.audience") not in found
        govtool("index")
        govtool("index", "--at", "HEAD~1")


def test_a_branch_is_read_written_and_merged(govtool, etl):
    assert govtool("branch", "create", "redesign").code == 0
    (etl / "new.sql").write_text("create view mart.fresh as select id from stg.users;\n")
    done = govtool("ingest", "sql", "etl/new.sql", "-d", "postgres", "--branch", "redesign")
    assert done.code == 0
    assert govtool("explain", "mart.fresh").code == 2
    assert govtool("explain", "mart.fresh", "--branch", "redesign").code == 0
    assert "mart.fresh" in govtool("impact", "stg.users.id", "--branch", "redesign").out
    assert govtool("diff", "main", "redesign", "--exit-code").code == 1
    names = check(govtool("branch", "list", "-f", "json").out, "branches-1")["branches"]
    assert [(b["name"], b["commit"]["seq"]) for b in names] == [("main", 2), ("redesign", 4)]
    log = json.loads(govtool("log", "--branch", "redesign", "-f", "json").out)
    assert [commit["seq"] for commit in log["commits"]] == [4, 3, 2, 1]
    assert govtool("show", "--branch", "redesign").code == 0
    assert "mart.fresh" in govtool("ls", "changed:HEAD~1", "--branch", "redesign").out
    assert govtool("branch", "merge", "redesign").code == 0
    assert govtool("explain", "mart.fresh").code == 0
    assert "nothing new" in govtool("branch", "merge", "redesign").err
    assert govtool("branch", "delete", "redesign").code == 0
    assert govtool("log", "--branch", "redesign").code == 2


def test_a_conflict_names_its_sources(govtool, etl):
    govtool("branch", "create", "redesign")
    for branch, column in (("main", "a"), ("redesign", "b")):
        (etl / "audience.sql").write_text(f"create view mart.audience as select email as {column} from stg.users;\n")
        govtool("ingest", "sql", "etl", "-d", "postgres", "--branch", branch)
    done = govtool("branch", "merge", "redesign")
    assert done.code == 4
    assert "etl" in done.err
    assert "--prefer" in done.err
    assert govtool("branch", "merge", "redesign", "--prefer", "nobody").code == 2
    assert govtool("branch", "merge", "redesign", "--prefer", "source").code == 0
    assert "mart.audience.b" in govtool("impact", "stg.users.email").out


@pytest.mark.parametrize(
    "command",
    [
        ("impact", "crm.users.email"),
        ("path", "crm.users.email", "stg.users.email"),
        ("explain", "crm.users.email"),
        ("coverage",),
        ("log",),
        ("show",),
        ("index",),
        ("diff",),
    ],
    ids=lambda command: command[0],
)
def test_an_unknown_branch_is_an_error_everywhere(govtool, etl, command):
    done = govtool(*command, "--branch", "nope")
    assert done.code == 2
    assert "usage.unknown-branch" in done.err


def test_tags(govtool, etl):
    assert govtool("tag", "create", "v1", "HEAD~1").code == 0
    assert govtool("tag", "create", "v1").code == 2
    assert [t["name"] for t in check(govtool("tag", "list", "-f", "json").out, "tags-1")["tags"]] == ["v1"]
    assert govtool("explain", "mart.audience.id", "--at", "v1").code == 2
    assert govtool("explain", "mart.audience.id", "--at", "2").code == 0
    assert govtool("diff", "v1", "main", "--exit-code").code == 1
    assert govtool("tag", "create", "v1", "--force").code == 0
    assert govtool("diff", "v1", "main", "--exit-code").code == 0
    assert govtool("tag", "delete", "v1").code == 0
    assert govtool("tag", "delete", "v1").code == 2


def test_upkeep(govtool, etl, project):
    assert check(govtool("store", "fsck", "-f", "json").out, "fsck-1")["problems"] == []
    anchor = govtool("store", "anchor").out.strip()
    assert anchor.startswith("govtool-anchor:1:")
    orphan = project / ".govtool" / "frag" / "derivations" / f"{'0' * 64}.parquet"
    orphan.write_bytes(b"left behind")
    dry = check(govtool("store", "gc", "--dry-run", "--grace", "0", "-f", "json").out, "gc-1")
    assert [r["key"] for r in dry["removed"]] == [f"frag/derivations/{'0' * 64}.parquet"]
    assert orphan.exists()
    assert "1 object removed" in govtool("store", "gc", "--grace", "0").out
    assert not orphan.exists()
    assert govtool("store", "compact").code == 0
    assert "objects written" in govtool("store", "copy", "backup").out
    assert govtool("store", "fsck", "--store", "backup", "--anchor", anchor).code == 0
    for slot in sorted((project / "backup" / "log" / "main").iterdir())[1:]:
        slot.unlink()
    done = govtool("store", "fsck", "--store", "backup", "--anchor", anchor)
    assert done.code == 4
    assert "rolled back" in done.out
    assert govtool("store", "fsck", "--anchor", "nonsense").code == 2


def test_help_of_the_groups(govtool):
    for group in ("branch", "tag", "store"):
        done = govtool(group, "--help")
        assert done.code in (0, None)
        assert "list" in done.out or "fsck" in done.out

"""``govtool store forget``: text is gone from every version, and what is left answers as before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from answers import check

from govtool.app.upkeep.fragment_text import TextForms
from govtool.model.records import PRIVATE_VALUES, PrivateValues, RecordRun, encode_private, encode_record_runs
from govtool.store import Changes, Fragment, Store

LINES = (Path(__file__).parents[2] / "fixtures" / "openlineage" / "spark_orders.jsonl").read_bytes().splitlines()
SECRET = "Ann.O'Hara@example.org"
SQL = """create table crm.users (id int, email text);
create view mart.{name} as select id, email from crm.users;
comment on table crm.users is 'ask ann.o''hara@example.org';
"""


@pytest.fixture
def leaked(store, project):
    """A secret in a comment, in an older version and in this one."""
    (project / "etl").mkdir()
    file = project / "etl" / "all.sql"
    for name in ("one", "two"):
        file.write_text(SQL.format(name=name))
        assert store("ingest", "sql", "etl", "-d", "postgres").code == 0
    assert store("impact", "crm.users.email").code == 0
    return store


def holding(project, text=SECRET):
    """The fragments that hold a text, and the other files."""
    forms = TextForms([text])
    files = [path for path in (project / ".govtool").rglob("*") if path.is_file()]
    cached = [path for path in (project.parent / "cache").rglob("*") if path.is_file()]
    return [p for p in files if forms.in_fragment(p.read_bytes())] + [
        p for p in cached if forms.in_bytes(p.read_bytes())
    ]


def test_a_text_is_gone_from_every_version(leaked, project):
    assert holding(project)
    dry = leaked("store", "forget", "--text-file", "-", "--dry-run", stdin=SECRET.encode())
    assert dry.code == 0
    assert "would be forgotten" in dry.out
    assert holding(project)
    before = leaked("impact", "crm.users.email", "--at", "1", "-f", "json")
    done = leaked("store", "forget", "--text-file", "-", "-f", "json", stdin=SECRET.encode())
    answer = check(done.out, "forget-1")
    assert done.code == 0
    assert answer["fragments"]
    assert all(each["rewritten"] for each in answer["fragments"])
    assert answer["commits"][0]["seq"] == 3
    assert {each["place"] for each in answer["unreached"]} >= {"caches", "copies", "backups", "inputs", "outputs"}
    assert holding(project) == []
    assert (
        json.loads(leaked("impact", "crm.users.email", "--at", "1", "-f", "json").out)["columns"]
        == (json.loads(before.out)["columns"])
    )
    assert leaked("impact", "crm.users.email").code == 0
    assert leaked("diff", "1", "HEAD").code == 0
    assert leaked("store", "fsck").code == 0
    assert "nothing new" in leaked("ingest", "sql", "etl", "-d", "postgres").out
    again = leaked("store", "forget", "--text-file", "-", stdin=SECRET.encode())
    assert again.code == 0
    assert "nothing in the store holds it" in again.out


def test_what_a_commit_says_itself_is_named(leaked):
    assert leaked("ingest", "sql", "etl", "-d", "mysql", "--source", "two", "-m", f"for {SECRET}").code == 0
    done = leaked("store", "forget", "--text-file", "-", "-f", "json", stdin=SECRET.encode())
    answer = check(done.out, "forget-1")
    assert done.code == 1
    assert [(held["place"].startswith("log/main/"), "message" in held["reason"]) for held in answer["held"]] == [
        (True, True)
    ]


def test_a_source_is_gone_with_its_history(leaked, project):
    done = leaked("store", "forget", "--source", "sql:etl", "--reason", "request 81")
    assert done.code == 0
    assert holding(project) == []
    assert leaked("store", "fsck").code == 0
    old = leaked("impact", "crm.users.email", "--at", "1")
    assert old.code == 4
    assert "store.forgotten" in old.err
    assert "sql:etl" not in leaked("sources").out
    assert leaked("ingest", "sql", "etl", "-d", "postgres").code == 0
    assert leaked("store", "fsck").code == 0


def test_the_private_values_of_a_run_are_removed_and_others_stay(store, project):
    runs = [RecordRun(run, "p", "out", (), "") for run in ("app-1/0", "app-1/1", "app-2/0")]
    values = [PrivateValues(run.run, json.dumps([f"value of {run.run}"])) for run in runs]
    add = (
        Fragment("job", "record_runs", encode_record_runs(runs), 3),
        Fragment("job", PRIVATE_VALUES, encode_private(values), 3),
    )
    opened = Store.open(str(project / ".govtool"))
    opened.commit(Changes(("job",), add), message="m", author="ann", batch="b")
    assert store("store", "forget", "--run", "app-1", "-f", "json").code == 0
    assert holding(project, "value of app-1") == []
    assert holding(project, "value of app-2/0")
    assert store("store", "fsck", "--no-contents").code == 0
    assert store("store", "forget", "--run", "nothing").code == 2


def test_a_text_is_searched_in_what_stands_for_a_runs_values(store, project):
    runs = [RecordRun(run, "p", "out", (), "") for run in ("app-1/0", "app-2/0")]
    values = [PrivateValues(run.run, json.dumps([f"{run.run} {SECRET}"])) for run in runs]
    add = (
        Fragment("job", "record_runs", encode_record_runs(runs), 2),
        Fragment("job", PRIVATE_VALUES, encode_private(values), 2),
    )
    opened = Store.open(str(project / ".govtool"))
    opened.commit(Changes(("job",), add), message="m", author="ann", batch="b")
    done = store("store", "forget", "--run", "app-1", "--text-file", "-", stdin=SECRET.encode())
    assert (done.code, holding(project)) == (0, [])


def test_a_text_is_removed_after_a_source_was(leaked, project):
    (project / "more").mkdir()
    (project / "more" / "b.sql").write_text(
        "create view mart.b as select 1 as x; comment on table mart.b is 'for Zoe Q'"
    )
    assert leaked("ingest", "sql", "more", "-d", "postgres").code == 0
    assert leaked("store", "forget", "--source", "sql:etl").code == 0
    done = leaked("store", "forget", "--text-file", "-", stdin=b"for Zoe Q")
    assert (done.code, holding(project, "for Zoe Q")) == (0, []), done.err


def test_a_branch_and_a_tag_that_are_called_so_are_named(leaked):
    leaked("branch", "create", "of/zoe-quinn"), leaked("tag", "create", "zoe-quinn")
    done = leaked("store", "forget", "--text-file", "-", "-f", "json", stdin=b"of/Zoe-Quinn")
    assert (done.code, len(json.loads(done.out)["held"])) == (1, 1)
    done = leaked("store", "forget", "--text-file", "-", "-f", "json", stdin=b"Zoe-Quinn")
    held = {each["place"]: each["reason"] for each in json.loads(done.out)["held"]}
    assert (done.code, len(held)) == (1, 2)
    assert held["tags/zoe-quinn"] == "in its name, which govtool tag delete zoe-quinn removes"
    assert leaked("tag", "delete", "zoe-quinn").code == 0
    done = leaked("store", "forget", "--text-file", "-", "-f", "json", stdin=b"Zoe-Quinn")
    assert len(json.loads(done.out)["held"]) == 1


def test_a_text_is_found_as_urls_of_forms_write_it(store, project):
    event = json.loads(LINES[0])
    event["inputs"] = [{"namespace": "https://h", "name": name} for name in ("q/Zoe+Q%2fX", "q/Zoe%20Q/X", "q/Zoe+Q/X")]
    (project / "e.json").write_text(json.dumps(event))
    assert store("ingest", "openlineage", "e.json").code == 0
    before = store("ls").out
    assert "Zoe+Q" in before
    assert store("store", "forget", "--text-file", "-", stdin=b"\xef\xbb\xbfZoe Q/X\r\n").code == 0
    assert "zoe" not in store("ls").out.lower()
    assert holding(project, "Zoe+Q") == []


@pytest.mark.parametrize("data", ["Zoë Quinn".encode("latin-1"), "Zoe Quinn".encode("utf-16")])
def test_texts_in_another_encoding_are_refused(leaked, data):
    """Nothing would be found, and the answer that nothing holds it is wrong."""
    done = leaked("store", "forget", "--text-file", "-", stdin=data)
    assert (done.code, "UTF-8" in done.err) == (2, True)


@pytest.mark.parametrize("text", ["", "abc", "\n"])
def test_too_short_a_text_is_refused(leaked, text):
    assert leaked("store", "forget", "--text-file", "-", stdin=text.encode()).code == 2


def test_nothing_to_remove_is_refused(leaked):
    assert leaked("store", "forget").code == 2
    assert leaked("store", "forget", "--source", "nothing").code == 2
    assert leaked("store", "forget", "--text-file", "missing.txt").code == 2
    assert leaked("store", "forget", "--text-file", "-", "-m", f"remove {SECRET}", stdin=SECRET.encode()).code == 2

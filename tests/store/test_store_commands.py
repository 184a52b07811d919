"""The commands on a store that is on an S3 server, whole: from init to impact, diff, branches and upkeep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.proxy import Fault
from govtool.cli.main import main


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the command line in an empty folder: gives exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "etl").mkdir()
    (tmp_path / "etl" / "a.sql").write_text("create view mart.v as select id, lower(email) as email from crm.users;\n")

    def command(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


@pytest.mark.parametrize("server", ["moto", "seaweedfs"])
def test_from_init_to_upkeep(run, use_server, monkeypatch, tmp_path, server):
    uri = use_server(server)
    monkeypatch.setenv("GOVTOOL_STORE", uri)
    assert run("log")[0] == 4
    assert run("init")[0] == 0
    assert run("init")[0] == 2
    assert run("ingest", "sql", "etl", "-d", "postgres")[0] == 0
    assert "nothing new" in run("ingest", "sql", "etl", "-d", "postgres")[1]
    assert "mart.v.email" in run("impact", "crm.users.email")[1]
    assert run("branch", "create", "next")[0] == 0
    (tmp_path / "etl" / "a.sql").write_text("create view mart.v as select id from crm.users;\n")
    assert run("ingest", "sql", "etl", "-d", "postgres", "--branch", "next")[0] == 0
    code, out, _ = run("diff", "main", "next", "--exit-code", "-f", "json")
    assert code == 1
    assert ("removed", "mart.v.email") in {(c["change"], c["name"]) for c in json.loads(out)["changes"]}
    assert run("branch", "merge", "next")[0] == 0
    assert run("tag", "create", "v1")[0] == 0
    assert run("log", "--limit", "1")[0] == 0
    anchor = run("store", "anchor")[1].strip()
    assert run("store", "copy", "backup")[0] == 0
    assert run("store", "fsck", "--store", "backup", "--anchor", anchor)[0] == 0
    assert run("store", "compact")[0] == 0
    assert run("store", "gc", "--grace", "0")[0] == 0
    assert run("store", "fsck", "--anchor", anchor)[0] == 0
    assert run("store", "copy", "backup")[0] == 0
    assert run("impact", "crm.users.id", "--store", "backup")[0] == 0


@pytest.mark.parametrize(
    ("error", "status", "words"), [("ExpiredToken", 400, "expired"), ("NoSuchBucket", 404, "does not exist")]
)
def test_what_happens_in_the_middle_of_a_commit_is_exit_4_and_loses_nothing(
    run, proxy, through, monkeypatch, error, status, words
):
    """Expired credentials, and a bucket that vanishes."""
    monkeypatch.setenv("GOVTOOL_STORE", through)
    run("init")
    fault = Fault("status", status=status, error=error)
    proxy.reset(lambda request: fault if request.method == "PUT" else None)
    code, _, err = run("ingest", "sql", "etl", "-d", "postgres")
    assert code == 4
    assert words in err
    assert "hint" in err
    proxy.reset()
    assert run("ingest", "sql", "etl", "-d", "postgres")[0] == 0
    assert run("store", "fsck")[0] == 0


def test_what_an_ingest_and_a_question_cost(run, proxy, through, monkeypatch):
    """An ingest looks at the head once; a question with an index at hand makes sure of the head and no more."""
    monkeypatch.setenv("GOVTOOL_STORE", through)
    run("init")
    run("ingest", "sql", "etl", "-d", "postgres")
    proxy.reset()
    assert run("ingest", "sql", "etl", "-d", "postgres", "--source", "other")[0] == 0
    assert [(e.method, e.path.split("/")[3]) for e in proxy.exchanges] == [
        ("GET", "hint"),
        ("GET", "log"),
        ("GET", "log"),
        ("PUT", "pack"),
        ("PUT", "log"),
        ("PUT", "hint"),
    ]
    run("impact", "crm.users.email")
    proxy.reset()
    assert run("impact", "crm.users.email")[0] == 0
    assert len(proxy.exchanges) <= 4


def test_a_published_index_answers_on_another_machine(run, proxy, through, monkeypatch, tmp_path):
    monkeypatch.setenv("GOVTOOL_STORE", through)
    run("init")
    run("ingest", "sql", "etl", "-d", "postgres")
    expected = run("impact", "crm.users.email")[1].splitlines()[1:]  # the head is another: to publish is to commit
    assert "published: " in run("index", "--publish")[2]
    assert "published already: " in run("index", "--publish")[2]
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "another machine"))
    proxy.reset()
    assert run("impact", "crm.users.email")[1].splitlines()[1:] == expected
    # The head, which names what is published, its root, and the index, so small that it is fetched whole: no fragment.
    assert not [exchange for exchange in proxy.exchanges if "/frag/" in exchange.path]
    assert len(proxy.exchanges) == 5
    proxy.reset(lambda request: Fault("status", status=403, error="AccessDenied") if "index" in request.path else None)
    Path("etl/more.sql").write_text("create view mart.more as select email from crm.users;\n")
    assert run("ingest", "sql", "etl", "-d", "postgres")[0] == 0
    code, _, err = run("index", "--publish")
    assert (code, "permission denied" in err) == (4, True)

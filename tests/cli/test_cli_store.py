"""``init``, ``ingest sql``, ``log``, ``show``, ``coverage``, ``config show``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types

import pytest
from answers import check

from govtool.__main__ import main as console_script


@pytest.fixture
def etl(project):
    folder = project / "etl"
    folder.mkdir()
    (folder / "ddl.sql").write_text("create table crm.users (id int, email text, deleted_at timestamp);\n")
    (folder / "users.sql").write_text(
        "-- staging\ncreate view stg.users as\n"
        "select id, lower(email) as email from crm.users where deleted_at is null;\n"
    )
    (folder / "audience.sql").write_text("create view mart.audience as select email from stg.users;\n")
    return folder


def test_init_makes_a_store_once(govtool, project):
    done = govtool("init")
    assert done.code == 0
    assert (project / ".govtool").is_dir()
    again = govtool("init")
    assert again.code == 2
    assert "store.exists" in again.err


def test_a_store_may_be_anywhere(govtool, project, monkeypatch):
    monkeypatch.setenv("GOVTOOL_STORE", str(project / "elsewhere"))
    assert govtool("init").code == 0
    assert govtool("log").code == 0
    assert govtool("log", "--store", "third").code == 4


def test_a_store_is_found_from_below(govtool, project, etl, monkeypatch):
    govtool("init")
    monkeypatch.chdir(etl)
    assert govtool("ingest", "sql", ".", "-d", "postgres").code == 0


def test_an_ingest_is_a_commit_and_the_same_again_is_none(govtool, etl):
    govtool("init")
    first = govtool("ingest", "sql", "etl", "--dialect", "postgres")
    assert first.code == 0
    assert first.out.startswith("sql:etl: commit 1 (")
    assert "coverage 100.0% (3/3 statements)" in first.out
    assert "nothing new, still at commit 1" in govtool("ingest", "sql", "etl", "--dialect", "postgres").out
    (etl / "audience.sql").write_text("create view mart.audience as select email, id from stg.users;\n")
    assert "commit 2 (" in govtool("ingest", "sql", "etl", "--dialect", "postgres").out


def test_a_known_ingest_is_not_extracted_again(govtool, etl, monkeypatch):
    govtool("init")
    (etl / "bad.sql").write_text("select (((\n")
    first = govtool("ingest", "sql", "etl", "-d", "postgres")
    monkeypatch.setattr(
        "govtool.app.ingest.sql_extraction.lineage_with_memos", lambda *_, **__: pytest.fail("extracted again")
    )
    again = govtool("ingest", "sql", "etl", "-d", "postgres")
    assert "nothing new" in again.out
    assert again.err == first.err
    with pytest.raises(BaseException, match="extracted again"):
        govtool("ingest", "sql", "etl", "-d", "mysql")


def test_a_relation_pattern_that_fits_nothing_is_said(govtool, etl):
    govtool("init")
    done = govtool("ingest", "sql", "etl", "-d", "postgres", "--relation-from", "{schema}/{table}/query.sql")
    assert "warning[relation-from]" in done.err


def test_queries_that_paths_name_are_pointed_out_first_and_the_pattern_connects_them(govtool, etl):
    govtool("init")
    for name, read in (("a", "src.raw"), ("b", "mart.a"), ("c", "mart.b"), ("d", "mart.c"), ("e", "broken(")):
        (etl.parent / "jobs" / "mart" / name).mkdir(parents=True)
        (etl.parent / "jobs" / "mart" / name / "query.sql").write_text(f"select x from {read}\n")
    done = govtool("ingest", "sql", "jobs", "-d", "postgres")
    first = done.err.splitlines()[0]
    assert first.startswith("warning[relation-from] 5 files hold a query whose result has no name")
    pattern = "{schema}/{table}/query.sql"
    assert first.endswith(f"give --relation-from '{pattern}' (relation_from in govtool.toml)")
    named = govtool("ingest", "sql", "jobs", "-d", "postgres", "--relation-from", pattern)
    assert "relation-from" not in named.err
    assert "mart.d" in govtool("impact", "src.raw.x").out


def test_log_and_show(govtool, etl):
    govtool("init")
    govtool("ingest", "sql", "etl", "-d", "postgres", "-m", "first", "--author", "ada")
    govtool("ingest", "sql", "etl/ddl.sql", "-d", "postgres", "--source", "ddl")
    log = check(govtool("log", "-f", "json").out, "log-1")
    assert [commit["seq"] for commit in log["commits"]] == [2, 1]
    assert (log["commits"][1]["message"], log["commits"][1]["author"]) == ("first", "ada")
    assert check(govtool("log", "--limit", "1", "-f", "json").out, "log-1")["truncated"] == 1
    assert govtool("log", "--limit", "1").out.splitlines()[-1] == "1 commit · 1 older (--all)"
    show = check(govtool("show", "HEAD~1", "-f", "json").out, "show-1")
    assert show["commit"]["summary"]["coverage"]["understood"] == 3
    assert {fragment["source"] for fragment in show["fragments"]} == {"sql:etl"}
    assert "sources" in govtool("show").out
    assert govtool("show", "HEAD~7").code == 2


def test_two_ingests_of_different_files_do_not_retract_each_other(govtool, etl):
    govtool("init")
    govtool("ingest", "sql", "etl/ddl.sql", "-d", "postgres")
    govtool("ingest", "sql", "etl/users.sql", "-d", "postgres")
    assert [s["source"] for s in check(govtool("coverage", "-f", "json").out, "coverage-1")["sources"]] == [
        "sql:etl/ddl.sql",
        "sql:etl/users.sql",
    ]


def test_coverage_says_what_was_not_understood(govtool, etl):
    govtool("init")
    (etl / "bad.sql").write_text("select (((\n")
    done = govtool("ingest", "sql", "etl", "-d", "postgres")
    assert done.code == 0
    assert "bad.sql:1" in done.err
    assert "coverage 75.0% (3/4 statements)" in done.out
    report = check(govtool("coverage", "-f", "json").out, "coverage-1")
    counts = {"statements": 4, "understood": 3, "partial": 0, "opaque": 1, "ignored": 0}
    assert report["coverage"] == counts | {"runs_understood": 3, "runs_partial": 0, "runs_opaque": 1, "unread": 0}
    assert [(r["code"], r["runs"]) for r in report["reasons"]] == [("parse-error", 1)]
    assert [d["file"] for d in report["diagnostics"]] == ["bad.sql"]
    shown = govtool("coverage", "--details").out
    assert "coverage 75.0% (3/4 statements)" in shown
    assert "sql:etl: bad.sql:1" in shown
    assert govtool("coverage", "--strict").code == 3
    assert govtool("coverage", "--min-coverage", "70").code == 0


def test_files_that_were_not_read_count_against_the_coverage(govtool, project):
    govtool("init")
    (project / "sql").mkdir()
    (project / "sql" / "good.sql").write_text("create view a as select x from t;\n")
    (project / "sql" / "gone.sql").symlink_to("nowhere")
    wanted = ("ingest", "sql", "sql", "-d", "postgres")
    too_little = govtool(*wanted, "--min-coverage", "51")
    assert too_little.code == 3
    assert "coverage 50.0% (1/2 statements, counting 1 file not read) is below the 51%" in too_little.err
    assert govtool(*wanted, "--strict").code == 3
    assert govtool(*wanted, "--min-coverage", "50").code == 0
    assert govtool("coverage", "--min-coverage", "51").code == 3
    assert govtool("coverage", "--strict").code == 3
    assert govtool("impact", "t.x", "--min-coverage", "51").code == 3
    assert "50.0%" in govtool("coverage").out
    assert "50.0%" in govtool("log").out
    (project / "sql" / "gone.sql").unlink()
    assert govtool(*wanted, "--strict", "--min-coverage", "100").code == 0


def test_every_answer_says_that_files_were_not_read(govtool, etl):
    govtool("init")
    (etl / "binary.sql").write_bytes(bytes(range(256)) * 9)
    (etl / "gone.sql").symlink_to("nowhere")
    done = govtool("ingest", "sql", "etl", "-d", "postgres")
    assert done.code == 0
    assert "coverage 60.0% (3/5 statements, counting 2 files not read)" in done.out
    assert "2 files not read" in govtool("coverage").out
    header, row = govtool("coverage", "-f", "csv").out.splitlines()
    assert dict(zip(header.split(","), row.split(","), strict=True))["unread"] == "2"


def test_an_empty_store(govtool):
    govtool("init")
    assert govtool("log").out == "0 commits\n"
    done = govtool("coverage")
    assert done.code == 2
    assert "usage.empty-store" in done.err


def test_stdin_is_ingested(govtool):
    govtool("init")
    assert govtool("ingest", "sql", "-", stdin=b"create view v as select a from t").out.startswith(
        "sql:stdin: commit 1"
    )


@pytest.mark.skipif(os.name == "nt", reason="there is no /dev/fd")
def test_streams_of_a_shell_are_named_as_stdin(govtool):
    """``govtool ingest sql <(generate)``: the number of the pipe would be another name each time."""
    govtool("init")
    for number, source in enumerate(([], [], ["--source", "b"])):
        reading, writing = os.pipe()
        os.write(writing, b"create view v as select a from t%d" % number)
        os.close(writing)
        done = govtool("ingest", "sql", f"/dev/fd/{reading}", *source)
        os.close(reading)
        if number == 1:
            assert "error[usage.source-replaced]" in done.err
        else:
            assert (done.code, done.err) == (0, "")
    assert [line.split(",")[0] for line in govtool("sources", "-f", "csv").out.splitlines()[1:]] == ["b", "sql:stdin"]


def test_a_store_of_a_newer_format_is_refused(govtool, project):
    govtool("init")
    marker = project / ".govtool" / "govtool.json"
    marker.write_text(marker.read_text().replace('"format":1', '"format":99'))
    done = govtool("log")
    assert done.code == 4
    assert "error[store." in done.err


def test_a_damaged_fragment_is_noticed(govtool, etl, project):
    govtool("init")
    govtool("ingest", "sql", "etl", "-d", "postgres")
    for fragment in (project / ".govtool" / "frag" / "coverage").iterdir():
        fragment.chmod(0o600)
        fragment.write_bytes(b"damaged")
    done = govtool("coverage")
    assert done.code == 4
    assert "store.corrupt-fragment" in done.err


def test_config_show_says_where_settings_come_from(govtool, project, monkeypatch):
    (project / "govtool.toml").write_text("store = 'lineage'\n[sql]\ndialect = 'spark'\n[sql.variables]\nx = 1\n")
    found = {s["name"]: s for s in check(govtool("config", "show", "-f", "json").out, "config-1")["settings"]}
    assert found["store"]["value"] == str(project / "lineage")
    assert found["sql.dialect"] == {"name": "sql.dialect", "value": "spark", "origin": str(project / "govtool.toml")}
    assert found["sql.variables.x"]["value"] == 1
    monkeypatch.setenv("GOVTOOL_STORE", "memory://")
    found = {s["name"]: s for s in json.loads(govtool("config", "show", "-f", "json").out)["settings"]}
    assert found["store"]["origin"] == "GOVTOOL_STORE"


def test_interrupted_while_modules_are_imported(monkeypatch, capsys):
    class Interrupted(types.ModuleType):
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "govtool.cli.main", Interrupted("main"))
    assert console_script() == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_interrupted(project):
    code = (
        "import sys, signal, os, time; import govtool.cli.setup as module\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background inherit that it is ignored\n"
        "module.settings = lambda *a: (os.kill(os.getpid(), signal.SIGINT), time.sleep(9))\n"
        "from govtool.cli.main import main; sys.exit(main(['config', 'show']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr


def test_an_error_that_an_interrupt_makes_is_no_failure(project):
    """As py4j turns what the end of Spark's process breaks into an error of its own, and logs it."""
    code = (
        "import logging, sys, signal, os, time; import govtool.cli.setup as module; from govtool.errors import EngineError\n"
        "def settings(*words):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)\n"
        "    except KeyboardInterrupt:\n"
        "        logging.getLogger('py4j').exception('while sending')\n"
        "        raise EngineError('no engine', code='engine.not-exact')\n"
        "module.settings = settings\n"
        "from govtool.cli.main import main; sys.exit(main(['config', 'show']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_the_hint_of_init_names_its_store(project, govtool):
    (project / "a.sql").write_text("create view v as select a from t")
    hint = govtool("init", "--store", "my store").err
    assert "govtool ingest sql FOLDER --dialect DIALECT --store 'my store'" in hint
    assert govtool("ingest", "sql", "a.sql", "--store", "my store").code == 0
    assert "--store" not in govtool("init", "--no-sources").err

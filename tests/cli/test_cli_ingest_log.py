"""``govtool ingest log`` from the outside."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parents[2] / "fixtures" / "logs"

LOG = [
    {"ts": "2026-01-01T10:00:00Z", "session": "s1", "user": "ann", "sql": "CREATE TABLE mart.a AS SELECT email e FROM crm.users WHERE name = 'Ann Lee'"},
    {"ts": "2026-01-01T10:00:01Z", "session": "s1", "user": "ann", "sql": "SELECT e FROM mart.a WHERE e = 'a@b.org'"},
    {"ts": "2026-01-01T10:00:02Z", "session": "s2", "user": "bob", "sql": "SELECT e FROM mart.a WHERE e = 'c@d.org'"},
    {"ts": "2026-01-01T10:00:03Z", "session": "s2", "user": "bob", "sql": "SELECT FROM WHERE e = 'Cid Moe' AND ("},
    {"ts": "2026-01-01T10:00:04Z", "session": "s2", "user": "bob", "sql": "SELECT x FROM nowhere", "status": "failed"},
]  # fmt: skip


def write(path: str, records=LOG, more: str = "") -> str:
    Path(path).write_text("".join(json.dumps(record) + "\n" for record in records) + more)
    return path


def stored() -> bytes:
    return b"".join(path.read_bytes() for path in Path(".govtool").rglob("*") if path.is_file())


def test_a_log_becomes_a_graph_with_counts(govtool, project):
    govtool("init")
    done = govtool("ingest", "log", write("q.jsonl", more="half {\n"), "--dialect", "postgres")
    assert done.code == 0
    assert "6 records" not in done.out
    assert "5 records (1 failed, 1 rejected), 3 distinct" in done.out
    assert "coverage 66.7% (2/3 statements), 75.0% of 4 runs" in done.out
    assert "q.jsonl:6" in done.err
    answer = json.loads(govtool("impact", "crm.users.email", "-f", "json").out)
    evidence = {entry["column"]: entry["evidence"] for entry in answer["columns"]}
    assert evidence["mart.a.e"][0]["first_seen"] == "2026-01-01T10:00:00.000Z"
    readers = [stated for column, stated in evidence.items() if column.startswith("query:")]
    assert {(e["count"], e["line"]) for stated in readers for e in stated if e["kind"] == "select"} == {(2, 2)}


def test_the_same_log_again_makes_no_commit(govtool, project):
    govtool("init")
    write("q.jsonl")
    govtool("ingest", "log", "q.jsonl")
    assert "nothing new" in govtool("ingest", "log", "q.jsonl").out
    assert "nothing new" not in govtool("ingest", "log", "q.jsonl", "--keep-literals").out


def test_literals_are_stored_only_if_asked_for(govtool, project):
    govtool("init")
    write("q.jsonl")
    govtool("ingest", "log", "q.jsonl")
    shown = govtool("explain", "mart.a.e").out + govtool("coverage", "--details").out
    assert "Ann Lee" not in shown
    for secret in (b"Ann Lee", b"a@b.org", b"Cid Moe"):
        assert secret not in stored()
    from govtool.model.columnar import decode
    from govtool.store import Store

    govtool("ingest", "log", "q.jsonl", "--keep-literals")
    store = Store.open(".govtool")
    texts = [
        d.statement.text
        for ref in store.fragments(store.head())
        if ref.table == "derivations"
        for d in decode(store.read(ref))
    ]
    assert any("Ann Lee" in text for text in texts)


def test_coverage_names_what_cost_most(govtool, project):
    govtool("init")
    bad = [{"sql": f"SELECT FROM {'x' * 3}{n} WHERE ("} for n in range(2)]
    many = [{"sql": "SELECT a, b FROM t1, t2"}] * 5
    govtool("ingest", "log", write("q.jsonl", bad + many))
    report = json.loads(govtool("coverage", "-f", "json").out)
    assert [r["runs"] for r in report["reasons"]] == sorted((r["runs"] for r in report["reasons"]), reverse=True)
    assert report["reasons"][0]["runs"] == 5
    shown = govtool("coverage").out
    assert "reasons for incomplete coverage" in shown
    assert [line.split() for line in shown.splitlines() if line.startswith((" fully", " partly", " not at all"))] == [
        ["fully", "0", "0.0%", "0", "0.0%"],
        ["partly", "1", "33.3%", "5", "71.4%"],
        ["not", "at", "all", "2", "66.7%", "2", "28.6%"],
    ]


def test_the_log_of_commits_says_coverage_by_runs(govtool, project):
    govtool("init")
    many = [{"sql": "SELECT a FROM t"}] * 3
    govtool("ingest", "log", write("q.jsonl", [*many, {"sql": "SELECT FROM WHERE ("}]))
    (line,) = [line for line in govtool("log").out.splitlines() if "ingest log" in line]
    assert line.split()[-4:-2] == ["50.0%", "75.0%"]


def test_engines_and_workers_are_checked(govtool, project):
    govtool("init")
    write("q.jsonl")
    for arguments, stated in (
        (["--engine", "sparc"], "did you mean  spark"),
        (["--engine", "spark", "--workers", "2"], "--master"),
        (["--master", "local[2]"], "--engine spark"),
        (["--workers", "0"], "--workers"),
    ):
        done = govtool("ingest", "log", "q.jsonl", *arguments)
        assert done.code == 2, arguments
        assert stated in done.err
    assert govtool("ingest", "log", "q.jsonl", "--workers", "1").code == 0


def test_min_coverage_holds_for_runs_too(govtool, project):
    govtool("init")
    good = [{"sql": f"SELECT a{n} FROM t"} for n in range(9)]
    write("q.jsonl", good + [{"sql": "SELECT FROM WHERE ("}] * 91)
    done = govtool("ingest", "log", "q.jsonl", "--min-coverage", "50")
    assert done.code == 3
    assert "by runs" in done.err


def test_failures_are_explained_without_literals(govtool, project):
    govtool("init")
    done = govtool("ingest", "log", write("q.jsonl"), "--explain-failures")
    lines = done.out.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("q.jsonl:4"))
    assert lines[at + 1 : at + 3] == ["    SELECT FROM WHERE e = '?' AND (", "                ^"]


def test_sql_files_explain_failures_too(govtool, project):
    govtool("init")
    Path("a.sql").write_text("SELECT 1;\nSELECT FROM WHERE (;\n")
    assert "a.sql:2 · 1 run · parse-error" in govtool("ingest", "sql", "a.sql", "--explain-failures").out


def test_too_many_rejects_give_up(govtool, project):
    govtool("init")
    write("q.jsonl", more="x\ny\nz\n")
    done = govtool("ingest", "log", "q.jsonl", "--max-errors", "2")
    assert done.code == 3
    assert "q.jsonl:8" in done.err
    assert json.loads(govtool("log", "-f", "json").out)["commits"] == []
    assert govtool("ingest", "log", "q.jsonl", "--max-errors", "3").code == 0


def test_a_map_and_stdin_and_gzip(govtool, project):
    govtool("init")
    data = b'{"body": {"q": "CREATE TABLE b AS SELECT c FROM d"}}\n'
    done = govtool("ingest", "log", "-", "--map", "text=body.q", "--from", "jsonl", stdin=gzip.compress(data))
    assert done.code == 0
    assert "b.c" in govtool("impact", "d.c").out


def test_parquet_is_read_from_files_and_pipes_by_any_number_of_processes(govtool, project, monkeypatch):
    import pyarrow as pa
    import pyarrow.parquet as pq

    from govtool.app.ingest.logs import local

    monkeypatch.setattr(local, "SMALL", 100)
    texts = [f"CREATE TABLE b{n} AS SELECT c FROM d" for n in range(50)]
    pq.write_table(pa.table({"QUERY_TEXT": texts, "EXECUTION_STATUS": ["SUCCESS"] * 50}), "q.parquet")
    govtool("init")
    for arguments, stdin in (
        (["q.parquet", "--workers", "1"], b""),
        (["q.parquet", "--workers", "2", "--source", "again"], b""),
        (["-"], Path("q.parquet").read_bytes()),
    ):
        done = govtool("ingest", "log", *arguments, stdin=stdin)
        assert (done.code, "50 records, 50 distinct" in done.out) == (0, True), done.err


def test_formats_side_by_side_in_a_folder(govtool, project):
    govtool("init")
    for name in ("snowflake.csv", "bigquery.json", "databricks.csv", "postgres.csv"):
        Path("logs").mkdir(exist_ok=True)
        Path("logs", name).write_bytes((FIXTURES / name).read_bytes())
    done = govtool("ingest", "log", "logs")
    assert done.code == 0
    assert "4 files" in done.out
    assert "prod.mart.a.id" in govtool("impact", "prod.raw.users.id").out


def test_a_file_of_a_folder_that_is_no_log_costs_only_itself(govtool, project):
    govtool("init")
    Path("logs").mkdir()
    write("logs/q.jsonl")
    Path("logs", "README").write_text("hello\n")
    done = govtool("ingest", "log", "logs")
    assert done.code == 0
    assert "README" in done.err
    assert "5 records (1 failed, 1 rejected)" in done.out


def test_a_pipe_is_read_like_a_file(govtool, project):
    govtool("init")
    write("q.jsonl")
    os.mkfifo("pipe")
    with subprocess.Popen(["cp", "q.jsonl", "pipe"]):
        assert "5 records" in govtool("ingest", "log", "pipe").out


def test_a_schema_without_catalogs_is_that_of_the_logs_database(govtool, project):
    govtool("init")
    Path("ddl.sql").write_text("CREATE TABLE crm.users (id int, email text)")
    write("q.jsonl", [{"sql": "CREATE VIEW crm.v AS SELECT * FROM crm.users", "database": "shop"}])
    done = govtool("ingest", "log", "q.jsonl", "--dialect", "postgres", "--schema", "ddl.sql", "--strict")
    assert done.code == 0
    assert "shop.crm.v.email" in govtool("impact", "crm.users.email").out


def test_nonsense_is_refused_with_what_to_do(govtool, project):
    govtool("init")
    Path("x.log").write_text("hello\n")
    for arguments in (
        ["x.log"],
        ["x.log", "--from", "nope"],
        ["missing"],
        ["x.log", "--map", "nope=x"],
        ["x.log", "--map", "text"],
    ):
        done = govtool("ingest", "log", *arguments)
        assert done.code == 2, arguments
        assert "Traceback" not in done.err


@pytest.mark.parametrize("options", [(), ("--workers", "2")])
def test_aliases_rename_what_logs_say_and_the_same_log_is_nothing_new(govtool, project, options):
    lines = [{"sql": "create table s.new as select a from s.old", "dialect": "postgres"}]
    (project / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (project / "govtool.toml").write_text('[aliases]\n"s.*" = "lake.*"\n')
    govtool("init")
    ingest = ("ingest", "log", "log.jsonl", "--from", "jsonl", *options)
    assert govtool(*ingest).code == 0
    assert "lake.new" in govtool("impact", "lake.old.a").out
    assert "s.new" in govtool("explain", "lake.new").out  # the name that was replaced, as a fact
    assert govtool("impact", "s.old.a").code == 2
    assert "nothing new" in govtool(*ingest).out
    (project / "govtool.toml").write_text('[aliases]\n"s.*" = "pond.*"\n')
    assert "nothing new" not in govtool(*ingest).out
    assert "pond.new" in govtool("impact", "pond.old.a").out


def test_explain_says_how_often_by_whom_and_when_a_statement_ran(govtool, project):
    records = [
        {"ts": f"2026-11-0{day}T01:00:00Z", "user": user, "sql": "INSERT INTO w.o SELECT a FROM t.i"}
        for day, user in enumerate(("ann", "bob", "eve", "ann"), 1)
    ]
    once = {"ts": "2026-11-09T01:00:00Z", "user": "ann", "sql": "INSERT INTO w.once SELECT a FROM t.i"}
    govtool("init")
    assert govtool("ingest", "log", write("q.jsonl", [*records, once])).code == 0
    assert "append, 4 runs by ann, bob, eve, 2026-11-01 to 2026-11-04" in govtool("explain", "w.o").out
    assert "runs" not in govtool("explain", "w.once").out.partition("coverage")[0]
    (definition,) = json.loads(govtool("explain", "w.o", "-f", "json").out)["definitions"]
    assert (definition["users"], definition["count"]) == (["ann", "bob", "eve"], 4)


def test_sql_is_a_log_only_where_it_is_said_to_be(govtool, project):
    govtool("init")
    Path("etl.sql").write_text("-- nightly\ncreate table mart.a as select email from crm.users;\n")
    refused = govtool("ingest", "log", "etl.sql")
    assert refused.code == 2
    assert "this is SQL, not a query log" in refused.err
    assert "govtool ingest sql" in refused.err
    assert govtool("ingest", "log", "-", stdin=Path("etl.sql").read_bytes()).code == 2
    assert "1 record, 1 distinct" in govtool("ingest", "log", "etl.sql", "--from", "sql").out

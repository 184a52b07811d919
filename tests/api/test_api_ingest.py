"""``govtool.ingest_*()``: what they return, and that a command and a call make one batch."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import govtool
from govtool.cli.commands import COMMANDS
from govtool.cli.main import main
from govtool.cli.shared.command import as_command
from govtool.cli.shared.common import COMMON
from govtool.errors import EvidenceError, StoreError, UnknownNameError, UsageError

ROOT = Path(__file__).parents[2]
PRESENTATION = {"format", "output"}
"""Of a dry run."""
INGESTS = ("sql", "log", "dbt", "catalog", "openlineage", "prov", "spark")


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_sql(project):
    govtool.init()
    (project / "etl.sql").write_text("create view v as select a from t;\ncreate view w as select foo( from")
    result = govtool.ingest_sql("etl.sql", message="first")
    assert (result.created, result.commit.seq, result.commit.message, result.source) == (
        True,
        1,
        "first",
        "sql:etl.sql",
    )
    assert result.coverage.share() == 0.5
    assert [(d.code, d.line, result.text.line(d)) for d in result.diagnostics] == [
        ("parse-error", 2, "create view w as select foo( from")
    ]
    assert [(reason.code, reason.statements) for reason in result.reasons] == [("parse-error", 1)]
    with pytest.raises(EvidenceError):
        result.check_coverage(strict=True)
    assert govtool.ingest_sql("etl.sql").created is False


@pytest.mark.parametrize(
    ("words", "call"),
    [
        (
            ("sql", "fixtures/shop/postgres", "--dialect", "postgres"),
            lambda: govtool.ingest_sql(ROOT / "fixtures/shop/postgres", dialect="postgres"),
        ),
        (
            ("log", "fixtures/logs/generic.jsonl", "--dialect", "trino"),
            lambda: govtool.ingest_log(ROOT / "fixtures/logs/generic.jsonl", dialect="trino"),
        ),
        (("dbt", "fixtures/dbt/shop/target"), lambda: govtool.ingest_dbt(ROOT / "fixtures/dbt/shop/target")),
        (
            ("openlineage", "fixtures/openlineage"),
            lambda: govtool.ingest_openlineage([ROOT / "fixtures/openlineage"]),
        ),
        (("prov", "fixtures/prov"), lambda: govtool.ingest_prov(str(ROOT / "fixtures/prov"))),
        (
            ("spark", "fixtures/spark/logs/spark-3.5.9.gz"),
            lambda: govtool.ingest_spark(ROOT / "fixtures/spark/logs/spark-3.5.9.gz"),
        ),
    ],
    ids=[name for name in INGESTS if name != "catalog"],
)
def test_a_call_commits_what_the_command_does(words, call, capsys):
    govtool.init()
    kind, place, *options = words
    assert main(["ingest", kind, str(ROOT / place), *options]) == 0
    capsys.readouterr()
    again = call()
    assert again.created is False, "the call reads the same, in the same way"
    assert again.commit == govtool.open().commit
    assert again.coverage.statements
    assert capsys.readouterr() == ("", "")


def test_catalog(project):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(project / "shop.duckdb")) as connection:
        connection.execute("create table users (id int, email text); create view v as select email from users")
    govtool.init()
    result = govtool.ingest_catalog("duckdb:///shop.duckdb")
    assert result.created
    assert [row[0] for row in govtool.open().ls("v").rows()] != []


def test_store_branch_and_source(project):
    elsewhere = project / "elsewhere"
    assert govtool.init(elsewhere).endswith("elsewhere")
    (project / "a.sql").write_text("create view v as select a from t")
    result = govtool.ingest_sql(Path("a.sql"), store=elsewhere, source="mine", author="me")
    assert (result.source, result.commit.author) == ("mine", "me")
    with pytest.raises(UnknownNameError) as caught:
        govtool.ingest_sql("a.sql", store=elsewhere, branch="nowhere")
    assert caught.value.code == "usage.unknown-branch"
    with pytest.raises(StoreError) as missing:
        govtool.ingest_sql("a.sql")
    assert missing.value.code == "store.missing"


def test_log_fields_are_a_mapping(project):
    govtool.init()
    (project / "log.jsonl").write_text('{"q": "create view v as select a from t", "ts": "2026-11-20T01:00:00Z"}\n')
    seen = []
    result = govtool.ingest_log("log.jsonl", map={"text": "q", "started_at": "ts"}, progress=seen.append)
    assert result.counts["records"] == 1
    with pytest.raises(UsageError):
        govtool.ingest_log("log.jsonl", map=["nonsense"])


@pytest.mark.parametrize("name", INGESTS)
def test_calls_take_the_options_of_the_command(name):
    command = COMMANDS["ingest"][name].load()
    options = {each.name for each in as_command(name, command).params} - PRESENTATION - set(COMMON)
    if name == "spark":
        options = options - {"database"} | {"default_schema"}  # the name of the option
    taken = set(inspect.signature(getattr(govtool, f"ingest_{name}")).parameters)
    assert taken - {"stdin", "progress", "report"} == options

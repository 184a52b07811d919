"""Every command of README.md and docs/*.md that other tests leave: it runs, in a project like that of the other pages.

Questions are asked by test_python_docs.py, tutorials and how-tos by test_tutorials.py, docs/provenance-graphs.md by
test_provenance_graph_docs.py. What is left is run here, or named in ``CANNOT_RUN`` with the reason.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from docs.test_python_docs import COMMANDS, command_of

from govtool.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))]
ELSEWHERE = frozenset({"docs/cli.md", "docs/provenance-graphs.md"})

CANNOT_RUN: Mapping[str, str] = {
    "govtool init": "there is a store already: the first command of every page",
    "govtool ingest catalog postgresql:": "a server: tests/capture/catalog",
    "govtool ingest sql etl/ --catalog postgresql:": "a server: tests/capture/catalog",
    "govtool erase apply plan.json": "rows of a recorded run: tests/records",
    "govtool erase verify": "the same",
    "govtool index app-1/0": "the same",
    "govtool ingest log /shared/logs": "a cluster of Spark and S3",
    "govtool index --engine spark": "the same: tests/spark",
    "govtool ingest spark": "event logs of Spark: tests/capture/spark",
    "govtool run ": "jobs of Spark: tests/spark",
    "govtool runs 'accounts:": "runs of a workflow: tests/workflow/modules",
    "govtool diff accounts:": "the same",
    "govtool serve openlineage": "it runs until it is stopped: tests/cli",
    "govtool export openlineage --to": "a server: tests/app/test_event_delivery.py",
    "govtool report html --trace": "a recorded run: docs/tutorials/wrong-number.md, by test_tutorials.py",
    "govtool lineage query.sql --catalog": "a database: tests/capture/catalog",
    "govtool trace ": "recorded runs: tests/records; the tutorial asks the like",
    "govtool replay local-": "recorded runs",
    "govtool replay app-2/0 --all-runs": "several recorded runs: tests/records",
    "govtool impact raw/users.email --where": "recorded runs: tests/records",
    "govtool erase plan --subject users.name=bob --key views.user --all-runs": "recorded runs: docs/erasure.md asks the like",
    "govtool runs 'nightly_": "runs of Spark: tests/spark",
    "govtool show": "runs of Spark: tests/spark",
    "govtool diff nightly": "runs of Spark: tests/spark",
    "govtool workflow ": "runs of workflows: tests/workflow",
    "govtool whatif delete --run": "runs of workflows: tests/workflow",
    "govtool whatif delete --tokens": "runs of workflows: tests/workflow",
    "govtool whatif delete TOKEN": "runs of workflows: tests/workflow",
    "govtool zoom out --run": "the run of these",
    "govtool why '": "the run of these",
    "govtool graph export run:": "the run of these",
}
"""Beginnings of commands that cannot run here, with the reason, or the tests that run the like."""

_BLOCK = re.compile(r"^```(console|bash|sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^    (?:\$ )?(govtool .*)$", re.MULTILINE)
_REDIRECTED = re.compile(r" > \S+$")
_NOTE = re.compile(r"\s#\s.*$|\s{2,}\S.*$")


def commands(page: str) -> Iterator[tuple[str, str]]:
    """The commands of a page without prompts and notes, one a part of ``&&``, each behind the language of its block."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = [*_BLOCK.findall(text), ("indented", "\n".join(_INDENTED.findall(_FENCE.sub("", text))))]
    for language, block in blocks:
        for line in block.replace("\\\n", " ").splitlines():
            plain = _REDIRECTED.sub("", _NOTE.sub("", line.removeprefix("$ ")))
            parts = (part.strip() for part in plain.split(" && "))
            yield from ((language, part) for part in parts if part.startswith("govtool "))


def left_over(page: str) -> list[str]:
    """The commands of a page that no other test runs: no questions of console blocks, which test_python_docs.py asks."""
    return [
        command
        for language, command in commands(page)
        if page not in ELSEWHERE and (language != "console" or command_of(shlex.split(command)) not in COMMANDS)
    ]


@pytest.fixture
def project(tmp_path, monkeypatch, capsys):
    """A working directory with the files that pages name, and a store."""
    monkeypatch.setenv("BRANCH", "change")
    shop = ROOT / "fixtures" / "shop" / "postgres"
    shutil.copytree(shop, tmp_path / "warehouse")
    shutil.copytree(ROOT / "policies", tmp_path / "policies")
    shutil.copy(shop / "ddl.sql", tmp_path / "ddl.sql")
    (tmp_path / "query.sql").write_text("select city from orders join customers on cust = id", encoding="utf-8")
    (tmp_path / "customers.csv").write_text("_tok,id,city\nc1,1,Paris\nc2,2,Rome\n", encoding="utf-8")
    (tmp_path / "orders.csv").write_text("_tok,cust,amount\no1,1,10.5\no3,2,20\n", encoding="utf-8")
    log = (ROOT / "fixtures" / "logs" / "snowflake.csv").read_bytes()
    (tmp_path / "history.csv.gz").write_bytes(gzip.compress(log))
    record = {"body": {"sql": "create table a as select b from c"}, "ts": "2026-11-20T10:00:00Z"}
    (tmp_path / "queries.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    shutil.copy(ROOT / "fixtures" / "openlineage" / "spark_orders.jsonl", tmp_path / "events.jsonl")
    assert main(["init", "--no-sources", "--quiet"]) == 0
    assert main(["ingest", "sql", "warehouse/", "--dialect", "postgres", "--schema", "ddl.sql", "--quiet"]) == 0
    capsys.readouterr()
    return tmp_path


@pytest.mark.parametrize("page", [page for page in PAGES if left_over(page)])
def test_commands_that_are_no_questions_run(page, project, capsys):
    failed = {}
    for command in left_over(page):
        if any(command.startswith(start) for start in CANNOT_RUN):
            continue
        code = main(shlex.split(os.path.expandvars(command))[1:])
        shown = capsys.readouterr()
        written = [Path(file).is_file() for file in re.findall(r" -o (\S+)", command)]
        if code not in (0, 1, 3) or not all(written or [shown.out + shown.err]):
            failed[command] = f"{code} {shown.err.strip()[:300]}"
    assert failed == {}


def test_what_cannot_run_is_still_there():
    written = [command for page in PAGES for command in left_over(page)]
    assert [start for start in CANNOT_RUN if not any(one.startswith(start) for one in written)] == []

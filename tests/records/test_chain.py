"""Executors in order: the next one where the one before is not exact; what was kept is evaluated again."""

from __future__ import annotations

import os

import pytest

from govtool.app.records import engines as record_engines
from govtool.app.trace.questions import trace_back
from govtool.app.trace.report import TraceRequest
from govtool.cli.main import main
from govtool.errors import EngineError
from govtool.records.execute.chain import ExecutorChain, PlanEngine
from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.nodes import LocalRows, Project, Session
from govtool.records.plan.types import INTEGER
from govtool.records.sql.dialect import NotExact

SESSION = Session("4.0.1", True, "UTC")
A = Attribute(1, "a", INTEGER)
ROWS = LocalRows(0, (A,), ((1,), (2,)))


class Fails:
    """Evaluates a few plans, then refuses."""

    def __init__(self, good: int) -> None:
        self.good = good
        self.duck = DuckExecutor(SESSION)

    def _refuse(self):
        self.good -= 1
        if self.good < 0:
            raise NotExact("it was told so")

    def keep(self, node):
        self._refuse()
        return self.duck.keep(node)

    def fetch(self, node):
        self._refuse()
        return self.duck.fetch(node)

    def arrow(self, node):
        self._refuse()
        return self.duck.arrow(node)


def chain(good, *more):
    return ExecutorChain((PlanEngine("first", lambda: Fails(good)), *more))


def second():
    return PlanEngine("second", lambda: DuckExecutor(SESSION))


def test_the_first_executor_is_used_while_it_is_exact():
    executors = chain(9, second())
    kept = executors.keep(ROWS)
    assert sorted(executors.fetch(Project(kept, ()))) == [(), ()]
    assert (executors.engine, executors.refusals) == ("first", [])


def test_a_reason_that_several_executors_have_is_given_once():
    executors = chain(0, PlanEngine("second", lambda: Fails(0)))
    for _ in range(2):
        with pytest.raises(EngineError, match=r": first and second do not evaluate it exactly: it was told so$"):
            executors.fetch(ROWS)


@pytest.mark.parametrize("good", [0, 1, 2])
def test_what_was_kept_before_a_refusal_is_there_after_it(good):
    executors = chain(good, second())
    kept = executors.keep(ROWS)
    again = executors.keep(kept)
    assert sorted(executors.fetch(again)) == [(1,), (2,)]
    assert executors.engine == "second"
    assert executors.refusals == [("first", "it was told so")]


def test_when_none_is_exact_the_reasons_are_named():
    executors = chain(0, PlanEngine("last", lambda: Fails(0)))
    with pytest.raises(EngineError) as error:
        executors.fetch(ROWS)
    assert "first" in error.value.message
    assert "last" in error.value.message
    assert error.value.code == "engine.not-exact"


def test_an_executor_that_cannot_be_started_says_what_to_install(shop, monkeypatch):
    def missing(*_):
        raise EngineError("pyspark is not installed", code="engine.spark", hint="pip install 'govtool[spark]'")

    def refuses(session, *_):
        raise NotExact("files of format csv")

    monkeypatch.setattr(record_engines, "_duckdb", refuses)
    monkeypatch.setattr(record_engines, "_spark", missing)
    with pytest.raises(EngineError) as error:
        trace_back(shop.store, shop.store.head("main"), TraceRequest("report", "n = 2"))
    assert "files of format csv" in error.value.message
    assert error.value.hint == "pip install 'govtool[spark]'"


def test_a_damaged_file_is_named_where_no_executor_reads_it(shop, monkeypatch, capsys):
    def missing(*_):
        raise EngineError("pyspark is not installed", code="engine.spark", hint="pip install 'govtool[spark]'")

    monkeypatch.setattr(record_engines, "_spark", missing)
    file = max((shop.folder / "views").glob("*.parquet"))
    status, data = file.stat(), bytearray(file.read_bytes())
    data[4:-8] = bytes(len(data) - 12)  # its size, time, magic numbers and the length of its footer are as before
    file.write_bytes(data)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert main(["trace", "back", "report", "--where", "n = 2"]) == 3
    printed = capsys.readouterr().err
    assert "error[evidence.damaged]" in printed
    assert file.name in printed

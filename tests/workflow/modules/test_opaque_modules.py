"""Rows of a module whose inside is not known come from any row that it read; nothing finer is claimed."""

from __future__ import annotations

import pytest

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

from operator_deletions import RECORDS
from sql_modules import SqlModules

from govtool.app.workflow_runs.opened import OpenedRun
from govtool.app.workflow_runs.why import why_in_run
from govtool.errors import UsageError

QUERIES = {"made": "SELECT g, x FROM r", "out": "SELECT g, max(x) AS m FROM made GROUP BY g"}


def answered(folder, *semirings, opaque=("made",)):
    run = SqlModules(folder, {"r": RECORDS[0]["r"]}, QUERIES, frozenset(opaque))
    return why_in_run(OpenedRun(run.run, run), "out", semirings), run.tokens


def test_all_that_it_read_is_behind_its_rows(tmp_path):
    answer, tokens = answered(tmp_path, "which", "where")
    assert answer.tuples
    for row in answer.tuples:
        assert set(row.annotations["which"]) == set(tokens)
        assert "where" not in row.annotations
    assert any(note.startswith("made") and "any row that it read" in note for note in answer.notes)


def test_a_module_that_is_known_is_traced_through(tmp_path):
    answer, tokens = answered(tmp_path, "which", "where", opaque=())
    assert all(0 < len(row.annotations["which"]) < len(tokens) for row in answer.tuples)
    assert all(row.annotations["where"]["g"] for row in answer.tuples)


def test_semirings_that_do_not_fit_are_refused_with_the_reason(tmp_path):
    with pytest.raises(UsageError, match="a module whose inside is not known"):
        answered(tmp_path, "why")

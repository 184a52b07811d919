"""A few of the cases of ``operator_deletions.py``: deletions that decide what a computed value is equal to."""

from __future__ import annotations

import pytest

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

from operator_deletions import RECORDS, cases, problems
from sql_modules import SqlModules

CASES = {name: (queries, opaque) for name, queries, opaque in cases()}
FEW = [
    "EXCEPT a count",
    "NOT IN a limit",
    "UNION of a constant",
    "groups of constants",
    "rank over a left join",
    "EXCEPT distinct counts, made",
    "EXCEPT the first, state",
    "count of all, opaque",
]


@pytest.mark.parametrize("name", FEW)
def test_no_deletion_contradicts_a_new_run(name, tmp_path):
    wrong, _ = problems(SqlModules(tmp_path, RECORDS[0], *CASES[name]), of_run=False)
    assert wrong == []


def test_a_gate_that_stays_closed_decides(tmp_path):
    """A group that goes with its row changes no key: what EXCEPT takes off, and what not, is certain."""
    run = SqlModules(tmp_path, RECORDS[0], *CASES["EXCEPT a count"])
    _, statuses = problems(run)
    assert statuses["graph unknown"] == statuses["run unknown"]

"""Scripts of triggers, DML and views, run in SQLite on changed data: what changes has a verdict."""

from __future__ import annotations

from bench.oracles.statements import run


def test_a_column_that_changes_has_a_verdict() -> None:
    report = run(range(60))
    assert report.changed > 500
    assert [(one.subject, one.column, one.sql) for one in report.missed] == []

"""Traces of random plans are those of the reference: back, against and forward."""

from __future__ import annotations

import pytest
from depth import LONG
from differential import read_twice, run

from govtool.records.trace import deep


@pytest.mark.parametrize("first", range(0, 320 if LONG else 120, 40))
def test_traces_are_those_of_the_reference(first):
    report = run(range(first, first + 40))
    assert report.wrong == []
    assert report.cases == 40
    assert report.traces > report.supersets


@pytest.mark.parametrize("first", [1000, 1040] if LONG else [1000])
def test_traces_over_files_are_those_of_the_reference(first, tmp_path):
    report = run(range(first, first + 40), tmp_path)
    assert report.wrong == []
    assert report.cases == 40
    assert report.skipped < 4, report.reasons


def test_traces_of_plans_that_are_read_twice_are_those_of_the_reference():
    """Each reading has ids of its own, in the subqueries that read its columns, too."""
    report = run(range(2000, 2040), change=read_twice)
    assert report.wrong == []
    assert report.cases == 40
    assert report.traces


def test_traces_of_plans_that_are_cut_are_those_of_the_reference(monkeypatch):
    monkeypatch.setattr(deep, "DEEP", 2)
    report = run(range(92000, 92030))
    assert report.wrong == []
    assert report.traces > report.supersets


def test_a_traced_row_that_was_taken_off_elsewhere_is_revived_by_a_replay():
    """The rows that took it off are no part of the trace, as no row of the result comes of it there."""
    report = run(range(101602, 101603))
    assert report.wrong == []
    assert report.revived == 1


@pytest.mark.slow
def test_traces_in_spark_are_those_of_the_reference(spark, tmp_path):
    report = run(range(2), tmp_path, spark)
    assert report.wrong == []
    assert report.traces


@pytest.mark.slow
def test_traces_of_plans_that_spark_made_are_those_of_the_reference(spark, tmp_path):
    from spark_plans import run as run_captured

    report = run_captured(range(3000, 3016), tmp_path, spark.newSession())
    assert report.wrong == []
    assert report.cases == 16
    assert report.traces > report.supersets

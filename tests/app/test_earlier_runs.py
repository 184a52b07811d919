"""Runs of a job beside its earlier ones: all are there, and what is written does not grow with their number."""

from __future__ import annotations

import random

import pytest

from govtool.app.runs import job
from govtool.app.runs.earlier_runs import MERGED, EarlierRuns
from govtool.app.runs.job import Captured, commit_captured
from govtool.capture.spark.eventlog.gathered import EventLogFindings
from govtool.model.run import Run, RunOutput
from govtool.store import Store

SOURCE = "run:nightly"


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Store.init(str(tmp_path / "store"))


def night(number, count=1, output="out"):
    runs = [
        Run(
            f"app-{number}/{n}",
            f"nightly:{n}",
            "complete",
            "plan",
            SOURCE,
            f"app-{number}",
            outputs=(RunOutput(output),),
        )
        for n in range(count)
    ]
    return Captured(EventLogFindings(SOURCE, runs=runs, _ids={run.id for run in runs}), 1)


def commit(store, captured):
    return commit_captured(store, captured, identified=0)


def fragments(store):
    return EarlierRuns.of(store, store.head("main"), SOURCE).fragments


def stored(store):
    return {run.id: run.outputs[0].dataset for each in fragments(store) for run in each.runs()}


def refs(store):
    return {each.ref for each in fragments(store)}


def test_runs_are_written_again_a_few_times_at_most(store):
    counts = [random.Random(4).randint(1, 5) for _ in range(60)]
    written = 0
    for number, count in enumerate(counts):
        before = refs(store) if number else set()
        commit(store, night(number, count))
        written += sum(ref.rows for ref in refs(store) - before)
        assert len(refs(store)) <= 3 * MERGED
    assert set(stored(store)) == {f"app-{number}/{n}" for number, count in enumerate(counts) for n in range(count)}
    assert written <= 3 * sum(counts)


def test_a_run_that_is_committed_twice_is_there_once(store):
    first = commit(store, night(0, 2))
    again = commit(store, night(0, 2))
    assert not again.created
    assert again.commit.id == first.commit.id
    commit(store, night(1))
    commit(store, night(0, 3, "other"))
    assert stored(store) == {"app-0/0": "other", "app-0/1": "other", "app-0/2": "other", "app-1/0": "out"}


def test_another_run_that_is_committed_meanwhile_stays(store, monkeypatch):
    for number in range(3):
        commit(store, night(number))
    once, ingest = [], job.ingest_once

    def late(*arguments, **keywords):
        if not once:
            once.append(True)
            commit(store, night(8))
        return ingest(*arguments, **keywords)

    monkeypatch.setattr(job, "ingest_once", late)
    commit(store, night(9))
    assert set(stored(store)) == {f"app-{number}/0" for number in (0, 1, 2, 8, 9)}


def test_earlier_runs_go_under_a_new_alias(store, tmp_path):
    commit(store, night(0))
    (tmp_path / "govtool.toml").write_text('[aliases]\n"out" = "renamed"\n')
    commit(store, night(1))
    assert stored(store) == {"app-0/0": "renamed", "app-1/0": "renamed"}

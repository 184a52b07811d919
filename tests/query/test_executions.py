"""One run of every execution: records of a live session, an event log and OpenLineage events are joined, others never."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from govtool.app.runs.lookup import matching_runs
from govtool.capture.openlineage.events import EventReader
from govtool.capture.openlineage.merge import MergedEvents
from govtool.capture.openlineage.runs import runs_of
from govtool.model.run import Run, RunInput, RunOutput, Software
from govtool.query.runs.executions import one_run_each
from govtool.query.runs.history import History

APPLICATION = "local-1795403935500"
STARTED = "2026-11-23T03:19:29.065Z"
LIVE = Run(
    id=f"{APPLICATION}/2",
    job="job.py:c.csv",
    status="complete",
    how="plan",
    source="run:job.py",
    application=APPLICATION,
    started=STARTED,
    ended="2026-11-23T03:19:33.510Z",
    software=(Software("python", "3.11"),),
    inputs=(RunInput("in.parquet"),),
    outputs=(RunOutput("c.csv", "overwrite", 2),),
)
LOGGED = replace(LIVE, job="aud:c.csv", how="plan-text", source="spark:ev", user="ann", software=())
UUID = "0191a7c4-5dd3-7b4f-9d2c-6f1d8a2b3c4d"
EVENTS = replace(
    LIVE, id=UUID, job="spark/aud.c_csv", how="openlineage", source="openlineage:ev", software=(), outputs=()
)


@pytest.mark.parametrize("seed", range(6))
def test_three_records_of_one_execution_are_one_run(seed):
    records = [LIVE, LOGGED, EVENTS]
    random.Random(seed).shuffle(records)
    (found,) = one_run_each(records)
    assert (found.id, found.job, found.user, found.outputs) == (LIVE.id, LIVE.job, "ann", LIVE.outputs)
    assert [record.source for record in found.records] == ["run:job.py", "spark:ev", "openlineage:ev"]


@pytest.mark.parametrize("name", [LIVE.id, UUID, LIVE.job, LOGGED.job, EVENTS.job, UUID[:8], "5500/2"])
def test_a_run_is_found_by_the_names_of_all_its_records(name):
    history = History([LOGGED, EVENTS, LIVE])
    assert [run.id for run in matching_runs(history, name)] == [LIVE.id]


@pytest.mark.parametrize(
    "other",
    [
        replace(LOGGED, id=f"{APPLICATION}/3"),
        replace(LOGGED, outputs=(RunOutput("other.csv"),)),
        replace(LOGGED, id="local-1/2", application="local-1"),
        replace(EVENTS, started="2026-11-23T03:19:29.066Z"),
        replace(EVENTS, application="local-1"),
        replace(EVENTS, application=""),
        replace(EVENTS, how="prov"),
        replace(EVENTS, outputs=(RunOutput("other.csv"),)),
    ],
    ids=["number", "outputs", "application", "start", "events of another", "no application", "prov", "another output"],
)
def test_different_executions_stay_apart(other):
    assert len(one_run_each([LIVE, other])) == 2


def test_events_that_fit_two_executions_are_joined_to_neither():
    twin = replace(LIVE, id=f"{APPLICATION}/3", job="job.py:d.csv", outputs=(RunOutput("d.csv"),))
    assert len(one_run_each([LIVE, twin, EVENTS])) == 3


def test_what_only_another_record_knows_is_filled_in_and_nothing_else():
    bare = replace(LIVE, inputs=(), ended=None)
    fuller = replace(LOGGED, inputs=(RunInput("in.parquet"), RunInput("b")), outputs=(RunOutput("c.csv", rows=9),))
    (found,) = one_run_each([fuller, bare])
    assert found.inputs == fuller.inputs
    assert (found.outputs, found.ended, found.how) == (bare.outputs, LOGGED.ended, "plan")


def _event(run: str, job: str, time: str, facets: dict[str, object]) -> dict[str, object]:
    return {
        "eventType": "START",
        "eventTime": time,
        "run": {"runId": run, "facets": facets},
        "job": {"namespace": "spark", "name": job},
    }


def _details(application: str) -> dict[str, object]:
    return {"spark_applicationDetails": {"applicationId": application, "appName": "aud", "userName": "ann"}}


def _parent(run: str) -> dict[str, object]:
    return {"parent": {"run": {"runId": run}, "job": {"namespace": "spark", "name": "aud"}}}


@pytest.mark.parametrize(
    "facets", [_details(APPLICATION), _parent("app")], ids=["stated with the run", "stated with its application"]
)
def test_sparks_application_is_read_from_openlineage(facets):
    state = MergedEvents()
    events = [
        _event("app", "aud", "2026-11-23T03:19:00Z", _details(APPLICATION)),
        _event(UUID, "aud.c_csv", STARTED, facets),
        _event("elsewhere", "dag", STARTED, _parent("a-dag-run")),
    ]
    for number, value in enumerate(events, 1):
        for event in EventReader("events.jsonl").events(value, number):
            state.add(event)
    runs = {run.id: run for run in runs_of(state, "openlineage:ev")}
    assert {name: run.application for name, run in runs.items()} == {
        "app": APPLICATION,
        UUID: APPLICATION,
        "elsewhere": "a-dag-run",
    }
    assert len(one_run_each([LIVE, *runs.values()])) == 3

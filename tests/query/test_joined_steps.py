"""An edge that a live record and OpenLineage events show is one step, if they are of one execution and say one edge."""

from __future__ import annotations

import pytest

from govtool.model.kinds import EdgeKind
from govtool.query.evidence import Evidence, WayStep
from govtool.query.joined_steps import joined

LIVE, UUID, OTHER = "local-1/2", "0191a7c4", "0191ffff"
EXECUTIONS = {LIVE: LIVE, UUID: LIVE, OTHER: OTHER}


def step(how: str, run: str, functions: tuple[str, ...] = (), **more) -> WayStep:
    place = Evidence("insert", "job.py", 1, "", how, run)
    values = {"kind": EdgeKind.AGGREGATION, "star": False, "masking": False, "reason": None, "elided": False, **more}
    return WayStep("in.v", "out.m", functions=functions, evidence=place, **values)


def shown(steps, executions=EXECUTIONS):
    return [
        (one.label, [place.run for place in (one.evidence, *one.more)]) for one in joined(steps, lambda: executions)
    ]


@pytest.mark.parametrize("turned", [False, True])
def test_events_of_the_same_execution_are_evidence_of_the_fuller_edge(turned):
    steps = [step("plan", LIVE, ("max",)), step("openlineage", UUID)]
    assert shown(steps[::-1] if turned else steps) == [("max()", [LIVE, UUID])]


def test_of_two_events_only_that_of_the_execution_joins():
    steps = [step("plan", LIVE, ("max",)), step("openlineage", OTHER), step("openlineage", UUID)]
    assert shown(steps) == [("max()", [LIVE, UUID]), ("aggregate", [OTHER])]


@pytest.mark.parametrize(
    "steps",
    [
        [step("plan", LIVE, ("max",)), step("openlineage", OTHER)],
        [step("plan", LIVE, ("max",)), step("openlineage", "unknown")],
        [step("plan", LIVE, ("max",)), step("openlineage", UUID, kind=EdgeKind.WINDOW)],
        [step("plan", LIVE, ("max",)), step("openlineage", UUID, masking=True)],
        [step("plan", LIVE, ("max",)), step("openlineage", UUID, ("min",))],
        [step("sql", LIVE, ("max",)), step("openlineage", UUID)],
    ],
    ids=["another run", "no run", "another kind", "masked", "another function", "a text"],
)
def test_nothing_else_joins(steps):
    assert len(joined(steps, lambda: EXECUTIONS)) == 2


def test_events_that_fit_two_edges_of_an_execution_join_neither():
    steps = [step("plan", LIVE, ("max",)), step("plan", LIVE, ("min",)), step("openlineage", UUID)]
    assert [runs for _, runs in shown(steps)] == [[LIVE], [LIVE], [UUID]]


def test_runs_are_read_only_where_events_may_join():
    def never():
        raise AssertionError("the runs were read")

    assert len(joined([step("plan", LIVE, ("max",)), step("openlineage", UUID, kind=EdgeKind.JOIN)], never)) == 2

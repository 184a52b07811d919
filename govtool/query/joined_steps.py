"""Edges that several records show are one step with all their evidence.

Records of runs say the same edge in the same words. An OpenLineage event of another program knows neither functions nor
stars: its edge is that of the record of the same execution, where there is one such edge and no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from govtool.query.evidence import RUNTIME, Evidence, WayStep

Executions = Callable[[], Mapping[str, str]]
"""The id of each run by the ids of all its records; called only where it is needed."""

_ANY_RUN = Evidence("run", "", 0, "", "plan")
"""Stands for the evidence of any run while steps are compared."""
EVENTS = "openlineage"
"""How events of OpenLineage are evidence."""


def joined(steps: Iterable[WayStep], executions: Executions) -> list[WayStep]:
    """Steps in their order; an edge that several records of runs show is one step with all their evidence."""
    found: dict[WayStep, list[Evidence]] = {}
    for each in steps:
        shown = each.evidence.how in RUNTIME
        key = replace(each, evidence=_ANY_RUN, more=()) if shown else each
        found.setdefault(key, []).extend((each.evidence, *each.more))
    return _with_events([replace(each, evidence=e[0], more=tuple(e[1:])) for each, e in found.items()], executions)


def _with_events(steps: list[WayStep], executions: Executions) -> list[WayStep]:
    """Evidence of bare events goes to the step that a record of the same execution shows in more words."""
    fuller: dict[tuple[object, ...], list[int]] = {}
    for number, step in enumerate(steps):
        if step.evidence.how in RUNTIME and not _is_bare(step):
            fuller.setdefault(_edge(step), []).append(number)
    bare = [number for number, step in enumerate(steps) if _is_bare(step) and _edge(step) in fuller]
    if not bare:
        return steps
    ran = executions()
    places = {number: list(_evidence(steps[number])) for number in (*bare, *chain.from_iterable(fuller.values()))}
    for number in bare:
        candidates = fuller[_edge(steps[number])]
        for place in _evidence(steps[number]):
            run = ran.get(place.run or "")
            fitting = [one for one in candidates if run is not None and run in _runs(steps[one], ran)]
            # Two edges of one execution (max and min of a column): the event does not say which.
            if len(fitting) == 1:
                places[number].remove(place)
                places[fitting[0]].append(place)
    return [
        step if number not in places else replace(step, evidence=places[number][0], more=tuple(places[number][1:]))
        for number, step in enumerate(steps)
        if places.get(number, True)
    ]


def _is_bare(step: WayStep) -> bool:
    return not step.functions and all(place.how == EVENTS for place in _evidence(step))


def _edge(step: WayStep) -> tuple[object, ...]:
    """What a bare event says of an edge."""
    return step.source, step.target, step.kind, step.masking, step.reason, step.elided


def _runs(step: WayStep, ran: Mapping[str, str]) -> set[str]:
    return {ran[place.run] for place in _evidence(step) if place.run is not None and place.run in ran}


def _evidence(step: WayStep) -> Sequence[Evidence]:
    return step.evidence, *step.more

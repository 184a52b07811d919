"""Events of jobs and datasets as events of runs, for receivers that take nothing else.

DataHub, OpenMetadata and Google's lineage API take RunEvents only (Marquez takes all three kinds). A statement that was
read from a file has no run: it becomes one COMPLETE run, whose id follows from what the event holds. So the same graph
sent twice is the same runs. What a DatasetEvent knows moves to the inputs and outputs of that name.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from typing import Any

from govtool.capture.openlineage.events import VERSION
from govtool.capture.openlineage.facets import SPEC

_RUN_EVENT = f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_RUNS = uuid.UUID("3c2d6c2e-30a5-5b0e-8a47-5a4f4ad0c0de")
"""The name space of the ids of runs that stand for statements."""

Event = dict[str, Any]


def run_events(events: Iterable[Event]) -> tuple[list[Event], int]:
    """Turn events into RunEvents.

    Returns:
        The events, and the number of datasets that no run reads or writes: they have no place.
    """
    found = list(events)
    known = {_key(event["dataset"]): event["dataset"].get("facets", {}) for event in found if "dataset" in event}
    made = [_with_facets(_as_run(event), known) for event in found if "job" in event]
    used = {_key(dataset) for event in made for side in ("inputs", "outputs") for dataset in event.get(side, ())}
    return made, len(known.keys() - used)


def _as_run(event: Event) -> Event:
    if "run" in event:
        return event
    content = json.dumps({**event, "eventTime": ""}, sort_keys=True)
    run = {"runId": str(uuid.uuid5(_RUNS, content)), "facets": {}}
    return {**event, "schemaURL": _RUN_EVENT, "eventType": "COMPLETE", "run": run}


def _with_facets(event: Event, known: dict[tuple[str, str], Event]) -> Event:
    """The event, its datasets with the facets that only their own events had; a version is one of a certain run."""

    def complete(dataset: Event) -> Event:
        own = {name: value for name, value in known.get(_key(dataset), {}).items() if name != VERSION}
        return {**dataset, "facets": {**own, **dataset.get("facets", {})}}

    return {**event, **{side: [complete(each) for each in event.get(side) or ()] for side in ("inputs", "outputs")}}


def _key(dataset: Event) -> tuple[str, str]:
    return dataset["namespace"], dataset["name"]

"""Actions of RDDs: datasets in and out. Columns are lost in functions over records."""

from __future__ import annotations

from collections.abc import Iterator

from govtool.capture.spark import plan as p
from govtool.capture.spark.analyzed.place_names import place_of
from govtool.capture.spark.execution import Reading, WrittenDataset
from govtool.capture.spark.flow import flow_of
from govtool.capture.spark.identity import DatasetPlace
from govtool.capture.spark.live.spool import Line

LINE = "value"
"""The column of a dataset of text, as Spark's own reader calls it."""
_TRACKED = "functions over RDDs: any part of a line may have reached any other; rows are traced by govtool trace"


def rdd_reading(line: Line) -> Reading:
    """The meaning of an action of RDDs: its lines come from all that it read.

    Args:
        line: Its facts, as ``govtool.spark.live.rdd_actions`` writes them.
    """
    places = list(_places(line))
    scans = tuple(p.Scan(place.id, (p.Named(n, LINE),)) for n, place in enumerate(places, 1))
    output = (p.Named(0, LINE),)
    lost = p.LineageBreak(scans, output, "break.rdd", str(line.get("reason") or _TRACKED))
    flow = flow_of(lost)
    command = line.get("command")
    target = place_of(command) if isinstance(command, dict) else None
    written = None
    if target is not None:
        written = WrittenDataset(target, "insert", "errorifexists", "replace", (LINE,))
    steps = line.get("steps")
    normal = [str(step) for step in steps] if isinstance(steps, list) else []
    return Reading(
        flow,
        "\n".join([*normal, str(line.get("label", ""))]),
        written,
        places={place.id: place for place in places},
        columns={place.id: {LINE: "string"} for place in places},
        notes=flow.breaks,
        ids=(0,),
    )


def _places(line: Line) -> Iterator[DatasetPlace]:
    leaves = line.get("leaves")
    found = {}
    for facts in leaves.values() if isinstance(leaves, dict) else ():
        place = place_of(facts)
        if place is not None:
            found[place.id] = place
    return iter(found.values())

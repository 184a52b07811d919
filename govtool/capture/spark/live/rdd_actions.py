"""Actions of RDDs: datasets in and out. Columns are lost in functions over records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from govtool.capture.spark import plan as p
from govtool.capture.spark.analyzed.place_names import place_of
from govtool.capture.spark.analyzed.read import Analyzed, read_plan
from govtool.capture.spark.execution import Reading, WrittenDataset
from govtool.capture.spark.flow import flow_of
from govtool.capture.spark.identity import DatasetPlace
from govtool.capture.spark.live.spool import Line

LINE = "value"
"""The column of a dataset of text, as Spark's own reader calls it."""
BREAK = "break.rdd"
_TRACKED = "functions over RDDs: any part of a line may have reached any other; rows are traced by govtool trace"
_MALFORMED = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError)


@dataclass(frozen=True, slots=True)
class RddSources:
    """The queries and the files that an RDD was made of."""

    frames: tuple[Analyzed, ...]
    files: tuple[DatasetPlace, ...]

    @classmethod
    def of(
        cls, frames: object, leaves: Iterator[Any], streams: Mapping[int, p.Node], driver: frozenset[int]
    ) -> RddSources:
        """Read them from a line of a spool.

        Args:
            frames: The queries, as ``govtool.spark.live.plans.catalyst`` writes them.
            leaves: Facts of places.
            streams: As for `read_plan`.
            driver: As for `read_plan`.
        """
        read = (_analyzed(each, streams, driver) for each in frames) if isinstance(frames, list) else ()
        places = {place.id: place for place in map(place_of, leaves) if place is not None}
        return cls(tuple(each for each in read if each is not None), tuple(places.values()))

    def lost(self, outputs: Sequence[p.Named], reason: str) -> p.LineageBreak:
        """What is made of the RDD: any column may have become any other."""
        scans = (p.Scan(place.id, (p.Named(-n, LINE),)) for n, place in enumerate(self.files, 1))
        children = (*(each.root for each in self.frames), *scans)
        return p.LineageBreak(children, tuple(outputs), BREAK, reason)

    @property
    def places(self) -> dict[str, DatasetPlace]:
        """The datasets, by id."""
        return {place.id: place for each in (*(frame.places for frame in self.frames), self.files) for place in each}

    @property
    def columns(self) -> dict[str, dict[str, str | None]]:
        """Columns of the datasets, as far as they are known."""
        found: dict[str, dict[str, str | None]] = {place.id: {LINE: "string"} for place in self.files}
        for frame in self.frames:
            for dataset, known in frame.columns:
                found.setdefault(dataset, {}).update((path, type_ or None) for path, type_ in known)
        return found


def _analyzed(frame: Any, streams: Mapping[int, p.Node], driver: frozenset[int]) -> Analyzed | None:
    """The plan of a query behind an RDD; None if it cannot be read."""
    try:
        return read_plan(frame, streams=streams, driver=driver)
    except _MALFORMED:
        return None


def rdd_reading(line: Line, streams: Mapping[int, p.Node], driver: frozenset[int]) -> Reading:
    """The meaning of an action of RDDs: its lines come from all that it read.

    Args:
        line: Its facts, as ``govtool.spark.live.rdd_actions`` writes them.
        streams: As for `read_plan`.
        driver: As for `read_plan`.
    """
    sources = RddSources.of(line.get("frames"), _leaves(line), streams, driver)
    flow = flow_of(sources.lost((p.Named(0, LINE),), str(line.get("reason") or _TRACKED)))
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
        places=sources.places,
        columns=sources.columns,
        notes=flow.breaks,
        ids=(0,),
        unplaced=bool(line.get("handed")) and not flow.reads,
    )


def with_frames(line: Line) -> Line:
    """An action with the facts of all files that it read among its leaves: those of its queries, too."""
    frames = line.get("frames")
    leaves = dict(line.get("leaves") or {})
    for number, frame in enumerate(frames if isinstance(frames, list) else ()):
        own = frame.get("leaves") if isinstance(frame, dict) else None
        leaves.update({f"{number}.{key}": facts for key, facts in (own or {}).items()})
    return {**line, "leaves": leaves}


def _leaves(line: Line) -> Iterator[object]:
    leaves = line.get("leaves")
    return iter(leaves.values() if isinstance(leaves, dict) else ())

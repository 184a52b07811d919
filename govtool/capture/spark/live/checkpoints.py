"""Checkpoints of a process: the plan behind each RDD that Spark put in the place of a DataFrame's plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from govtool.capture.spark import plan as p
from govtool.capture.spark.live.spool import Line


@dataclass(slots=True)
class Checkpoints:
    """The checkpoints of a process, by application, as their executions are read in order."""

    _rdds: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    """The RDDs that have the rows of an execution, by its application and the id of its ``QueryExecution``."""
    _plans: dict[str, dict[int, p.Node]] = field(default_factory=dict)
    """What an RDD has the rows of, by its application and its number."""
    _origins: dict[tuple[str, int], Line] = field(default_factory=dict)
    """The executions that made RDDs, by application and number of the RDD."""

    @classmethod
    def of(cls, lines: Iterable[Line]) -> Checkpoints:
        """Those that the notes of a process name."""
        made = cls()
        for line in lines:
            rdd, execution = line.get("rdd"), line.get("query_execution")
            if line.get("e") == "checkpoint" and isinstance(rdd, int) and isinstance(execution, int):
                made._rdds.setdefault((_application(line), execution), []).append(rdd)
        return made

    def take(self, line: Line, plan: p.Node) -> None:
        """Keep the plan of an execution whose rows a checkpoint has."""
        execution = line.get("query_execution")
        rdds = self._rdds.get((_application(line), execution), ()) if isinstance(execution, int) else ()
        for rdd in rdds:
            kept = p.Checkpoint(rdd, plan, p.outputs_of(plan))
            self._plans.setdefault(_application(line), {})[rdd] = kept
            self._origins[_application(line), rdd] = line

    def plans_of(self, line: Line) -> Mapping[int, p.Node]:
        """The plans behind the RDDs that an execution may read, by their numbers."""
        return self._plans.get(_application(line), {})

    def origins_of(self, line: Line) -> list[Line]:
        """The executions behind the RDDs that an execution reads itself."""
        leaves = line.get("leaves")
        facts = leaves.values() if isinstance(leaves, Mapping) else ()
        rdds = [each["rdd"] for each in facts if isinstance(each, Mapping) and isinstance(each.get("rdd"), int)]
        found = (self._origins.get((_application(line), rdd)) for rdd in dict.fromkeys(rdds))
        return [each for each in found if each is not None]


def _application(line: Line) -> str:
    return str(line.get("application", ""))

"""Objects of the JVM whose answers are fetched in one call, and called like the objects themselves.

A call over py4j costs about 0.1 ms of CPU, and so does forgetting the object that it returned. The recorder needs a
hundred of them for an action. ``Prefetcher.java`` makes those that it usually needs at once; ``Prefetched`` answers
from them, and calls the object behind for everything else. So what is fetched decides nothing but the cost.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from govtool.spark.live.jvm.janino import instance_in

EXECUTION = """\
id
queryId
 toString
analyzed =plan
executedPlan =stage
sparkSession
=plan
toJSON
getClass =class
collectLeaves
 * =leaf
?InsertIntoHadoopFsRelationCommand
 outputPath
  toString
 mode
  toString
 fileFormat
  toString
 outputColumnNames =names
 staticPartitions
  nonEmpty
 dynamicPartitionOverwrite
 catalogTable
  isDefined
=class
getSimpleName
getName
=names
isEmpty
mkString:\x01
=paths
*
 toString
=leaf
getClass =class
?LogicalRelation
 catalogTable
  isDefined
 relation
  getClass =class
  ?HadoopFsRelation
   location
    getClass =class
    ?InMemoryFileIndex
     rootPaths =paths
     allFiles
      mkString:\\n
   fileFormat
    toString
   options
    mkString:\x01
=stage
getClass =class
metrics
 get:numOutputRows =metric
 get:numOutputBytes =metric
 get:numFiles =metric
?DataWritingCommandExec
 cmd
  getClass =class
  ?InsertIntoHadoopFsRelationCommand
   dynamicPartitionOverwrite
?CommandResultExec
 commandPhysicalPlan =stage
?AdaptiveSparkPlanExec
 executedPlan =stage
?*QueryStageExec
 plan =stage
?!CommandResultExec
 ?!AdaptiveSparkPlanExec
  ?!*QueryStageExec
   collectLeaves
    * =operator
=inner
collectLeaves
 * =operator
=operator
getClass =class
?CommandResultExec
 commandPhysicalPlan =inner
?AdaptiveSparkPlanExec
 executedPlan =inner
?*QueryStageExec
 plan =inner
?FileSourceScanExec
 relation
  location
   rootPaths =paths
 tableIdentifier
  isDefined
 metrics
  get:numOutputRows =metric
  get:filesSize =metric
  get:numFiles =metric
=metric
isDefined
?Some
 get
  value
"""
"""The usual requests to a ``QueryExecution`` that succeeded; the form is that of ``Prefetcher.java``."""

_ENTRY = """\
=entry
isDefined
?Some
 get
  details
  queryId
   toString
  description
  submissionTime
  executionId
  rootExecutionId
  modifiedConfigs
   mkString:\x01
"""
"""The request to an execution in Spark's store of them."""


def stored_executions(numbers: list[int]) -> str:
    """The request for some executions of Spark's store, by their numbers."""
    return "".join(f"execution:#{number} =entry\n" for number in numbers) + _ENTRY


class Prefetcher:
    """Fetches answers of objects of one JVM.

    Args:
        gateway: The gateway to it.
    """

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        self._broken = False
        self._prefetcher: Any = None

    def fetched(self, target: Any, request: str) -> Any:
        """An object with the answers to a request; the object as it is where nothing can be compiled."""
        if self._broken:
            return target
        try:
            if self._prefetcher is None:
                self._prefetcher = self._compiled()
            head, _, tail = str(self._prefetcher.apply(target, request)).partition("\n")
            return Prefetched(lambda: target, json.loads(head), tail)
        except Exception:
            self._broken = True
            return target

    def _compiled(self) -> Any:
        """The ``Prefetcher`` of the JVM; it writes the JSON of plans by ``PlanJson`` where that compiles."""
        found = instance_in(self._gateway, "Prefetcher")
        try:
            found.apply(instance_in(self._gateway, "PlanJson"), "toJSON")
        except Exception:  # Spark's own toJSON() stays
            return found
        return found


class Prefetched:
    """An object behind py4j with answers that are here already.

    Args:
        behind: Returns the object itself.
        answers: ``{"f": {method: answer}, "s": [element]}``.
        texts: The characters of long texts.
    """

    def __init__(self, behind: Callable[[], Any], answers: dict[str, Any], texts: str) -> None:
        self._behind = behind
        self._fields = answers["f"]
        self._elements = answers.get("s")
        self._texts = texts

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            return self._call(name, arguments)

        return call

    def _get_object_id(self) -> Any:
        """For py4j, where this is an argument of a call."""
        return self._behind()._get_object_id()

    def _call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        def result() -> Any:
            return getattr(self._behind(), name)(*arguments)

        key = _key(name, arguments)
        if key in self._fields:
            return self._answer(self._fields[key], result)
        if self._elements is not None and name in ("size", "apply"):
            if not arguments and name == "size":
                return len(self._elements)
            if key.startswith("apply:#") and 0 <= arguments[0] < len(self._elements):
                return self._answer(self._elements[arguments[0]], result)
        return result()

    def _answer(self, value: Any, result: Callable[[], Any]) -> Any:
        if not isinstance(value, dict):
            return value
        if "r" in value:
            start, length = value["r"]
            return self._texts[start : start + length]
        return Prefetched(result, value, self._texts)


def _key(name: str, arguments: tuple[Any, ...]) -> str:
    """A call as a request has it; empty of one that no request can have."""
    if not arguments:
        return name
    if len(arguments) > 1:
        return ""
    (argument,) = arguments
    if isinstance(argument, str):
        return f"{name}:{argument}".replace("\n", "\\n")
    return f"{name}:#{argument}" if type(argument) is int else ""

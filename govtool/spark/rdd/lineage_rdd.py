"""RDDs that log where they come from, and otherwise are Spark's own."""

from __future__ import annotations

import functools
import inspect
import random
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from govtool.spark.rdd.eager import MAX_TEXTS
from govtool.spark.rdd.log import RddNode, RecordedResult, same_rdd
from govtool.spark.rdd.operators import OPAQUE, OPERATORS, PER_RECORD, Kind, RddOperator, text_lines
from govtool.spark.rdd.recording import TAKES, RunningAction, action
from govtool.spark.rdd.worker import shown

if TYPE_CHECKING:
    from govtool.spark.rdd.position import LineagePosition

ACTIONS = frozenset(
    [
        "aggregate",
        "collectAsMap",
        "collectWithJobGroup",
        "countApprox",
        "countApproxDistinct",
        "countByKey",
        "countByValue",
        "first",
        "fold",
        "foreach",
        "foreachPartition",
        "histogram",
        "isEmpty",
        "lookup",
        "max",
        "mean",
        "min",
        "reduce",
        "reduceByKeyLocally",
        "saveAsHadoopDataset",
        "saveAsHadoopFile",
        "saveAsNewAPIHadoopDataset",
        "saveAsNewAPIHadoopFile",
        "saveAsPickleFile",
        "saveAsSequenceFile",
        "stats",
        "stdev",
        "sum",
        "take",
        "takeOrdered",
        "takeSample",
        "toLocalIterator",
        "top",
        "treeAggregate",
        "treeReduce",
        "variance",
    ]
)
"""Methods that run a job, apart from those that are recorded with what they returned."""
_PACKAGE = str(Path(__file__).parent)


class RddTracker(Protocol):
    """The context of tracked RDDs: makes them, and remembers what actions gave."""

    def wrap(self, node: RddNode) -> LineageRDD:
        """Return a node as a tracked RDD."""

    def node_of(self, rdd: Any) -> RddNode:
        """Return the node of an RDD; an RDD that is not tracked becomes a source."""

    def position(self, *nodes: RddNode) -> LineagePosition:
        """Return the position at all records of some nodes."""

    def acted(self, node: RddNode) -> None:
        """Note that an action ran."""

    def collected(self, node: RddNode, records: list[Any]) -> RecordedResult:
        """Note what ``collect()`` returned."""

    def counted(self, node: RddNode, count: int) -> RecordedResult:
        """Note what ``count()`` returned."""

    def wrote(self, path: str, node: RddNode) -> None:
        """Note which files were written."""


class LineageRDD:
    """A tracked RDD. Its methods are those of ``pyspark.RDD``, with the same arguments.

    Transformations return tracked RDDs. Jobs run Spark's own RDD (``rdd``), with the functions as they were given.
    Where Spark itself wants an RDD, as ``createDataFrame`` does, pass ``rdd``.
    """

    def __init__(self, context: RddTracker, node: RddNode) -> None:
        """Wrap a node of a log; use the methods of `LineageContext` instead."""
        self._lineage = context
        self._node = node

    @property
    def rdd(self) -> Any:
        """Spark's own RDD."""
        return self._node.rdd

    def get_lineage(self) -> LineagePosition:
        """Return the position at all records of this RDD. Nothing runs yet."""
        return self._lineage.position(self._node)

    def mark(self) -> LineageRDD:
        """Return the same records as a place where a trace stops, inside of a stage (Titian, section 4.5)."""
        return self._lineage.wrap(self._added("mark", OPERATORS["mark"], (self._node,), self.rdd, {}, same_rdd))

    def collect(self) -> list[Any]:
        """Return all records, and note how many."""
        with self._action("collect") as running:
            found: list[Any] = self.rdd.collect()
            running.result = self._lineage.collected(self._node, found)
        return found

    def count(self) -> int:
        """Return the number of records, and note it."""
        with self._action("count") as running:
            found: int = self.rdd.count()
            running.result = self._lineage.counted(self._node, found)
        return found

    def saveAsTextFile(self, path: str, compressionCodecClass: str | None = None) -> None:
        """Write the records as lines, and note the files: `LineageContext.get_lineage` traces them."""
        with self._action("saveAsTextFile") as running:
            running.path = path
            self.rdd.saveAsTextFile(path, compressionCodecClass)
            running.node = self.as_text_lines()
            self._lineage.wrote(path, running.node)

    def _action(self, name: str) -> AbstractContextManager[RunningAction]:
        return action(self.rdd.context, name, f"{name} at {call_site()}", self._node)

    def as_text_lines(self) -> RddNode:
        """Return the node of the lines that ``saveAsTextFile`` writes."""
        lines = _text_lines(self.rdd)
        return self._added("saveAsTextFile", OPERATORS["text lines"], (self._node,), lines, {}, _text_lines)

    def __add__(self, other: Any) -> LineageRDD:
        """Return the union."""
        return self._tracked("union", OPERATORS["union"], other)

    def __repr__(self) -> str:
        """Return the operator and where it is written."""
        return f"LineageRDD[{self._node.label}]"

    def __dir__(self) -> list[str]:
        """Return the methods of both."""
        return sorted({*super().__dir__(), *dir(self.rdd)})

    def __getattr__(self, name: str) -> Any:
        """Return a method of Spark's RDD that tracks its result."""
        if name.startswith("_"):
            raise AttributeError(name)
        operator = OPERATORS.get(name)
        if operator is not None and operator.kind is not Kind.MARK:
            return functools.partial(self._tracked, name, operator)
        attribute = getattr(self.rdd, name)
        if not callable(attribute):
            return attribute
        return functools.wraps(attribute)(functools.partial(self._passed, name, attribute))

    # ---- how methods are tracked --------------------------------------------------------------------------------

    def _tracked(self, name: str, operator: RddOperator, /, *args: Any, **named: Any) -> LineageRDD:
        method = getattr(self.rdd, name)
        bound = inspect.signature(method).bind(*args, **named)
        bound.apply_defaults()
        if name == "sample" and bound.arguments["seed"] is None:
            bound.arguments["seed"] = random.randrange(1 << 31)  # drawn here, so that a trace draws the same
        declared = getattr(bound.arguments.get("f"), "__govtool_per_record__", None)
        others = self._others(bound)
        parents = (self._node, *others)
        apply = _application(name, bound)
        rdd = apply(*(parent.rdd for parent in parents))
        if name == "mapPartitions" and declared is not None:
            operator = PER_RECORD
        arguments = {key: value for key, value in bound.arguments.items() if not _holds_rdds(value)}
        return self._lineage.wrap(self._added(name, operator, parents, rdd, arguments, apply))

    def _others(self, bound: inspect.BoundArguments) -> list[RddNode]:
        """The nodes of RDDs among the arguments, in order."""
        found = []
        for value in bound.arguments.values():
            for each in value if isinstance(value, tuple) else (value,):
                if _is_rdd(each):
                    found.append(self._lineage.node_of(each))
        return found

    def _passed(self, name: str, method: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
        """A method that is not tracked: an RDD that it returns is a black box over the records of this one."""
        given = [*args, *named.values()]
        with self._action(name) if name in ACTIONS else nullcontext() as running:
            if running is not None and name.startswith("saveAs"):
                running.path = next((value for value in given if isinstance(value, str)), "")
            result = method(*map(_native, args), **{key: _native(value) for key, value in named.items()})
            if running is not None:
                self._acted(running, result)
        if result is self.rdd:  # persist, cache, setName …
            return self
        parents = (self._node, *(self._lineage.node_of(each) for each in given if _is_rdd(each)))
        return self._opaque(name, parents, result)

    def _acted(self, running: RunningAction, result: Any) -> None:
        self._lineage.acted(self._node)
        if running.name in TAKES:
            taken = result if isinstance(result, list) else [result]
            running.taken = len(taken)
            running.texts = [shown(each) for each in taken] if len(taken) <= MAX_TEXTS else []

    def _opaque(self, name: str, parents: tuple[RddNode, ...], result: Any) -> Any:
        from pyspark import RDD

        if isinstance(result, RDD):
            return self._lineage.wrap(self._added(name, OPAQUE, parents, result, {}, None))
        if isinstance(result, list) and result and all(isinstance(each, RDD) for each in result):
            return [self._opaque(name, parents, each) for each in result]
        return result

    def _added(
        self,
        name: str,
        operator: RddOperator,
        parents: tuple[RddNode, ...],
        rdd: Any,
        arguments: dict[str, Any],
        apply: Callable[..., Any] | None,
    ) -> RddNode:
        return RddNode(name, operator, parents, rdd, arguments, apply, f"{name} at {call_site()}")


def call_site() -> str:
    """Return file and line of the program that calls, outside of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def _text_lines(rdd: Any) -> Any:
    return rdd.flatMap(text_lines)


def _is_rdd(value: Any) -> bool:
    from pyspark import RDD

    from govtool.spark.rdd.position import LineagePosition

    return isinstance(value, (LineageRDD, RDD, LineagePosition))


def _native(value: Any) -> Any:
    from govtool.spark.rdd.position import LineagePosition

    return value.rdd if isinstance(value, (LineageRDD, LineagePosition)) else value


def _holds_rdds(value: Any) -> bool:
    return any(map(_is_rdd, value)) if isinstance(value, tuple) else _is_rdd(value)


def _application(name: str, bound: inspect.BoundArguments) -> Callable[..., Any]:
    """The call of a method with the same arguments on other RDDs, in the order of the parents."""
    signature, given = bound.signature, dict(bound.arguments)

    def apply(*rdds: Any) -> Any:
        others = iter(rdds[1:])
        arguments = {}
        for key, value in given.items():
            if isinstance(value, tuple) and _holds_rdds(value):
                arguments[key] = tuple(next(others) if _is_rdd(each) else each for each in value)
            else:
                arguments[key] = next(others) if _is_rdd(value) else value
        call = inspect.BoundArguments(signature, arguments)
        return getattr(rdds[0], name)(*call.args, **call.kwargs)

    return apply

"""RDDs of the rows of DataFrames: the queries behind an RDD, which nothing but ``DataFrame.rdd`` knows.

Spark describes an RDD by those that it was made of, with their numbers; the number of each RDD that a DataFrame gave is
remembered with its query.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, partial, wraps
from typing import Any

from govtool.spark.live.jvm.hadoop import qualified
from govtool.spark.live.jvm.scala import safely
from govtool.spark.live.plans import catalyst

MAX_KNOWN = 200
"""RDDs whose queries are known; of more, the oldest are forgotten."""
MAX_FRAMES = 20
"""Queries that are written down of one RDD."""
_READ = re.compile(r"^(?:\(\d+\))?[ |+-]*(?:\(\d+\) )?(\S.*?) (?:New)?HadoopRDD\[", re.MULTILINE)
_NUMBER = re.compile(r"\[(\d+)\] at ")


class FrameRdds:
    """The analyzed plans of the DataFrames whose rows a process handed to RDDs."""

    def __init__(self) -> None:
        self._plans: dict[int, Any] = {}

    def patch(self, frame_class: Any) -> None:
        """Hear of the RDDs of DataFrames: ``rdd`` is a property, and a cached one since Spark 4."""
        attribute = frame_class.__dict__.get("rdd")
        if isinstance(attribute, cached_property):
            made: Any = cached_property(self._noted(attribute.func))
            made.__set_name__(frame_class, "rdd")
            frame_class.rdd = made
        elif isinstance(attribute, property) and attribute.fget is not None:
            frame_class.rdd = property(self._noted(attribute.fget), doc=attribute.__doc__)

    def _noted(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @wraps(original)
        def rdd(frame: Any) -> Any:
            made = original(frame)
            safely(lambda: self._note(made, frame))
            return made

        return rdd

    def _note(self, rdd: Any, frame: Any) -> None:
        number = int(rdd._jrdd.rdd().id())
        if number not in self._plans:
            self._plans[number] = frame._jdf.queryExecution().analyzed()
        while len(self._plans) > MAX_KNOWN:
            del self._plans[next(iter(self._plans))]

    def behind(self, description: str) -> list[Any]:
        """The analyzed plans behind an RDD.

        Args:
            description: The RDD's own, of ``described``.
        """
        numbers = dict.fromkeys(int(number) for number in _NUMBER.findall(description))
        return [self._plans[number] for number in numbers if number in self._plans][:MAX_FRAMES]


def captured(plans: list[Any]) -> list[dict[str, Any]]:
    """Plans as they are written down, those that cannot be left out: for the recorder's thread."""
    found = (safely(partial(catalyst.captured, plan)) for plan in plans)
    return [each for each in found if each]


def described(rdd: Any) -> str:
    """An RDD as Spark describes it: all RDDs that it is made of, one a line.

    Python's own last operators are left out: they would be pickled again to be asked.
    """
    made = getattr(rdd, "_prev_jrdd", None)
    return str((made if made is not None else rdd._jrdd).rdd().toDebugString())


def paths_in(description: str) -> list[str]:
    """The paths of Hadoop files in the description of an RDD."""
    found = dict.fromkeys(path for each in _READ.findall(description) for path in each.split(","))
    return [qualified(path) for path in found]


known = FrameRdds()
"""Those of this process."""

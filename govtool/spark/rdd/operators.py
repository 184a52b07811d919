"""Operators of RDDs: how records of the output come from records of the input.

The table names every method that is tracked. A method that is not in it works, too; its output is a black box.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from operator import itemgetter
from typing import Any

from govtool.spark.rdd.worker import Step


class Kind(Enum):
    """How an operator makes its records."""

    SOURCE = "source"
    RECORD = "record"
    """Each from one record."""
    SAME = "same"
    """The same records, elsewhere or in another order."""
    UNION = "union"
    MARK = "mark"
    """The same records, where a trace stops."""
    GROUP = "group"
    """Each from all records with its key, of one parent or several."""
    JOIN = "join"
    PRODUCT = "product"
    EXCEPT = "except"
    """Records of the first parent whose key the second has not."""
    ORDER = "order"
    """Each from one record, chosen or numbered by its place."""
    PARTITION = "partition"
    """Each from any records of its partition."""
    OPAQUE = "opaque"


STOPS = frozenset(Kind) - {Kind.RECORD, Kind.SAME, Kind.UNION}
"""Kinds at whose output a trace stops."""


@dataclass(frozen=True, slots=True)
class RddOperator:
    """One tracked method.

    Attributes:
        kind: How it makes its records.
        step: For ``RECORD``: from its arguments to its step of a pipeline.
        key: For operators with keys: from its arguments to the function from an input record to its key.
        result_key: The function from an output record to its key; for ``ORDER`` to the input record.
    """

    kind: Kind
    step: Callable[[dict[str, Any]], Step] | None = None
    key: Callable[[dict[str, Any]], Callable[[Any], Any]] | None = None
    result_key: Callable[[Any], Any] | None = None


def per_record(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declare that a function for ``mapPartitions`` treats each record apart from the others.

    Its outputs then come from one record each; otherwise every output comes from its whole partition.
    """

    def declared(records: Any) -> Any:
        return function(records)

    declared.__govtool_per_record__ = function  # type: ignore[attr-defined]
    return declared


def itself(value: Any) -> Any:
    """Return the value."""
    return value


_first = itemgetter(0)


def _key_by(arguments: dict[str, Any]) -> Step:
    function = arguments["f"]
    return "map", lambda value: (function(value), value)


def _map_values(arguments: dict[str, Any]) -> Step:
    function = arguments["f"]
    return "map", lambda pair: (pair[0], function(pair[1]))


def _flat_map_values(arguments: dict[str, Any]) -> Step:
    function = arguments["f"]
    return "flat", lambda pair: ((pair[0], value) for value in function(pair[1]))


def _each(arguments: dict[str, Any]) -> Step:
    function = arguments["f"].__govtool_per_record__
    return "flat", lambda value: function(iter((value,)))


def text_lines(value: Any) -> list[str]:
    """Return the lines that a reader finds where ``saveAsTextFile`` wrote a record: a carriage return ends one, too."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return re.split("\r\n|\r|\n", f"{text}\n")[:-1]


PER_RECORD = RddOperator(Kind.RECORD, _each)
_GROUP = RddOperator(Kind.GROUP, key=lambda _: _first, result_key=_first)
_VALUES = RddOperator(Kind.GROUP, key=lambda _: itself, result_key=itself)
_JOIN = RddOperator(Kind.JOIN, key=lambda _: _first, result_key=_first)
_SAME = RddOperator(Kind.SAME)
_PARTITION = RddOperator(Kind.PARTITION)

OPERATORS: dict[str, RddOperator] = {
    "map": RddOperator(Kind.RECORD, lambda a: ("map", a["f"])),
    "flatMap": RddOperator(Kind.RECORD, lambda a: ("flat", a["f"])),
    "filter": RddOperator(Kind.RECORD, lambda a: ("filter", a["f"])),
    "keyBy": RddOperator(Kind.RECORD, _key_by),
    "mapValues": RddOperator(Kind.RECORD, _map_values),
    "flatMapValues": RddOperator(Kind.RECORD, _flat_map_values),
    "keys": RddOperator(Kind.RECORD, lambda _: ("map", _first)),
    "values": RddOperator(Kind.RECORD, lambda _: ("map", itemgetter(1))),
    "text lines": RddOperator(Kind.RECORD, lambda _: ("flat", text_lines)),
    "sortBy": _SAME,
    "sortByKey": _SAME,
    "repartition": _SAME,
    "coalesce": _SAME,
    "partitionBy": _SAME,
    "repartitionAndSortWithinPartitions": _SAME,
    "union": RddOperator(Kind.UNION),
    "mark": RddOperator(Kind.MARK),
    "reduceByKey": _GROUP,
    "groupByKey": _GROUP,
    "aggregateByKey": _GROUP,
    "combineByKey": _GROUP,
    "foldByKey": _GROUP,
    "groupBy": RddOperator(Kind.GROUP, key=lambda a: a["f"], result_key=_first),
    "distinct": _VALUES,
    "cogroup": _GROUP,
    "groupWith": _GROUP,
    "intersection": _VALUES,
    "join": _JOIN,
    "leftOuterJoin": _JOIN,
    "rightOuterJoin": _JOIN,
    "fullOuterJoin": _JOIN,
    "cartesian": RddOperator(Kind.PRODUCT),
    "subtract": RddOperator(Kind.EXCEPT, key=lambda _: itself, result_key=itself),
    "subtractByKey": RddOperator(Kind.EXCEPT, key=lambda _: _first, result_key=_first),
    "zipWithIndex": RddOperator(Kind.ORDER, result_key=_first),
    "zipWithUniqueId": RddOperator(Kind.ORDER, result_key=_first),
    "sample": RddOperator(Kind.ORDER, result_key=itself),
    "mapPartitions": _PARTITION,
    "mapPartitionsWithIndex": _PARTITION,
    "glom": _PARTITION,
    "pipe": _PARTITION,
}
"""Tracked methods by name."""
OPAQUE = RddOperator(Kind.OPAQUE)
SOURCE = RddOperator(Kind.SOURCE)

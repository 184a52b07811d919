"""Rows of operators: records with ids and origins, as lazy RDDs, restricted to what a condition selects.

Operators with keys are never run with ids. Their rows are the records of Spark's own RDD, whose shuffle files are
there already, named by their key. Joins are run with ids for the selected keys only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from govtool.spark.rdd import worker
from govtool.spark.rdd.conditions import EVERYTHING, Condition, KeyIn, keys_of
from govtool.spark.rdd.log import Feed, RddNode
from govtool.spark.rdd.operators import Kind
from govtool.spark.rdd.worker import Outputs

_RUN_WITH_IDS = (Kind.JOIN, Kind.PRODUCT, Kind.EXCEPT)
"""Stops whose rows cost a run, so that a condition restricts them first."""


def rows_of(node: RddNode, condition: Condition = EVERYTHING) -> Any:
    """Return the rows of a node that fulfil a condition; a row may occur twice where keys are many."""
    if node.stops:
        return stop_rows(node, condition, worker.single)
    return narrow_rows(node.feeds, condition, worker.single)


def stop_rows(stop: RddNode, condition: Condition, outputs: Outputs) -> Any:
    """Return the rows of a stop with an output that fulfils a condition."""
    maker = _MAKERS.get(stop.kind)
    if maker is not None:
        return maker(stop, condition, outputs)
    return condition.matching(ordered_rows(stop), worker.on_value(outputs))


def narrow_rows(feeds: tuple[Feed, ...], condition: Condition, outputs: Outputs) -> Any:
    """Return what feeds make of their stops' rows, as far as an output of it fulfils a condition."""
    parts = []
    for number, feed in enumerate(feeds):
        steps = worker.pipeline(feed.steps)
        first = condition if feed.stop.kind in _RUN_WITH_IDS else EVERYTHING
        base = stop_rows(feed.stop, first, worker.composed(steps, outputs))
        rows = base.flatMap(worker.expansion(number, feed.stop.number, steps))
        parts.append(condition.matching(rows, worker.on_value(outputs)))
    return union(parts)


def ordered_rows(stop: RddNode) -> Any:
    """Return all rows of a stop in the partitions and the order of Spark's own RDD."""
    if stop.kind is Kind.GROUP:
        return stop.rdd.map(worker.named_by(stop.result_key()))
    if stop.kind is Kind.SOURCE and stop.details.get("refused"):
        kept = frozenset(range(stop.rdd.getNumPartitions())) - stop.details["refused"]
        return stop.rdd.mapPartitionsWithIndex(worker.of_partitions(kept)).mapPartitionsWithIndex(worker.numbered)
    if stop.kind is Kind.ORDER:
        made = _order_rows(stop)
        if made is not None:
            return made
    return stop.rdd.mapPartitionsWithIndex(worker.numbered)


def aligned(feeds: tuple[Feed, ...], native: Any) -> Any:
    """Return all rows of feeds in the partitions and the order of Spark's own RDD; None where that is not known."""
    if not all(feed.in_order and _keeps_order(feed.stop) for feed in feeds):
        return None
    parts = [
        _in_order(feed.stop).flatMap(worker.expansion(number, feed.stop.number, worker.pipeline(feed.steps)))
        for number, feed in enumerate(feeds)
    ]
    if sum(part.getNumPartitions() for part in parts) != native.getNumPartitions():
        return None  # a union of equally partitioned RDDs puts their partitions together
    return union(parts)


def _keeps_order(stop: RddNode) -> bool:
    if stop.kind in (Kind.MARK, Kind.UNION):
        return all(feed.in_order and _keeps_order(feed.stop) for feed in stop.incoming[0])
    return stop.kind not in _RUN_WITH_IDS


def _in_order(stop: RddNode) -> Any:
    if stop.kind in (Kind.MARK, Kind.UNION):
        return narrow_rows(stop.incoming[0], EVERYTHING, worker.single)
    return ordered_rows(stop)


def union(parts: list[Any]) -> Any:
    """Return the union of RDDs, of which there is at least one."""
    return parts[0] if len(parts) == 1 else parts[0].context.union(parts)


def once(rows: Any) -> Any:
    """Return each row once."""
    return rows.keyBy(worker.id_of).reduceByKey(worker.either).values()


# ---- stops that are run with ids ------------------------------------------------------------------------------------


def _mark_rows(stop: RddNode, condition: Condition, outputs: Outputs) -> Any:
    return narrow_rows(stop.incoming[0], condition, outputs)


def _side(stop: RddNode, parent: int, condition: Condition) -> Any:
    """Rows of one parent whose key the selected results have."""
    return narrow_rows(stop.incoming[parent], condition, worker.single)


def _keys(stop: RddNode, condition: Condition, outputs: Outputs) -> Condition:
    """The condition on the inputs of a stop that follows from one on its results."""
    if not condition.narrows:
        return EVERYTHING
    if isinstance(condition, KeyIn) and outputs is worker.single and condition.key is stop.result_key():
        return KeyIn(condition.keys, stop.key())
    return KeyIn(keys_of(condition.matching(stop.rdd, outputs).map(stop.result_key())), stop.key())


def _join_rows(stop: RddNode, condition: Condition, outputs: Outputs) -> Any:
    keys = _keys(stop, condition, outputs)
    left, right = (_keyed(_side(stop, parent, keys)) for parent in (0, 1))
    rows = getattr(left, stop.name)(right, stop.arguments.get("numPartitions")).map(worker.joined)
    return condition.matching(rows, worker.on_value(outputs))


def _keyed(rows: Any) -> Any:
    return once(rows).keyBy(worker.key_of_value)


def _product_rows(stop: RddNode, condition: Condition, outputs: Outputs) -> Any:
    left, right = (_side(stop, parent, EVERYTHING) for parent in (0, 1))
    return condition.matching(left.cartesian(right).map(worker.paired), worker.on_value(outputs))


def _except_rows(stop: RddNode, condition: Condition, outputs: Outputs) -> Any:
    present = KeyIn(keys_of(condition.matching(stop.rdd, outputs).map(stop.result_key())), stop.key())
    return condition.matching(_side(stop, 0, present), worker.on_value(outputs))


_MAKERS: dict[Kind, Callable[[RddNode, Condition, Outputs], Any]] = {
    Kind.MARK: _mark_rows,
    Kind.UNION: _mark_rows,
    Kind.JOIN: _join_rows,
    Kind.PRODUCT: _product_rows,
    Kind.EXCEPT: _except_rows,
}


# ---- records chosen or numbered by their place ----------------------------------------------------------------------


def _order_rows(stop: RddNode) -> Any:
    """Rows with their origins, where the order of the input is known; None otherwise."""
    rows = aligned(stop.incoming[0], stop.parents[0].rdd)
    if rows is None:
        return None
    assert stop.apply is not None
    numbering = stop.name in ("zipWithIndex", "zipWithUniqueId")
    pairs = stop.apply(rows).map(worker.numbered_pair if numbering else worker.plain_pair)
    return pairs.mapPartitionsWithIndex(worker.renumbered)


def has_origins(stop: RddNode) -> bool:
    """Return True if the rows of a node carry the rows that they come from."""
    if stop.kind is Kind.ORDER:
        return aligned(stop.incoming[0], stop.parents[0].rdd) is not None
    return not stop.stops or stop.kind in _MAKERS

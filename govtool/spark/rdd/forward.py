"""One boundary on: from rows of a stop to the rows of a later node that they reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from govtool.spark.rdd import worker
from govtool.spark.rdd.back import ODD_KEYS, Traced
from govtool.spark.rdd.conditions import EVERYTHING, ChosenKeys, Condition, KeyIn, keys_of
from govtool.spark.rdd.log import Feed, RddNode, ancestors
from govtool.spark.rdd.notes import Note
from govtool.spark.rdd.operators import Kind, itself
from govtool.spark.rdd.rows import aligned, has_origins, once, rows_of, stop_rows, union


def next_nodes(stop: RddNode, targets: tuple[RddNode, ...]) -> list[RddNode]:
    """Return the stops and targets that records of a stop reach without passing another."""
    return [
        node
        for node in ancestors(targets)
        if node is not stop and (node.stops or node in targets) and any(_from(stop, feeds) for feeds in node.incoming)
    ]


def forward(stop: RddNode, rows: Any, node: RddNode) -> Traced:
    """Return the rows of a node that rows of a stop reach.

    Args:
        stop: A stop that feeds the node.
        rows: Rows of it.
        node: One of `next_nodes`.
    """
    if not node.stops or node.kind in (Kind.MARK, Kind.UNION):
        return Traced(node, _expanded(stop, rows, node.incoming[0]))
    if has_origins(node):
        return _to_origins(stop, rows, node)
    return _TRACES[node.kind](stop, rows, node)


def _from(stop: RddNode, feeds: tuple[Feed, ...]) -> list[tuple[int, Feed]]:
    return [(number, feed) for number, feed in enumerate(feeds) if feed.stop is stop]


def _expanded(stop: RddNode, rows: Any, feeds: tuple[Feed, ...]) -> Any:
    return union(
        [
            rows.flatMap(worker.expansion(number, stop.number, worker.pipeline(feed.steps)))
            for number, feed in _from(stop, feeds)
        ]
    )


def _records(stop: RddNode, rows: Any, node: RddNode) -> Any:
    """The records that rows become before an operator reads them."""
    parts = [_expanded(stop, rows, feeds) for feeds in node.incoming if _from(stop, feeds)]
    return union(parts).map(worker.value_of)


def _keys(stop: RddNode, rows: Any, node: RddNode) -> ChosenKeys:
    return keys_of(_records(stop, rows, node).map(node.key()))


def _to_group(stop: RddNode, rows: Any, node: RddNode) -> Traced:
    keys = _keys(stop, rows, node)
    found = stop_rows(node, KeyIn(keys, node.result_key()), worker.single)
    return Traced(node, found, (ODD_KEYS,) if keys.odd else ())


def _to_origins(stop: RddNode, rows: Any, node: RddNode) -> Traced:
    """Rows of a node that were made with their origins: those with an origin among the rows."""
    condition: Condition = EVERYTHING
    if node.operator.key is not None:
        condition = KeyIn(_keys(stop, rows, node), node.result_key())
    candidates = rows_of(node, condition)
    ids = keys_of(rows.keys())
    found = KeyIn(ids, itself).matching(candidates, worker.origin_ids(stop.number))
    return Traced(node, found if ids.many is None else once(found))


def _to_partition(stop: RddNode, rows: Any, node: RddNode) -> Traced:
    note = Note("superset", f"{node.label} may use any record of its partition")
    before = aligned(node.incoming[0], node.parents[0].rdd)
    if before is None:
        wanted = KeyIn(keys_of(_records(stop, rows, node).map(worker.as_key)), worker.as_key)
        placed = node.parents[0].rdd.mapPartitionsWithIndex(worker.with_partition)
        numbers = wanted.matching(placed, worker.on_value(worker.single)).keys()
    else:
        wanted = KeyIn(keys_of(rows.keys()), itself)
        hit = wanted.matching(before, worker.origin_ids(stop.number))
        numbers = hit.mapPartitionsWithIndex(worker.with_partition).keys()
    chosen = frozenset(numbers.distinct().collect())
    made = node.rdd.mapPartitionsWithIndex(worker.of_partitions(chosen)).mapPartitionsWithIndex(worker.numbered)
    return Traced(node, made, (note,))


def _to_order(stop: RddNode, rows: Any, node: RddNode) -> Traced:
    keys = keys_of(_records(stop, rows, node).map(worker.as_key))
    key = node.result_key()
    condition = KeyIn(keys, worker.key_after(key))
    note = Note("superset", "records were matched by value behind a shuffle: equal ones cannot be told apart")
    return Traced(node, stop_rows(node, condition, worker.single), (note,))


def _to_opaque(stop: RddNode, rows: Any, node: RddNode) -> Traced:
    note = Note("coarse", f"{node.label} is not known to lineage: every record may have been used")
    found = stop_rows(node, EVERYTHING, worker.single)
    return Traced(node, found.context.emptyRDD() if rows.isEmpty() else found, (note,))


_TRACES: dict[Kind, Callable[[RddNode, Any, RddNode], Traced]] = {
    Kind.GROUP: _to_group,
    Kind.PARTITION: _to_partition,
    Kind.ORDER: _to_order,
    Kind.OPAQUE: _to_opaque,
}

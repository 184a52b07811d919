"""One boundary back: from rows of a node to the rows of the stops before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from govtool.spark.rdd import worker
from govtool.spark.rdd.conditions import EVERYTHING, KeyIn, keys_of
from govtool.spark.rdd.log import Feed, RddNode
from govtool.spark.rdd.notes import Note
from govtool.spark.rdd.operators import Kind
from govtool.spark.rdd.rows import aligned, has_origins, narrow_rows, once, stop_rows, union

ODD_KEYS = Note("superset", "keys that do not equal themselves, such as NaN, were matched by their text")
_DUPLICATES = "records that equal each other cannot be told apart behind a shuffle"


@dataclass(frozen=True, slots=True)
class Traced:
    """Rows of one stop, and why they may be too many."""

    stop: RddNode
    rows: Any
    notes: tuple[Note, ...] = ()


def back(node: RddNode, rows: Any) -> list[Traced]:
    """Return the rows of the stops before a node from which rows of it come.

    Args:
        node: A node that is no source.
        rows: Rows of it.
    """
    if has_origins(node):
        return _by_origins(node, rows)
    return _TRACES[node.kind](node, rows)


def _by_origins(node: RddNode, rows: Any) -> list[Traced]:
    stops = {feed.stop.number: feed.stop for feeds in node.incoming for feed in feeds}
    return [Traced(stop, once(rows.flatMap(worker.origins_at(number)))) for number, stop in stops.items()]


def _of_group(node: RddNode, rows: Any) -> list[Traced]:
    keys = keys_of(rows.keys())
    condition = KeyIn(keys, node.key())
    notes = (ODD_KEYS,) if keys.odd else ()
    found: dict[int, list[Any]] = {}
    stops: dict[int, RddNode] = {}
    for feed in (feed for feeds in node.incoming for feed in feeds):
        stops[feed.stop.number] = feed.stop
        base = stop_rows(feed.stop, condition, worker.pipeline(feed.steps))
        found.setdefault(feed.stop.number, []).append(base)
    unique = keys.many is None
    return [
        Traced(stop, parts[0] if unique and len(parts) == 1 else once(union(parts)), notes)
        for stop, parts in ((stops[number], parts) for number, parts in found.items())
    ]


def _of_partition(node: RddNode, rows: Any) -> list[Traced]:
    note = Note("superset", f"{node.label} may use any record of its partition")
    numbers = frozenset(rows.keys().keys().distinct().collect())
    before = aligned(node.incoming[0], node.parents[0].rdd)
    if before is not None:
        return _stops_of(node.incoming[0], before.mapPartitionsWithIndex(worker.of_partitions(numbers)), (note,))
    values = node.parents[0].rdd.mapPartitionsWithIndex(worker.of_partitions(numbers))
    return _by_value(node.incoming[0], values, (note,))


def _of_order(node: RddNode, rows: Any) -> list[Traced]:
    return _by_value(node.incoming[0], rows.map(worker.value_of).map(node.result_key()), ())


def _by_value(feeds: tuple[Feed, ...], values: Any, notes: tuple[Note, ...]) -> list[Traced]:
    """The rows behind records of which only the values are known."""
    keys = keys_of(values.map(worker.as_key))
    found = narrow_rows(feeds, KeyIn(keys, worker.as_key), worker.single)
    if not notes and once(found).count() > once(found.map(worker.named_by_value)).count():
        notes = (Note("superset", _DUPLICATES),)
    return _stops_of(feeds, found, notes)


def _stops_of(feeds: tuple[Feed, ...], rows: Any, notes: tuple[Note, ...]) -> list[Traced]:
    stops = {feed.stop.number: feed.stop for feed in feeds}
    return [Traced(stop, once(rows.flatMap(worker.origins_at(number))), notes) for number, stop in stops.items()]


def _of_opaque(node: RddNode, rows: Any) -> list[Traced]:
    note = Note("coarse", f"{node.label} is not known to lineage: every record may have been used")
    if rows.isEmpty():
        return []
    stops = {feed.stop.number: feed.stop for feeds in node.incoming for feed in feeds}
    return [Traced(stop, once(stop_rows(stop, EVERYTHING, worker.single)), (note,)) for stop in stops.values()]


_TRACES: dict[Kind, Callable[[RddNode, Any], list[Traced]]] = {
    Kind.GROUP: _of_group,
    Kind.PARTITION: _of_partition,
    Kind.ORDER: _of_order,
    Kind.OPAQUE: _of_opaque,
}

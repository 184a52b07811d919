"""A re-run compared with what an action returned, and the jobs of a trace kept apart from those of the program."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

from govtool.spark.rdd import sources, worker
from govtool.spark.rdd.conditions import Condition
from govtool.spark.rdd.log import RddNode, RecordedResult
from govtool.spark.rdd.notes import Note
from govtool.spark.rdd.operators import Kind
from govtool.spark.rdd.rows import rows_of


@contextlib.contextmanager
def own_jobs() -> Iterator[None]:
    """Run jobs whose updates of the user's accumulators do not count: the program has counted them already."""
    from pyspark.accumulators import _accumulatorRegistry as registry

    before = {number: copy.deepcopy(accumulator._value) for number, accumulator in registry.items()}
    try:
        yield
    finally:
        for number, value in before.items():
            if number in registry:
                registry[number]._value = value


def differences(node: RddNode) -> tuple[Note, ...]:
    """Compare a re-run of a node with what its actions returned and with the files that it wrote.

    What a re-run gave is kept until another action runs.
    """
    written = node.details.get("written")
    if written and sources.identities(node.rdd.context, written) != node.details["written_files"]:
        return (Note("break", f"the files of {written} were changed after the run"),)
    known = node.details.get("checked")
    if known is not None and known[0] == len(node.recorded):
        return tuple(known[1])
    notes = tuple(_compared(node))
    node.details["checked"] = (len(node.recorded), notes)
    return notes


def _compared(node: RddNode) -> Iterator[Note]:
    expected = list(node.recorded)
    if "written" in node.details:
        expected.append(_written(node))
    if not expected:
        return
    found = _measured(node.rdd) if _has_digest(expected) else (node.rdd.count(), 0)
    yield from _differing(node, expected, found)


def _has_digest(expected: list[RecordedResult]) -> bool:
    return any(each.digest is not None for each in expected)


def _differing(node: RddNode, expected: list[RecordedResult], found: tuple[int, int]) -> Iterator[Note]:
    count, digest = found
    for each in expected:
        if each.count != count:
            yield _broken(node, f"gave {count} records where {each.action} had {each.count}")
            return
        if each.digest is not None and each.digest != digest:
            yield _broken(node, f"gave other records than {each.action} had")
            return


def in_one_pass(node: RddNode) -> bool:
    """Return True if a selection reads all records of a node anyway, so that they can be compared on the way."""
    due = node.recorded and "written" not in node.details and "checked" not in node.details
    return bool(due) and not node.stops and all(feed.stop.kind is Kind.SOURCE for feed in node.feeds)


def observed(node: RddNode, condition: Condition) -> tuple[Any, tuple[Note, ...]]:
    """Return the selected rows of a node, persisted, and how a re-run differs, from one pass."""
    from pyspark import StorageLevel

    expected = list(node.recorded)
    seen = node.rdd.context.accumulator({}, worker.PartitionTotals())
    passed = rows_of(node).mapPartitionsWithIndex(worker.observing(seen, _has_digest(expected)))
    rows = condition.matching(passed, worker.on_value(worker.single)).persist(StorageLevel.MEMORY_AND_DISK)
    rows.count()
    parts = seen.value.values()
    found = sum(count for count, _ in parts), sum(digest for _, digest in parts) % (1 << 64)
    notes = tuple(_differing(node, expected, found))
    node.details["checked"] = (len(expected), notes)
    return rows, notes


def _broken(node: RddNode, what: str) -> Note:
    return Note("break", f"a re-run of {node.label} {what}: a function is not deterministic, or an input has changed")


def _measured(rdd: Any) -> tuple[int, int]:
    parts = rdd.mapPartitions(worker.digested).collect()
    return sum(count for count, _ in parts), sum(digest for _, digest in parts) % (1 << 64)


def _written(node: RddNode) -> RecordedResult:
    lines = node.rdd.context.textFile(node.details["written"])
    return RecordedResult("saveAsTextFile", *_measured(lines))

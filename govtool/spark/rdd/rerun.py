"""A program run again on chosen records of its sources only, or on all others."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from govtool.errors import EngineError, UsageError
from govtool.spark.rdd import worker
from govtool.spark.rdd.conditions import ChosenKeys, KeyIn
from govtool.spark.rdd.log import RddNode, ancestors
from govtool.spark.rdd.operators import Kind, itself
from govtool.spark.rdd.rows import ordered_rows
from govtool.spark.rdd.saved import EAGER


def replayed(target: RddNode, chosen: dict[int, ChosenKeys], *, without: bool) -> Any:
    """Return the RDD of a target as the program makes it of other source records.

    Args:
        target: The result.
        chosen: Ids of records by the number of their source.
        without: Leave the records out, instead of all others.

    Raises:
        UsageError: An operator is not known to lineage.
    """
    made: dict[int, Any] = {}
    for node in ancestors((target,)):
        if node.kind is Kind.SOURCE:
            made[node.number] = _source(node, chosen.get(node.number), without)
            continue
        if node.apply is None:
            raise UsageError(
                f"{node.label} cannot be run again on other records",
                code="usage.not-replayable",
                hint="use an operator that docs/rdd.md lists as tracked",
            )
        made[node.number] = node.apply(*(made[parent.number] for parent in node.parents))
    return made[target.number]


def _source(node: RddNode, keys: ChosenKeys | None, without: bool) -> Any:
    rows = ordered_rows(node)
    if keys is None:
        return rows.map(worker.value_of) if without else rows.filter(worker.never).map(worker.value_of)
    if not without:
        return KeyIn(keys, itself).matching(rows, worker.own_id).map(worker.value_of)
    if keys.many is None:
        return rows.filter(worker.no_key(keys.few)).map(worker.value_of)
    return rows.keyBy(worker.id_of).subtractByKey(keys.many.map(worker.with_none)).values().map(worker.value_of)


def contains(results: Any, selected: Any) -> bool:
    """Return True if an RDD has all records of another, each at least as often."""
    wanted = Counter(selected.map(worker.token).collect())
    if not results.getNumPartitions():  # of empty files: Spark counts no values there
        return not wanted
    found = Counter(dict(results.map(worker.token).filter(worker.member(frozenset(wanted))).countByValue()))
    return not wanted - found


_RAISED = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Exit|Interrupt)(?:: .*)?)$", re.MULTILINE)
"""The last line of a traceback of Python."""


def failure(error: Exception) -> Exception:
    """What is raised where a program fails on other records than it was written for; another error is itself."""
    if not is_of_spark(error):
        return error
    return EngineError(
        f"the program fails on these records alone: {_raised(error)}",
        code="engine.failed",
        hint="functions of whole partitions are given empty ones, too; the trace itself stands",
    )


def failed_again(error: Exception) -> EngineError:
    """What is raised where a recorded program fails that is run again over all that it read."""
    return EngineError(f"the program fails when it is run again: {_raised(error)}", code="engine.failed", hint=EAGER)


def is_of_spark(error: Exception) -> bool:
    """Return whether Spark, or a function that it ran, raised an error."""
    return type(error).__module__.startswith(("pyspark", "py4j"))


def _raised(error: Exception) -> str:
    """The last line of what a function of the program raised."""
    found = _RAISED.findall(str(error))
    return str(found[0]) if found else type(error).__name__

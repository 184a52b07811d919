"""Conditions in Spark SQL on the lines of an RDD program: column ``value``."""

from __future__ import annotations

from itertools import count
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.nodes import Filter, Relation
from govtool.records.sql.statement import KEPT
from govtool.records.trace.selection import bound_condition

if TYPE_CHECKING:
    from govtool.records.plan.expressions import Expression
    from govtool.records.plan.nodes import Session
    from govtool.spark.rdd.conditions import Condition

LINE = Attribute(0, "value", t.STRING)
"""The one column of records that are lines of text."""
_numbers = count(1)


def line_condition(where: str) -> Expression:
    """Read a condition on lines.

    Raises:
        UsageError: It does not parse, or names another column than ``value``.
    """
    return bound_condition(where, (LINE,))


def among(texts: Any, condition: Expression, session: Session) -> Condition:
    """The condition that a record's text is one of those that meet a condition of Spark SQL.

    Args:
        texts: An RDD of text.
        condition: As ``line_condition`` returns it.
        session: What it is evaluated in.
    """
    from govtool.records.execute.spark_executor import SparkExecutor
    from govtool.spark.rdd import worker
    from govtool.spark.rdd.conditions import KeyIn, keys_of
    from govtool.spark.rdd.session import any_session

    executor = SparkExecutor(session, any_session())
    name = f"kept_lines_{next(_numbers)}"
    frame = executor.spark.createDataFrame(texts.map(worker.alone), f"c{LINE.id} string")
    frame.createOrReplaceTempView(name)
    leaf = Relation(0, name, KEPT, (), (LINE,), t.Struct(()))
    chosen = executor.frame(Filter(leaf, condition))
    try:
        return KeyIn(keys_of(chosen.rdd.map(itemgetter(0))), worker.shown)
    finally:
        executor.spark.catalog.dropTempView(name)

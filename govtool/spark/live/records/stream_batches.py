"""Batches of ``foreachBatch`` as plans over their own files: the rows that a batch hands on are an RDD to its writes.

Spark keeps the plan of the batch that is running, with the files that are new in it as a relation like any other. It
takes the place of the RDD where that is all of it: a stream with a state has rows of earlier batches in it, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from govtool.spark.live.jvm import streaming
from govtool.spark.live.jvm.scala import sequence
from govtool.spark.live.records.carried import PlanCarrier

MAX_BATCHES = 1000
"""Batches that are known until the listener has heard of their writes."""
_ROW_BY_ROW = frozenset(["Project", "Filter", "SubqueryAlias", "Union", "Generate", "LogicalRelation"])

STREAM_STATE = "the stream keeps a state: rows of earlier batches are in it"


class NoPlan(Exception):
    """The rows of a batch are not those of a plan over its files, with the reason."""


class StreamBatches:
    """The plans of batches by their RDDs, or the reasons why there are none."""

    def __init__(self) -> None:
        self._plans: dict[int, Any] = {}
        self._reasons: dict[int, str] = {}

    def __bool__(self) -> bool:
        """Return whether there were batches."""
        return bool(self._plans or self._reasons)

    def begin(self, batch: Any, carrier: PlanCarrier, sessions: Iterable[Any]) -> None:
        """Note the plan of a batch before its function runs.

        Args:
            batch: The DataFrame that the function gets.
            carrier: Makes operators of its session.
            sessions: Those of the job: a batch runs in a copy of the one that has its query.
        """
        for leaf in sequence(batch._jdf.queryExecution().analyzed().collectLeaves()):
            if leaf.getClass().getSimpleName() != "LogicalRDD":
                continue
            number = int(leaf.rdd().id())
            try:
                self._plans[number] = bound(_running(batch, sessions), carrier)
            except NoPlan as why:
                self._reasons[number] = str(why)
        for known in (self._plans, self._reasons):
            while len(known) > MAX_BATCHES:
                del known[next(iter(known))]

    def plan_of(self, leaf: Any, carrier: PlanCarrier) -> Any:
        """The plan behind an RDD of a batch, with the columns of a leaf that reads it; None of any other RDD."""
        plan = self._plans.get(int(leaf.rdd().id()))
        return None if plan is None else _under(plan, sequence(leaf.output()), carrier)

    def reason_of(self, leaf: Any) -> str:
        """Return why there is no plan behind an RDD; empty of one that is no batch."""
        return self._reasons.get(int(leaf.rdd().id()), "")


def _running(batch: Any, sessions: Iterable[Any]) -> Any:
    """The analyzed plan of the batch that runs on this thread.

    Raises:
        NoPlan: Its query is not known.
    """
    query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    found = streaming.running(query, sessions) if query else None
    if found is None:
        raise NoPlan("the streaming query of the batch is not known")
    return found.lastExecution().analyzed()


def _under(plan: Any, columns: list[Any], carrier: PlanCarrier) -> Any:
    """A plan whose columns have the ids of others, by position.

    Where a query reads a batch twice, Spark gives the second leaf ids of its own; what is below gets new ones, too.
    """
    if [each.exprId().id() for each in sequence(plan.output())] == [each.exprId().id() for each in columns]:
        return plan
    frame = carrier.frame(plan)
    copy = frame.crossJoin(frame).queryExecution().analyzed().children().last()
    pairs = zip(sequence(copy.output()), columns, strict=True)
    return carrier.project([carrier.alias(own, column) for own, column in pairs], copy)


def bound(plan: Any, carrier: PlanCarrier) -> Any:
    """The plan of a batch as one over files.

    Raises:
        NoPlan: It keeps a state, or reads a stream that is no files.
    """
    kind = plan.getClass().getSimpleName()
    if not plan.isStreaming():
        return plan
    if kind.startswith("WriteToMicroBatchDataSource") or kind == "EventTimeWatermark":
        return bound(plan.child(), carrier)
    children = sequence(plan.children())
    if kind == "Join" and sum(bool(child.isStreaming()) for child in children) != 1:
        raise NoPlan(STREAM_STATE)
    if kind == "LogicalRelation" and plan.relation().getClass().getSimpleName() != "HadoopFsRelation":
        raise NoPlan("the stream reads something that is no files: its rows have no positions")
    if kind == "LocalRelation" and plan.data().isEmpty():  # nothing is new in this stream
        return carrier.rebuilt(plan, isStreaming=False)
    if not children and kind != "LogicalRelation":
        raise NoPlan(f"the stream reads {kind}, which is no files: its rows have no positions")
    if kind not in _ROW_BY_ROW and kind != "Join":
        raise NoPlan(STREAM_STATE)
    if kind == "LogicalRelation":
        return carrier.rebuilt(plan, isStreaming=False)
    return plan.withNewChildren(carrier.seq([bound(child, carrier) for child in children]))

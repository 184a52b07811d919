"""Spark's numbers of the executions that the listener heard of.

A listener is handed the ``QueryExecution``; its number, and that of the execution that it is a part of, are in Spark's
store of executions. Since Spark 4.2 both have the id of the query. Before, they share the accumulators of their
metrics, which are unique in an application; commands that measure nothing are known by the text of their plan.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

from govtool.spark.live.jvm import hadoop
from govtool.spark.live.jvm.scala import safely
from govtool.spark.live.plans.physical import leaves_of, unwrapped

MAX_LEAVES = 20
MAX_AHEAD = 1000
"""Executions that are requested at once."""
AHEAD = 3
"""Executions that are fetched together: that of an action, what it consists of, and the one that is not there yet."""
MAX_TOGETHER = 48
"""Executions that are fetched together where many were passed over: other sessions of an application run theirs."""
MAX_TRIES = 4
"""Number of attempts to look up a number without an execution."""

_INFERENCE = re.compile(r"DataFrameReader\.|DataStreamReader\.|FileStreamSource|InferSchema")
"""Methods in which Spark only looks at files to infer their schema."""
_BATCH = re.compile(r"\bid = ([0-9a-f-]{36})\s+runId = ([0-9a-f-]{36})\s+batch = (\d+)")
"""Spark's descriptions of the executions of a streaming batch, its own queries and those of ``foreachBatch``."""
_ACCUMULATOR = re.compile(r"\(id: (\d+)")
_METRIC = re.compile(r"SQLPlanMetric\(.*?,(\d+),[a-zA-Z]+\)", re.DOTALL)


class Mark(NamedTuple):
    """The identity of an execution."""

    query: str
    """The query's id; empty before Spark 4.2."""
    accumulators: frozenset[int]
    text: str
    """The plan, of a command without metrics."""


class _Entry(NamedTuple):
    number: int
    root: Any
    inference: bool
    mark: Mark
    started: float | None = None
    """Seconds since 1970."""
    batch: tuple[str, str, int] | None = None
    """Of a streaming query: its id, the id of its run, the batch's number."""
    modified: str | None = None
    """The settings of the session that differ from those of the application; None before Spark 3.3."""


class Numbers:
    """The executions of one application that no one has asked for yet."""

    def __init__(self) -> None:
        self._next = 0
        self._missing: dict[int, int] = {}
        """Numbers that were passed over, and how often they were looked up again: of executions that never began, or
        that are announced late."""
        self._entries: dict[int, _Entry] = {}
        self._queries: dict[str, int] = {}

    def upcoming(self) -> list[int]:
        """The executions that are usually there when the store is looked at next."""
        return [*self._missing, *range(self._next, self._next + AHEAD)]

    def look(self, store: Any, query: str = "", fetch: Callable[[list[int]], Any] | None = None) -> None:
        """Take in what Spark's store has that was not there before.

        Args:
            store: Spark's store of executions.
            query: The query that is looked for: with it, there is no need to look behind numbers that were never used.
            fetch: Returns the store with some executions fetched; ``store`` has those that were upcoming.
        """
        ahead, fetched = AHEAD, self._next + AHEAD
        for number, tries in list(self._missing.items()):
            if self._take_in(store, number) or tries == MAX_TRIES:
                del self._missing[number]
            else:
                self._missing[number] = tries + 1
        end = self._next + MAX_AHEAD
        while self._next < end:
            if fetch is not None and self._next == fetched:
                ahead = min(2 * ahead, MAX_TOGETHER)
                fetched += ahead
                store = fetch(list(range(self._next, fetched)))
            if not self._take_in(store, self._next):
                # A command that analysis refuses takes a number and is never announced: what comes after it is.
                last = None if query in self._queries else last_execution(store)
                if last is None or last <= self._next:
                    break
                self._missing[self._next] = 0
            self._next += 1
        while len(self._entries) > 4 * MAX_AHEAD:
            gone = self._entries.pop(next(iter(self._entries)))
            self._queries.pop(gone.mark.query, None)

    def _take_in(self, store: Any, number: int) -> bool:
        """Take in one execution; False if the store does not have it."""
        found = store.execution(number)
        if not found.isDefined():
            return False
        entry = _entry(found.get())
        self._entries[entry.number] = entry
        if entry.mark.query:
            self._queries[entry.mark.query] = entry.number
        return True

    def mark(self, execution: Any) -> Mark:
        """Return the identity of an execution that was heard of."""
        try:
            return Mark(str(execution.queryId().toString()), frozenset(), "")
        except Exception:
            executed = execution.executedPlan()
        numbers: set[int] = set()
        for node in (unwrapped(executed), *islice(leaves_of(executed), MAX_LEAVES)):
            numbers.update(int(number) for number in _ACCUMULATOR.findall(node.metrics().values().mkString("\x01")))
        return Mark("", frozenset(numbers), "" if numbers else _explained(execution))

    def take(self, mark: Mark) -> dict[str, Any] | None:
        """The numbers of an execution, and its settings, once; None if the store does not know it (yet)."""
        number = self._queries.pop(mark.query, None) if mark.query else self._measured(mark)
        if number is None:
            return None
        return _facts(self._entries.pop(number))

    def _measured(self, mark: Mark) -> int | None:
        shared = {n: len(e.mark.accumulators & mark.accumulators) for n, e in self._entries.items()}
        best = max(shared, key=lambda n: (shared[n], -n), default=None)
        if best is not None and shared[best]:
            return best
        if mark.accumulators or not mark.text:
            return None
        return next((n for n, entry in self._entries.items() if entry.mark.text == mark.text), None)


def facts_of(store: Any, number: int) -> dict[str, Any]:
    """The numbers of an execution whose own is known, and its settings as far as the store knows them by now."""
    found = store.execution(number)
    return _facts(_entry(found.get())) if found.isDefined() else {"execution": number, "root": number}


def _facts(entry: _Entry) -> dict[str, Any]:
    found: dict[str, Any] = {"execution": entry.number, "root": entry.root}
    if entry.inference:
        found["inference"] = True
    if entry.started is not None:
        found["started"] = entry.started
    if entry.batch is not None:
        found["batch"] = list(entry.batch)
    if entry.modified is not None:
        found["modified"] = entry.modified
    return found


def _entry(data: Any) -> _Entry:
    """An execution as Spark's store has it."""
    inference = bool(_INFERENCE.search(str(data.details()).split("\n", 1)[0]))
    try:
        mark = Mark(str(data.queryId().toString()), frozenset(), "")
    except Exception:
        numbers = frozenset(int(number) for number in _METRIC.findall(data.metrics().mkString("\x01")))
        mark = Mark("", numbers, "" if numbers else str(data.physicalPlanDescription()))
    described = _BATCH.search(str(safely(data.description) or ""))
    batch = (described[1], described[2], int(described[3])) if described is not None else None
    began = safely(data.submissionTime)
    started = began / 1000 if isinstance(began, int) else None
    modified = safely(lambda: str(data.modifiedConfigs().mkString("\x01")))
    return _Entry(int(data.executionId()), data.rootExecutionId(), inference, mark, started, batch, modified)


def last_execution(store: Any) -> int | None:
    """The largest number of an execution that the store has; None if it has none."""
    count = int(store.executionsCount())
    newest = store.executionsList(max(0, count - 1), 1)
    return int(newest.apply(0).executionId()) if newest.size() else None


def _explained(execution: Any) -> str:
    """The plan as the start of an execution is announced with."""
    mode = execution.sparkSession().sessionState().conf().uiExplainMode()
    modes = hadoop.java().org.apache.spark.sql.execution.ExplainMode
    return str(execution.explainString(modes.fromString(mode)))

"""The log of an RDD program: its operators with their functions, and what its actions returned.

Nothing here is done per record. A node keeps the RDD of Spark that it stands for.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from govtool.spark.rdd.operators import OPERATORS, STOPS, Kind, RddOperator
from govtool.spark.rdd.worker import Step

MAX_FEEDS = 64
"""Unions of unions stop a trace beyond this number of branches, so that a program of n unions has no 2^n feeds."""

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """What an action returned: the number of records, and a digest of them where they were few."""

    action: str
    count: int
    digest: int | None = None


@dataclass(frozen=True, slots=True)
class Feed:
    """The way of records from a stop through operators of one record.

    Attributes:
        stop: Where the way begins.
        steps: The operators' functions.
        in_order: The records arrive in the partitions and the order of Spark's own RDD.
    """

    stop: RddNode
    steps: tuple[Step, ...] = ()
    in_order: bool = True


@dataclass(eq=False)
class RddNode:
    """One operator of a program.

    Attributes:
        name: The method.
        operator: How it makes its records.
        parents: Operators whose records it reads.
        rdd: Spark's own RDD.
        arguments: The method's arguments by name, RDDs left out.
        apply: Calls the method on other parents.
        label: For people: ``reduceByKey at job.py:12``.
        recorded: What actions on it returned.
    """

    name: str
    operator: RddOperator
    parents: tuple[RddNode, ...]
    rdd: Any
    arguments: dict[str, Any] = field(default_factory=dict)
    apply: Callable[..., Any] | None = None
    label: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    recorded: list[RecordedResult] = field(default_factory=list)
    stops: bool = False
    number: int = field(default_factory=lambda: next(_numbers))
    incoming: tuple[tuple[Feed, ...], ...] = ()
    feeds: tuple[Feed, ...] = ()

    def __post_init__(self) -> None:
        """Connect the feeds."""
        self.incoming = tuple(parent.feeds for parent in self.parents)
        passed = self._passed() if self.kind not in STOPS else ()
        self.stops = self.kind in STOPS or len(passed) > MAX_FEEDS
        if self.stops:
            if self.kind is Kind.UNION:  # every branch is a way into this stop
                self.incoming = (passed,)
            self.feeds = (Feed(self, (), self.kind not in (Kind.JOIN, Kind.PRODUCT, Kind.EXCEPT)),)
        else:
            self.feeds = passed
            self.incoming = (passed,)

    @property
    def kind(self) -> Kind:
        """How it makes its records."""
        return self.operator.kind

    def _passed(self) -> tuple[Feed, ...]:
        feeds = tuple(itertools.chain.from_iterable(parent.feeds for parent in self.parents))
        if self.kind is Kind.SAME:
            return tuple(replace(feed, in_order=False) for feed in feeds)
        if self.kind is Kind.RECORD:
            assert self.operator.step is not None
            step = self.operator.step(self.arguments)
            return tuple(replace(feed, steps=(*feed.steps, step)) for feed in feeds)
        return feeds

    def key(self) -> Callable[[Any], Any]:
        """Return the function from an input record to its key."""
        assert self.operator.key is not None
        return self.operator.key(self.arguments)

    def result_key(self) -> Callable[[Any], Any]:
        """Return the function from an output record to its key."""
        assert self.operator.result_key is not None
        return self.operator.result_key


def ancestors(nodes: tuple[RddNode, ...]) -> list[RddNode]:
    """Return nodes and all that they come from, parents before children."""
    found: dict[int, RddNode] = {}
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node.number not in found:
            found[node.number] = node
            waiting.extend(node.parents)
    return [found[number] for number in sorted(found)]


def marked(node: RddNode, goals: tuple[RddNode, ...]) -> tuple[RddNode, tuple[RddNode, ...]]:
    """Return a mark at a node, and goals that read the mark in its place.

    A way on from records in the middle of a stage needs a stop there; the program has none.
    """
    mark = RddNode("mark", OPERATORS["mark"], (node,), node.rdd, {}, same_rdd, node.label)
    made = {node.number: mark}
    for each in ancestors(goals):
        if each is not node and any(parent.number in made for parent in each.parents):
            parents = tuple(made.get(parent.number, parent) for parent in each.parents)
            made[each.number] = replace(each, parents=parents, number=next(_numbers))
    return mark, tuple(made.get(goal.number, goal) for goal in goals)


def same_rdd(rdd: Any) -> Any:
    """Return the RDD: a mark changes nothing."""
    return rdd


class ProgramLog:
    """The operators on which actions ran, and the files that were written.

    An operator is forgotten with the last RDD that needs it, as Spark forgets its shuffle files; what a written file
    needs is kept.
    """

    def __init__(self) -> None:
        self.outputs: dict[str, RddNode] = {}
        self._acted: weakref.WeakSet[RddNode] = weakref.WeakSet()
        self._lock = threading.Lock()

    def add(self, node: RddNode, recorded: RecordedResult | None) -> None:
        """Note that an action ran."""
        with self._lock:
            self._acted.add(node)
            if recorded is not None:
                node.recorded.append(recorded)

    def wrote(self, path: str, node: RddNode) -> None:
        """Note that a node was written."""
        with self._lock:
            self.outputs[path] = node
            self._acted.add(node)

    def results_of(self, node: RddNode) -> Iterator[RddNode]:
        """Yield the nodes with actions that come from a node."""
        with self._lock:
            acted = sorted(self._acted, key=lambda each: each.number)
        for each in acted:
            if each is not node and node in ancestors((each,)):
                yield each

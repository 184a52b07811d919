"""Tracing back: from rows of a segment to the input rows in it, and across its links to the segments below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from govtool.records.plan.expressions import AggregateCall, Attribute, Call, Expression, Literal, Named, passed
from govtool.records.plan.nodes import Aggregate, Distinct, Filter, LateralJoin, Limit, Project, Relation, outputs
from govtool.records.plan.tree import Node
from govtool.records.plan.types import BOOLEAN, INTEGER, LONG
from govtool.records.trace.deep import Evaluated, path_to_middle
from govtool.records.trace.push import narrowed_part, semijoined
from govtool.records.trace.segment import (
    EXACT,
    Grade,
    Leaf,
    LeafSource,
    Link,
    LinkSource,
    Segment,
    projected,
    unique,
)


class Executor(Protocol):
    """Evaluates plans; a relation's metadata column ``_record`` is file ordinal and row, packed without the leaf."""

    def keep(self, node: Node) -> Relation:
        """Evaluate a plan once; return a leaf that reads its rows, columns under their ids."""

    def fetch(self, node: Node) -> list[tuple[Any, ...]]:
        """The rows of a plan."""

    def arrow(self, node: Node) -> Any:
        """The rows of a plan as a pyarrow table; its columns are in the plan's order, whatever their names."""


@dataclass(eq=False, slots=True)
class Stage:
    """A segment in its place: under a link of the segment above, or at the top."""

    segment: Segment
    above: Stage | None = None
    source: LinkSource | None = None
    _below: dict[int, Stage] = field(default_factory=dict)

    def below(self, number: int) -> Stage:
        """The stage under one of the segment's sources, which is a link."""
        if number not in self._below:
            source = self.segment.sources[number]
            assert isinstance(source, LinkSource)
            self._below[number] = Stage(source.link.child, self, source)
        return self._below[number]

    def all(self) -> list[Stage]:
        """This stage and every one below it, those above before those below."""
        found = [self]
        for stage in found:
            links = [n for n, source in enumerate(stage.segment.sources) if isinstance(source, LinkSource)]
            found.extend(stage.below(number) for number in links)
        return found

    def over(self) -> Iterator[Stage]:
        """The stages above, from the next one to the output."""
        stage = self.above
        while stage is not None:
            yield stage
            stage = stage.above

    @property
    def operator(self) -> str:
        """The boundary above, for people."""
        return "output" if self.source is None else self.source.link.operator


@dataclass(frozen=True, slots=True)
class StagePosition:
    """Chosen rows of a stage.

    Attributes:
        stage: The stage.
        rows: A plan of the chosen rows: the segment's columns, and where the segment is evaluated for values of
            enclosing queries, those values' columns.
        grade: How close the choice is to the trace as defined.
        against: Whether the rows stand against the result's.
        evaluated: Parts of the plan below with the rows that the trace of these rows needs of them.
        chosen_there: The rows were chosen at this boundary, and not come to from another place.
    """

    stage: Stage
    rows: Node
    grade: Grade = EXACT
    against: bool = False
    evaluated: Evaluated = field(default_factory=dict)
    chosen_there: bool = False


@dataclass(frozen=True, slots=True)
class ReachedRows:
    """Rows of an input: ``rows`` is a plan of one column, their ids."""

    leaf: Leaf
    rows: Node
    grade: Grade = EXACT
    against: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One step back: how many rows it started from, and where it came to."""

    position: StagePosition
    rows: int
    found: tuple[StagePosition | ReachedRows, ...]


def step_back(executor: Executor, position: StagePosition) -> Step:
    """The rows one boundary below, and the input rows in the segment itself."""
    segment = position.stage.segment
    if not segment.sources:
        return Step(position, count_rows(executor, position.rows), ())
    kept = executor.keep(projected(position.rows, (*segment.carried(), *_context(position))))
    found: list[StagePosition | ReachedRows] = []
    for number, source in enumerate(segment.sources):
        grade = position.grade.worst(doubt_of(executor, kept, source))
        against = position.against or source.against
        if isinstance(source, LeafSource):
            there = Filter(kept, Call("is not null", (source.record,), BOOLEAN))
            found.append(ReachedRows(source.leaf, Distinct(projected(there, (source.record,))), grade, against))
        else:
            values = executor.keep(link_values(source, kept))
            if exists(executor, values):
                below = position.stage.below(number)
                parts = evaluated_parts(executor, source.link, values, position.evaluated)
                rows = matching(source.link, values, parts)
                found.append(StagePosition(below, rows, grade.worst(source.link.grade), against, parts))
    return Step(position, count_rows(executor, kept), tuple(found))


def _context(position: StagePosition) -> tuple[Attribute, ...]:
    """The columns of enclosing queries that links of the segment go on to read."""
    sources = position.stage.segment.sources
    free = {each.id for source in sources if isinstance(source, LinkSource) for each in source.link.free}
    return tuple(column for column in unique(outputs(position.rows)) if column.id in free)


def doubt_of(executor: Executor, kept: Relation, source: LeafSource | LinkSource) -> Grade:
    """The grade of a source in rows that were chosen: a superset if a doubt holds in one of them."""
    for column, why in source.doubts:
        if exists(executor, Filter(with_source(kept, source), column)):
            return Grade("superset", why)
    return EXACT


def with_source(rows: Node, source: LeafSource | LinkSource) -> Node:
    """The rows that a source has rows for."""
    there = source.present if isinstance(source, LinkSource) else Call("is not null", (source.record,), BOOLEAN)
    return Filter(rows, there)


def exists(executor: Executor, node: Node) -> bool:
    """Return True if a plan has rows."""
    known = _known_rows(executor, node)
    if known is not None:
        return known > 0
    one = Named(Literal(True, BOOLEAN), 0, "one")
    return bool(executor.fetch(Limit(Project(node, (one,)), 1)))


def link_values(source: LinkSource, rows: Node) -> Node:
    """The values of a link's parameters in rows of the segment above, each combination once."""
    columns = {parameter.id: Named(column, parameter.id, parameter.name) for parameter, column in source.pairs}
    here = {column.id: column for column in outputs(rows)}
    for each in source.link.free:
        if each.id not in columns and each.id in here:
            columns[each.id] = passed(each)
    chosen = tuple(columns.values()) or (passed(source.present),)
    return Distinct(Project(Filter(rows, source.present), chosen))


def matching(link: Link, values: Relation, evaluated: Evaluated) -> Node:
    """The rows below a link that match values of its parameters."""
    child = link.child.node
    if link.free:
        return LateralJoin(values, child, "inner", link.condition, link.free)
    return semijoined(child, values, link.condition, evaluated)


def evaluated_parts(executor: Executor, link: Link, values: Relation, before: Evaluated) -> Evaluated:
    """Parts of the plan below a link that need not be evaluated once more for each boundary above them.

    Every boundary evaluates what is below it. Of a deep plan the half below the middle is evaluated at once: with the
    rows that match the values, which are all that a trace of these comes to.
    """
    if link.free:
        return {}
    path = path_to_middle(link.child.node, before)
    if not path:
        return before
    part = narrowed_part(path, values, link.condition, before)
    return {**before, id(path[-1]): executor.keep(part)}


def count_rows(executor: Executor, node: Node) -> int:
    """Return the number of rows of a plan."""
    known = _known_rows(executor, node)
    if known is not None:
        return known
    calls = Named(AggregateCall("count", (Literal(1, INTEGER),), LONG), 0, "rows")
    return int(executor.fetch(Aggregate(node, (), (calls,)))[0][0])


def _known_rows(executor: Executor, node: Node) -> int | None:
    """The number of rows that were kept; None of a plan, and where the executor does not count."""
    counted: Callable[[Relation], int | None] | None = getattr(executor, "kept_rows", None)
    return counted(node) if counted is not None and isinstance(node, Relation) else None


def trace_back(executor: Executor, positions: Iterable[StagePosition]) -> tuple[list[Step], list[ReachedRows]]:
    """Follow every link down to the inputs; the steps on the way come with them."""
    waiting = list(positions)
    steps: list[Step] = []
    reached: list[ReachedRows] = []
    while waiting:
        step = step_back(executor, waiting.pop(0))
        steps.append(step)
        waiting += [each for each in step.found if isinstance(each, StagePosition)]
        reached += [each for each in step.found if isinstance(each, ReachedRows)]
    return steps, reached


def chosen(stage: Stage, condition: Expression | None) -> StagePosition:
    """The rows of the output that meet a condition."""
    node = stage.segment.node
    return StagePosition(stage, node if condition is None else Filter(node, condition))

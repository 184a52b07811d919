"""Sizes of groups: how many members of an input are behind each row of an output, and how many behind the fewest.

A trace of every row by one query: the rows of the output carry what identifies their trace, and keep it across every
boundary below. Each place where the plan reads the input counts by itself: behind ``avg(a.pay)`` grouped by ``a.id``
over a crossing with the same table is one row of ``a``, however many others stand beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from govtool.errors import EvidenceError
from govtool.records.plan.expressions import AggregateCall, Attribute, Call, Named, passed
from govtool.records.plan.nodes import Aggregate, Distinct, Filter, Join, Project, Relation, Union, outputs
from govtool.records.plan.tree import Node
from govtool.records.plan.types import BOOLEAN, LONG
from govtool.records.trace.back import Stage, exists
from govtool.records.trace.segment import EXACT, Grade, LeafSource, LinkSource, unique
from govtool.records.trace.traced_plan import TracedPlan


@dataclass(frozen=True, slots=True)
class SmallestGroup:
    """The members behind the row of an output that has the fewest; rows that have none do not count.

    Attributes:
        at_least: Their number, at the least.
        at_most: At the most: other where the input is read at several places, which may bring the same members.
        grade: How exact the trace is.
    """

    at_least: int
    at_most: int
    grade: Grade


def smallest_group(
    lineage: TracedPlan, members: Mapping[str, str | None], valued: Mapping[str, str] | None = None
) -> SmallestGroup | None:
    """Count the members behind each row of an output; None where no row has any.

    Args:
        lineage: The plan of the output.
        members: By input the column that holds the members' identity; None: its rows are the members.
        valued: By input a column that is aggregated: a row without a value of it is no member, as aggregates skip it.

    Raises:
        EvidenceError: They cannot be counted (``evidence.groups``).
        EngineError: No engine evaluates the plan exactly.
    """
    return _Groups(lineage, members, valued or {}).smallest()


class _Groups:
    """The members of one question, place by place."""

    def __init__(self, lineage: TracedPlan, members: Mapping[str, str | None], valued: Mapping[str, str]) -> None:
        self._lineage, self._executor, self._ids = lineage, lineage.executor, lineage.ids
        self._members, self._valued = members, valued
        self._grade = lineage.graded(EXACT)

    def smallest(self) -> SmallestGroup | None:
        """The smallest group."""
        stage = self._lineage.stage
        node = stage.segment.node
        own = unique(stage.segment.carried())
        group = tuple(self._ids.named(column.name, column) for column in own)
        rows = Project(node, (*map(passed, own), *group))
        places = [self._executor.keep(each) for each in self._places(stage, rows, tuple(g.attribute for g in group))]
        sizes = [self._fewest(place) for place in places]
        known = [size for size in sizes if size is not None]
        if not known:
            return None
        if len(places) == 1:
            return SmallestGroup(known[0], known[0], self._grade)
        columns = tuple(self._ids.attribute(column.name, column.type) for column in outputs(places[0]))
        every = self._fewest(Distinct(Union(tuple(places), columns)))
        return SmallestGroup(min(known), max(known) if every is None else every, self._grade)

    def _places(self, stage: Stage, rows: Node, group: tuple[Attribute, ...]) -> Iterator[Node]:
        """Groups with their members, for each place at which the plan reads an input that has some."""
        segment = stage.segment
        kept = self._executor.keep(Distinct(Project(rows, tuple(map(passed, unique((*group, *segment.carried())))))))
        for number, source in enumerate(segment.sources):
            if source.against or not self._leads(stage, number):
                continue
            self._doubt(kept, source)
            if isinstance(source, LeafSource):
                yield self._at_leaf(kept, source, group)
            else:
                yield from self._places(stage.below(number), self._below(kept, source, group), group)

    def _leads(self, stage: Stage, number: int) -> bool:
        """Return whether a source leads to an input that has members."""
        source = stage.segment.sources[number]
        if isinstance(source, LeafSource):
            return isinstance(source.leaf, Relation) and source.leaf.dataset in self._members
        below = stage.below(number)
        return any(self._leads(below, n) for n, each in enumerate(below.segment.sources) if not each.against)

    def _doubt(self, kept: Relation, source: LeafSource | LinkSource) -> None:
        for column, why in source.doubts:
            if exists(self._executor, Filter(kept, column)):
                self._grade = self._grade.worst(Grade("superset", why))
        if isinstance(source, LinkSource):
            self._grade = self._grade.worst(source.link.grade)

    def _at_leaf(self, kept: Relation, source: LeafSource, group: tuple[Attribute, ...]) -> Node:
        """Groups with the members of an input: its records, or the values of a column of theirs."""
        assert isinstance(source.leaf, Relation)
        there = Filter(kept, Call("is not null", (source.record,), BOOLEAN))
        by_name = {column.name: column for column in source.leaf.columns}
        member = self._members[source.leaf.dataset]
        valued = self._valued.get(source.leaf.dataset)
        needed = [by_name[name] for name in dict.fromkeys((member, valued)) if name is not None and name in by_name]
        if not needed:
            return self._pairs(there, group, source.record)
        node, record = self._lineage.read(source.leaf)
        place = self._ids.named("record", source.record)
        known = Project(there, (*map(passed, group), place))  # not the input's own columns, which are read once more
        rows: Node = Join(known, node, "inner", Call("=", (place.attribute, record), BOOLEAN))
        for column in needed:
            rows = Filter(rows, Call("is not null", (column,), BOOLEAN))
        return self._pairs(rows, group, record if member is None else by_name[member])

    def _pairs(self, rows: Node, group: tuple[Attribute, ...], member: Attribute) -> Node:
        columns = tuple(self._ids.named(column.name, column) for column in (*group, member))
        return Distinct(Project(rows, columns))

    def _below(self, kept: Relation, source: LinkSource, group: tuple[Attribute, ...]) -> Node:
        """The rows below a link, each with the groups that it belongs to."""
        link = source.link
        if link.free:
            raise EvidenceError("its rows come through a correlated subquery", code="evidence.groups")
        values = {parameter.id: Named(column, parameter.id, parameter.name) for parameter, column in source.pairs}
        above = Distinct(Project(Filter(kept, source.present), (*map(passed, group), *values.values())))
        return Join(self._executor.keep(above), link.child.node, "inner", link.condition)

    def _fewest(self, pairs: Node) -> int | None:
        """The number of members of the group that has the fewest; the last column is the member."""
        *group, member = outputs(pairs)
        count = self._ids.named("members", AggregateCall("count", (member,), LONG))
        keys = tuple(map(passed, group))
        sizes = Aggregate(pairs, keys, (count,))
        least = self._ids.named("fewest", AggregateCall("min", (count.attribute,), LONG))
        ((found,),) = self._executor.fetch(Aggregate(sizes, (), (least,)))
        return None if found is None or found == 0 else int(found)

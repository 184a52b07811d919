"""The evaluator's state: new columns, links, and the rule of each operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from govtool.records.plan.expressions import Attribute, Expression, Literal
from govtool.records.plan.nodes import Break, LocalRows, Project, Range, Relation, Repartition, outputs
from govtool.records.plan.tree import Node, walk_nodes
from govtool.records.plan.types import BOOLEAN
from govtool.records.trace.computed import computed
from govtool.records.trace.normal import Ids
from govtool.records.trace.segment import (
    EXACT,
    Grade,
    LeafSource,
    Link,
    LinkSource,
    Segment,
    Source,
    alike,
    both,
    everything,
    free_columns,
    reads,
)

RECORD = "_record"
"""The metadata column of a relation that holds a record's id: file ordinal and row, packed without the leaf."""
TRUE = Literal(True, BOOLEAN)
Needed = frozenset[int]
"""Ids of the columns whose cells count: their values show in the result or steer rows."""
Rule = Callable[["Carrier", Any, Needed], Segment]


@dataclass(frozen=True, slots=True)
class Linked:
    """A link with the value of each of its parameters in the segment above."""

    link: Link
    pairs: tuple[tuple[Attribute, Expression], ...] = ()
    against: bool = False
    where: Expression = TRUE
    """Over the segment above: the rows that the link is for."""


@dataclass(frozen=True, slots=True)
class Carrier:
    """Rewrites plans into segments.

    Attributes:
        ids: New columns' ids.
        rules: The rule of each operator.
        candidates: Keep rows that something takes off, too: right operands of ⊖ are traced whole.
        why: What of the plan cannot be evaluated again.
        top: Whether this is the segment of the output, whose rows are compared with the recorded ones.
    """

    ids: Ids
    rules: Mapping[type, Rule]
    candidates: bool = False
    why: str = ""
    top: bool = True

    def segment(self, node: Node, needed: Needed) -> Segment:
        """The segment of a plan."""
        return self.rules.get(type(node), coarse)(self, node, needed & computed(node))

    def whole(self) -> Carrier:
        """The carrier of right operands of ⊖."""
        return replace(self, candidates=True)

    def present(self) -> Carrier:
        """The carrier of rows that are there."""
        return replace(self, candidates=False)

    def below(self, node: Node, needed: Needed = frozenset()) -> Callable[[], Segment]:
        """The segment of a plan below a boundary, made when a trace gets there."""
        return partial(self.lower().segment, node, needed)

    def lower(self) -> Carrier:
        """The carrier of rows below a boundary."""
        return replace(self, top=False)

    def grade_of(self, node: Node) -> Grade:
        """The grade of rows of a plan below a boundary: a superset where some may not have been the run's."""
        if self.why and any(isinstance(each, Repartition) for each in walk_nodes(node)):
            return Grade("superset", self.why)
        return EXACT

    def extended(self, segment: Segment, values: Sequence[Expression], name: str) -> tuple[Segment, list[Attribute]]:
        """A segment with columns computed from its own; those that are columns already are taken as they are."""
        made = {value: self.ids.named(name, value) for value in values if not isinstance(value, Attribute)}
        columns = [value if isinstance(value, Attribute) else made[value].attribute for value in values]
        if not made:
            return segment, columns
        return replace(segment, node=Project(segment.node, (*everything(segment.node), *made.values()))), columns

    def linked(self, segment: Segment, links: Iterable[Linked]) -> Segment:
        """A segment with more sources."""
        links = list(links)
        if not links:
            return segment
        values = [value for each in links for value in (each.where, *(value for _, value in each.pairs))]
        segment, columns = self.extended(segment, values, "match")
        rest = iter(columns)
        sources: list[Source] = []
        for each in links:
            present = next(rest)
            pairs = tuple((parameter, next(rest)) for parameter, _ in each.pairs)
            sources.append(LinkSource(each.link, pairs, present, each.against))
        return replace(segment, sources=(*segment.sources, *sources))

    def by_values(
        self,
        operator: str,
        above: Sequence[Attribute],
        node: Node,
        keys: Sequence[Expression] = (),
        more: Iterable[Expression] = (),
        grade: Grade = EXACT,
    ) -> Linked:
        """A link to the rows whose columns are the same as those above, NULL being one value.

        Args:
            operator: The boundary's name.
            above: Columns of the segment above.
            node: The plan below.
            keys: What is compared with them; the columns of ``node`` if empty and ``above`` is not.
            more: Further conditions on the rows below.
            grade: How exact the match is.
        """
        below: list[Expression] = list(keys) if keys or not above else list(outputs(node))
        further = list(more)
        parameters = [self.ids.attribute(column.name, column.type) for column in above]
        same = [alike(value, parameter) for value, parameter in zip(below, parameters, strict=True)]
        grade = grade.worst(self.grade_of(node))
        link = Link(
            operator,
            self.below(node, reads([*below, *further])),
            both([*same, *further]),
            grade,
            free_columns(node),
            node,
        )
        return Linked(link, tuple(zip(parameters, above, strict=True)))


def coarse(carrier: Carrier, node: Node, needed: Needed, why: str = "") -> Segment:
    """A black box: whole inputs."""
    reason = why or (node.reason if isinstance(node, Break) else f"{type(node).__name__.lower()} is a black box")
    leaves: list[Node] = [each for each in walk_nodes(node) if isinstance(each, (Relation, LocalRows, Range))]
    name, grade = type(node).__name__.lower(), Grade("coarse", reason)
    links = [Link(name, carrier.below(leaf), None, grade, plan=leaf) for leaf in leaves]
    return carrier.linked(Segment(node, outputs(node), ()), [Linked(link) for link in links])


def relocated(source: Source, names: Mapping[int, Attribute]) -> Source:
    """A source whose columns have other ids."""

    def moved(column: Attribute) -> Attribute:
        return names.get(column.id, column)

    doubts = tuple((moved(column), why) for column, why in source.doubts)
    if isinstance(source, LeafSource):
        return replace(source, record=moved(source.record), doubts=doubts)
    pairs = tuple((parameter, moved(column)) for parameter, column in source.pairs)
    return replace(source, pairs=pairs, present=moved(source.present), doubts=doubts)

"""Tracing forward: from input rows to the rows of each segment whose trace has one of them, up to the output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from govtool.records.plan.expressions import Attribute, Call, Expression, Named
from govtool.records.plan.nodes import Distinct, Filter, Join, LateralJoin, Project, Relation, outputs
from govtool.records.plan.tree import Node, Term, rewrite
from govtool.records.plan.types import BOOLEAN
from govtool.records.trace.back import (
    Executor,
    Stage,
    StagePosition,
    doubt_of,
    exists,
    link_values,
    with_source,
)
from govtool.records.trace.deep import path_to_middle, with_evaluated
from govtool.records.trace.normal import Ids
from govtool.records.trace.push import semijoined
from govtool.records.trace.segment import (
    EXACT,
    Grade,
    Leaf,
    LeafSource,
    Link,
    LinkSource,
    alike,
    both,
    either,
    everything,
    reads,
    unique,
)

Chosen = Mapping[tuple[object, ...], Relation]
"""Chosen input rows by input: a relation of one column, their ids."""
Between = Mapping[Stage, StagePosition]
"""Chosen rows of stages, each in its own."""


def input_key(leaf: Leaf) -> tuple[object, ...]:
    """Return a key of an input: leaves with the same key read the same version of the same files."""
    if isinstance(leaf, Relation):
        return (leaf.dataset, leaf.format, leaf.version, leaf.files)
    return (leaf.leaf,)


class Forward:
    """Follows rows upwards.

    Args:
        executor: Evaluates plans.
        ids: New columns' ids.
        between: Rows at boundaries that are followed, beside those of inputs.
    """

    def __init__(self, executor: Executor, ids: Ids, between: Between | None = None) -> None:
        self._executor = executor
        self._ids = ids
        self._between = between or {}
        self._over = {above for stage in self._between for above in stage.over()}
        self._domains: dict[Stage, Relation] = {}
        self._evaluated: dict[int, Relation] = {}

    def from_inputs(self, stage: Stage, chosen: Chosen, deep: bool = True) -> StagePosition | None:
        """The rows of a stage whose trace has a chosen row; None where the stage cannot have any.

        Args:
            stage: Where to look.
            chosen: The input rows.
            deep: Follow the links to the stages below; else only inputs of the segment itself, and rows that were
                chosen just below.
        """
        self._evaluate_middle(stage.segment.node)
        flags: list[tuple[Node, Expression]] = []
        through: list[tuple[LeafSource | LinkSource, Grade]] = []
        for number, source in enumerate(stage.segment.sources):
            if source.against:
                continue
            if isinstance(source, LeafSource):
                if input_key(source.leaf) in chosen:
                    flags.append(self._same_record(source, chosen[input_key(source.leaf)]))
                    through.append((source, EXACT))
            else:
                for below in self._below(stage.below(number), chosen, deep):
                    flags.append(self._matched(source, below))
                    through.append((source, below.grade.worst(source.link.grade)))
        return self._graded(self._flagged(stage, flags, EXACT), through) if flags else None

    def _below(self, stage: Stage, chosen: Chosen, deep: bool) -> list[StagePosition]:
        """The rows below a link that were chosen there, and those that chosen rows reach."""
        is_reached = deep and (bool(chosen) or stage in self._over)
        found = [self._between.get(stage), self.from_inputs(stage, chosen) if is_reached else None]
        return [position for position in found if position is not None]

    def _evaluate_middle(self, node: Node) -> None:
        """Evaluate the lower half of a deep plan at once, not once more for each boundary above it."""
        path = path_to_middle(node, self._evaluated)
        if path:
            part = with_evaluated(path[-1], self._evaluated)
            self._evaluated[id(path[-1])] = self._executor.keep(part)

    def _graded(
        self, position: StagePosition, through: Sequence[tuple[LeafSource | LinkSource, Grade]]
    ) -> StagePosition:
        """A position with the grades of the sources that its rows were found through, as far as its rows have them."""
        doubtful = [(source, grade) for source, grade in through if source.doubts or grade != EXACT]
        if not doubtful:
            return position
        kept = self._executor.keep(Project(position.rows, everything(position.rows)))
        found = EXACT
        for source, grade in doubtful:
            if grade != EXACT and exists(self._executor, with_source(kept, source)):
                found = found.worst(grade)
            found = found.worst(doubt_of(self._executor, kept, source))
        return StagePosition(position.stage, kept, found, position.against)

    def every_row(self, stage: Stage) -> Node:
        """All rows of a stage, for all values of enclosing queries that it is evaluated for."""
        node = with_evaluated(stage.segment.node, self._evaluated)
        if stage.source is None or stage.above is None or not stage.source.link.free:
            return node
        if stage not in self._domains:
            values = link_values(stage.source, self.every_row(stage.above))
            self._domains[stage] = self._executor.keep(values)
        return LateralJoin(self._domains[stage], node, "inner", None, stage.source.link.free)

    def _same_record(self, source: LeafSource, rows: Relation) -> tuple[Node, Expression]:
        (column,) = outputs(rows)
        copy = self._ids.named("record", column)
        return Project(rows, (copy,)), Call("=", (source.record, copy.attribute), BOOLEAN)

    def _matched(self, source: LinkSource, below: StagePosition) -> tuple[Node, Expression]:
        """Rows below a link, under new ids, and the condition that a row above matches one of them."""
        link = source.link
        rows = Filter(below.rows, link.condition) if link.free and link.condition is not None else below.rows
        columns = self._compared(link, source, rows)
        copies = {column.id: self._ids.named(column.name, column) for column in columns}
        kept = self._executor.keep(Distinct(Project(rows, tuple(copies.values()) or (self._mark(),))))
        if link.free:
            same = [alike(value, copies[p.id].attribute) for p, value in source.pairs if p.id in copies]
            same += [alike(c, copies[c.id].attribute) for c in link.free if c.id in copies and not _paired(source, c)]
            condition = both(same)
        else:
            values = {parameter.id: value for parameter, value in source.pairs}
            condition = None if link.condition is None else _renamed(link.condition, copies, values)
        present: Expression = source.present
        return kept, present if condition is None else Call("and", (present, condition), BOOLEAN)

    def _compared(self, link: Link, source: LinkSource, rows: Node) -> tuple[Attribute, ...]:
        """The columns of rows below that a match reads: those of the condition, or the link's parameters."""
        if link.free:
            wanted = {parameter.id for parameter, _ in source.pairs} | {column.id for column in link.free}
        else:
            wanted = set(reads([] if link.condition is None else [link.condition]))
        return tuple(column for column in unique(outputs(rows)) if column.id in wanted)

    def _mark(self) -> Named:
        from govtool.records.trace.carrier import TRUE

        return self._ids.named("there", TRUE)

    def _flagged(self, stage: Stage, flags: list[tuple[Node, Expression]], grade: Grade) -> StagePosition:
        node = self.every_row(stage)
        if len(flags) == 1:
            rows, condition = flags[0]
            return StagePosition(stage, semijoined(node, self._executor.keep(rows), condition), grade)
        marks = []
        for rows, condition in flags:
            mark = self._ids.attribute("hit", BOOLEAN)
            node = Join(node, rows, "existence", condition, mark)
            marks.append(mark)
        return StagePosition(stage, Filter(node, either(marks)), grade)


def _paired(source: LinkSource, column: Attribute) -> bool:
    return any(parameter.id == column.id for parameter, _ in source.pairs)


def _renamed(condition: Expression, copies: Mapping[int, Named], values: Mapping[int, Attribute]) -> Expression:
    """A link's condition over copies of the rows below and the columns of the segment above."""

    def change(term: Term) -> Term:
        if not isinstance(term, Attribute):
            return term
        return values[term.id] if term.id in values else copies[term.id].attribute if term.id in copies else term

    return rewrite(condition, change)  # type: ignore[return-value]

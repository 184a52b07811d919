"""A plan in the form that traces need: its segments, its inputs, what was recorded of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from govtool.model.token import record_id
from govtool.records.plan.expressions import Attribute, Call
from govtool.records.plan.nodes import (
    Join,
    LocalRows,
    Relation,
    Session,
    SetOperation,
    outputs,
)
from govtool.records.plan.tree import Node
from govtool.records.plan.types import BOOLEAN, FLOATS, LONG, comparable
from govtool.records.trace.answer import EvaluatedInput, RefusedFile
from govtool.records.trace.back import Executor, Stage, exists
from govtool.records.trace.carrier import Carrier
from govtool.records.trace.list_order import unordered_lists
from govtool.records.trace.looseness import Looseness
from govtool.records.trace.named_boundaries import NamedBoundary, boundaries, boundary_called, unknown_boundary
from govtool.records.trace.normal import Ids
from govtool.records.trace.rounding import rounded_columns
from govtool.records.trace.rules import RULES, traceable, traceable_in_part
from govtool.records.trace.segment import (
    Grade,
    Leaf,
    LeafSource,
    Segment,
    projected,
)

_NOT_COMPARED = "rows at a boundary were not compared with the run's"
MISSING = "input files are gone or have changed: rows may be missing"


@dataclass(frozen=True, slots=True)
class TracedPlan:
    """A plan that can be traced.

    Attributes:
        stage: The outermost segment.
        executor: Evaluates plans.
        ids: New columns' ids.
        run: The run whose plan it is; empty for a query that was not run.
        output: The dataset that it wrote, or a title.
        keys: Columns of declared keys, by dataset.
        refused: Files whose rows cannot be read.
        evaluated: Inputs that were evaluated again, as their files are gone.
        blank: Ids of columns that cannot be evaluated again and are NULL.
        written: The files that the run wrote, if they are still what was written.
        plan: The plan as it was recorded; None where only a part of it is known.
        session: What the plan ran in; None where it is not known.
        looseness: How far the rows of the plan are from the run's; None where they are the run's.
        kept: The stages are of positions that the run kept, not of the plan.
        lists: Ids of columns of lists that an aggregate collects, in another order each time.
        rounded: Ids of columns whose last digits depend on the order of a sum: see ``rounding``.
    """

    stage: Stage
    executor: Executor
    ids: Ids
    run: str = ""
    output: str = ""
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    refused: tuple[RefusedFile, ...] = ()
    blank: frozenset[int] = frozenset()
    written: Relation | None = None
    plan: Node | None = None
    session: Session | None = None
    looseness: Looseness | None = None
    kept: bool = False
    lists: frozenset[int] = frozenset()
    rounded: frozenset[int] = frozenset()
    evaluated: tuple[EvaluatedInput, ...] = ()

    @classmethod
    def of(cls, plan: Node, executor: Executor, **more: Any) -> Self:
        """The traced form of a plan; further arguments are the attributes of the class.

        Raises:
            UsageError: The plan cannot be traced.
        """
        segment, ids, blank = traceable(plan)
        more["lists"], more["rounded"] = unordered_lists(segment.node), rounded_columns(segment.node)
        return cls(Stage(segment), executor, ids, blank=blank, plan=plan, **more)

    @classmethod
    def in_part(cls, plan: Node, executor: Executor, **more: Any) -> Self:
        """The traced form of a plan, operators that cannot be evaluated again left out; see ``loosen``.

        Raises:
            UsageError: The plan cannot be traced.
        """
        segment, ids, made = traceable_in_part(plan)
        more["lists"], more["rounded"] = unordered_lists(segment.node), rounded_columns(segment.node)
        return cls(Stage(segment), executor, ids, blank=made.blank, plan=plan, looseness=made.looseness, **more)

    def can_match(self, column: Attribute) -> bool:
        """Return whether rows can be found by a column: it is evaluated again, and its values can be compared."""
        unsteady = self.blank | self.lists | self.rounded
        return column.id not in unsteady and comparable(column.type)

    def is_nearly(self, column: Attribute) -> bool:
        """Return whether rows can be told by a column up to the last digits of its floats."""
        return column.id in self.rounded and column.id not in self.blank and column.type in FLOATS

    def graded(self, grade: Grade) -> Grade:
        """The grade of rows: where inputs are not known or were refused, rows may be missing, whatever else holds."""
        missing = MISSING if self.refused else self.looseness.missing if self.looseness is not None else ""
        if not missing:
            return grade
        return Grade("incomplete", f"{missing}; {grade.why}" if grade.why not in ("", missing) else missing)

    def loosely(self, grade: Grade) -> Grade:
        """The grade of rows of the plan that were not compared with the recorded ones."""
        return grade if self.looseness is None else grade.worst(Grade("superset", self.looseness.why))

    def exceeds(self, rows: Node, others: Node) -> bool:
        """Return True if a value is more often among some rows than among others."""
        columns = tuple(self.ids.attribute(column.name, column.type) for column in outputs(rows))
        return exists(self.executor, SetOperation(rows, others, "except", True, columns))

    def kept_records(self, ids: Iterable[tuple[int, int]]) -> Relation:
        """A table of the executor's with one column: the ids of records, given by file ordinal and row index."""
        wanted = self.ids.attribute("record", LONG)
        return self.executor.keep(LocalRows(0, (wanted,), tuple(sorted((record_id(*each),) for each in ids))))

    def at_places(self, output: Relation, ids: Iterable[tuple[int, int]]) -> Node:
        """A plan of the rows at given places of written files."""
        node, record = self.read(output)
        places = self.kept_records(ids)
        (wanted,) = outputs(places)
        chosen = Join(node, places, "left_semi", Call("=", (record, wanted), BOOLEAN))
        return projected(chosen, output.columns)

    def leaves(self) -> list[Leaf]:
        """The inputs that traces can come to."""
        return [
            source.leaf for stage in self.stages() for source in stage.segment.sources if isinstance(source, LeafSource)
        ]

    def stages(self) -> list[Stage]:
        """Every segment, those above before those below."""
        return self.stage.all()

    def boundaries(self) -> tuple[NamedBoundary, ...]:
        """The places where a trace may start or stop, by name."""
        return () if self.kept else boundaries(self.stages())

    def place_name(self, stage: Stage) -> str:
        """The name of the boundary above a stage, for people; ``output`` for the outermost."""
        known = self.boundaries() if stage.above is not None else ()
        own = (each.name for each in known if any(one.source is stage.source for one in each.stages))
        return next(own, stage.operator)

    def boundary(self, name: str) -> NamedBoundary:
        """The boundary of a name.

        Raises:
            UnknownNameError: There is none (``usage.unknown-boundary``).
        """
        known = self.boundaries()
        found = boundary_called(name, known)
        if found is None:
            raise unknown_boundary(name, known)
        return found

    def whole_segment(self, plan: Node) -> Segment:
        """A part of the plan by itself: every cell of its rows counts, and none is there that a condition takes off."""
        why = _NOT_COMPARED if self.looseness is None else self.looseness.why
        carrier = Carrier(self.ids, RULES, why=why, top=False)
        return carrier.segment(plan, frozenset(column.id for column in outputs(plan)))

    def at_boundary(self, name: str) -> Self:
        """The plan of the rows at a boundary, as if these were the output.

        Raises:
            UnknownNameError: There is no such boundary (``usage.unknown-boundary``).
        """
        found = self.boundary(name)
        segment = self.whole_segment(found.plan)
        lists, rounded = unordered_lists(segment.node), rounded_columns(segment.node)
        return replace(
            self, stage=Stage(segment), output=found.name, plan=found.plan, written=None, lists=lists, rounded=rounded
        )

    def read(self, leaf: Leaf) -> tuple[Node, Attribute]:
        """A plan that reads an input with its rows' ids, and the column that holds them."""
        segment = Carrier(self.ids, RULES).segment(leaf, frozenset())
        (source,) = segment.sources
        assert isinstance(source, LeafSource)
        return segment.node, source.record

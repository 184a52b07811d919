"""A recorded plan that can be traced: its output and its inputs as sets of records."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from govtool.errors import EvidenceError, UnknownNameError
from govtool.model.token import ROW_BITS
from govtool.records.plan.expressions import Attribute, Call, Expression
from govtool.records.plan.nodes import (
    Distinct,
    Join,
    LocalRows,
    Project,
    Relation,
    Session,
    SetOperation,
    outputs,
)
from govtool.records.plan.tree import Node
from govtool.records.plan.types import BOOLEAN, LONG
from govtool.records.trace.answer import RefusedFile
from govtool.records.trace.back import Executor, ReachedRows, Stage, StagePosition, exists
from govtool.records.trace.carrier import Carrier
from govtool.records.trace.forward import input_key
from govtool.records.trace.normal import Ids
from govtool.records.trace.recordset import RecordSet, bound_condition, is_called, leaf_name
from govtool.records.trace.rules import RULES, traceable
from govtool.records.trace.segment import (
    EXACT,
    Grade,
    Leaf,
    LeafSource,
    LinkSource,
    alike,
    both,
    projected,
)
from govtool.records.trace.selection import filtered

MISSING = "input files are gone or have changed: rows may be missing"
DUPLICATES = Grade("superset", "duplicates: other rows of the output have the same values")


@dataclass(frozen=True, slots=True)
class Lineage:
    """A plan that can be traced.

    Attributes:
        stage: The outermost segment.
        executor: Evaluates plans.
        ids: New columns' ids.
        run: The run whose plan it is; empty for a query that was not run.
        output: The dataset that it wrote, or a title.
        keys: Columns of declared keys, by dataset.
        refused: Files whose rows cannot be read.
        blank: Ids of columns that cannot be evaluated again and are NULL.
        written: The files that the run wrote, if they are still what was written.
        plan: The plan as it was recorded; None where only a part of it is known.
        session: What the plan ran in; None where it is not known.
        kept: The stages are of positions that the run kept, not of the plan.
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
    kept: bool = False

    @staticmethod
    def of(plan: Node, executor: Executor, **more: Any) -> Lineage:
        """The lineage of a plan; further arguments are the attributes of the class.

        Raises:
            UsageError: The plan cannot be traced.
        """
        segment, ids, blank = traceable(plan)
        return Lineage(Stage(segment), executor, ids, blank=blank, plan=plan, **more)

    def graded(self, grade: Grade) -> Grade:
        """The grade of rows: where files were refused, rows may be missing, whatever else holds."""
        if not self.refused:
            return grade
        return Grade("incomplete", f"{MISSING}; {grade.why}" if grade.why else MISSING)

    def all(self) -> RecordSet:
        """Every row of the output."""
        return RecordSet(self, (StagePosition(self.stage, self.stage.segment.node),))

    def where(self, condition: str | Expression) -> RecordSet:
        """The output rows that meet a condition, a Spark SQL boolean expression.

        Raises:
            UsageError: It does not parse, or names what is not there.
        """
        return self.all().where(condition)

    def recorded(self, rows: Node) -> RecordSet:
        """The rows of the output that have the values of given rows: by position, NULL being one value.

        Where the output has more rows with these values than are given, nothing distinguishes them: a superset.

        Args:
            rows: A plan of rows as the run wrote them.

        Raises:
            EvidenceError: The plan does not give these rows again.
        """
        kept = self.executor.keep(rows)
        pairs = [
            (column, self.ids.named(column.name, other))
            for column, other in zip(self.stage.segment.visible, outputs(rows), strict=True)
            if column.id not in self.blank
        ]
        given = Project(kept, tuple(named for _, named in pairs))
        same = both(alike(column, named.attribute) for column, named in pairs)
        found = Join(self.stage.segment.node, given, "left_semi", same)
        again = self.executor.keep(Project(found, tuple(self.ids.named(column.name, column) for column, _ in pairs)))
        if self.exceeds(given, again):
            raise EvidenceError(
                "the recorded plan does not give these rows again",
                code="evidence.not-reproduced",
                hint="a function, a clock or an order that was not recorded decided them, or an input changed",
            )
        grade = DUPLICATES if self.exceeds(again, given) else EXACT
        return RecordSet(self, (StagePosition(self.stage, found, grade),))

    def exceeds(self, rows: Node, others: Node) -> bool:
        """Return True if a value is more often among some rows than among others."""
        columns = tuple(self.ids.attribute(column.name, column.type) for column in outputs(rows))
        return exists(self.executor, SetOperation(rows, others, "except", True, columns))

    def rows(self, output: Relation, ids: Iterable[tuple[int, int]]) -> RecordSet:
        """The output rows that a run wrote at given places.

        Args:
            output: The written files.
            ids: File ordinal and row index of each.

        Raises:
            EvidenceError: The plan does not give these rows again.
        """
        return self.recorded(self.at_places(output, ids))

    def at_places(self, output: Relation, ids: Iterable[tuple[int, int]]) -> Node:
        """A plan of the rows at given places of written files."""
        node, record = self.read(output)
        wanted = self.ids.attribute("record", LONG)
        packed = tuple((file << ROW_BITS | row,) for file, row in ids)
        places = self.executor.keep(LocalRows(0, (wanted,), packed))
        chosen = Join(node, places, "left_semi", Call("=", (record, wanted), BOOLEAN))
        return projected(chosen, output.columns)

    def input(self, dataset: str, condition: str | Expression | None = None) -> RecordSet:
        """Rows of an input, to be traced forward.

        Raises:
            UnknownNameError: The plan reads no such dataset.
            UsageError: The condition does not parse, or names what is not there.
        """
        leaves = {input_key(leaf): leaf for leaf in self.leaves() if is_called(leaf, dataset)}
        if not leaves:
            known = sorted({leaf_name(leaf) for leaf in self.leaves()})
            near = tuple(difflib.get_close_matches(dataset, known)) or tuple(known[:3])
            raise UnknownNameError(f"'{dataset}' is no input", code="usage.unknown-dataset", nearest=near)
        parts = []
        for leaf in leaves.values():
            node, record = self.read(leaf)
            if condition is not None:
                node = filtered(self.executor, self.ids, node, bound_condition(condition, outputs(leaf)))
            parts.append(ReachedRows(leaf, Distinct(projected(node, (record,)))))
        return RecordSet(self, tuple(parts))

    def leaves(self) -> list[Leaf]:
        """The inputs that traces can come to."""
        return [
            source.leaf for stage in self.stages() for source in stage.segment.sources if isinstance(source, LeafSource)
        ]

    def stages(self) -> list[Stage]:
        """Every segment, those above before those below."""
        found = [self.stage]
        for stage in found:
            links = [n for n, source in enumerate(stage.segment.sources) if isinstance(source, LinkSource)]
            found.extend(stage.below(number) for number in links)
        return found

    def read(self, leaf: Leaf) -> tuple[Node, Attribute]:
        """A plan that reads an input with its rows' ids, and the column that holds them."""
        segment = Carrier(self.ids, RULES).segment(leaf, frozenset())
        (source,) = segment.sources
        assert isinstance(source, LeafSource)
        return segment.node, source.record

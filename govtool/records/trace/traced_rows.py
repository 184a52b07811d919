"""Sets of records at places of a plan, traced back and forward."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any, Self

from govtool.errors import UnknownNameError, UsageError
from govtool.model.token import KeyToken, PositionToken, Token, file_and_row
from govtool.records.cells import column_key, json_value, key_text, zoned
from govtool.records.plan.expressions import Attribute, Call, Expression, Named, SortKey, passed
from govtool.records.plan.nodes import (
    Distinct,
    Filter,
    Join,
    Limit,
    LocalRows,
    Project,
    Relation,
    Sort,
    Union,
    outputs,
)
from govtool.records.plan.tree import Node
from govtool.records.plan.types import BOOLEAN, LONG
from govtool.records.trace.answer import InputAnswer, StepAnswer, TraceAnswer
from govtool.records.trace.back import ReachedRows, Stage, StagePosition, Step, count_rows, step_back
from govtool.records.trace.forward import Forward, input_key
from govtool.records.trace.known_columns import require_known
from govtool.records.trace.leaf_names import is_called, leaf_name
from govtool.records.trace.named_boundaries import ROW_BY_ROW, NamedBoundary
from govtool.records.trace.push import semijoined
from govtool.records.trace.same_place import as_one
from govtool.records.trace.segment import EXACT, Leaf, projected
from govtool.records.trace.selection import bound_condition, filtered
from govtool.records.trace.traced_plan import TracedPlan

SHOWN = 1000
"""Rows of an input in an answer, unless another limit is given."""


Part = StagePosition | ReachedRows


@dataclass(frozen=True, slots=True, repr=False)
class TracedRows:
    """Rows at one place or at several: of the output, between two boundaries, or of inputs.

    Attributes:
        lineage: The plan.
        parts: The rows.
        steps: The steps that led here.
    """

    lineage: TracedPlan
    parts: tuple[Part, ...]
    steps: tuple[Step, ...] = ()

    def __repr__(self) -> str:
        """The places of the rows: a notebook shows it, and that of a whole plan fills pages."""
        return f"<govtool.{type(self).__name__} at {', '.join(self.names())}>"

    def where(self, condition: str | Expression, dataset: str | None = None) -> Self:
        """The rows that meet a condition, a Spark SQL boolean expression.

        Args:
            condition: Over the columns of the rows.
            dataset: The input or the boundary that it is about, where there are several; others are left out.

        Raises:
            UsageError: It does not parse, names what is not there, or the rows have several forms.
        """
        place = self._place(dataset)
        return replace(self, parts=tuple(self._filtered(part, condition) for part in place))

    def _filtered(self, part: Part, condition: str | Expression) -> Part:
        if isinstance(part, ReachedRows):
            node, record = self._raw(part)
            meets = bound_condition(condition, outputs(part.leaf), self.lineage.executor)
            return replace(part, rows=Distinct(projected(Filter(node, meets), (record,))))
        visible = part.stage.segment.visible
        meets = bound_condition(condition, visible, self.lineage.executor)
        require_known(meets, visible, self.lineage.blank, part.stage.segment.node)
        return replace(part, rows=filtered(self.lineage.executor, self.lineage.ids, part.rows, meets))

    def rows(self, ids: Iterable[tuple[int, int]], dataset: str | None = None) -> Self:
        """The input rows with given ids: file ordinal and row index.

        Raises:
            UsageError: The rows are not those of an input.
        """
        part = self._one(dataset)
        if not isinstance(part, ReachedRows):
            raise UsageError("rows of an input are chosen by id; those of an output by where()", code="usage.rows")
        (column,) = outputs(part.rows)
        kept = self.lineage.kept_records(ids)
        (wanted,) = outputs(kept)
        rows = semijoined(part.rows, kept, Call("=", (column, wanted), BOOLEAN))
        return replace(self, parts=(replace(part, rows=rows),))

    def at(self, place: str) -> Self:
        """Those of the rows that are of one input, or at one boundary: see ``boundaries``.

        Raises:
            UnknownNameError: None of the rows is there.
        """
        return replace(self, parts=tuple(self._place(place)))

    def boundaries(self) -> tuple[NamedBoundary, ...]:
        """The places between the output and the inputs where these rows can be traced from, by name."""
        return self.lineage.boundaries()

    def boundary(self, name: str) -> Self:
        """Every row at a boundary of the same plan, to be narrowed and traced to either side.

        Going back, as from the output: a cell that nothing above reads brings no rows.

        Raises:
            UnknownNameError: There is no such boundary (``usage.unknown-boundary``).
        """
        found = self.lineage.boundary(name)
        own = [stage for stage in found.stages if not _stands_against(stage)]
        if not own:  # segments of rows against others have those that conditions took off, too
            first = found.stages[0]
            own = [Stage(self.lineage.whole_segment(found.plan), first.above, first.source)]
        grade = self.lineage.loosely(EXACT)
        parts = [StagePosition(stage, stage.segment.node, grade, chosen_there=True) for stage in own]
        return replace(self, parts=tuple(parts), steps=())

    def kept(self) -> Self:
        """The same rows, evaluated once: what is done with them next does not choose them again."""
        parts = [replace(part, rows=self.lineage.executor.keep(part.rows)) for part in self.parts]
        return replace(self, parts=tuple(parts))

    def go_back(self) -> Self:
        """The rows one boundary below; rows of inputs stay where they are."""
        steps = [step_back(self.lineage.executor, part) for part in self.parts if isinstance(part, StagePosition)]
        found = [part for step in steps for part in step.found]
        stay = [part for part in self.parts if isinstance(part, ReachedRows)]
        return replace(self, parts=self._merged([*stay, *found]), steps=(*self.steps, *steps))

    def go_back_all(self) -> Self:
        """The input rows."""
        current = self
        while any(isinstance(part, StagePosition) for part in current.parts):
            current = current.go_back()
        return current

    def go_next(self) -> Self:
        """The rows one boundary above: of the segments that read the inputs, or of those above a segment."""
        chosen, between = self._chosen(), self._between()
        forward = Forward(self.lineage.executor, self.lineage.ids, between)
        found: list[Part] = [*self._at_output()]
        for stage in self._above(between, everywhere=bool(chosen)):
            position = forward.from_inputs(stage, chosen, deep=False)
            if position is not None:
                found.append(position)
        return replace(self, parts=self._merged(found))

    def go_next_all(self) -> Self:
        """The output rows whose trace has one of these rows."""
        chosen, between = self._chosen(), self._between()
        found: list[Part] = [*self._at_output()]
        if chosen or between:
            forward = Forward(self.lineage.executor, self.lineage.ids, between)
            position = forward.from_inputs(self.lineage.stage, chosen)
            found += [] if position is None else [position]
        return replace(self, parts=self._merged(found))

    def count(self) -> int:
        """Return the number of rows, without those that stand against others."""
        parts = [part for part in self.joined_parts() if not part.against]
        return sum(count_rows(self.lineage.executor, part.rows) for part in parts)

    def names(self) -> list[str]:
        """The places of the rows, without those that stand against others."""
        return list(dict.fromkeys(self.place_name(part) for part in self.parts if not part.against))

    def positions(self) -> tuple[StagePosition, ...]:
        """The rows that are those of the output or of boundaries, without those that stand against others."""
        return tuple(part for part in self.parts if isinstance(part, StagePosition) and not part.against)

    def place_name(self, part: Part) -> str:
        """The place of rows, for people: an input, or a boundary by its name."""
        return self.lineage.place_name(part.stage) if isinstance(part, StagePosition) else part_name(part)

    def joined_parts(self) -> tuple[Part, ...]:
        """The rows by place: what was reached at one boundary in several ways is one, where values tell rows apart."""
        groups: dict[tuple[object, ...], list[Part]] = {}
        for part in self.parts:
            link = part.stage.source.link if isinstance(part, StagePosition) and part.stage.source else None
            plan = part if link is None or link.free or link.plan is None else link.plan
            groups.setdefault((id(plan), part.against), []).append(part)
        return tuple(each for group in groups.values() for each in self._as_one(group))

    def _as_one(self, group: Sequence[Part]) -> Sequence[Part]:
        positions = [part for part in group if isinstance(part, StagePosition)]
        found = as_one(self.lineage, positions) if len(positions) == len(group) > 1 else None
        return group if found is None else (found,)

    def arrow(self, dataset: str | None = None) -> Any:
        """The rows as a pyarrow table, without columns that cannot be evaluated again.

        Raises:
            UsageError: The rows have several forms, and no dataset is given; or no column can be evaluated again.
        """
        part = self._one(dataset)
        table = self.lineage.executor.arrow(self._visible(part))
        return table.rename_columns([column.name for column in self._columns(part)])

    def df(self, dataset: str | None = None) -> Any:
        """The rows as a data frame: the executor's own (a Spark DataFrame on Spark), else one of pandas.

        Raises:
            UsageError: The rows have several forms, and no dataset is given.
        """
        make = getattr(self.lineage.executor, "frame", None)
        if make is None:
            return self.arrow(dataset).to_pandas()
        part = self._one(dataset)
        return make(self._visible(part), [column.name for column in self._columns(part)])

    def ids(self, dataset: str | None = None) -> tuple[Token, ...]:
        """The tokens of input rows, by dataset and in the order of its rows.

        Raises:
            UsageError: Some rows are not those of inputs.
        """
        found: list[Token] = []
        for part in sorted(self._inputs(dataset), key=part_name):
            found += [token for token, _, _, _ in self._records(part, None)]
        return tuple(found)

    def explain(self) -> str:
        """The steps in words, one a line."""
        return "\n".join(step.text for step in (*self._step_answers(), *self._reached_lines()))

    def answer(self, limit: int = SHOWN) -> TraceAnswer:
        """The answer in the form of ``trace/1``.

        Args:
            limit: The most rows of an input that are shown; counts are whole.
        """
        first = next((step.rows for step in self.steps), None)
        inputs = [part for part in self.parts if isinstance(part, ReachedRows)]
        return TraceAnswer(
            run=self.lineage.run,
            output=self.lineage.output,
            selected=self.count() if first is None else first,
            steps=tuple(self._step_answers()),
            inputs=tuple(self._input_answer(part, limit) for part in inputs if not part.against),
            against=tuple(self._input_answer(part, limit) for part in inputs if part.against),
            refused=self.lineage.refused,
            evaluated=self.lineage.evaluated,
        )

    # Parts

    def _one(self, dataset: str | None) -> Part:
        """The rows as those of one form.

        Raises:
            UsageError: They have several (``usage.several-datasets``), or there are none.
        """
        place = replace(self, parts=tuple(self._place(dataset)))
        joined = place.joined_parts()
        if len(joined) == 1:
            return joined[0]
        raise UsageError(
            f"these rows were reached in several ways, and have values that do not tell them apart: "
            f"{', '.join(_counted(map(self.place_name, place.parts)))}",
            code="usage.several-datasets",
        )

    def _place(self, name: str | None) -> list[Part]:
        """The rows of one input, or at one boundary: of the given name, or the only one.

        Raises:
            UsageError: There are several places, or no rows.
            UnknownNameError: None of the rows is at that place.
        """
        parts = [part for part in self.parts if not part.against]
        if name is not None:
            of_input: list[Part] = [
                part for part in parts if isinstance(part, ReachedRows) and is_called(part.leaf, name)
            ]
            parts = of_input or [part for part in parts if self.place_name(part).lower() == name.lower()]
        places = dict.fromkeys(map(self.place_name, parts))
        if len(places) == 1:
            return parts
        if parts:
            raise UsageError(
                f"these rows are of several places: {', '.join(places)}",
                code="usage.several-datasets",
                nearest=self._described(parts),
                hint="name one of them: at(NAME)",
            )
        if name is None:
            raise UsageError("there are no rows: nothing was chosen, or it led nowhere", code="usage.no-rows")
        leaves = [leaf for leaf in self.lineage.leaves() if is_called(leaf, name)]
        if leaves and all(isinstance(part, ReachedRows) for part in self.parts):  # the trace came to none of it
            return [ReachedRows(leaves[0], LocalRows(0, (self.lineage.ids.attribute("record", LONG),), ()))]
        raise UnknownNameError(f"no rows of '{name}'", code="usage.no-rows", nearest=self._described(self.parts))

    def _described(self, parts: Iterable[Part]) -> tuple[str, ...]:
        """The places of rows, with what boundaries hold."""
        texts = {each.name: each.text for each in self.lineage.boundaries()}
        names = dict.fromkeys((isinstance(part, StagePosition), self.place_name(part)) for part in parts)
        return tuple(texts.get(name, name) if is_between else name for is_between, name in names)

    def _between(self) -> dict[Stage, StagePosition]:
        """The rows that are at boundaries.

        Raises:
            UsageError: They were chosen where a link has but a part of what they reach (``usage.boundary``).
        """
        found = {part.stage: part for part in self.positions() if part.stage.above is not None}
        for part in found.values():
            if part.chosen_there and part.stage.operator in ROW_BY_ROW:
                raise UsageError(
                    f"rows at a {part.stage.operator} are not traced forward: they are rows of what is above, too",
                    code="usage.boundary",
                    hint="start at an input, or at a boundary below it",
                )
        return found

    def _at_output(self) -> list[StagePosition]:
        return [part for part in self.positions() if part.stage.above is None]

    def _above(self, between: Iterable[Stage], everywhere: bool) -> Sequence[Stage]:
        """The stages next to chosen rows; every one, where rows of inputs are among them."""
        if everywhere:
            return self.lineage.stages()
        return list(dict.fromkeys(stage.above for stage in between if stage.above is not None))

    def _inputs(self, dataset: str | None) -> list[ReachedRows]:
        parts = [part for part in self.parts if not part.against]
        reached = [part for part in parts if isinstance(part, ReachedRows)]
        found = [part for part in reached if dataset is None or is_called(part.leaf, dataset)]
        if len(found) < len(parts) and dataset is None:
            raise UsageError(
                "rows between boundaries have no ids; go_back_all() comes to the inputs", code="usage.rows"
            )
        return found

    def _merged(self, parts: Sequence[Part]) -> tuple[Part, ...]:
        """Parts with one for the rows of an input; rows of the trace are left out of what stands against it."""
        positions = [part for part in parts if isinstance(part, StagePosition)]
        groups: dict[tuple[Any, ...], list[ReachedRows]] = {}
        for part in parts:
            if isinstance(part, ReachedRows):
                groups.setdefault((part.against, input_key(part.leaf)), []).append(part)
        merged = {key: self._united(group) for key, group in groups.items()}
        for (against, key), part in list(merged.items()):
            own = merged.get((False, key))
            if against and own is not None and not positions:
                merged[against, key] = replace(part, rows=self._without(part.rows, own.rows))
        return (*positions, *(merged[key] for key in sorted(merged, key=lambda key: key[0])))

    def _united(self, group: list[ReachedRows]) -> ReachedRows:
        first = group[0]
        grade = first.grade
        for part in group[1:]:
            grade = grade.worst(part.grade)
        if len(group) == 1:
            return first
        record = self.lineage.ids.attribute("record", LONG)
        rows = Distinct(Union(tuple(part.rows for part in group), (record,)))
        return replace(first, rows=self.lineage.executor.keep(rows), grade=grade)

    def _without(self, rows: Node, others: Node) -> Node:
        (column,), (other,) = outputs(rows), outputs(others)
        copy = self.lineage.ids.named("record", other)
        return Join(rows, Project(others, (copy,)), "left_anti", Call("=", (column, copy.attribute), BOOLEAN))

    def _chosen(self) -> dict[tuple[object, ...], Relation]:
        keep = self.lineage.executor.keep
        inputs = [part for part in self.parts if isinstance(part, ReachedRows) and not part.against]
        return {input_key(part.leaf): keep(part.rows) for part in inputs}

    # Rows

    def _raw(self, part: ReachedRows) -> tuple[Node, Attribute]:
        node, record = self.lineage.read(part.leaf)
        (column,) = outputs(part.rows)
        copy = self.lineage.ids.named("record", column)
        rows = Project(part.rows, (copy,))
        return Join(node, rows, "left_semi", Call("=", (record, copy.attribute), BOOLEAN)), record

    def _columns(self, part: Part) -> tuple[Attribute, ...]:
        """The columns of rows, without those whose values are not known.

        Raises:
            UsageError: None is known (``usage.opaque-column``).
        """
        if isinstance(part, ReachedRows):
            return outputs(part.leaf)
        visible = part.stage.segment.visible
        known = tuple(column for column in visible if column.id not in self.lineage.blank)
        if visible and not known:
            raise UsageError(
                f"column '{visible[0].name}' cannot be evaluated again, nor any other",
                code="usage.opaque-column",
                hint="go_back() and go_back_all() trace these rows",
            )
        return known

    def _visible(self, part: Part) -> Node:
        columns = tuple(Named(c, c.id, c.name) for c in self._columns(part))
        if isinstance(part, StagePosition):
            return Project(part.rows, columns)
        node, _ = self._raw(part)
        return Project(node, columns)

    def _records(self, part: ReachedRows, limit: int | None) -> list[tuple[Token, int, int, dict[str, Any]]]:
        """Token, file ordinal, row and values of input rows, in their order."""
        if limit is not None:  # the ids of the page first: rows that are not shown are not read
            (column,) = outputs(part.rows)
            part = replace(part, rows=self.lineage.executor.keep(Limit(Sort(part.rows, (SortKey(column),)), limit)))
        node, record = self._raw(part)
        columns = outputs(part.leaf)
        ordered = Sort(Project(node, (passed(record), *map(passed, columns))), (SortKey(record),))
        found = []
        for packed, *values in sorted(self.lineage.executor.fetch(ordered), key=itemgetter(0)):  # Spark's may not be
            file, row = file_and_row(packed)
            named = {column.name: value for column, value in zip(columns, values, strict=True)}
            found.append((self._token(part.leaf, file, row, named), file, row, named))
        return found

    def _token(self, leaf: Leaf, file: int, row: int, values: Mapping[str, Any]) -> Token:
        name = leaf_name(leaf)
        key = self.lineage.keys.get(name)
        if key and all(values[column] is not None for column in key):  # NULL is no value of a key
            return KeyToken(name, tuple((column, key_text(values[column])) for column in key))
        version = leaf.version if isinstance(leaf, Relation) else ""
        return PositionToken(name, version or "current", file, row)

    def _input_answer(self, part: ReachedRows, limit: int) -> InputAnswer:
        part = replace(part, rows=self.lineage.executor.keep(part.rows))
        count = count_rows(self.lineage.executor, part.rows)
        files = {each.ordinal: each.uri for each in part.leaf.files} if isinstance(part.leaf, Relation) else {}
        kinds = {column.name: column.type for column in outputs(part.leaf)}
        rows = []
        for token, file, row, values in self._records(part, limit if count > limit else None):
            shown = {column_key(name): json_value(zoned(value, kinds[name])) for name, value in values.items()}
            rows.append({"_id": str(token), "_file": files.get(file, file), "_row": row, **shown})
        version = part.leaf.version if isinstance(part.leaf, Relation) else ""
        grade = self.lineage.graded(part.grade)
        return InputAnswer(
            leaf_name(part.leaf),
            version,
            grade.exactness,
            grade.why,
            count,
            count > len(rows),
            tuple(rows),
            table=partial(self._table, part),
        )

    def _table(self, part: ReachedRows) -> Any:
        """Input rows in the types of the data, in their order, after token, file and row."""
        import pyarrow as pa

        node, record = self._raw(part)
        columns = outputs(part.leaf)
        table = self.lineage.executor.arrow(Project(node, (passed(record), *map(passed, columns))))
        table = table.rename_columns([str(number) for number in range(table.num_columns)]).sort_by("0")
        packed, data = table.column(0).to_pylist(), table.select(range(1, table.num_columns))
        places = [file_and_row(one) for one in packed]
        files = {each.ordinal: each.uri for each in part.leaf.files} if isinstance(part.leaf, Relation) else {}
        key = self.lineage.keys.get(leaf_name(part.leaf), ())
        keys = {c.name: data.column(n).to_pylist() for n, c in enumerate(columns) if c.name in key}
        tokens = [
            str(self._token(part.leaf, *place, {name: values[n] for name, values in keys.items()}))
            for n, place in enumerate(places)
        ]
        about = {
            "_id": pa.array(tokens, pa.string()),
            "_file": pa.array([str(files.get(file, file)) for file, _ in places], pa.string()),
            "_row": pa.array([row for _, row in places], pa.int64()),
        }
        arrays = [*about.values(), *data.columns]
        return pa.Table.from_arrays(arrays, names=[*about, *(column_key(column.name) for column in columns)])

    def _step_answers(self) -> list[StepAnswer]:
        graded = [(step, self.lineage.graded(step.position.grade)) for step in self.steps]
        return [StepAnswer(s.position.stage.operator, grade.exactness, grade.why, s.rows) for s, grade in graded]

    def _reached_lines(self) -> list[StepAnswer]:
        lines = []
        for part in self.joined_parts():
            name = self.place_name(part) + (" (against)" if part.against else "")
            rows = count_rows(self.lineage.executor, part.rows)
            grade = self.lineage.graded(part.grade)
            lines.append(StepAnswer(name, grade.exactness, grade.why, rows))
        return lines


def _stands_against(stage: Stage) -> bool:
    return any(each.source is not None and each.source.against for each in (stage, *stage.over()))


def _counted(names: Iterable[str]) -> list[str]:
    """Places; one that is read more than once, as by the sums of a pivot, with how often."""
    times = Counter(names)
    return [name if count == 1 else f"{name} ({count} times)" for name, count in times.items()]


def part_name(part: Part) -> str:
    """Return the place of rows, for people."""
    return leaf_name(part.leaf) if isinstance(part, ReachedRows) else part.stage.operator

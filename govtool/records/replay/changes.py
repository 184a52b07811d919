"""Changes of inputs, such as rows left out or datasets replaced, and plans that read the changed inputs."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from govtool.errors import UsageError
from govtool.records.execute.inputs import relations
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Call, Literal, passed
from govtool.records.plan.nodes import File, Filter, Join, Project, Relation, SetOperation, Union, outputs
from govtool.records.plan.tree import Node
from govtool.records.plan.types import BOOLEAN, LONG, Field, Struct
from govtool.records.replay.between import BETWEEN, ChangedBoundaries, require_names
from govtool.records.replay.columns import is_read_as
from govtool.records.trace.back import ReachedRows
from govtool.records.trace.forward import input_key
from govtool.records.trace.known_columns import require_known
from govtool.records.trace.leaf_names import is_called, is_near, leaf_name, unknown_input
from govtool.records.trace.named_boundaries import NamedBoundary, boundary_called, unknown_boundary
from govtool.records.trace.segment import everything, unique
from govtool.records.trace.selection import bound_condition

if TYPE_CHECKING:
    from govtool.records.trace.traced_plan import TracedPlan
    from govtool.records.trace.traced_rows import TracedRows

_RECORD = "_record"


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Rows of an input that are left out.

    Attributes:
        dataset: The input.
        where: A Spark SQL boolean expression: rows for which it is true are left out. None: those of ``records``.
        records: By input (see ``input_key``), the ids of rows to leave out.
    """

    dataset: str
    where: str | None = None
    records: tuple[tuple[tuple[object, ...], Relation], ...] = ()


@dataclass(frozen=True, slots=True)
class Replacement:
    """Another content of an input.

    Attributes:
        dataset: The input.
        files: The Parquet files that are read instead.
        columns: The names of their columns, each with a type of pyarrow that it has in a file.
    """

    dataset: str
    files: tuple[File, ...]
    columns: tuple[tuple[str, Any], ...]


Change = Exclusion | Replacement


@dataclass(frozen=True, slots=True)
class InputChanges:
    """What a replay changes.

    Attributes:
        lineage: The recorded plan.
        parts: The changes, each of an input, or of a boundary, of its own.
        boundaries: What can be named beside inputs.
        between: The boundaries that are changed.
    """

    lineage: TracedPlan
    parts: tuple[Change, ...]
    boundaries: tuple[NamedBoundary, ...] = ()
    between: ChangedBoundaries = field(default_factory=ChangedBoundaries)

    def named(self, root: Node) -> InputChanges:
        """The same changes, those of boundaries told apart from those of inputs."""
        names = [part.dataset for part in self.parts]
        return replace(self, between=ChangedBoundaries.named(names, root, self.boundaries))

    def checked(self, root: Node) -> InputChanges:
        """The same changes.

        Raises:
            UsageError: There are none, an input is changed twice, a condition is mistaken, or columns are missing.
            UnknownNameError: A change is of no input.
        """
        if not self.parts:
            raise UsageError("nothing is changed", code="usage.arguments", hint="--without, or --with")
        leaves = [leaf for leaf in (*relations(root), *self.between.hidden()) if leaf.format != "kept"]
        by_dataset: dict[str, Change] = {}
        for part in self.parts:
            own = [leaf for leaf in leaves if is_called(leaf, part.dataset) or _has_records(part, leaf)]
            if not own:
                raise self._unknown(part.dataset, leaves)
            for leaf in own:
                other = by_dataset.setdefault(leaf.dataset, part)
                if type(other) is not type(part) or (isinstance(part, Replacement) and other is not part):
                    raise UsageError(f"{leaf.dataset!r} is changed twice", code="usage.arguments")
                _check(part, leaf, self.lineage)
                if leaf.format == BETWEEN:
                    self._check_between(part, leaf)
        return self

    def _unknown(self, name: str, leaves: Sequence[Relation]) -> UsageError:
        """The error of a name that neither an input nor a boundary has, as far as the compared rows are made of it."""
        elsewhere = boundary_called(name, self.boundaries)
        if elsewhere is not None:
            return UsageError(
                f"the rows that are compared are not made of those at {elsewhere.name!r}", code="usage.boundary"
            )
        near = difflib.get_close_matches(name, [each.name for each in self.boundaries], 3, 0.7)
        if near and not any(is_near(name, leaf.dataset) for leaf in leaves):
            return unknown_boundary(name, self.boundaries)
        error = unknown_input(name, [leaf.dataset for leaf in leaves if leaf.format != BETWEEN])
        if self.boundaries:
            error.hint = f"boundaries have names, too: {', '.join(each.text for each in self.boundaries)}"
        return error

    def _check_between(self, part: Change, leaf: Relation) -> None:
        if isinstance(part, Replacement):
            require_names(leaf)
        elif part.where is not None:
            columns = unique(leaf.columns)
            meets = bound_condition(part.where, columns, self.lineage.executor)
            require_known(meets, columns, self.lineage.blank, self.between.plans[leaf.leaf])

    @property
    def are_within(self) -> bool:
        """Whether some change is below a boundary that is changed, too."""
        return any(self.of(leaf) for leaf in self.between.hidden())

    def of(self, leaf: Relation) -> list[Change]:
        """The changes of a leaf."""
        return [part for part in self.parts if _has_records(part, leaf) or is_called(leaf, part.dataset)]

    def applied(self, root: Node) -> Node:
        """A plan over the changed inputs."""
        return self.between.closed(root, self._changed)

    def rows(self, leaf: Relation) -> Node | None:
        """The rows of a leaf that the changes take away or add, some perhaps twice; None where it is not changed.

        The columns are those of the leaf.
        """
        found: list[Node] = []
        was = self.between.closed(leaf)
        for part in self.of(leaf):
            if isinstance(part, Replacement):
                now = _replaced(leaf, part)
                found += [_difference(was, now, self.lineage), _difference(now, was, self.lineage)]
            else:
                found.append(self._left_out(was, leaf, part, "left_semi"))
        if not found:
            return None
        return found[0] if len(found) == 1 else Union(tuple(found), leaf.columns)

    def _changed(self, leaf: Relation, rows: Node) -> Node:
        for part in self.of(leaf):
            if isinstance(part, Replacement):
                rows = _replaced(leaf, part)
            else:
                rows = self._left_out(rows, leaf, part, "left_anti")
        return rows

    def _left_out(self, node: Node, leaf: Relation, part: Exclusion, kind: str) -> Node:
        """The rows that an exclusion leaves out (``left_semi``), or the others (``left_anti``)."""
        if part.where is not None:
            meets = Call(
                "<=>",
                (bound_condition(part.where, _data(leaf), self.lineage.executor), Literal(True, BOOLEAN)),
                BOOLEAN,
            )
            return Filter(node, meets if kind == "left_semi" else Call("not", (meets,), BOOLEAN))
        ids = dict(part.records).get(input_key(leaf))
        if ids is None:
            return node if kind == "left_anti" else Filter(node, Literal(False, BOOLEAN))
        record = self.lineage.ids.attribute("record", LONG)
        read = replace(leaf, columns=(*leaf.columns, record), metadata=(*leaf.metadata, (record.id, _RECORD)))
        (column,) = outputs(ids)
        copy = self.lineage.ids.named("record", column)
        same = Call("=", (record, copy.attribute), BOOLEAN)
        joined = Join(_with_leaf(node, read), Project(ids, (copy,)), kind, same)  # type: ignore[arg-type]
        return Project(joined, everything(leaf))


def exclusions(lineage: TracedPlan, exclude: TracedRows | Mapping[str, str] | None) -> list[Exclusion]:
    """The rows of a trace, or the conditions of some inputs, as exclusions.

    Raises:
        UsageError: The rows are not those of inputs of this plan.
    """
    if exclude is None:
        return []
    if isinstance(exclude, Mapping):
        return [Exclusion(dataset, where) for dataset, where in exclude.items()]
    found = []
    for part in exclude.parts:
        if exclude.lineage is not lineage or not isinstance(part, ReachedRows):
            raise UsageError("only rows of inputs, traced in the same plan, can be left out", code="usage.rows")
        if not part.against:
            kept = lineage.executor.keep(part.rows)
            found.append(Exclusion(leaf_name(part.leaf), None, ((input_key(part.leaf), kept),)))
    return found


def _data(leaf: Relation) -> list[Attribute]:
    """The columns of a leaf that are data."""
    marks = dict(leaf.metadata)
    return [column for column in leaf.columns if column.id not in marks]


def _with_leaf(node: Node, leaf: Relation) -> Node:
    if isinstance(node, Relation):
        return leaf
    first, *others = node.nodes()
    return node.replaced(nodes=(_with_leaf(first, leaf), *others))


def _has_records(part: Change, leaf: Relation) -> bool:
    return isinstance(part, Exclusion) and part.where is None and input_key(leaf) in dict(part.records)


def _check(part: Change, leaf: Relation, lineage: TracedPlan) -> None:
    if isinstance(part, Exclusion):
        if part.where is not None:
            bound_condition(part.where, _data(leaf), lineage.executor)
        return
    names = list(dict.fromkeys(name for name, _ in part.columns))
    lost = [column.name for column in _data(leaf) if column.name not in names]
    if lost:
        raise UsageError(
            f"the files for {leaf.dataset!r} have no column {lost[0]!r}",
            code="usage.unknown-column",
            nearest=tuple(difflib.get_close_matches(lost[0], names, 3, 0.4)),
        )
    kinds = {column.name: column.type for column in _data(leaf)}
    for name, actual in part.columns:
        if name in kinds and not is_read_as(actual, kinds[name]):
            raise UsageError(
                f"column {name!r} of the files for {leaf.dataset!r} is {actual}, which is not read as "
                f"{t.as_text(kinds[name])}",
                code="usage.format",
            )


def _replaced(leaf: Relation, part: Replacement) -> Relation:
    """A leaf that reads other files; what were partition columns are in them."""
    kinds = {column.name: column.type for column in leaf.columns}
    fields = (*leaf.schema.fields, *(Field(name, kinds[name]) for name in leaf.partitioned if name in kinds))
    return replace(
        leaf, format="parquet", files=part.files, schema=Struct(fields), partitioned=(), options=(), version=""
    )


def _difference(one: Node, other: Node, lineage: TracedPlan) -> Node:
    columns = _data(one) if isinstance(one, Relation) else list(outputs(one))
    own = tuple(lineage.ids.attribute(column.name, column.type) for column in columns)
    left, right = (Project(leaf, tuple(map(passed, columns))) for leaf in (one, other))
    rows = SetOperation(left, right, "except", True, own)
    values: Sequence[Attribute] = own
    named = {column.id: value for column, value in zip(columns, values, strict=True)}
    return Project(
        rows,
        tuple(
            replace(passed(column), value=named.get(column.id, Literal(None, column.type))) for column in outputs(one)
        ),
    )

"""The subject's rows in an input: their places, their tokens, their cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from govtool.app.erasure.deltas import Drops, in_schema
from govtool.app.erasure.keys import Wanted, meets_any
from govtool.app.erasure.step import python_rows
from govtool.model.token import FILE_BITS, ROW_BITS
from govtool.records.execute.places import Place, place_of
from govtool.records.plan.expressions import Named, passed
from govtool.records.plan.nodes import Distinct, Filter, Project, Relation
from govtool.records.plan.tree import walk_nodes
from govtool.records.recordset import RecordSet
from govtool.records.trace.back import ReachedRows
from govtool.records.trace.forward import input_key
from govtool.records.trace.segment import projected

if TYPE_CHECKING:
    from govtool.app.records.opened import OpenedWrite
    from govtool.records.lineage import Lineage


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A row of the subject.

    Attributes:
        place: Its file.
        row: Its index in the file.
        token: Its identity.
        cells: Its cells; personal data.
    """

    place: Place
    row: int
    token: str = field(repr=False)
    cells: tuple[Any, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class SearchedInput:
    """An input that was searched.

    Attributes:
        relation: Its files, with all of their columns.
        rows: The subject's rows.
    """

    relation: Relation
    rows: tuple[FoundRow, ...]

    def drops(self) -> dict[Place, Drops]:
        """The places of the rows, by file."""
        found: dict[Place, Drops] = {}
        for each in self.rows:
            found.setdefault(each.place, {})[each.row] = None
        return found


def searched_inputs(write: OpenedWrite, dataset: str, wanted: Sequence[Wanted]) -> list[SearchedInput]:
    """Look for the subject's rows in the inputs of a write that are a dataset.

    Raises:
        UsageError: The value is none of a column's type.
        UnknownNameError: There is no such column.
        EngineError: No engine reads the files exactly.
    """
    leaves = {input_key(leaf): leaf for leaf in plan_leaves(write) if leaf.dataset == dataset}
    return [_searched(write.lineage, leaf, wanted) for leaf in leaves.values()]


def plan_leaves(write: OpenedWrite) -> Iterator[Relation]:
    """The inputs of a plan that read files; those of subqueries too, which no trace need come to."""
    for node in walk_nodes(write.plan.root):
        if isinstance(node, Relation):
            yield node


def whole_relation(lineage: Lineage, leaf: Relation) -> Relation:
    """A leaf with all columns of its files under ids of their own; a plan may read fewer."""
    kinds = {column.name: column.type for column in leaf.columns}
    columns = [lineage.ids.attribute(each.name, each.type) for each in leaf.schema.fields]
    columns += [lineage.ids.attribute(name, kinds[name]) for name in leaf.partitioned if name in kinds]
    return replace(leaf, columns=tuple(columns), metadata=())


def written_rows(write: OpenedWrite, wanted: Sequence[Wanted]) -> SearchedInput:
    """Look for the subject's rows in the output of a write."""
    assert write.output is not None
    return _searched(write.lineage, write.output, wanted)


def _searched(lineage: Lineage, leaf: Relation, wanted: Sequence[Wanted]) -> SearchedInput:
    whole = whole_relation(lineage, leaf)
    node, record = lineage.read(whole)
    found = lineage.executor.keep(Filter(node, meets_any(whole.columns, wanted)))
    ids = lineage.executor.keep(Distinct(projected(found, (record,))))
    part = ReachedRows(whole, ids)
    tokens = [str(token) for token in RecordSet(lineage, (part,)).ids()]
    columns = (passed(record), *(Named(column, column.id, column.name) for column in whole.columns))
    table = in_schema(lineage.executor.arrow(Project(found, columns)), (record, *whole.columns))
    files = {file.ordinal: place_of(file) for file in leaf.files}
    rows = []
    # Tokens come in the order of records, and so do these rows.
    for (packed, *cells), token in zip(sorted(python_rows(table), key=lambda row: row[0]), tokens, strict=True):
        place = files[packed >> ROW_BITS & (1 << FILE_BITS) - 1]
        rows.append(FoundRow(place, packed & (1 << ROW_BITS) - 1, token, tuple(cells)))
    return SearchedInput(whole, tuple(rows))

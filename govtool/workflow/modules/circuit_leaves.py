"""Leaves of the plans of a run in one circuit: records of files, and rows that other invocations made."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np  # noqa: TID253 - circuits are arrays; only what makes them imports this

from govtool.arrays.sets import Array
from govtool.errors import UsageError
from govtool.model.workflow_run import BoundaryRelation
from govtool.records.plan.expressions import Attribute, Literal, Named, passed
from govtool.records.plan.nodes import File, Project, Relation
from govtool.records.plan.tree import Node
from govtool.records.plan.types import LONG, Struct, from_json
from govtool.records.trace.carrier import RECORD
from govtool.records.trace.normal import Ids
from govtool.records.trace.segment import alike
from govtool.workflow.annotate.annotator import Annotator
from govtool.workflow.annotate.circuit import NONE
from govtool.workflow.annotate.origins import Origins
from govtool.workflow.annotate.rows import LONG_ONE, Rows, copied, extended, joined, shifted
from govtool.workflow.annotate.tables import KeptTable
from govtool.workflow.modules.run_leaves import parsed_rows, records_of
from govtool.workflow.modules.run_tuples import RelationRows
from govtool.workflow.semirings.tokens import Tokens


@dataclass(frozen=True, slots=True)
class CircuitSource:
    """Records that no invocation of the run made: nodes from ``start``.

    Attributes:
        relation: The relation.
        rows: Their tokens.
        start: The first node.
        gate: See ``AnnotatedRelation``.
        beside: Where another relation has some of these records, read otherwise: the first node of those that it does
            not have, and their places.
    """

    relation: BoundaryRelation
    rows: RelationRows
    start: int
    gate: int = NONE
    beside: tuple[int, Array] | None = None

    def nodes(self) -> Array:
        """The p-nodes of its rows."""
        return np.arange(self.start, self.start + len(self.rows.tokens))

    def cells(self) -> Iterator[Array]:
        """No column has v-nodes."""
        return iter(())


@dataclass(frozen=True, slots=True)
class OpaqueRelation:
    """Rows of which nothing is known but what their invocation read: one node for all."""

    relation: BoundaryRelation
    guard: int
    gate: int

    def nodes(self) -> Array:
        """The one node."""
        return np.array([self.guard], np.int64)

    def cells(self) -> Iterator[Array]:
        """No column has v-nodes."""
        return iter(())


@dataclass(frozen=True, slots=True)
class AnnotatedRelation:
    """Rows with their annotations, candidates included.

    Attributes:
        relation: The relation.
        rows: Its rows.
        table: The rows, kept.
        names: Names of its columns.
        ordered: The columns, by place, whose lists are in the same order in every run.
    """

    relation: BoundaryRelation
    rows: Rows
    table: KeptTable
    names: tuple[str, ...]
    ordered: frozenset[int] = frozenset()

    @property
    def gate(self) -> int:
        """What opens where rows may come that are no candidates."""
        return self.rows.gate

    def nodes(self) -> Array:
        """The p-nodes of its rows."""
        return self.table.ids(self.rows.annotation)[0]

    def cells(self) -> Iterator[Array]:
        """The v-nodes of each column that has some."""
        for column in self.rows.cells.values():
            (nodes,) = self.table.ids(column)
            yield nodes[nodes != NONE]


CircuitRelation = CircuitSource | OpaqueRelation | AnnotatedRelation


@dataclass(frozen=True, slots=True)
class CircuitLeaves:
    """Gives the annotated rows of what plans read.

    Attributes:
        relations: What is known of each relation, by path; it grows.
        places: The path of the relation that each file belongs to.
        tokens: Names of records.
        origins: Where the origins of cells are put; None: they are not wanted.
    """

    relations: Mapping[str, CircuitRelation]
    places: Mapping[str, str]
    tokens: Tokens
    origins: Origins | None

    def rows(self, a: Annotator, leaf: Relation) -> Rows:
        """The annotated rows of a leaf.

        Raises:
            UsageError: It reads what the invocation did not receive, or a part of it.
        """
        paths = {self.places.get(file.uri) for file in leaf.files}
        path = paths.pop() if len(paths) == 1 else None
        if path is None or path not in self.relations:
            raise UsageError(f"it reads {leaf.dataset}, which is no relation of the workflow")
        if leaf.metadata:
            raise UsageError(f"it reads where rows of {leaf.dataset} are stored")
        return self.read(a, leaf, path)

    def read(self, a: Annotator, leaf: Relation, path: str) -> Rows:
        """The annotated rows of a relation, under the ids of a leaf's columns."""
        found = self.relations[path]
        if isinstance(found, CircuitSource):
            return self._records(a, leaf, found)
        if {file.uri for file in leaf.files} != {file.uri for file in found.relation.files}:
            raise UsageError(f"it reads a part of {leaf.dataset}")
        if isinstance(found, AnnotatedRelation):
            return _made(a, leaf, found)
        node = a.ids.named("node", Literal(found.guard, LONG))
        everything = (*map(passed, leaf.columns), node)
        return Rows(Project(leaf, everything), leaf.columns, node.attribute, LONG_ONE, gate=found.gate)

    def _records(self, a: Annotator, leaf: Relation, found: CircuitSource) -> Rows:
        node, number = self._numbered(a, leaf, found)
        named = a.ids.named("node", shifted(number, found.start))
        made = Project(node, (*map(passed, leaf.columns), named))
        rows = Rows(made, leaf.columns, named.attribute, LONG_ONE)
        if self.origins is None:
            return rows
        return self.origins.read(a.tables, rows, found.relation.path, found.start, len(found.rows.tokens))

    def _numbered(self, a: Annotator, leaf: Relation, found: CircuitSource) -> tuple[Node, Attribute]:
        """The rows of files, each with its number in the relation."""
        number = a.ids.attribute("place", LONG)
        places = np.arange(len(found.rows.tokens))
        if leaf.format != "parquet":
            return parsed_rows(a, leaf, found.rows, {number: places}), number
        records = records_of(leaf, found.relation, found.rows)
        record, packed = a.ids.attribute("record", LONG), a.ids.attribute("loaded", LONG)
        side = a.tables.load({packed: records, number: places})
        read = replace(leaf, columns=(*leaf.columns, record), metadata=(*leaf.metadata, (record.id, RECORD)))
        node = joined(read, side, alike(record, packed))
        return Project(node, (*map(passed, leaf.columns), passed(number))), number


def _made(a: Annotator, leaf: Relation, found: AnnotatedRelation) -> Rows:
    """What another invocation made, as a leaf's columns.

    Raises:
        UsageError: The leaf has a column that the relation has not.
    """
    own = copied(found.rows, a.ids)
    by_name = {name.lower(): column for name, column in zip(found.names, own.columns, strict=True)}
    lost = [column.name for column in leaf.columns if column.name.lower() not in by_name]
    if lost:
        raise UsageError(f"it reads the column {lost[0]}, which {leaf.dataset} has not")
    sources = {column.id: by_name[column.name.lower()] for column in leaf.columns}
    visible = [Named(sources[column.id], column.id, column.name) for column in leaf.columns]
    ordered = {own.columns[place].id for place in found.ordered}
    a.ordered.update(key for key, source in sources.items() if source.id in ordered)
    return replace(
        own,
        node=extended(replace(own, columns=()), visible),
        columns=leaf.columns,
        cells={key: own.cells[source.id] for key, source in sources.items() if source.id in own.cells},
        origins={key: own.origins[source.id] for key, source in sources.items() if source.id in own.origins},
    )


def file_leaf(relation: BoundaryRelation, ids: Ids) -> Relation:
    """The leaf that reads a relation's files.

    Raises:
        UsageError: Its columns are not known.
    """
    schema = from_json(json.loads(relation.schema)) if relation.schema else None
    if not isinstance(schema, Struct):
        raise UsageError(f"the columns of {relation.path} are not known", code="usage.no-columns")
    columns = tuple(ids.attribute(each.name, each.type) for each in schema.fields)
    listed = tuple(File(n, file.uri, file.size, file.modified) for n, file in enumerate(relation.files))
    return Relation(0, relation.path, relation.format, listed, columns, schema)

"""A recorded plan over corrected inputs: rows left out by their place, and rows that come in their stead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from govtool.records.execute.places import Place, place_of
from govtool.records.leaves import with_relations
from govtool.records.lineage import Lineage
from govtool.records.plan.expressions import Attribute, Call, Literal, Named, passed
from govtool.records.plan.nodes import File, Join, Project, Relation, Union, outputs
from govtool.records.plan.tree import Node
from govtool.records.plan.types import BOOLEAN, LONG, Field, Struct
from govtool.records.replay.changes import Change, InputChanges
from govtool.records.trace.forward import input_key
from govtool.records.trace.segment import everything

RECORD = "_record"
LeafKey = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class LeafCorrection:
    """What is corrected in one input of a plan.

    Attributes:
        gone: The ids of rows that are left out; None: none.
        added: A Parquet file of rows that come; None: none.
    """

    gone: Relation | None
    added: File | None

    @classmethod
    def of(cls, lineage: Lineage, leaf: Relation, drops: Mapping[Place, Iterable[int]], added: File | None) -> Self:
        """The correction of an input: the rows that go by file and index, and a file of those that come."""
        ids = [(file.ordinal, row) for file in leaf.files for row in drops.get(place_of(file), ())]
        return cls(lineage.kept_records(ids) if ids else None, added)


@dataclass(frozen=True, slots=True)
class Corrections(InputChanges):
    """Corrections of a plan's inputs.

    Attributes:
        leaves: The corrections by input, see ``input_key``.
    """

    leaves: Mapping[LeafKey, LeafCorrection] = field(default_factory=dict)

    def of(self, leaf: Relation) -> list[Change]:
        """One part where the leaf is corrected; its kind says whether rows only go."""
        return [self.parts[0]] if input_key(leaf) in self.leaves else []

    def applied(self, root: Node) -> Node:
        """The plan over the corrected inputs."""
        return with_relations(root, self._corrected)

    def rows(self, leaf: Relation) -> Node | None:
        """The rows that go and those that come; None where the leaf is not corrected."""
        found = self.leaves.get(input_key(leaf))
        if found is None:
            return None
        parts: list[Node] = []
        if found.gone is not None:
            parts.append(self._chosen(leaf, found.gone, "left_semi"))
        if found.added is not None:
            parts.append(_added(leaf, found.added))
        return parts[0] if len(parts) == 1 else Union(tuple(parts), leaf.columns)

    def _corrected(self, leaf: Relation) -> Node:
        found = self.leaves.get(input_key(leaf))
        if found is None:
            return leaf
        rest = leaf if found.gone is None else self._chosen(leaf, found.gone, "left_anti")
        if found.added is None:
            return rest
        children = tuple(self._apart(part) for part in (rest, _added(leaf, found.added)))
        return Union(children, leaf.columns)

    def _apart(self, node: Node) -> Node:
        """The same rows under ids of their own: the parts of a union must not share any."""
        return Project(node, tuple(self.lineage.ids.named(column.name, column) for column in outputs(node)))

    def _chosen(self, leaf: Relation, ids: Relation, kind: str) -> Node:
        """The rows of a leaf with some ids (``left_semi``), or the others (``left_anti``)."""
        record = self.lineage.ids.attribute("record", LONG)
        read = replace(leaf, columns=(*leaf.columns, record), metadata=(*leaf.metadata, (record.id, RECORD)))
        (column,) = outputs(ids)
        copy = self.lineage.ids.named("record", column)
        same = Call("=", (record, copy.attribute), BOOLEAN)
        joined = Join(read, Project(ids, (copy,)), kind, same)  # type: ignore[arg-type]
        return Project(joined, everything(leaf))


def _added(leaf: Relation, file: File) -> Node:
    """Rows of a file with a leaf's columns; columns that the file lacks are NULL."""
    marks = dict(leaf.metadata)
    kinds = {column.name: column.type for column in leaf.columns}
    fields = (*leaf.schema.fields, *(Field(name, kinds[name]) for name in leaf.partitioned if name in kinds))
    data = tuple(column for column in leaf.columns if column.id not in marks)
    read = replace(
        leaf, format="parquet", files=(file,), columns=data, schema=Struct(fields), partitioned=(), options=(),
        version="", metadata=(),
    )  # fmt: skip
    if len(data) == len(leaf.columns):
        return read
    return Project(
        read,
        tuple(
            Named(Literal(None, column.type), column.id, column.name) if column.id in marks else passed(column)
            for column in leaf.columns
        ),
    )


def same_names(columns: tuple[Attribute, ...]) -> tuple[Named, ...]:
    """Columns as they are."""
    return tuple(Named(column, column.id, column.name) for column in columns)

"""The files that a write left, under the columns of its plan."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from govtool.records.execute.inputs import changed, relations
from govtool.records.execute.places import Place, place_of
from govtool.records.lineage import Lineage
from govtool.records.plan.expressions import Attribute, Named
from govtool.records.plan.nodes import Project, Relation, Write, outputs
from govtool.records.plan.tree import Node
from govtool.records.split_plans import files_made, readable, relation_of
from govtool.records.trace.normal import Ids, spare_ids

if TYPE_CHECKING:
    from govtool.model.records import RecordRun


def titled(root: Node) -> Node:
    """The rows of a plan under the names that its output has."""
    if not isinstance(root, Write) or len(root.columns) != len(outputs(root.child)):
        return root.child if isinstance(root, Write) else root
    ids, used, columns = spare_ids(root), set(), []
    for column, name in zip(outputs(root.child), root.columns, strict=True):
        again = column.id in used  # SELECT a, a AS b
        columns.append(ids.named(name, column) if again else Named(column, column.id, name))
        used.add(column.id)
    return Project(root.child, tuple(columns))


def renamed(column: Attribute) -> Named:
    """A column under its own name and id."""
    return Named(column, column.id, column.name)


def written_output(
    run: RecordRun, root: Node, lineage: Lineage, only: Collection[Place] | None = None
) -> Relation | None:
    """The written files, with columns in the plan's order; None where they are unknown, or not all that it wrote.

    Args:
        run: The write.
        root: Its plan.
        lineage: The plan, cut at its boundaries.
        only: The files that matter; None: all.
    """
    return written_files_now(run, root, lineage.ids, only)


def written_files_now(run: RecordRun, root: Node, ids: Ids, only: Collection[Place] | None = None) -> Relation | None:
    """As `written_output`, with ids for its columns."""
    left = relation_of(run.written, run.output)
    if left is not None and only is None and len(left.files) < files_made(left):
        return None  # a later write of the job replaced the others: rows that are not there were written all the same
    if left is not None and only is not None:
        left = replace(left, files=tuple(file for file in left.files if place_of(file) in only))
    if left is None or changed([left]):
        return None
    order = in_order(left.columns, [column.name for column in outputs(root)])
    if order is None:
        return None
    own = tuple(ids.attribute(column.name, column.type) for column in order)
    return replace(readable(left), leaf=len(relations(root)), columns=own)


def in_order(columns: Sequence[Attribute], names: Sequence[str]) -> list[Attribute] | None:
    """The columns of files in the order of a plan: by name, in any case as partitions may be named, or by place."""
    by_name = {column.name.lower(): column for column in columns}
    wanted = [name.lower() for name in names]
    if len(by_name) == len(columns) and set(by_name) == set(wanted):
        return [by_name[name] for name in wanted]
    return list(columns) if len(columns) == len(names) else None

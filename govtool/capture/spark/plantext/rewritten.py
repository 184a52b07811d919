"""UPDATE, DELETE and MERGE of tables that replace files or mark rows as deleted (Iceberg), as their plan text has it:
``ReplaceData`` and ``WriteDelta`` over the rows that come, with the place and the fate of each.
"""

from __future__ import annotations

from govtool.capture.spark import plan as p
from govtool.capture.spark.identity import column_path
from govtool.capture.spark.plantext import lists, operator_names
from govtool.capture.spark.plantext.operator_names import plain_name
from govtool.capture.spark.plantext.tree import Operator

OPERATION = "__row_operation"
NOT_DATA = frozenset(
    {OPERATION, "_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"}
)
"""Columns of what is written that are none of the table: what is done with a row, and Iceberg's metadata columns."""


def rewriting(query: Operator | None) -> str:
    """Return how the written rows are made: ``update``, ``delete`` or ``merge``.

    A MERGE has its ``MergeRows``. An UPDATE computes columns, or has each row twice, once as it goes and once as it
    comes. What only leaves rows out, or only names their places, is a DELETE.
    """
    while query is not None:
        name = plain_name(query)
        if name == "MergeRows":
            return "merge"
        if name == "Expand":
            return "update"
        if name == "Project":
            kind = _of_columns(query)
            if kind:
                return kind
        elif name == "Filter" or name in operator_names.JOINS:
            return "delete"
        elif name not in operator_names.THROUGH and name != "Union":
            return "update"
        query = query.children[0] if query.children else None
    return "update"


def _of_columns(query: Operator) -> str:
    """How rows are made, by the columns of a projection: ``update``, ``delete``, or empty if these do not decide."""
    items = lists.split(query.fields.get("Output") or query.fields.get("Arguments", "")).items
    made = {found[2] for found in map(lists.alias, items) if found is not None}
    plain = {found[1] for found in map(lists.attribute, items) if found is not None and " AS " not in found[1]}
    if made - NOT_DATA:
        return "update"
    return "delete" if made and not plain - NOT_DATA else ""


def changed(node: p.Node, kind: str) -> p.Node:
    """The rows that are written, without what is no data of the table; an UPDATE whose rows are told by conditions on
    the table alone as one: what decides about it steers the columns that it sets.
    """
    if kind == "update" and isinstance(node, p.Union):
        node = node.children[0]  # the others are rows that stay
    updated = _updated(node) if kind == "update" else None
    if updated is not None:
        return updated
    if kind == "delete":
        return p.Project(node, ())
    outputs = p.outputs_of(node)
    kept = [output for output in outputs if output.name not in NOT_DATA]
    if len(kept) == len(outputs):
        return node
    return p.Project(node, tuple(p.Output(o.id, o.name, p.Attribute(o.id, o.name)) for o in kept))


def _updated(node: p.Node) -> p.Modify | None:
    """An UPDATE whose rows follow from conditions on the table alone; None if they do not."""
    top = node
    while isinstance(top, p.Project) and _only_hands_on(top) and isinstance(top.child, p.Project | p.Expand):
        top = top.child  # Spark before 4.1 takes the places of rows off again
    if not isinstance(top, p.Project | p.Expand):
        return None
    target, conditions = top.child, []
    while isinstance(target, p.Filter) or (isinstance(target, p.Project) and _only_hands_on(target)):
        if isinstance(target, p.Filter):
            conditions.append(target.condition)
        target = target.child
    if not isinstance(target, p.Scan):
        return None
    own = {output.id: output.name for output in target.outputs}
    assignments = tuple(
        p.Assignment(column_path(name), _chosen(value, name, own))
        for name, value in _values(top)
        if name not in NOT_DATA and not (isinstance(value, p.Attribute) and own.get(value.id) == name)
    )
    condition = p.Apply("", tuple(conditions)) if conditions else None
    return p.Modify(target, None, None, (p.Clause("update", condition, assignments),))


def _values(node: p.Project | p.Expand) -> list[tuple[str, p.Expression]]:
    """The columns of rows as they come, by name."""
    if isinstance(node, p.Project):
        return [(output.name, output.value) for output in node.outputs]
    return [(output.name, value) for output, value in zip(node.outputs, node.projections[-1], strict=False)]


def _chosen(value: p.Expression, name: str, own: dict[int, str]) -> p.Expression:
    """The values for rows of the condition: ``if (condition) value else column`` leaves the others as they are."""
    match value:
        case p.Conditional(value=p.Apply(name="if", arguments=(chosen, p.Attribute() as other))) if (
            own.get(other.id) == name
        ):
            return p.Conditional(chosen, value.by)
        case _:
            return value


def _only_hands_on(node: p.Project) -> bool:
    return all(isinstance(output.value, p.Attribute) and output.value.id == output.id for output in node.outputs)

"""UPDATE, DELETE and MERGE, in the forms that they have in analyzed plans, as `plan.Modify`.

* Spark's own nodes: ``UpdateTable``, ``DeleteFromTable``, ``MergeIntoTable``.
* Delta Lake's commands: ``UpdateCommand``, ``DeleteCommand``, ``MergeIntoCommand``. What they assign is listed in the
  order of the target's columns.
* What Spark makes of them for tables that replace or delete rows themselves (Iceberg); see `rewritten`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from govtool.capture.spark import plan as p
from govtool.capture.spark.analyzed.relations import RelationReader
from govtool.capture.spark.analyzed.rewritten import rewritten
from govtool.capture.spark.analyzed.tree import CatalystTree, held, trees
from govtool.capture.spark.assignments import changed_values
from govtool.capture.spark.breaks import unknown
from govtool.capture.spark.identity import column_path

MODIFYING = {
    "UpdateTable": "update",
    "DeleteFromTable": "delete",
    "MergeIntoTable": "merge",
    "UpdateCommand": "update",
    "UpdateCommandEdge": "update",
    "DeleteCommand": "delete",
    "DeleteCommandEdge": "delete",
    "MergeIntoCommand": "merge",
    "MergeIntoCommandEdge": "merge",
    "ReplaceData": "",
    "WriteDelta": "",
}
"""Commands that change rows in place, and what each is; empty: that is told by what it was made of."""

_NO_SIDES = unknown("the tables of a MERGE are not known")


def modification(reader: RelationReader, root: CatalystTree, operation: str = "") -> tuple[str, p.Node]:
    """Return the kind of a command that changes rows: ``update``, ``delete`` or ``merge``, and how it does so.

    Args:
        reader: Of its relations.
        root: The command.
        operation: What ``ReplaceData`` and ``WriteDelta`` were, if that is known.
    """
    name = root.name.removesuffix("Edge")
    if name in ("ReplaceData", "WriteDelta"):
        return rewritten(reader, root, operation.lower())
    kind = MODIFYING[root.name]
    if name == "MergeIntoTable":
        return kind, _merge(reader, root)
    if name == "MergeIntoCommand":
        return kind, _delta_merge(reader, root)
    table = held(root, "target") or held(root, "table")
    if table is None:
        return kind, unknown("the changed table is not known")
    target = reader.relation(table)
    condition = reader.optional(root, "condition")
    if kind == "delete":
        return kind, p.Modify(target, None, None, (p.Clause("delete", condition),))
    if name == "UpdateTable":
        values = _assigned(reader, trees(root.fields.get("assignments")), target)
    else:
        columns = p.outputs_of(target)
        expressions = reader.expressions(root, "updateExpressions")
        if len(expressions) > len(columns):
            return kind, unknown("an UPDATE sets more columns than its table has")
        pairs = zip(columns, expressions, strict=False)
        values = changed_values([(column.name, value) for column, value in pairs], columns)
    return kind, p.Modify(target, None, None, (p.Clause("update", condition, values),))


def _sides(reader: RelationReader, root: CatalystTree, target: str, source: str) -> tuple[p.Node, p.Node] | None:
    """The changed and the read side of a MERGE, by the names of the fields that hold them."""
    table, using = held(root, target), held(root, source)
    return None if table is None or using is None else (reader.relation(table), reader.relation(using))


# ---- Spark's own nodes --------------------------------------------------------------------------------------------


def _merge(reader: RelationReader, root: CatalystTree) -> p.Node:
    sides = _sides(reader, root, "targetTable", "sourceTable")
    if sides is None:
        return _NO_SIDES
    target, source = sides
    clauses = []
    for key in ("matchedActions", "notMatchedActions", "notMatchedBySourceActions"):
        for action in trees(root.fields.get(key)):
            kind = action.name.removesuffix("Action").removesuffix("Star").lower()
            own = p.outputs_of(target) if kind == "update" else ()
            if action.name.endswith("StarAction"):
                wanted = {column.name.lower() for column in p.outputs_of(target)}
                values = tuple(
                    p.Assignment(column_path(column.name), p.Attribute(column.id, column.name))
                    for column in p.outputs_of(source)
                    if column.name.lower() in wanted
                )
            else:
                values = _assigned(reader, _of_class(action, "assignments"), target, own)
            clauses.append(p.Clause(kind, reader.held(action, "condition"), values))
    return p.Modify(target, source, reader.optional(root, "mergeCondition"), tuple(clauses))


def _of_class(action: CatalystTree, key: str) -> Iterator[CatalystTree]:
    """Expressions that a field lists: themselves, or as places among the children."""
    value = action.fields.get(key)
    if isinstance(value, list) and all(isinstance(item, int) for item in value):
        yield from (action.children[item] for item in value)
    else:
        yield from trees(value)


def _assigned(
    reader: RelationReader, assignments: Iterable[CatalystTree], target: p.Node, own: Sequence[p.Named] | None = None
) -> tuple[p.Assignment, ...]:
    """Assignments, key and value, without those that leave a column as it is."""
    pairs = []
    columns = p.outputs_of(target) if own is None else own
    found: list[p.Assignment] = []
    for assignment in assignments:
        key, value = assignment.children
        path = _key(key)
        if "." in path or path == "":
            found.append(p.Assignment(path or "?", reader.expression(value)))
        else:
            pairs.append((key.fields.get("name") or path, reader.expression(value)))
    return (*changed_values([(str(name), value) for name, value in pairs], columns), *found)


def _key(key: CatalystTree) -> str:
    """The path of what is assigned: a column, or a field of a struct."""
    name = key.fields.get("name")
    if key.name == "AttributeReference":
        return column_path(str(name or ""))
    if key.name == "GetStructField" and isinstance(name, str):
        base = _key(key.children[0])
        return f"{base}.{column_path(name)}" if base else ""
    return ""


# ---- Delta Lake ---------------------------------------------------------------------------------------------------


def _delta_merge(reader: RelationReader, root: CatalystTree) -> p.Node:
    sides = _sides(reader, root, "target", "source")
    if sides is None:
        return _NO_SIDES
    target, source = sides
    columns = p.outputs_of(target)
    evolved = root.fields.get("migratedSchema")
    names = [column.name for column in columns]
    if isinstance(evolved, Mapping) and isinstance(evolved.get("fields"), list):
        names = [str(field.get("name")) for field in evolved["fields"]]
    clauses = []
    for key in ("matchedClauses", "notMatchedClauses", "notMatchedBySourceClauses"):
        for clause in trees(root.fields.get(key)):
            kind = next(word for word in ("update", "insert", "delete") if word in clause.name.lower())
            values = [reader.expression(action.children[0]) for action in _of_class(clause, "actions")]
            if len(values) > len(names):
                return unknown("a MERGE sets more columns than its table has", (target, source))
            pairs = list(zip(names, values, strict=False))
            own = columns if kind == "update" else ()
            clauses.append(p.Clause(kind, reader.held(clause, "condition"), changed_values(pairs, own)))
    return p.Modify(target, source, reader.optional(root, "condition"), tuple(clauses))

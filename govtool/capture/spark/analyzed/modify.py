"""UPDATE, DELETE and MERGE, in the forms that they have in analyzed plans, as `plan.Modify`.

* Spark's own nodes: ``UpdateTable``, ``DeleteFromTable``, ``MergeIntoTable``.
* Delta Lake's commands: ``UpdateCommand``, ``DeleteCommand``, ``MergeIntoCommand``. What they assign is listed in the
  order of the target's columns.
* What Spark makes of them for tables that replace or delete rows themselves (Iceberg): ``ReplaceData`` and
  ``WriteDelta``, over ``MergeRows`` for MERGE, over select lists for UPDATE. A column that stays as it
  is is listed too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from govtool.capture.spark import plan as p
from govtool.capture.spark.analyzed.relations import UNKNOWN, RelationReader
from govtool.capture.spark.analyzed.tree import Tree, id_of, is_tree, named, tree_of, trees
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

_SOURCE_MARK = "__row_from_source"
_OPERATION = "__row_operation"


def modification(reader: RelationReader, root: Tree, operation: str = "") -> tuple[str, p.Node]:
    """What a command that changes rows does: ``update``, ``delete`` or ``merge``, and how.

    Args:
        reader: Of its relations.
        root: The command.
        operation: What ``ReplaceData`` and ``WriteDelta`` were, if that is known.
    """
    name = root.name.removesuffix("Edge")
    if name in ("ReplaceData", "WriteDelta"):
        return _rewritten(reader, root, operation.lower())
    kind = MODIFYING[root.name]
    if name == "MergeIntoTable":
        return kind, _merge(reader, root)
    if name == "MergeIntoCommand":
        return kind, _delta_merge(reader, root)
    table = _part(root, "target") or _part(root, "table")
    if table is None:
        return kind, _lost("the table that is changed is not told")
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
            return kind, _lost("an UPDATE sets more columns than its table has")
        pairs = zip(columns, expressions, strict=False)
        values = changed_values([(column.name, value) for column, value in pairs], columns)
    return kind, p.Modify(target, None, None, (p.Clause("update", condition, values),))


def _lost(message: str) -> p.Lost:
    return p.Lost((), (), UNKNOWN, message)


def _part(tree: Tree, key: str) -> Tree | None:
    """A plan that is a child of a command, or one of its fields."""
    value = tree.fields.get(key)
    if is_tree(value):
        return tree_of(value)  # type: ignore[arg-type]
    if isinstance(value, int) and not isinstance(value, bool) and value < len(tree.children):
        return tree.children[value]
    return None


# ---- Spark's own nodes --------------------------------------------------------------------------------------------


def _merge(reader: RelationReader, root: Tree) -> p.Node:
    table, using = _part(root, "targetTable"), _part(root, "sourceTable")
    if table is None or using is None:
        return _lost("a MERGE does not tell its tables")
    target, source = reader.relation(table), reader.relation(using)
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
            clauses.append(p.Clause(kind, _condition(reader, action), values))
    return p.Modify(target, source, reader.optional(root, "mergeCondition"), tuple(clauses))


def _condition(reader: RelationReader, action: Tree) -> p.Expression | None:
    """The condition of an action: a field, or the child that a field counts."""
    value = action.fields.get("condition")
    if is_tree(value):
        return reader.expression(tree_of(value))  # type: ignore[arg-type]
    if isinstance(value, int) and not isinstance(value, bool) and value < len(action.children):
        return reader.expression(action.children[value])
    return None


def _of_class(action: Tree, key: str) -> Iterator[Tree]:
    """Expressions that a field lists: themselves, or as places among the children."""
    value = action.fields.get(key)
    if isinstance(value, list) and all(isinstance(item, int) for item in value):
        yield from (action.children[item] for item in value)
    else:
        yield from trees(value)


def _assigned(
    reader: RelationReader, assignments: Iterable[Tree], target: p.Node, own: Sequence[p.Named] | None = None
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


def _key(key: Tree) -> str:
    """The path of what is assigned: a column, or a field of a struct."""
    name = key.fields.get("name")
    if key.name == "AttributeReference":
        return column_path(str(name or ""))
    if key.name == "GetStructField" and isinstance(name, str):
        base = _key(key.children[0])
        return f"{base}.{column_path(name)}" if base else ""
    return ""


def changed_values(pairs: Sequence[tuple[str, p.Expression]], own: Sequence[p.Named]) -> tuple[p.Assignment, ...]:
    """Values for columns, without those that hand the column itself on; of a struct only the fields that change.

    Args:
        pairs: Names of columns with their values.
        own: The target's columns; none for an INSERT.
    """
    ids = {column.name.lower(): column.id for column in own}
    found: list[p.Assignment] = []
    for name, value in pairs:
        number = ids.get(name.lower())
        base = p.Attribute(number, name) if number is not None else None
        found.extend(_parts(column_path(name), value, base))
    return tuple(found)


def _parts(path: str, value: p.Expression, own: p.Expression | None) -> Iterator[p.Assignment]:
    if own is None:
        yield p.Assignment(path, value)
    elif not _same(value, own):
        fields = value.fields if isinstance(value, p.Record) else ()
        if any(_same(part, p.Field(own, name)) for name, part in fields):
            for name, part in fields:
                yield from _parts(f"{path}.{name}", part, p.Field(own, name))
        else:
            yield p.Assignment(path, value)


def _same(value: p.Expression, own: p.Expression) -> bool:
    """Whether a value is a column, or a field of one, as it is; casts to its own type are nobody's."""
    while isinstance(value, p.Apply) and value.name in ("", "cast") and len(value.arguments) == 1:
        value = value.arguments[0]
    match value, own:
        case p.Attribute(), p.Attribute():
            return value.id == own.id
        case p.Field(), p.Field():
            return value.step == own.step and _same(value.base, own.base)
        case _:
            return False


# ---- Delta Lake ---------------------------------------------------------------------------------------------------


def _delta_merge(reader: RelationReader, root: Tree) -> p.Node:
    table, using = _part(root, "target"), _part(root, "source")
    if table is None or using is None:
        return _lost("a MERGE does not tell its tables")
    target, source = reader.relation(table), reader.relation(using)
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
                return p.Lost((target, source), (), UNKNOWN, "a MERGE sets more columns than its table has")
            pairs = list(zip(names, values, strict=False))
            own = columns if kind == "update" else ()
            clauses.append(p.Clause(kind, _condition(reader, clause), changed_values(pairs, own)))
    return p.Modify(target, source, reader.optional(root, "condition"), tuple(clauses))


# ---- what Spark makes of them ----------------------------------------------------------------------------------------


def _rewritten(reader: RelationReader, root: Tree, operation: str) -> tuple[str, p.Node]:
    query, table = _part(root, "query"), next(trees(root.fields.get("table")), None)
    if query is None or table is None:
        return operation or "merge", _lost("what rows are replaced with is not told")
    columns = named(table.fields.get("output"))
    merge = _first(query, "MergeRows")
    if merge is not None:
        node = _merged_rows(reader, merge, columns)
        _without_metadata(reader, node, columns)
        return "merge", node
    condition = reader.optional(root, "condition")
    scanned = _leaf_of(query, columns)
    if scanned is None:
        return operation or "update", _lost("the table whose rows are replaced is not in the plan")
    target = reader.relation(scanned)
    _without_metadata(reader, target, columns)
    values: tuple[p.Assignment, ...] = ()
    if operation != "delete":
        again = _read_again(query, columns)
        if again and isinstance(target, p.Scan):
            names = [column_path(column.name) for column in (*target.outputs, *again)]
            target = p.Scan(target.dataset, (*target.outputs, *again), tuple(names))
        values = _values(reader, query, columns, again or columns)
    if operation == "delete" or (not operation and not values):
        return "delete", p.Modify(target, None, None, (p.Clause("delete", condition),))
    return "update", p.Modify(target, None, None, (p.Clause("update", condition, values),))


def _without_metadata(reader: RelationReader, node: p.Node, columns: Sequence[p.Named]) -> None:
    """Columns of rows' places (``_file``, ``_pos``) are none of the table's."""
    target = node.target if isinstance(node, p.Modify) else node
    if isinstance(target, p.Scan):
        own = {column_path(column.name) for column in columns}
        known = reader.columns.get(target.dataset, ())
        reader.columns[target.dataset] = tuple(column for column in known if column[0] in own)


def _first(root: Tree, name: str) -> Tree | None:
    """The topmost node of a class, below nodes with one child."""
    while root.name != name and len(root.children) == 1:
        root = root.children[0]
    return root if root.name == name else None


def _leaf_of(root: Tree, columns: Sequence[p.Named]) -> Tree | None:
    """The leaf that has the target's columns, by their ids."""
    wanted = {column.id for column in columns}
    stack = [root]
    while stack:
        tree = stack.pop()
        if not tree.children and wanted <= {column.id for column in named(tree.fields.get("output"))}:
            return tree
        stack.extend(reversed(tree.children))
    return None


def _read_again(query: Tree, columns: Sequence[p.Named]) -> tuple[p.Named, ...]:
    """The target's columns under the ids that they have where it is read for the rows that an UPDATE sets; those that
    stay are read apart where its condition has a subquery. None where the ids are the same.
    """
    union = _first(query, "Union")
    if union is None or _leaf_of(union.children[0], columns) is not None:
        return ()
    wanted = [column.name for column in columns]
    tree = union.children[0]
    while len(tree.children) == 1:
        tree = tree.children[0]
    found = {column.name: column for column in named(tree.fields.get("output"))}
    return tuple(found[name] for name in wanted) if not tree.children and set(wanted) <= set(found) else ()


def _values(
    reader: RelationReader, query: Tree, columns: Sequence[p.Named], own: Sequence[p.Named]
) -> tuple[p.Assignment, ...]:
    """What an UPDATE sets: by the names of the columns in the select lists over the table, or in an ``Expand`` of the
    rows that go and the rows that come.

    Args:
        reader: Of expressions.
        query: What rows are replaced with.
        columns: The target's.
        own: The same, by the ids that ``query`` has for them.
    """
    made: dict[int, Tree] = {}
    named_: dict[str, Tree] = {}
    while query.name in ("Project", "Expand", "Union", "Filter", "SubqueryAlias"):
        if query.name == "Union":  # the rows that are set, and those that stay
            query = query.children[0]
            continue
        if query.name == "Expand":
            rows = query.fields.get("projections")
            row = list(trees(rows[-1])) if isinstance(rows, list) and rows else []
            outputs = named(query.fields.get("output"))
            items = [(o.name, o.id, value) for o, value in zip(outputs, row, strict=False)]
        elif query.name == "Project":
            items = [
                (str(item.fields.get("name", "")), id_of(item), item.children[0] if item.name == "Alias" else item)
                for item in trees(query.fields.get("projectList"))
            ]
        else:
            items = []
        named_ = named_ or {name.lower(): value for name, _, value in items}
        for _, number, computed in items:
            if computed.name != "AttributeReference" or id_of(computed) != number:
                made.setdefault(number, computed)
        query = query.children[0]
    pairs = []
    for column in columns:
        value = named_.get(column.name.lower())
        for _ in range(len(made)):  # a name for what a lower list computes
            lower = made.get(id_of(value)) if value is not None and value.name == "AttributeReference" else None
            if lower is None or lower is value:
                break
            value = lower
        if value is not None:
            pairs.append((column.name, reader.expression(_chosen(value, column.id))))
    return changed_values(pairs, own)


def _chosen(value: Tree, own: int) -> Tree:
    """What rows of the condition get: ``If(condition, value, column)`` leaves the others as they are."""
    if value.name == "If" and len(value.children) == 3:
        other = value.children[2]
        if other.name == "AttributeReference" and id_of(other) == own:
            return value.children[1]
    return value


def _merged_rows(reader: RelationReader, merge: Tree, columns: Sequence[p.Named]) -> p.Node:
    join = _first(merge, "Join")
    if join is None or len(join.children) != 2:
        return _lost("the sides of a MERGE are not told")
    left, right = join.children
    if _is_source(left) and not _is_source(right):
        left, right = right, left
    target, conditions = left, [reader.optional(join, "condition")]
    while len(target.children) == 1:  # conditions on the target alone are looked at before the join
        if target.name == "Filter":
            conditions.append(reader.optional(target, "condition"))
        target = target.children[0]
    told = tuple(condition for condition in conditions if condition is not None and condition != p.CONSTANT)
    on = p.Apply("", told) if told else None
    outputs = named(merge.fields.get("output"))
    names = {column.name.lower() for column in columns}
    clauses = []
    for key in ("matchedInstructions", "notMatchedInstructions", "notMatchedBySourceInstructions"):
        for instruction in trees(merge.fields.get(key)):
            kind, rows = _instruction(instruction)
            condition = _condition(reader, instruction)
            if kind == "copy":
                continue
            values = [
                (output.name, reader.expression(instruction.children[at]))
                for output, at in zip(outputs, rows, strict=False)
                if output.name.lower() in names and output.name != _OPERATION
            ]
            own = columns if kind == "update" else ()
            assignments = changed_values(values, own) if kind != "delete" else ()
            clauses.append(p.Clause(kind, condition if condition != p.CONSTANT else None, assignments))
    return p.Modify(reader.relation(target), reader.relation(right), on, tuple(clauses))


def _is_source(side: Tree) -> bool:
    return any(item.fields.get("name") == _SOURCE_MARK for item in trees(side.fields.get("projectList")))


def _instruction(tree: Tree) -> tuple[str, Sequence[int]]:
    """What an instruction of ``MergeRows`` does, and where among its children its values are."""
    rows = tree.fields.get("output")
    values = rows if isinstance(rows, list) else []
    name = tree.name.rpartition("$")[2]
    if name == "Split":  # a row goes and a row comes
        other = tree.fields.get("otherOutput")
        return "update", other if isinstance(other, list) else []
    if name == "Discard":
        return "delete", []
    context = tree.fields.get("context")
    text = str(context.get("object") or context.get("k") or "") if isinstance(context, Mapping) else ""
    kind = text.rstrip("$").rpartition("$")[2].lower()
    return (kind or "update"), values

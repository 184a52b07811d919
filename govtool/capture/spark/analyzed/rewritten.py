"""``ReplaceData`` and ``WriteDelta``: what Spark makes of UPDATE, DELETE and MERGE for tables that replace or delete
rows themselves (Iceberg), over ``MergeRows`` for MERGE, over select lists for UPDATE. A column that stays as it is is
listed too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from govtool.capture.spark import plan as p
from govtool.capture.spark.analyzed.relations import RelationReader
from govtool.capture.spark.analyzed.tree import CatalystTree, held, id_of, named, trees
from govtool.capture.spark.assignments import changed_values
from govtool.capture.spark.breaks import unknown
from govtool.capture.spark.identity import column_path

_SOURCE_MARK = "__row_from_source"
_OPERATION = "__row_operation"


def rewritten(reader: RelationReader, root: CatalystTree, operation: str) -> tuple[str, p.Node]:
    """Return the original command of ``ReplaceData`` and ``WriteDelta``: ``update``, ``delete`` or ``merge``, and how.

    Args:
        reader: Of its relations.
        root: The command.
        operation: What it was, if that is known.
    """
    query, table = held(root, "query"), next(trees(root.fields.get("table")), None)
    if query is None or table is None:
        return operation or "merge", unknown("the source of replaced rows is not known")
    columns = named(table.fields.get("output"))
    merge = _first(query, "MergeRows")
    if merge is not None:
        node = _merged_rows(reader, merge, columns)
        _without_metadata(reader, node, columns)
        return "merge", node
    condition = reader.optional(root, "condition")
    scanned = _leaf_of(query, columns)
    if scanned is None:
        return operation or "update", unknown("the table whose rows are replaced is not in the plan")
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


def _first(root: CatalystTree, name: str) -> CatalystTree | None:
    """The topmost node of a class, below nodes with one child."""
    while root.name != name and len(root.children) == 1:
        root = root.children[0]
    return root if root.name == name else None


def _leaf_of(root: CatalystTree, columns: Sequence[p.Named]) -> CatalystTree | None:
    """The leaf that has the target's columns, by their ids."""
    wanted = {column.id for column in columns}
    stack = [root]
    while stack:
        tree = stack.pop()
        if not tree.children and wanted <= {column.id for column in named(tree.fields.get("output"))}:
            return tree
        stack.extend(reversed(tree.children))
    return None


def _read_again(query: CatalystTree, columns: Sequence[p.Named]) -> tuple[p.Named, ...]:
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
    reader: RelationReader, query: CatalystTree, columns: Sequence[p.Named], own: Sequence[p.Named]
) -> tuple[p.Assignment, ...]:
    """What an UPDATE sets: by the names of the columns in the select lists over the table, or in an ``Expand`` of the
    rows that go and the rows that come.

    Args:
        reader: Of expressions.
        query: What rows are replaced with.
        columns: The target's.
        own: The same, by the ids that ``query`` has for them.
    """
    made: dict[int, CatalystTree] = {}
    named_: dict[str, CatalystTree] = {}
    while query.name in ("Project", "Expand", "Union", "Filter", "SubqueryAlias"):
        if query.name == "Union":  # the rows that are set, and those that stay
            query = query.children[0]
            continue
        items = _items(query)
        named_ = named_ or {name.lower(): value for name, _, value in items}
        for _, number, computed in items:
            if computed.name != "AttributeReference" or id_of(computed) != number:
                made.setdefault(number, computed)
        query = query.children[0]
    pairs = []
    for column in columns:
        value = named_.get(column.name.lower())
        if value is not None:
            pairs.append((column.name, reader.expression(_chosen(_computed(value, made), column.id))))
    return changed_values(pairs, own)


def _items(query: CatalystTree) -> list[tuple[str, int, CatalystTree]]:
    """The name, the id and the computation of each column; those of an ``Expand`` are of the rows that come."""
    if query.name == "Expand":
        rows = query.fields.get("projections")
        row = list(trees(rows[-1])) if isinstance(rows, list) and rows else []
        outputs = named(query.fields.get("output"))
        return [(o.name, o.id, value) for o, value in zip(outputs, row, strict=False)]
    if query.name == "Project":
        return [
            (str(item.fields.get("name", "")), id_of(item), item.children[0] if item.name == "Alias" else item)
            for item in trees(query.fields.get("projectList"))
        ]
    return []


def _computed(value: CatalystTree, made: Mapping[int, CatalystTree]) -> CatalystTree:
    """What lower lists compute under a name; the value itself if it is more than a name."""
    for _ in range(len(made)):
        lower = made.get(id_of(value)) if value.name == "AttributeReference" else None
        if lower is None or lower is value:
            break
        value = lower
    return value


def _chosen(value: CatalystTree, own: int) -> CatalystTree:
    """Return the values for rows of the condition: ``If(condition, value, column)`` leaves the others as they are."""
    if value.name == "If" and len(value.children) == 3:
        other = value.children[2]
        if other.name == "AttributeReference" and id_of(other) == own:
            return value.children[1]
    return value


def _merged_rows(reader: RelationReader, merge: CatalystTree, columns: Sequence[p.Named]) -> p.Node:
    join = _first(merge, "Join")
    if join is None or len(join.children) != 2:
        return unknown("the sides of a MERGE are not known")
    left, right = join.children
    if _is_source(left) and not _is_source(right):
        left, right = right, left
    target, conditions = left, [reader.optional(join, "condition")]
    while len(target.children) == 1:  # conditions on the target alone are looked at before the join
        if target.name == "Filter":
            conditions.append(reader.optional(target, "condition"))
        target = target.children[0]
    stated = tuple(condition for condition in conditions if condition is not None and condition != p.CONSTANT)
    on = p.Apply("", stated) if stated else None
    clauses = tuple(_clauses(reader, merge, columns))
    return p.Modify(reader.relation(target), reader.relation(right), on, clauses)


def _clauses(reader: RelationReader, merge: CatalystTree, columns: Sequence[p.Named]) -> Iterator[p.Clause]:
    """The clauses of a MERGE by the instructions of its ``MergeRows``; rows that are copied are none's."""
    outputs = named(merge.fields.get("output"))
    names = {column.name.lower() for column in columns}
    for key in ("matchedInstructions", "notMatchedInstructions", "notMatchedBySourceInstructions"):
        for instruction in trees(merge.fields.get(key)):
            kind, rows = _instruction(instruction)
            condition = reader.held(instruction, "condition")
            if kind == "copy":
                continue
            values = [
                (output.name, reader.expression(instruction.children[at]))
                for output, at in zip(outputs, rows, strict=False)
                if output.name.lower() in names and output.name != _OPERATION
            ]
            own = columns if kind == "update" else ()
            assignments = changed_values(values, own) if kind != "delete" else ()
            yield p.Clause(kind, condition if condition != p.CONSTANT else None, assignments)


def _is_source(side: CatalystTree) -> bool:
    return any(item.fields.get("name") == _SOURCE_MARK for item in trees(side.fields.get("projectList")))


def _instruction(tree: CatalystTree) -> tuple[str, Sequence[int]]:
    """Return the kind of an instruction of ``MergeRows``, and the positions of its values among its children."""
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

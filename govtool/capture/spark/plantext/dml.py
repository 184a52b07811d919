"""UPDATE, DELETE and MERGE of Delta: the command prints conditions and assignments, with ids of both tables' columns.

The jobs that it starts find files and write them anew; what they say of columns is the command's, taken apart.
"""

from __future__ import annotations

import re

from govtool.capture.spark import plan as p
from govtool.capture.spark.identity import column_path
from govtool.capture.spark.plantext import lists
from govtool.capture.spark.plantext.expressions import Reader
from govtool.capture.spark.plantext.tree import Operator
from govtool.model import EdgeKind

_ASSIGNMENT = re.compile(r"`((?:[^`]|``)+)` = ")
_ACTIONS = re.compile(r"\b(?:Update|Insert|Delete)\b")


def relation(operator: Operator, kind: str, reader: Reader, known: dict[int, tuple[str, str]]) -> p.Node | None:
    """What a command sets the columns of its target to; None if its text does not tell.

    Args:
        operator: The command.
        kind: ``update``, ``delete`` or ``merge``.
        reader: Of its expressions.
        known: Dataset and column of attributes, by id.
    """
    parts = lists.arguments(operator.fields.get("Arguments", ""))
    if kind == "merge":
        return _merge(parts, reader, known)
    conditions = [part for part in parts if part.startswith("(") or re.match(r"(?:isnotnull|isnull|NOT )", part)]
    child = _scans({number for part in parts for number in _ids(part)}, known)
    if child is None:
        return None
    condition = p.Apply("", tuple(reader.condition(part) for part in conditions)) if conditions else None
    if kind == "delete":
        return p.Modify(child, None, None, (p.Clause("delete", condition),))
    listed = [part for part in parts if part.startswith("[")]
    target = operator.children[0] if operator.children else None
    columns = _columns(target)
    if not listed or not columns:
        return None
    values = lists.split(listed[-1])
    if values.more or len(values.items) > len(columns):
        return None
    assignments = []
    for column, text in zip(columns, values.items, strict=False):
        own = lists.attribute(text)
        if own is None or own[0] != column.id:  # else it stays as it is
            assignments.append(p.Assignment(column_path(column.name), reader.expression(text)))
    return p.Modify(child, None, None, (p.Clause("update", condition, tuple(assignments)),))


def _merge(parts: list[str], reader: Reader, known: dict[int, tuple[str, str]]) -> p.Node | None:
    actions = [part for part in parts if part.startswith("[") and _ACTIONS.search(part)]
    ids = {number for part in parts for number in _ids(part)}
    child = _scans(ids, known)
    if child is None or not actions:
        return None
    conditions = [part for part in parts if part.startswith("(") and "#" in part]
    if conditions and isinstance(child, p.Join):
        on = p.Apply("", tuple(reader.condition(part) for part in conditions))
        child = p.Join(child.left, child.right, on)
    values: dict[str, list[p.Expression]] = {}
    for part in actions:
        for clause in re.split(r"(?<=\]), (?=(?:Update|Insert|Delete)\b)", part[1:-1]):
            guard = re.search(r"condition: (.*?), actions: ", clause, re.DOTALL)
            by = (reader.condition(guard[1]),) if guard is not None else ()
            for name, text in _assignments(clause):
                own = lists.attribute(text)
                at = known.get(own[0]) if own is not None else None
                same = own is not None and at is not None and at[1].lower() == own[1].lower() == name.lower()
                if same and own is not None and clause.startswith("Update") and _is_target(own[0], known, parts):
                    continue  # it stays as it is
                value = reader.expression(text)
                values.setdefault(name, []).append(p.Steered(value, by) if by else value)
    outputs = tuple(
        p.Output(-1 - n, name, found[0] if len(found) == 1 else p.Apply("", tuple(found), EdgeKind.IDENTITY))
        for n, (name, found) in enumerate(values.items())
    )
    return p.Project(child, outputs)


def _is_target(number: int, known: dict[int, tuple[str, str]], parts: list[str]) -> bool:
    """Whether an attribute is one of the table that is merged into: its name stands among the arguments."""
    dataset = known[number][0]
    text = " ".join(parts)
    return (
        all(f"`{part}`" in text for part in dataset.rsplit("/", 1)[-1].split(".")) or dataset.partition("/")[2] in text
    )


def _assignments(clause: str) -> list[tuple[str, str]]:
    found = list(_ASSIGNMENT.finditer(clause))
    ends = [*(match.start() for match in found[1:]), len(clause)][: len(found)]
    return [
        (match[1].replace("``", "`"), clause[match.end() : end].rstrip().rstrip("],").rstrip())
        for match, end in zip(found, ends, strict=True)
    ]


def _columns(operator: Operator | None) -> tuple[p.Named, ...]:
    while operator is not None:
        for part in lists.arguments(operator.fields.get("Arguments", "")):
            if part.startswith("["):
                elements = lists.split(part)
                named = [lists.attribute(item) for item in elements.items]
                if named and not elements.more and all(named):
                    return tuple(p.Named(*item) for item in named if item is not None)
        operator = operator.children[0] if operator.children else None
    return ()


def _scans(ids: set[int], known: dict[int, tuple[str, str]]) -> p.Node | None:
    """The tables whose columns are named, side by side."""
    tables: dict[str, list[p.Named]] = {}
    for number in sorted(ids):
        if number in known:
            tables.setdefault(known[number][0], []).append(p.Named(number, known[number][1]))
    node: p.Node | None = None
    for dataset, columns in tables.items():
        scan = p.Scan(dataset, tuple(columns))
        node = scan if node is None else p.Join(node, scan)
    return node


def _ids(text: str) -> set[int]:
    return {int(number) for number in re.findall(r"#(\d+)", text)}

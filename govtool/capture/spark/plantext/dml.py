"""UPDATE, DELETE and MERGE of Delta: the command prints conditions and assignments, with ids of both tables' columns.

The jobs that it starts find files and write them anew; what they say of columns is the command's, taken apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from govtool.capture.spark import plan as p
from govtool.capture.spark.assignments import changed_values
from govtool.capture.spark.identity import DatasetPlace, column_path
from govtool.capture.spark.plantext import lists
from govtool.capture.spark.plantext.expressions import TextExpressionReader
from govtool.capture.spark.plantext.tree import Operator, PlanTree

_ASSIGNMENT = re.compile(r"(?<!`)`((?:[^`]|``)++)` = ")
_NEXT_CLAUSE = re.compile(r"(?<=\]), (?=(?:Update|Insert|Delete)\b)")
_ACTIONS = re.compile(r"(?:Update|Insert|Delete)\b")
_GUARD = re.compile(r"\A\w+ \[condition: (.*?)(?:, actions: |\]\Z)", re.DOTALL)
_SOURCE = "_source_row_present_#"
"""By this Delta tells rows that the source has."""
_MORE = re.compile(r"\.\.\. \d+ more fields")


def relation(
    operator: Operator,
    kind: str,
    reader: TextExpressionReader,
    known: dict[int, tuple[str, str]],
    place: DatasetPlace,
    sources: Sequence[p.Node] = (),
) -> p.Node | None:
    """Return the relation of the values that a command sets; None if its text does not have it.

    Args:
        operator: The command.
        kind: ``update``, ``delete`` or ``merge``.
        reader: Of its expressions.
        known: Dataset and column of attributes, by id.
        place: The target.
        sources: What jobs of the command say that they merge; see `merged`.
    """
    parts = lists.arguments(operator.fields.get("Arguments", ""))
    if kind == "merge":
        return _merge(parts, reader, known, place, sources)
    conditions = [part for part in parts if part.startswith("(") or re.match(r"(?:isnotnull|isnull|NOT )", part)]
    child = _scans({number for part in parts for number in _ids(part)}, known)
    if child is None:
        return None
    condition = _all_of(conditions, reader)
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
    assignments = _new_values(columns, values.items, reader)
    return p.Modify(child, None, None, (p.Clause("update", condition, assignments),))


def _new_values(
    columns: Sequence[p.Named], values: Sequence[str], reader: TextExpressionReader
) -> tuple[p.Assignment, ...]:
    """The values of an UPDATE by position, without those of columns that stay as they are."""
    found = []
    for column, text in zip(columns, values, strict=False):
        own = lists.attribute(text)
        if own is None or own[0] != column.id:
            found.append(p.Assignment(column_path(column.name), reader.expression(text)))
    return tuple(found)


def _merge(
    parts: list[str],
    reader: TextExpressionReader,
    known: dict[int, tuple[str, str]],
    place: DatasetPlace,
    sources: Sequence[p.Node],
) -> p.Node | None:
    """The clauses of a MERGE. The target is told by the ids of its columns; the source by those of a query that one of
    its jobs runs, or of one table. Where the source is the target itself, whose columns they are is not told.
    """
    ids = {number for part in parts for number in _ids(part)}
    if any(_MORE.search(part) for part in parts):
        return None
    own_names = {place.id, *(name.id for name in place.aliases)}
    own = {number for number in ids if number in known and known[number][0] in own_names}
    others = ids - own
    target, source = _scans(own, known), _source(others, known, sources)
    if not isinstance(target, p.Scan) or source is None or isinstance(source, p.Join) or not others:
        return None
    on = _all_of([part for part in parts if part.startswith("(") and "#" in part], reader)
    clauses = _clauses(parts, reader, target)
    return p.Modify(target, source, on, clauses) if clauses else None


def _clauses(parts: list[str], reader: TextExpressionReader, target: p.Scan) -> tuple[p.Clause, ...]:
    """The clauses of a MERGE; empty if the text of one cannot be taken apart."""
    found = []
    for part in parts:
        for text in _NEXT_CLAUSE.split(part[1:-1]) if part.startswith("[") else ():
            clause = _clause(text, reader, target)
            if clause is None:
                return ()
            found.append(clause)
    return tuple(found)


def _clause(text: str, reader: TextExpressionReader, target: p.Scan) -> p.Clause | None:
    """One clause of a MERGE; None if its text cannot be taken apart."""
    action = _ACTIONS.match(text)
    if action is None:
        return None
    pairs = [(name, reader.expression(value)) for name, value in _assignments(text)]
    if len({name for name, _ in pairs}) < len(pairs):
        return None  # a literal that reads like an assignment
    guard = _GUARD.search(text)
    condition = reader.condition(guard[1]) if guard is not None else None
    return p.Clause(
        action[0].lower(), condition, changed_values(pairs, target.outputs if action[0] == "Update" else ())
    )


def _all_of(conditions: list[str], reader: TextExpressionReader) -> p.Expression | None:
    return p.Apply("", tuple(reader.condition(part) for part in conditions)) if conditions else None


def _source(ids: set[int], known: dict[int, tuple[str, str]], sources: Sequence[p.Node]) -> p.Node | None:
    """The source of a MERGE by the ids of its columns: of a query of one of its jobs, else of a table."""
    found = next((each for each in sources if ids <= {output.id for output in p.outputs_of(each)}), None)
    return found or (_scans(ids, known) if ids <= set(known) else None)


def merged(tree: PlanTree) -> Operator | None:
    """The source of a MERGE in the plan of a job that joins it to the target; None if there is none."""
    for operator in tree.operators.values():
        if operator.name.strip() == "Project" and f" AS {_SOURCE}" in operator.fields.get("Output", ""):
            return operator
    return None


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

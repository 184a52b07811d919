"""What a database answers itself, of tables of a JDBC catalog: conditions, groups and orders that the scan only lists.

Plan text has them as fields:

(1) Scan JDBC v1 Relation from v2 scan pgc.public.items
Output [2]: [cat#166, max#167]
PushedAggregates: [MAX(price)]
PushedGroupByExpressions: [cat]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from govtool.capture.spark import build
from govtool.capture.spark import plan as p
from govtool.capture.spark.plantext import lists
from govtool.capture.spark.plantext.tree import Operator

SCAN = "Scan JDBC v1 Relation from v2 scan"
QUERY = "break.query"
_NOT_NULL = " IS NOT NULL"


def answered(operator: Operator, outputs: tuple[p.Named, ...], scan: Callable[[tuple[p.Named, ...]], p.Node]) -> p.Node:
    """Return the relation of such a scan.

    Args:
        operator: The scan.
        outputs: What it gives.
        scan: Reads columns of the table.
    """
    if "PushedJoins" in operator.fields:
        return _break(outputs, "a join that another database answers")
    grouped = "PushedAggregates" in operator.fields
    columns: dict[str, p.Named] = {} if grouped else {output.name: output for output in outputs}

    def read(texts: Sequence[str]) -> list[p.Expression]:
        return [_value(text, columns) for text in texts]

    try:
        conditions = read([text for text in _items(operator, "PushedFilters") if not text.endswith(_NOT_NULL)])
        orders = read([_before(text) for text in _orders(operator)])
        keys = tuple(read(_items(operator, "PushedGroupByExpressions")))
        values = (*keys, *read(_items(operator, "PushedAggregates"))) if grouped else ()
    except ValueError:
        return _break(outputs, "conditions or aggregates that another database answers are not readable")
    if grouped and len(values) != len(outputs):
        return _break(outputs, "an aggregate that another database answers")
    node = scan(tuple(columns.values()))
    if conditions:
        node = p.Filter(node, p.Apply("", tuple(conditions)))
    if grouped:
        computed = (p.Output(o.id, o.name, value) for o, value in zip(outputs, values, strict=True))
        node = build.aggregate(node, keys, tuple(computed))
    if orders:
        node = p.Sort(node, tuple(orders))
    kept = tuple(p.Output(o.id, o.name, p.Attribute(o.id, o.name)) for o in outputs)
    return node if p.outputs_of(node) == outputs else p.Project(node, kept)


def _break(outputs: tuple[p.Named, ...], message: str) -> p.Node:
    return p.LineageBreak((), outputs, QUERY, message)


def _items(operator: Operator, name: str) -> list[str]:
    return list(lists.split(operator.fields.get(name, "")).items)


def _orders(operator: Operator) -> list[str]:
    """The orders of ``ORDER BY [price DESC NULLS LAST] LIMIT 5``."""
    head, found, rest = operator.fields.get("PushedTopN", "").partition("ORDER BY ")
    return list(lists.split(rest.rpartition("]")[0] + "]").items) if found and not head.strip() else []


def _before(text: str) -> str:
    """An order without its direction."""
    for direction in (" ASC NULLS ", " DESC NULLS "):
        text = text.rpartition(direction)[0] or text
    return text


def _value(text: str, columns: dict[str, p.Named]) -> p.Expression:
    """An expression as the connector's API prints it; columns that nothing has read so far are added.

    Raises:
        ValueError: It cannot be read.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError as error:
        raise ValueError(text) from error
    found = []
    for column in tree.find_all(exp.Column):
        name = ".".join(part.name for part in column.parts)
        named = columns.setdefault(name, p.Named(-1 - len(columns), name))
        found.append(p.Attribute(named.id, named.name))
    if isinstance(tree, exp.Column):
        return found[0]
    name = tree.sql_name().lower() if isinstance(tree, exp.Func) else ""
    return build.call(name, found) if found else p.CONSTANT

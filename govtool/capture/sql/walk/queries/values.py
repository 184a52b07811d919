"""VALUES: rows that a statement lists."""

from __future__ import annotations

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import bounded
from govtool.capture.sql.walk.expressions.expression import dependencies
from govtool.capture.sql.walk.expressions.variables import variable_rows
from govtool.capture.sql.walk.relation import QueryOutput
from govtool.capture.sql.walk.scope import Environment, Scope


def values_output(walk: Walk, node: exp.Values, scope: Scope | None, env: Environment | None) -> QueryOutput:
    """The output of a VALUES list: by position over its rows."""
    record = _record_row(walk, node) if walk.variables and len(node.expressions) == 1 else None
    if record is not None:
        return record
    output = QueryOutput()
    inner = scope if scope is not None else Scope(None)
    cells: list[list[int]] = []
    for row in node.expressions:
        items = row.expressions if isinstance(row, nodes.Tuple) else [row]
        while len(cells) < len(items):
            cells.append([])
        for i, item in enumerate(items):
            if not isinstance(item, nodes.Literal):
                cells[i].extend(dependencies(walk, item, inner, env))
    for i, deps in enumerate(cells):
        output.add(
            f"column{i + 1}"
            if walk.dialect == "postgres"
            else f"col{i + 1}"
            if walk.dialect != "duckdb"
            else f"col{i}",
            bounded(deps),
        )
    return output


def _record_row(walk: Walk, node: exp.Values) -> QueryOutput | None:
    """Oracle's ``VALUES r``, PostgreSQL's ``VALUES (r.*)``: all that a record holds."""
    row = node.expressions[0]
    items = row.expressions if isinstance(row, nodes.Tuple) else [row]
    item = items[0] if len(items) == 1 else None
    if not isinstance(item, nodes.Column):
        return None
    if isinstance(item.this, nodes.Star):
        return variable_rows(walk, walk.name(item.args["table"]), item) if item.args.get("table") else None
    if walk.dialect != "oracle" or item.args.get("table"):
        return None
    rows = variable_rows(walk, walk.name(item.this), item)
    return rows if rows is not None and (rows.open or len(rows.names) > 1) else None

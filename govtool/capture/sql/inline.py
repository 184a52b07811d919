"""SQL functions whose bodies are known, to be inlined at their calls."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from govtool.capture.sql import nodes
from govtool.capture.sql.walk.state import Inline
from govtool.names import fold


def inline_function(tree: exp.Expr, dialect: str) -> Inline | None:
    """Return the body of a ``CREATE FUNCTION`` written in SQL; None if it is another language or not understood."""
    if not isinstance(tree, nodes.Create) or not isinstance(tree.this, nodes.UserDefinedFunction):
        return None
    signature = tree.this
    name = (
        ".".join(_part(p, dialect) for p in signature.this.parts)
        if isinstance(signature.this, nodes.Table)
        else signature.this.name.lower()
    )
    properties = tree.args["properties"].expressions if tree.args.get("properties") else []
    language = next((p.this.name.lower() for p in properties if isinstance(p, nodes.LanguageProperty)), "sql")
    if language != "sql" and not (language == "plpgsql" and isinstance(tree.args.get("expression"), nodes.Query)):
        return None
    definitions = [d for d in signature.expressions if isinstance(d, nodes.ColumnDef)]
    handed_out = [d for d in definitions if _mode(d) != "in"]
    parameters = tuple(_part(d, dialect) for d in signature.expressions if isinstance(d, nodes.Identifier)) or tuple(
        [_column(d, dialect) for d in definitions if _mode(d) != "out"]
    )
    returns = next((p for p in properties if isinstance(p, nodes.ReturnsProperty) and p.args.get("is_table")), None)
    returns_table = returns is not None or len(handed_out) > 1
    columns = tuple([_column(d, dialect) for d in handed_out])
    row = ""
    if returns is not None:
        if isinstance(returns.this, nodes.Schema):
            columns = tuple([_column(d, dialect) for d in returns.this.expressions if isinstance(d, nodes.ColumnDef)])
        elif isinstance(returns.this, nodes.Table):
            row = returns.this.sql(dialect or None)
    body = _body(tree.args.get("expression"), dialect)
    if body is None:
        return None
    is_table = returns_table or (
        isinstance(body, nodes.Query) and dialect == "bigquery" and not isinstance(tree.expression, nodes.Paren)
    )
    return Inline(name, parameters, body, is_table, columns, row)


def _column(definition: exp.Expr, dialect: str) -> str:
    return fold(definition.this.name, quoted=bool(definition.this.args.get("quoted")), dialect=dialect)


def _mode(definition: exp.Expr) -> str:
    """Return whether a parameter hands a value ``in``, ``out`` or both ways."""
    for constraint in definition.args.get("constraints") or ():
        if isinstance(constraint, exp.InOutColumnConstraint) and constraint.args.get("output"):
            return "inout" if constraint.args.get("input_") else "out"
    return "in"


def _part(part: exp.Expr, dialect: str) -> str:
    return fold(part.name, quoted=bool(part.args.get("quoted")), dialect=dialect).lower()


def _body(node: exp.Expr | None, dialect: str) -> exp.Expr | None:
    if isinstance(node, (nodes.Heredoc, nodes.RawString)) or (isinstance(node, nodes.Literal) and node.is_string):
        try:
            statements = [s for s in sqlglot.parse(node.name, read=dialect or None) if s is not None]
        except (SqlglotError, RecursionError):
            return None
        return _body(statements[-1], dialect) if len(statements) == 1 else None
    if isinstance(node, nodes.Return):
        return _body(node.this, dialect)
    if isinstance(node, (nodes.Paren, nodes.Subquery)):
        inner: exp.Expr = node.this
        return inner
    if isinstance(node, (nodes.Command, nodes.Block)) or node is None:
        return None
    return node

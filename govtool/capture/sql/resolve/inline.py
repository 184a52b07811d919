"""SQL functions whose bodies are known, to be inlined at their calls."""

from __future__ import annotations

from collections.abc import Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.state import Inline
from govtool.names import fold


def inline_function(tree: exp.Expr, dialect: str) -> Inline | None:
    """Return the body of a ``CREATE FUNCTION`` written in SQL; None if it is another language or not understood."""
    if not isinstance(tree, nodes.Create) or not isinstance(tree.this, nodes.UserDefinedFunction):
        return None
    signature = tree.this
    properties = tree.args["properties"].expressions if tree.args.get("properties") else []
    if not _in_sql(tree, properties):
        return None
    definitions = [d for d in signature.expressions if isinstance(d, nodes.ColumnDef)]
    handed_out = [d for d in definitions if _mode(d) != "in"]
    parameters = tuple(_part(d, dialect) for d in signature.expressions if isinstance(d, nodes.Identifier)) or tuple(
        [_column(d, dialect) for d in definitions if _mode(d) != "out"]
    )
    returns = next((p for p in properties if isinstance(p, nodes.ReturnsProperty) and p.args.get("is_table")), None)
    columns, row = _returned(returns, handed_out, dialect)
    body = _body(tree.args.get("expression"), dialect)
    if body is None:
        return None
    is_table = returns is not None or len(handed_out) > 1 or _is_table_in_bigquery(tree, body, dialect)
    types = tuple([_type(d, dialect) for d in signature.expressions if _mode(d) != "out"])
    return Inline(_name(signature, dialect), parameters, body, is_table, columns, row, types)


def _type(parameter: exp.Expr, dialect: str) -> str:
    """The type of a parameter; what has no name is its type."""
    type_ = parameter.args.get("kind") if isinstance(parameter, nodes.ColumnDef) else parameter
    return type_.sql(dialect or None).lower() if isinstance(type_, nodes.Expr) else ""


def _name(signature: exp.Expr, dialect: str) -> str:
    if isinstance(signature.this, nodes.Table):
        return ".".join(_part(p, dialect) for p in signature.this.parts)
    name: str = signature.this.name
    return name.lower()


def _in_sql(tree: exp.Create, properties: list[exp.Expr]) -> bool:
    """Return whether a function is written in SQL, or is a query of PL/pgSQL."""
    language = next((p.this.name.lower() for p in properties if isinstance(p, nodes.LanguageProperty)), "sql")
    return language == "sql" or (language == "plpgsql" and isinstance(tree.args.get("expression"), nodes.Query))


def _returned(returns: exp.Expr | None, handed_out: Sequence[exp.Expr], dialect: str) -> tuple[tuple[str, ...], str]:
    """Return the columns that a function returns, and the type of its rows where that is named instead."""
    if returns is not None and isinstance(returns.this, nodes.Schema):
        handed_out = [d for d in returns.this.expressions if isinstance(d, nodes.ColumnDef)]
    is_row = returns is not None and isinstance(returns.this, nodes.Table)
    row = returns.this.sql(dialect or None) if returns is not None and is_row else ""
    return tuple([_column(d, dialect) for d in handed_out]), row


def _is_table_in_bigquery(tree: exp.Create, body: exp.Expr, dialect: str) -> bool:
    """Return whether a body is a query; one in two pairs of brackets, ``AS ((SELECT …))``, is a value."""
    written = tree.expression
    value = isinstance(written, nodes.Paren) or (
        isinstance(written, nodes.Subquery) and isinstance(written.this, nodes.Subquery)
    )
    return isinstance(body, nodes.Query) and dialect == "bigquery" and not value


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

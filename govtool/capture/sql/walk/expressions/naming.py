"""Names of unaliased columns; in PostgreSQL and its kin by ``FigureColname`` of src/backend/parser/parse_target.c."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.expressions.functions import function_name

DIALECTS: Final = frozenset({"postgres", "redshift", "materialize", "risingwave"})

SPARK: Final = frozenset({"spark", "databricks", "spark2"})

_NAMED_BY_CAST: Final = SPARK | {"hive"}
"""Dialects in which a cast is called what its operand is called."""

NONE, WEAK, STRONG = range(3)
"""Strengths of names: a cast's type and ``case`` give way to a better one inside."""

Name = Callable[[exp.Expr | str | None], str]
"""The canonical text of an identifier."""

_TRANSPARENT: Final = (
    nodes.Paren, nodes.Collate, nodes.Bracket, nodes.Window, nodes.Filter, nodes.WithinGroup, nodes.IgnoreNulls,
    nodes.RespectNulls,
)  # fmt: skip

_TYPES: Final = {
    nodes.DType.INT: "int4",
    nodes.DType.BIGINT: "int8",
    nodes.DType.SMALLINT: "int2",
    nodes.DType.FLOAT: "float4",
    nodes.DType.DOUBLE: "float8",
    nodes.DType.BOOLEAN: "bool",
    nodes.DType.CHAR: "bpchar",
    nodes.DType.DECIMAL: "numeric",
    nodes.DType.VARCHAR: "varchar",
    nodes.DType.TIMESTAMPTZ: "timestamptz",
}


def output_name(walk: Walk, item: exp.Expr) -> str:
    """Return the name a projection gives its column without an alias; empty where it gives none."""
    if isinstance(item, nodes.Alias):
        return walk.name(item.args["alias"])
    if isinstance(item, nodes.Column):
        return walk.name(item.this)
    if walk.dialect in DIALECTS:
        return column_name(item, walk.name)
    if isinstance(item, nodes.Dot):
        if isinstance(item.this, nodes.Struct) and walk.dialect in SPARK:  # named by its text
            return ""
        return walk.name(item.expression) if isinstance(item.expression, nodes.Identifier) else ""
    if isinstance(item, nodes.Paren):
        return output_name(walk, item.this)
    if isinstance(item, nodes.Subquery):
        inner = item.unnest()
        if isinstance(inner, nodes.Select) and len(inner.expressions) == 1:
            return output_name(walk, inner.expressions[0])
        return ""
    if isinstance(item, nodes.Cast) and walk.dialect in _NAMED_BY_CAST:
        return output_name(walk, item.this)
    if (
        isinstance(item, nodes.JSONExtract)
        and item.args.get("variant_extract")
        and isinstance(item.expression, nodes.JSONPath)
    ):
        last = item.expression.expressions[-1]
        return walk.name(str(last.this)) if isinstance(last, nodes.JSONPathKey) else ""
    if isinstance(item, (nodes.Filter, nodes.WithinGroup)):
        return output_name(walk, item.this)
    return ""


def column_name(item: exp.Expr, name: Name) -> str:
    """Return the name of a column without an alias; empty where it has none (``?column?``)."""
    return figure(item, name)[1]


def figure(item: exp.Expr, name: Name) -> tuple[int, str]:
    """Return how good a name an expression gives itself, and the name."""
    while isinstance(item, _TRANSPARENT):
        item = item.this
    if isinstance(item, nodes.Column):
        return (NONE, "") if isinstance(item.this, nodes.Star) else (STRONG, name(item.this))
    if isinstance(item, nodes.Dot):
        last = item.expression
        return (STRONG, name(last)) if isinstance(last, nodes.Identifier) else figure(last, name)
    if isinstance(item, nodes.Cast):
        strength, found = figure(item.this, name)
        return (strength, found) if strength == STRONG else (WEAK, _type(item.to))
    if isinstance(item, nodes.Case):
        default = item.args.get("default")
        strength, found = figure(default, name) if default is not None else (NONE, "")
        return (strength, found) if strength == STRONG else (WEAK, "case")
    if isinstance(item, nodes.Interval):
        return WEAK, "interval"
    if isinstance(item, nodes.Subquery):
        return _subquery(item, name)
    if isinstance(item, nodes.Exists):
        return STRONG, "exists"
    if isinstance(item, nodes.Tuple):
        return STRONG, "row"
    if isinstance(item, nodes.Func) and not isinstance(item, (nodes.Binary, nodes.Unary)):
        return STRONG, _function(item, name)
    return NONE, ""


def _subquery(item: exp.Subquery, name: Name) -> tuple[int, str]:
    """A scalar subquery is called what its column is called."""
    inner = item.unnest()
    while isinstance(inner, nodes.SetOperation):
        inner = inner.this.unnest() if isinstance(inner.this, nodes.Subquery) else inner.this
    if not isinstance(inner, nodes.Select) or len(inner.expressions) != 1:
        return NONE, ""
    only = inner.expressions[0]
    return (STRONG, name(only.args["alias"])) if isinstance(only, nodes.Alias) else figure(only, name)


def _type(type_: exp.Expr | None) -> str:
    if not isinstance(type_, nodes.DataType):
        return ""
    if type_.this is nodes.DType.ARRAY and type_.expressions:
        return _type(type_.expressions[0])
    known = _TYPES.get(type_.this)
    return known or re.split(r"\W", type_.sql("postgres").lower(), maxsplit=1)[0]


_names: Final[dict[type, str]] = {}


def _function(item: exp.Expr, name: Name) -> str:
    """Return the name under which PostgreSQL knows a function, whatever the parser calls it."""
    if isinstance(item, (nodes.Anonymous, nodes.AnonymousAggFunc)):
        return name(function_name(item).rsplit(".", 1)[-1])
    if isinstance(item, nodes.Trim):
        return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(item.args.get("position") or "").upper(), "btrim")
    found = _names.get(type(item))
    if found is None:
        text = re.match(r"([a-z_]\w*)(?:\(|$|\[)", item.sql("postgres"), re.IGNORECASE)
        found = _names[type(item)] = text[1].lower() if text else function_name(item)
    return found

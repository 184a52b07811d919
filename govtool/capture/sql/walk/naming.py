"""What PostgreSQL and its kin call an unaliased column: ``FigureColname`` of src/backend/parser/parse_target.c."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from govtool.capture.sql.walk.functions import function_name

DIALECTS = frozenset({"postgres", "redshift", "materialize", "risingwave"})

NONE, WEAK, STRONG = range(3)
"""How good a name is: a cast's type and ``case`` give way to a better one inside."""

Name = Callable[[exp.Expr | str | None], str]
"""The canonical text of an identifier."""

_TRANSPARENT = (
    exp.Paren, exp.Collate, exp.Bracket, exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls,
)  # fmt: skip

_TYPES = {
    exp.DType.INT: "int4",
    exp.DType.BIGINT: "int8",
    exp.DType.SMALLINT: "int2",
    exp.DType.FLOAT: "float4",
    exp.DType.DOUBLE: "float8",
    exp.DType.BOOLEAN: "bool",
    exp.DType.CHAR: "bpchar",
    exp.DType.DECIMAL: "numeric",
    exp.DType.VARCHAR: "varchar",
    exp.DType.TIMESTAMPTZ: "timestamptz",
}


def column_name(item: exp.Expr, name: Name) -> str:
    """Return the name of a column without an alias; empty where it has none (``?column?``)."""
    return figure(item, name)[1]


def figure(item: exp.Expr, name: Name) -> tuple[int, str]:
    """Return how good a name an expression gives itself, and the name."""
    while isinstance(item, _TRANSPARENT):
        item = item.this
    if isinstance(item, exp.Column):
        return (NONE, "") if isinstance(item.this, exp.Star) else (STRONG, name(item.this))
    if isinstance(item, exp.Dot):
        last = item.expression
        return (STRONG, name(last)) if isinstance(last, exp.Identifier) else figure(last, name)
    if isinstance(item, exp.Cast):
        strength, found = figure(item.this, name)
        return (strength, found) if strength == STRONG else (WEAK, _type(item.to))
    if isinstance(item, exp.Case):
        default = item.args.get("default")
        strength, found = figure(default, name) if default is not None else (NONE, "")
        return (strength, found) if strength == STRONG else (WEAK, "case")
    if isinstance(item, exp.Interval):
        return WEAK, "interval"
    if isinstance(item, exp.Subquery):
        return _subquery(item, name)
    if isinstance(item, exp.Exists):
        return STRONG, "exists"
    if isinstance(item, exp.Tuple):
        return STRONG, "row"
    if isinstance(item, exp.Func) and not isinstance(item, (exp.Binary, exp.Unary)):
        return STRONG, _function(item, name)
    return NONE, ""


def _subquery(item: exp.Subquery, name: Name) -> tuple[int, str]:
    """A scalar subquery is called what its column is called."""
    inner = item.unnest()
    while isinstance(inner, exp.SetOperation):
        inner = inner.this.unnest() if isinstance(inner.this, exp.Subquery) else inner.this
    if not isinstance(inner, exp.Select) or len(inner.expressions) != 1:
        return NONE, ""
    only = inner.expressions[0]
    return (STRONG, name(only.args["alias"])) if isinstance(only, exp.Alias) else figure(only, name)


def _type(type_: exp.Expr | None) -> str:
    if not isinstance(type_, exp.DataType):
        return ""
    if type_.this is exp.DType.ARRAY and type_.expressions:
        return _type(type_.expressions[0])
    known = _TYPES.get(type_.this)
    return known or re.split(r"\W", type_.sql("postgres").lower(), maxsplit=1)[0]


_names: dict[type, str] = {}


def _function(item: exp.Expr, name: Name) -> str:
    """Return the name under which PostgreSQL knows a function, whatever the parser calls it."""
    if isinstance(item, (exp.Anonymous, exp.AnonymousAggFunc)):
        return name(function_name(item).rsplit(".", 1)[-1])
    if isinstance(item, exp.Trim):
        return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(item.args.get("position") or "").upper(), "btrim")
    found = _names.get(item.__class__)
    if found is None:
        text = re.match(r"([a-z_]\w*)(?:\(|$|\[)", item.sql("postgres"), re.IGNORECASE)
        found = _names[item.__class__] = text[1].lower() if text else function_name(item)
    return found

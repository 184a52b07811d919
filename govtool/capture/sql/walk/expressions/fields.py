"""Fields below columns: ``x.a[0].b``, ``v:a.b``, ``json_extract(v, '$.a.b')``, and what is called on a column."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import CONDITIONAL, KIND_MASK, OPAQUE, STAR, TRANSFORMATION, Deps, compose
from govtool.capture.sql.walk.expressions.calls import inline, keyed, returned_value
from govtool.capture.sql.walk.expressions.columns import of_source, resolve_column
from govtool.capture.sql.walk.expressions.expression import Handler, Visit
from govtool.capture.sql.walk.expressions.functions import function_name
from govtool.capture.sql.walk.expressions.shapes import field_of
from govtool.capture.sql.walk.expressions.variables import variable_field, variable_name
from govtool.capture.sql.walk.expressions.written_paths import JSON_READERS, dotted, path_below
from govtool.capture.sql.walk.scope import Scope

PACKAGES: Final = frozenset({"aead", "dbms_crypto"})
"""Packages of built-in functions, whose names are part of the functions' names."""

XML_METHODS: Final = frozenset({"value", "query", "nodes", "exist"})
"""Methods of T-SQL's xml columns."""


def _dot(walk: Walk, node: exp.Dot, kind: int, chain: int, at: Visit) -> None:
    """A field of a struct, a function of a package or schema, or a method."""
    right = node.args.get("expression")
    if isinstance(right, nodes.Func):  # schema.function(…)
        package, function = dotted(walk, node.this), function_name(right, walk.dialect)
        if inline(walk, f"{package}.{function}", right, kind, chain, at.scope, at.env, at.out):
            return
        if package in PACKAGES and isinstance(right, nodes.Anonymous):
            keyed(walk, f"{package}.{function}", right.expressions, kind, chain, at)
            return
        if walk.lookup.returned(function) is None:  # else it is found without its schema
            returned_value(walk, f"{package}.{function}", kind, chain, at)
        at.stack.append((right, kind, chain))
        receiver = _receiver(walk, node.this, function, at.scope)
        if receiver is not None:
            at.stack.append((receiver, *walk.through(function, kind, chain)))
        return
    base, path = path_below(walk, node)
    _descend(walk, base, path, kind, chain, at)


def _bracket(walk: Walk, node: exp.Bracket, kind: int, chain: int, at: Visit) -> None:
    for index in node.expressions:
        if not isinstance(index, nodes.Literal):
            at.stack.append((index, CONDITIONAL if kind < CONDITIONAL else kind, 0))
    base, path = path_below(walk, node)
    _descend(walk, base, path, kind, chain, at)


def _json(walk: Walk, node: exp.Expr, kind: int, chain: int, at: Visit) -> None:
    key = node.args.get("expression")
    if isinstance(key, nodes.Expr) and not isinstance(key, (nodes.JSONPath, nodes.Literal)):
        at.stack.append((key, CONDITIONAL if kind < CONDITIONAL else kind, 0))
    value = kind
    if not node.args.get("variant_extract"):  # v:a.b is a path, json_extract(v, '$.a.b') a function
        value, chain = walk.through(function_name(node, walk.dialect), kind, chain)
    base, path = path_below(walk, node)
    _descend(walk, base, path, value, chain, at)


def _descend(walk: Walk, base: exp.Expr, path: str, kind: int, chain: int, at: Visit) -> None:
    """Collect ``base`` with ``path`` below its columns, if it is a column; else just ``base``."""
    if not isinstance(base, nodes.Column):
        if walk.variables and (field := _variable_below(walk, base, path, at.scope)) is not None:
            at.out.extend(compose(dep, kind, chain, walk.interner) for dep in field)
            return
        built = field_of(walk, base, path, at.scope, at.env)
        if built is None:
            at.stack.append((base, max(kind, TRANSFORMATION), chain))
        else:
            at.out.extend(compose(dep, kind, chain, walk.interner) for dep in built)
        return
    deps: Deps = ()
    source = at.scope.find((walk.name(base.this),)) if not base.args.get("table") else None
    head, _, rest = path.partition(".")
    if (
        source is not None
        and head
        and "[" not in head
        and not any(s.get(walk.name(base.this), walk.interner) for s in at.scope.sources)
    ):
        deps = of_source(walk, source, head, base)  # (t).column
        path = rest
    else:
        deps = resolve_column(walk, base, at.scope)
    for dep in deps:
        below = walk.interner.field(dep & ~STAR, path) if path and dep & KIND_MASK != OPAQUE else dep
        at.out.append(compose(below, kind, chain, walk.interner))


def _variable_below(walk: Walk, base: exp.Expr, path: str, scope: Scope) -> Deps | None:
    """Return the dependencies of ``:r.a``, ``rows(i).a``: a field of a variable."""
    if not isinstance(base, (nodes.Placeholder, nodes.Parameter, nodes.Anonymous)) or not path:
        return None
    return variable_field(walk, variable_name(walk, base), tuple(path.split(".")), base)


def _receiver(walk: Walk, node: exp.Expr, function: str, scope: Scope) -> exp.Expr | None:
    """Return what a method is called on (``column.upper()``, ``xml.value(…)``); None if it is a schema."""
    parts: list[exp.Expr] = []
    item: exp.Expr = node
    while isinstance(item, nodes.Dot):
        if not isinstance(item.expression, nodes.Identifier):
            return _with_columns(node)  # a call on the result of a call
        parts.insert(0, item.expression)
        item = item.this
    if isinstance(item, nodes.Column):
        parts[:0] = item.parts
    elif isinstance(item, nodes.Identifier):
        parts.insert(0, item)
    else:
        return _with_columns(node)
    names = walk.qualifier(parts)
    level: Scope | None = scope
    is_column = False
    while level is not None and not is_column:
        is_column = any([names[0] in source.known for source in level.sources])  # noqa: C419
        level = level.parent
    if len(names) == 1:
        is_method = walk.dialect == "tsql" and function in XML_METHODS
        return nodes.Column(this=parts[0].copy()) if is_column or is_method else None
    if not is_column and scope.find(names[:-1]) is None:
        return None
    qualifier = dict(zip(("table", "db", "catalog"), (p.copy() for p in reversed(parts[:-1])), strict=False))
    return nodes.Column(this=parts[-1].copy(), **qualifier)


def _with_columns(node: exp.Expr) -> exp.Expr:
    """Return what a method is called on, with columns where the parser has bare names (``upper(a).lower()``)."""
    return node.copy().transform(_as_column, copy=False)


def _as_column(node: exp.Expr) -> exp.Expr:
    parent = node.parent
    if isinstance(parent, nodes.Dot) or (parent is not None and not isinstance(parent, _OPERANDS)):
        return node
    if isinstance(node, nodes.Identifier):
        return nodes.Column(this=node.copy())
    if isinstance(node, nodes.Dot) and all(isinstance(part, nodes.Identifier) for part in node.parts):
        names = zip(("this", "table", "db", "catalog"), (part.copy() for part in reversed(node.parts)), strict=False)
        return nodes.Column(**dict(names))
    return node


_OPERANDS: Final = (
    exp.Func,
    exp.Binary,
    exp.Unary,
    exp.Condition,
    exp.Cast,
    exp.Bracket,
    exp.Array,
    exp.Tuple,
    exp.Paren,
)
"""Nodes whose bare names are columns."""


HANDLERS: Final[dict[type, Handler]] = {
    nodes.Dot: _dot,
    nodes.Bracket: _bracket,
    **dict.fromkeys(JSON_READERS, _json),
}

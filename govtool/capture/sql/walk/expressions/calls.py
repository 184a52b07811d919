"""Subqueries and calls in expressions: SQL functions whose bodies are known are inlined."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.syntax.marks import ROW_COUNT
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import (
    AGGREGATION,
    CONDITIONAL,
    OPAQUE,
    TRANSFORMATION,
    Deps,
    as_conditions,
    compose,
)
from govtool.capture.sql.walk.expressions.expression import Handler, Visit, collect
from govtool.capture.sql.walk.expressions.functions import function_name
from govtool.capture.sql.walk.expressions.row_makers import makes_rows_in_select, refer_values
from govtool.capture.sql.walk.expressions.shapes import bound_arguments
from govtool.capture.sql.walk.expressions.variables import variable_deps
from govtool.capture.sql.walk.queries.outer_joins import read_subquery
from govtool.capture.sql.walk.query import output_of
from govtool.capture.sql.walk.relation import file_name
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.functions.facts import AGGREGATES, ELSEWHERE, KEYED, as_key, as_unread, positions_of
from govtool.model import HIDDEN


def _subquery(walk: Walk, node: exp.Expr, kind: int, chain: int, at: Visit) -> None:
    condition = node.parent if isinstance(node.parent, nodes.In) else node
    output = read_subquery(walk, condition, lambda: output_of(walk, node, at.scope, at.env))
    for deps in output.deps:
        at.out.extend(compose(dep, kind, chain, walk.interner) for dep in deps)


def _exists(walk: Walk, node: exp.Exists, kind: int, chain: int, at: Visit) -> None:
    inner = node.this
    if isinstance(inner, nodes.Query):
        _, rows = walk.separately(lambda: read_subquery(walk, node, lambda: output_of(walk, inner, at.scope, at.env)))
        walk.rows.update(rows)
        if not at.decides:  # what decides about rows is among them already
            at.out.extend(as_conditions(rows, walk.interner))
    else:  # exists(array, lambda)
        for value in node.args.values():
            if isinstance(value, nodes.Expr):
                at.stack.append((value, max(kind, TRANSFORMATION), chain))


def _in(walk: Walk, node: exp.In, kind: int, chain: int, at: Visit) -> None:
    kind = max(kind, TRANSFORMATION)
    at.stack.append((node.this, kind, chain))
    for key in ("query", "unnest", "field"):
        value = node.args.get(key)
        if isinstance(value, nodes.Expr):
            at.stack.append((value, kind, chain))
    at.stack.extend((item, kind, chain) for item in node.expressions)


def _anonymous(walk: Walk, node: exp.Anonymous, kind: int, chain: int, at: Visit) -> None:
    """A call by a name that the parser does not have: inlined, a variable, or a function of its arguments."""
    name = function_name(node, walk.dialect)
    inlined = inline(walk, name, node, kind, chain, at.scope, at.env, at.out)
    if inlined and (name in walk.inlining or walk.lookup.returned(name) is None):  # else another one is a block
        return
    returned_value(walk, name, kind, chain, at)
    _hand_over(walk, name, node, at)
    named = _named_value(walk, name, node, at)
    if named is not None:
        at.out.extend([compose(dep, kind, chain, walk.interner) for dep in named])
        return
    if name in ELSEWHERE:
        walk.diagnose("opaque", f"{name}(…) reads what its arguments name: that is not known here", node)
        at.out.append(walk.interner.ref(file_name(f"{name}(…)"), HIDDEN) | OPAQUE)
    if kind < CONDITIONAL:
        if walk.lookup.is_unread(name):
            chain = walk.interner.prepend(as_unread(name), chain)
            at.stack.extend((item, max(kind, TRANSFORMATION), chain) for item in node.expressions)
            return
        if name in KEYED:
            keyed(walk, name, node.expressions, kind, chain, at)
            return
        chain = walk.interner.prepend(name, chain)
        kind = AGGREGATION if name in AGGREGATES else max(kind, TRANSFORMATION)
    if makes_rows_in_select(name, walk.dialect):
        found = [dep for item in node.expressions for dep in collect(walk, item, at.scope, at.env, kind, chain)]
        at.out.extend(found)
        refer_values(walk, node.expressions, found, node)
        return
    at.stack.extend((item, kind, chain) for item in node.expressions if isinstance(item, nodes.Expr))


def _hand_over(walk: Walk, name: str, node: exp.Anonymous, at: Visit) -> None:
    """Note that a function that writes has its arguments: they may be in all that it writes."""
    depends = bool(node.expressions) or bool(at.scope.sources)  # by its arguments, or by how often it is called
    targets = walk.lookup.targets_of(name) if depends and name not in walk.inlining else []
    if targets:
        items = [item for item in node.expressions if isinstance(item, nodes.Expr)]
        deps = [dep for item in items for dep in collect(walk, item, at.scope, at.env, TRANSFORMATION, 0)]
        walk.hand_over(name, targets, [*deps, *walk.rows], node)


_ROW_COUNTS: Final = frozenset({"row_count", "found_rows", "rowcount_big"})
"""Functions that return how many rows the statement before has touched."""


def _named_value(walk: Walk, name: str, node: exp.Anonymous, at: Visit) -> Deps | None:
    """Return the dependencies of a value that only looks like a call; None for a call."""
    inserted = at.scope.by_alias.get("values") if name == "values" else None
    if inserted is not None:  # MySQL's VALUES(column) in ON DUPLICATE KEY UPDATE: the row that was to be inserted
        items = [walk.name(item) for item in node.expressions]
        return tuple([dep for item in items for dep in inserted.get(item, walk.interner) or ()])
    if name == "getvariable" and walk.variables and node.expressions:  # DuckDB
        return _got(walk, node.expressions[0])
    if name in _ROW_COUNTS and walk.variables:
        return variable_deps(walk, ROW_COUNT, node) or ()
    return variable_deps(walk, name, node) if name in walk.parameters else None  # an element of a collection


def returned_value(walk: Walk, name: str, kind: int, chain: int, at: Visit) -> None:
    """Collect what a function returns whose body is a block of statements; its arguments are followed beside it."""
    returned = walk.lookup.returned(name) if name not in walk.inlining else None
    if returned is None:
        return
    below = walk.interner.prepend(name, chain) if kind < CONDITIONAL else chain
    for value in returned.values:
        walk.rows.update(value.rows)
        walk.read(value.reads)
        for deps in value.output.deps:
            at.out.extend(compose(dep, max(kind, TRANSFORMATION), below, walk.interner) for dep in deps)
        if value.reason:
            walk.diagnose("opaque", f"what {name} returns is not known: it comes from {value.reason}")


def _encrypt(walk: Walk, node: exp.Encrypt | exp.EncryptRaw, kind: int, chain: int, at: Visit) -> None:
    arguments = [value for value in node.args.values() if isinstance(value, nodes.Expr)]
    keyed(walk, function_name(node, walk.dialect), arguments, kind, chain, at)


def keyed(walk: Walk, name: str, arguments: list[exp.Expr], kind: int, chain: int, at: Visit) -> None:
    """A keyed function hides its value, but not its key: ``hmac('x', email)`` is a hash that anyone can repeat."""
    positions = positions_of(name, walk.dialect)
    kind, hidden = walk.through(name, kind, chain)
    for i, item in enumerate(arguments):
        if isinstance(item, nodes.Expr):
            is_key = positions is not None and i == positions.key - 1 and kind < CONDITIONAL
            at.stack.append((item, kind, walk.interner.prepend(as_key(name), chain) if is_key else hidden))


def _got(walk: Walk, name: exp.Expr) -> Deps:
    return variable_deps(walk, walk.name(name.name), name) or () if isinstance(name, nodes.Literal) else ()


def inline(
    walk: Walk, name: str, call: exp.Expr, kind: int, chain: int, scope: Scope, env: Environment | None, out: list[int]
) -> bool:
    """Collect the body of a known SQL function in place of the call. Returns False if there is none."""
    body = walk.lookup.function(name)
    if body is None or name in walk.inlining or len(walk.inlining) > 8:
        return False
    count = len(call.expressions)
    bodies = body.called(count, is_table=False) or body.called(count, is_table=True)  # PostgreSQL: rows as a value
    for one in bodies:
        inner = bound_arguments(walk, one, call, scope, env)
        walk.enter_body(name)
        try:
            out.extend(_of_body(walk, one.body, inner, kind, chain))
        finally:
            walk.inlining.pop()
    return bool(bodies)


def _of_body(walk: Walk, body: exp.Expr, inner: Scope, kind: int, chain: int) -> list[int]:
    """The dependencies of what the body of a function returns."""
    if not isinstance(body, nodes.Query):
        return list(collect(walk, body, inner, None, kind, chain))
    output = read_subquery(walk, body, lambda: output_of(walk, body, inner, None))
    return [compose(dep, max(kind, TRANSFORMATION), chain, walk.interner) for deps in output.deps for dep in deps]


HANDLERS: Final[dict[type, Handler]] = {
    nodes.Subquery: _subquery,
    nodes.Select: _subquery,
    nodes.Union: _subquery,
    nodes.Intersect: _subquery,
    nodes.Except: _subquery,
    nodes.Exists: _exists,
    nodes.In: _in,
    nodes.Anonymous: _anonymous,
    nodes.Encrypt: _encrypt,
    nodes.EncryptRaw: _encrypt,
}

"""Influences on a value and its later steps: choices, aggregates, windows, operators whose parts differ."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import AGGREGATION, CONDITIONAL, TRANSFORMATION, WINDOW, bounded, compose
from govtool.capture.sql.walk.expressions.columns import argument_deps
from govtool.capture.sql.walk.expressions.expression import Column, Handler, Task, Visit, collect
from govtool.capture.sql.walk.expressions.functions import function_name
from govtool.capture.sql.walk.expressions.rows import positional
from govtool.capture.sql.walk.expressions.variables import variable_deps, variable_name
from govtool.capture.sql.walk.relation import QueryOutput, Source, named_table
from govtool.capture.sql.walk.scope import Scope
from govtool.functions.facts import ROW_VALUES


def _case(walk: Walk, node: exp.Case, kind: int, chain: int, at: Visit) -> None:
    value, chain = walk.through("case", kind, chain)
    condition = CONDITIONAL if kind < CONDITIONAL else kind
    operand = node.args.get("this")
    if operand is not None:
        at.stack.append((operand, condition, 0))
    for branch in node.args.get("ifs") or ():
        at.stack.append((branch.args["this"], condition, 0))
        if branch.args.get("true") is not None:
            at.stack.append((branch.args["true"], value, chain))
    if node.args.get("default") is not None:
        at.stack.append((node.args["default"], value, chain))


def _if(walk: Walk, node: exp.If, kind: int, chain: int, at: Visit) -> None:
    _choice(walk, node, "if", ("true", "false"), kind, chain, at.stack)


def _nvl2(walk: Walk, node: exp.Nvl2, kind: int, chain: int, at: Visit) -> None:
    _choice(walk, node, "nvl2", ("true", "false"), kind, chain, at.stack)


def _choice(
    walk: Walk, node: exp.Expr, name: str, branches: tuple[str, ...], kind: int, chain: int, stack: list[Task]
) -> None:
    """A condition steers the value, which is that of one of the branches."""
    value, chain = walk.through(name, kind, chain)
    condition = node.args["this"]
    if not (
        isinstance(condition, nodes.Is)
        and isinstance(condition.expression, nodes.Null)
        and condition.this == node.args.get("false")
    ):
        # IF(x IS NULL, 0, x) is what the parser makes of ZEROIFNULL and its like: x steers nothing but itself.
        stack.append((condition, CONDITIONAL if kind < CONDITIONAL else kind, 0))
    for branch in branches:
        if node.args.get(branch) is not None:
            stack.append((node.args[branch], value, chain))


def _decode(walk: Walk, node: exp.DecodeCase, kind: int, chain: int, at: Visit) -> None:
    """DECODE(operand, search, result, search, result, …, default)."""
    value, chain = walk.through("decode", kind, chain)
    condition = CONDITIONAL if kind < CONDITIONAL else kind
    items = node.expressions
    for i, item in enumerate(items):
        is_result = i >= 2 and (i % 2 == 0 or i == len(items) - 1)
        at.stack.append((item, value, chain) if is_result else (item, condition, 0))


def _struct(walk: Walk, node: exp.Struct, kind: int, chain: int, at: Visit) -> None:
    value, chain = walk.through("struct", kind, chain)
    at.stack.extend((item, value, chain) for item in node.expressions)


def _window(walk: Walk, node: exp.Window, kind: int, chain: int, at: Visit) -> None:
    """The function is the value; PARTITION BY and ORDER BY steer it."""
    function = node.args["this"]
    window = WINDOW if kind < CONDITIONAL else kind
    inner = function
    while isinstance(inner, (nodes.IgnoreNulls, nodes.RespectNulls)):
        inner = inner.this
    name = function_name(inner, walk.dialect) if isinstance(inner, nodes.Func) else ""
    if kind < CONDITIONAL and name in ROW_VALUES:
        chain = walk.interner.prepend(name, chain)
        for value in inner.args.values():
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, nodes.Expr):
                    at.stack.append((item, max(kind, TRANSFORMATION), chain))
    else:
        at.stack.append((function, kind, chain))
    _window_parts(walk, node, window, at.stack, at.scope, set())


def _window_parts(walk: Walk, node: exp.Expr, kind: int, stack: list[Task], scope: Scope, seen: set[str]) -> None:
    """Push PARTITION BY and ORDER BY, those of the named windows it builds on included."""
    for item in node.args.get("partition_by") or ():
        stack.append((item, kind, 0))
    order = node.args.get("order")
    if order is not None:
        stack.extend((item, kind, 0) for item in order.expressions)
    for key in ("alias", "this"):
        base = node.args.get(key)
        if isinstance(base, nodes.Identifier) and walk.name(base) not in seen:
            seen.add(walk.name(base))
            named = scope.windows.get(walk.name(base))
            if named is not None:
                _window_parts(walk, named, kind, stack, scope, seen)


def _filter(walk: Walk, node: exp.Filter, kind: int, chain: int, at: Visit) -> None:
    at.stack.append((node.this, kind, chain))
    at.stack.append((node.expression, CONDITIONAL if kind < CONDITIONAL else kind, 0))


def _within_group(walk: Walk, node: exp.WithinGroup, kind: int, chain: int, at: Visit) -> None:
    """percentile_cont(0.5) WITHIN GROUP (ORDER BY x) is an aggregate of x; LISTAGG(x) … (ORDER BY y) is
    steered by y.
    """
    function = node.this
    at.stack.append((function, kind, chain))
    has_argument = any(True for _ in function.find_all(nodes.Column))
    for item in node.expression.expressions if node.expression else ():
        if has_argument:
            at.stack.append((item, WINDOW if kind < CONDITIONAL else kind, 0))
        elif kind < CONDITIONAL:
            at.stack.append((item, AGGREGATION, walk.interner.prepend(function_name(function, walk.dialect), chain)))
        else:
            at.stack.append((item, kind, 0))


def _ordered_argument(walk: Walk, node: exp.Order, kind: int, chain: int, at: Visit) -> None:
    """array_agg(x ORDER BY y): x is the value, y steers as the ORDER BY of a window does."""
    if node.args.get("this") is not None:
        at.stack.append((node.this, kind, chain))
    at.stack.extend((item, WINDOW if kind < CONDITIONAL else kind, 0) for item in node.expressions)


def _next_value(walk: Walk, node: exp.NextValueFor, kind: int, chain: int, at: Visit) -> None:
    """NEXT VALUE FOR s OVER (ORDER BY y): s is a sequence; y decides which row has which number."""
    order = node.args.get("order")
    for item in order.expressions if isinstance(order, nodes.Order) else ():
        at.stack.append((item, WINDOW if kind < CONDITIONAL else kind, 0))


def _array_agg(walk: Walk, node: exp.ArrayAgg, kind: int, chain: int, at: Visit) -> None:
    if kind < CONDITIONAL:
        chain = walk.interner.prepend("array_agg", chain)
        kind = AGGREGATION
    at.stack.append((node.this, kind, chain))


def _having_max(walk: Walk, node: exp.HavingMax, kind: int, chain: int, at: Visit) -> None:
    """any_value(x HAVING MAX y): y chooses the row."""
    at.stack.append((node.this, kind, chain))
    if node.expression is not None:
        at.stack.append((node.expression, CONDITIONAL if kind < CONDITIONAL else kind, 0))


def _concat(walk: Walk, node: exp.Expr, kind: int, chain: int, at: Visit) -> None:
    value, chain = walk.through("concat", kind, chain)
    at.stack.append((node.this, value, chain))
    at.stack.append((node.expression, value, chain))


def _parameter(walk: Walk, node: exp.Parameter, kind: int, chain: int, at: Visit) -> None:
    if walk.inlining or walk.variables:
        found = argument_deps(walk, node.name.lower(), at.scope) or variable_deps(walk, variable_name(walk, node), node)
        if found is not None:
            at.out.extend(compose(dep, kind, chain, walk.interner) for dep in found)
            return
    at.out.extend(compose(dep, kind, chain, walk.interner) for dep in positional(walk, node, None, at.scope))


def _identifier(walk: Walk, node: exp.DynamicIdentifier, kind: int, chain: int, at: Visit) -> None:
    """Snowflake's identifier('column')."""
    named = named_table(node.this.name, walk.dialect) if isinstance(node.this, nodes.Literal) else None
    if named is not None:
        parts = dict(zip(("this", "table", "db", "catalog"), [p.copy() for p in reversed(named.parts)], strict=False))
        at.stack.append((nodes.Column(**parts), kind, chain))
    else:
        walk.diagnose("opaque", "a column is named by an expression or parameter", node)


def _placeholder(walk: Walk, node: exp.Placeholder, kind: int, chain: int, at: Visit) -> None:
    """``:v``: a variable of Snowflake's or Oracle's scripts, or what a client binds."""
    if walk.variables and node.args.get("this"):
        found = variable_deps(walk, variable_name(walk, node), node) or ()
        at.out.extend(compose(dep, kind, chain, walk.interner) for dep in found)


def _comprehension(walk: Walk, node: exp.Comprehension, kind: int, chain: int, at: Visit) -> None:
    """[f(x) FOR x IN xs IF g(x)]: x stands for the elements of xs."""
    kind = max(kind, TRANSFORMATION)
    elements = QueryOutput()
    iterated = bounded(collect(walk, node.args["iterator"], at.scope, at.env, kind, chain))
    elements.add(walk.name(node.expression), iterated)
    source = Source("", output=elements)
    source.is_arguments = True
    inner = Scope(at.scope)
    inner.add(source)
    at.out.extend(iterated)
    for part in (node.this, node.args.get("condition")):
        if isinstance(part, nodes.Expr):
            at.out.extend(collect(walk, part, inner, at.env, kind, chain))


def _first_only(walk: Walk, node: exp.Expr, kind: int, chain: int, at: Visit) -> None:
    at.stack.append((node.this, kind, chain))


def _second_only(walk: Walk, node: exp.Expr, kind: int, chain: int, at: Visit) -> None:
    """name: value. A key of a map is a value too; the name of a field is not."""
    if type(node.this) is Column and isinstance(node.parent, nodes.Struct):
        at.stack.append((node.this, kind, chain))
    at.stack.append((node.args["expression"], kind, chain))


def _generic_special(walk: Walk, node: exp.Expr, kind: int, chain: int, at: Visit) -> None:
    for value in node.args.values():
        if isinstance(value, nodes.Expr):
            at.stack.append((value, max(kind, CONDITIONAL), 0))


def _table_leaf(walk: Walk, node: exp.Expr, kind: int, chain: int, at: Visit) -> None:
    """A table where an expression is expected (sequence, model): no column."""


HANDLERS: Final[dict[type, Handler]] = {
    nodes.Case: _case,
    nodes.If: _if,
    nodes.Nvl2: _nvl2,
    nodes.DecodeCase: _decode,
    nodes.Window: _window,
    nodes.Filter: _filter,
    nodes.WithinGroup: _within_group,
    nodes.Order: _ordered_argument,
    nodes.Struct: _struct,
    nodes.Collate: _first_only,
    nodes.PropertyEQ: _second_only,
    nodes.Slice: _generic_special,
    nodes.Parameter: _parameter,
    nodes.Placeholder: _placeholder,
    nodes.DynamicIdentifier: _identifier,
    nodes.Comprehension: _comprehension,
    nodes.HavingMax: _having_max,
    nodes.DPipe: _concat,
    nodes.ArrayAgg: _array_agg,
    nodes.Table: _table_leaf,
    nodes.NextValueFor: _next_value,
}

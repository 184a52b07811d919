"""Shapes: the fields of structs that a query builds, so that a field of a struct depends on what went into that field.

A shape is a ``QueryOutput``: the fields by name, each with its dependencies and, nested, its shape. An array has the
shape of its elements. What has no known shape is treated as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import AGGREGATION, CONDITIONAL, WINDOW, Deps, bounded, compose
from govtool.capture.sql.walk.dispatch import by_class
from govtool.capture.sql.walk.expressions.columns import built_field
from govtool.capture.sql.walk.expressions.expression import collect, dependencies
from govtool.capture.sql.walk.expressions.functions import function_name
from govtool.capture.sql.walk.expressions.rows import source_star
from govtool.capture.sql.walk.expressions.written_paths import dotted
from govtool.capture.sql.walk.query import output_of
from govtool.capture.sql.walk.relation import QueryOutput, Source
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.capture.sql.walk.state import Inline

MAX_DEPTH: Final = 24

_WRAPPERS: Final = (
    nodes.Paren,
    nodes.Alias,
    nodes.Bracket,
    nodes.ArrayAgg,
    nodes.Order,
    nodes.Limit,
    nodes.AnyValue,
    nodes.Distinct,
    nodes.IgnoreNulls,
    nodes.ArrayConcatAgg,
)

SHAPED: Final = (
    nodes.Struct, nodes.Array, nodes.ArrayConcat, nodes.If, nodes.Case, nodes.Coalesce, nodes.Anonymous,
    nodes.Subquery, nodes.Dot, nodes.Cast, *_WRAPPERS,
)  # fmt: skip


def shape_of(walk: Walk, node: exp.Expr, scope: Scope, env: Environment | None, depth: int = 0) -> QueryOutput | None:
    """Return the fields of a struct (or of an array's elements), or None where they are not known."""
    find = by_class(_SHAPES, type(node)) if depth <= MAX_DEPTH else None
    return None if find is None else find(walk, node, scope, env, depth)


def _inner_shape(walk: Walk, node: exp.Expr, scope: Scope, env: Environment | None, depth: int) -> QueryOutput | None:
    """The shape of what a node only wraps, or picks out of several rows."""
    inner = shape_of(walk, node.this, scope, env, depth + 1) if isinstance(node.this, nodes.Expr) else None
    return _aggregated_shape(walk, node, inner) if inner is not None and isinstance(node, nodes.AggFunc) else inner


def _cast_shape(walk: Walk, node: exp.Cast, scope: Scope, env: Environment | None, depth: int) -> QueryOutput | None:
    return _typed_shape(walk, shape_of(walk, node.this, scope, env, depth + 1), node.args.get("to"))


def _array_shape(walk: Walk, node: exp.Array, scope: Scope, env: Environment | None, depth: int) -> QueryOutput | None:
    items = node.expressions
    if len(items) == 1 and isinstance(items[0], nodes.Query):
        return _query_shape(walk, items[0], scope, env, depth)
    return _merged_shape([shape_of(walk, item, scope, env, depth + 1) for item in items])


def _alternatives_shape(
    walk: Walk, node: exp.Expr, scope: Scope, env: Environment | None, depth: int
) -> QueryOutput | None:
    return _merged_shape([shape_of(walk, item, scope, env, depth + 1) for item in (node.this, *node.expressions)])


def _if_shape(walk: Walk, node: exp.If, scope: Scope, env: Environment | None, depth: int) -> QueryOutput | None:
    values = [value for key in ("true", "false") if (value := node.args.get(key)) is not None]
    return _chosen_shape(walk, [node.this], values, scope, env, depth)


def _case_shape(walk: Walk, node: exp.Case, scope: Scope, env: Environment | None, depth: int) -> QueryOutput | None:
    branches = node.args.get("ifs") or ()
    values = [branch.args["true"] for branch in branches]
    if node.args.get("default") is not None:
        values.append(node.args["default"])
    return _chosen_shape(walk, [branch.this for branch in branches], values, scope, env, depth)


def _call_shape(
    walk: Walk, node: exp.Anonymous, scope: Scope, env: Environment | None, depth: int
) -> QueryOutput | None:
    return _inlined_shape(walk, function_name(node), node, scope, env, depth)


def _ordered_shape(
    walk: Walk, node: exp.Order, scope: Scope, env: Environment | None, depth: int
) -> QueryOutput | None:
    """The fields of what an aggregate puts in order: the order decides which row each of them comes from."""
    shape = shape_of(walk, node.this, scope, env, depth + 1) if isinstance(node.this, nodes.Expr) else None
    if shape is None:
        return None
    keys = [dep for item in node.expressions for dep in collect(walk, item, scope, env, WINDOW, 0)]
    return _with_deps(shape, lambda deps: bounded((*deps, *keys)))


def _aggregated_shape(walk: Walk, node: exp.Expr, shape: QueryOutput) -> QueryOutput:
    """The fields of an aggregate's result: of one of many rows, or of several."""
    chain = walk.interner.prepend(function_name(node, walk.dialect), 0)

    def through(deps: Deps) -> Deps:
        return tuple([compose(dep, AGGREGATION, chain, walk.interner) for dep in deps])

    return _with_deps(shape, through)


def remember_shape(walk: Walk, node: exp.Expr, output: QueryOutput, scope: Scope, env: Environment | None) -> None:
    """Attach the shape of ``node``, if it has one, to the last column of ``output``."""
    if isinstance(node, SHAPED) or (walk.has_shapes and isinstance(node, nodes.Column)):
        shape = walk.without_effects(lambda: shape_of(walk, node, scope, env))
        if shape is not None and shape.names:
            output.fields[len(output.names) - 1] = shape
            walk.has_shapes = True


def _column_shape(
    walk: Walk, node: exp.Column, scope: Scope, env: Environment | None, depth: int
) -> QueryOutput | None:
    """The shape of a column that a subquery built, or of the row that the alias of a FROM item means."""
    names = walk.qualifier(node.parts) if isinstance(node.this, nodes.Identifier) else ()
    if not names:
        return None
    level: Scope | None = scope
    while level is not None:
        for source in level.sources:
            path = names
            if len(names) > 1 and names[0] == source.alias:
                path = names[1:]
            shape = _descended(source, path)
            if shape is not None:
                return shape
        if (
            len(names) == 1
            and names[0] in level.by_alias
            and not any(names[0] in source.known for source in level.sources)
        ):
            return source_star(walk, level.by_alias[names[0]])  # the alias of a source is its whole row
        level = level.parent
    return None


def _struct_shape(
    walk: Walk, node: exp.Struct | exp.Tuple, scope: Scope, env: Environment | None, depth: int
) -> QueryOutput:
    """The fields by the names that they are given, else by those of columns."""
    shape = QueryOutput()
    for item in node.expressions:
        if isinstance(item, nodes.Star):  # struct(*)
            for source in scope.sources:
                every = source_star(walk, source)
                shape.names.extend(every.names)
                shape.deps.extend(every.deps)
                shape.open.extend(every.open)
            continue
        value = (
            item.expression
            if isinstance(item, nodes.PropertyEQ)
            else item.this
            if isinstance(item, nodes.Alias)
            else item
        )
        if isinstance(item, (nodes.PropertyEQ, nodes.Alias)):
            name = walk.name(item.this if isinstance(item, nodes.PropertyEQ) else item.args["alias"])
        elif isinstance(value, nodes.Column) and isinstance(value.this, nodes.Identifier):
            name = walk.name(value.this)
        elif isinstance(value, nodes.Dot) and isinstance(value.expression, nodes.Identifier):
            name = walk.name(value.expression)
        else:
            name = f"_{len(shape.names)}"
        shape.add(name, dependencies(walk, value, scope, env))
        nested = shape_of(walk, value, scope, env, depth + 1)
        if nested is not None:
            shape.fields[len(shape.names) - 1] = nested
    return shape


def _typed_shape(walk: Walk, shape: QueryOutput | None, type_: exp.Expr | None) -> QueryOutput | None:
    """Name the fields of a shape after a type such as ``ARRAY<STRUCT<a INT64, b STRING>>``, by position."""
    while isinstance(type_, nodes.DataType) and type_.this == nodes.DType.ARRAY and type_.expressions:
        type_ = type_.expressions[0]
    if shape is None or not isinstance(type_, nodes.DataType):
        return shape
    fields = [item for item in type_.expressions if isinstance(item, nodes.ColumnDef)]
    if len(fields) != len(shape.names):
        return shape
    result = shape.renamed(walk.name(item.this) for item in fields)
    for position, item in enumerate(fields):
        inner = _typed_shape(walk, result.fields.get(position), item.args.get("kind"))
        if inner is not None:
            result.fields[position] = inner
    return result


def _query_shape(walk: Walk, node: exp.Expr, scope: Scope, env: Environment | None, depth: int) -> QueryOutput | None:
    output = output_of(walk, node, scope, env)
    if output.value_table:
        return output
    return output.fields.get(0) if len(output.names) == 1 else None


def _chosen_shape(
    walk: Walk, conditions: list[exp.Expr], values: list[exp.Expr], scope: Scope, env: Environment | None, depth: int
) -> QueryOutput | None:
    merged = _merged_shape(
        [shape_of(walk, value, scope, env, depth + 1) for value in values if not isinstance(value, nodes.Null)]
    )
    if merged is None:
        return None
    steering = [dep for condition in conditions for dep in collect(walk, condition, scope, env, CONDITIONAL, 0)]
    merged.deps = [bounded((*deps, *steering)) for deps in merged.deps]
    return merged


def _merged_shape(shapes: list[QueryOutput | None]) -> QueryOutput | None:
    """Merge the shapes of alternatives by position, as SQL does; the first one names the fields."""
    known = [shape for shape in shapes if shape is not None]
    if not known or len(known) < len(shapes) or any(shape.open for shape in known):
        return known[0].copy() if len(known) == 1 and len(shapes) == 1 else None
    result = known[0].copy()
    for shape in known[1:]:
        for position, deps in enumerate(shape.deps[: len(result.deps)]):
            result.deps[position] = bounded((*result.deps[position], *deps))
    return result


def _dotted_shape(walk: Walk, node: exp.Dot, scope: Scope, env: Environment | None, depth: int) -> QueryOutput | None:
    right = node.expression
    if isinstance(right, nodes.Func):
        return _inlined_shape(walk, f"{dotted(walk, node.this)}.{function_name(right)}", right, scope, env, depth)
    shape = shape_of(walk, node.this, scope, env, depth + 1)
    if shape is None or not isinstance(right, nodes.Identifier):
        return None
    position = shape.index().get(walk.name(right))
    return shape.fields.get(position) if position is not None else None


def _inlined_shape(
    walk: Walk, name: str, call: exp.Expr, scope: Scope, env: Environment | None, depth: int
) -> QueryOutput | None:
    body = walk.lookup.function(name)
    if body is None or body.is_table or body.others or name in walk.inlining or len(walk.inlining) > 8:
        return None
    inner = bound_arguments(walk, body, call, scope, env)
    walk.enter_body(name)
    try:
        return shape_of(walk, body.body, inner, None, depth + 1)
    finally:
        walk.inlining.pop()


_NUMBERED: Final = frozenset({"postgres", "redshift"})
"""Dialects in which the body of a function may name its parameters by their numbers."""
_NAMED: Final = (nodes.Kwarg, nodes.PropertyEQ)
"""Arguments that name their parameter, ``f(p => x)``, ``f(p := x)``."""


def bound_arguments(walk: Walk, body: Inline, call: exp.Expr, scope: Scope, env: Environment | None) -> Scope:
    """Return the scope of a function's body: its parameters, with the dependencies and shapes of the arguments."""
    arguments = QueryOutput()
    listed = [item for item in call.expressions if not isinstance(item, _NAMED)]
    named = {item.this.name.lower(): item.expression for item in call.expressions if isinstance(item, _NAMED)}
    count = len(body.parameters)
    for i, parameter in enumerate(body.parameters):
        given = listed[i] if i < len(listed) else named.get(parameter.strip('"').lower())
        deps = dependencies(walk, given, scope, env) if given is not None else ()
        if i == count - 1:  # VARIADIC
            deps = bounded((*deps, *(dep for item in listed[count:] for dep in dependencies(walk, item, scope, env))))
        arguments.add(parameter, deps)
        if given is not None:
            remember_shape(walk, given, arguments, scope, env)
    if walk.dialect in _NUMBERED:
        for i in range(max(count, len(listed))):  # $1
            known = arguments.deps[i] if i < count else dependencies(walk, listed[i], scope, env)
            arguments.add(str(i + 1), known)
    source = Source("", output=arguments)
    source.is_arguments = True
    inner = Scope(None)
    inner.add(source)
    return inner


def field_of(walk: Walk, base: exp.Expr, path: str, scope: Scope, env: Environment | None) -> Deps | None:
    """Return the dependencies of ``path`` below an expression of known shape, else None."""
    shape = shape_of(walk, base, scope, env)
    steps = [step.split("[")[0] for step in path.split(".") if not step.startswith("[")]
    if shape is None or not steps:
        return None
    holder = QueryOutput()
    holder.add("", ())
    holder.fields[0] = shape
    return built_field(walk, Source("", output=holder), "", tuple(steps))


def _descended(source: Source, path: tuple[str, ...]) -> QueryOutput | None:
    shape = source.output
    for step in path:
        if shape is None or not shape.fields:
            return None
        position = shape.index().get(step)
        shape = shape.fields.get(position) if position is not None else None
    return shape


def _with_deps(shape: QueryOutput, change: Callable[[Deps], Deps]) -> QueryOutput:
    """A shape whose fields, and theirs, have other dependencies."""
    found = shape.copy()
    found.deps = [change(deps) for deps in shape.deps]
    found.fields = {position: _with_deps(inner, change) for position, inner in shape.fields.items()}
    return found


ShapeFinder = Callable[[Walk, Any, Scope, Environment | None, int], QueryOutput | None]
"""Finds the shape of nodes of one class; the number is how many others the node stands in."""

_SHAPES: Final[dict[type, ShapeFinder]] = {
    nodes.Column: _column_shape,
    nodes.Struct: _struct_shape,
    nodes.Tuple: _struct_shape,
    nodes.Cast: _cast_shape,
    **dict.fromkeys(_WRAPPERS, _inner_shape),
    nodes.Order: _ordered_shape,
    nodes.Array: _array_shape,
    nodes.Coalesce: _alternatives_shape,
    nodes.ArrayConcat: _alternatives_shape,
    nodes.If: _if_shape,
    nodes.Case: _case_shape,
    nodes.Dot: _dotted_shape,
    nodes.Anonymous: _call_shape,
    nodes.Query: _query_shape,
}

"""Shapes: the fields of structs that a query builds, so that a field of a struct depends on what went into that field.

A shape is a ``QueryOutput``: the fields by name, each with its dependencies and, nested, its shape. An array has the
shape of its elements. What has no known shape is treated as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.walk.dependencies import AGGREGATION, CONDITIONAL, WINDOW, Deps, bounded, compose
from govtool.capture.sql.walk.fields import FieldWalk
from govtool.capture.sql.walk.functions import function_name
from govtool.capture.sql.walk.relation import QueryOutput, Source
from govtool.capture.sql.walk.scope import Environment, Scope

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


class ShapeWalk(FieldWalk):
    """Finds the shapes of expressions."""

    def shape(self, node: exp.Expr, scope: Scope, env: Environment | None, depth: int = 0) -> QueryOutput | None:
        """Return the fields of a struct (or of an array's elements), or None where they are not known."""
        if depth > MAX_DEPTH:
            return None
        if isinstance(node, nodes.Column):
            return self._column_shape(node, scope)
        if isinstance(node, (nodes.Struct, nodes.Tuple)):
            return self._struct_shape(node, scope, env, depth)
        if isinstance(node, nodes.Cast):
            return self._typed(self.shape(node.this, scope, env, depth + 1), node.args.get("to"))
        if isinstance(node, nodes.Order):
            return self._ordered(node, scope, env, depth)
        if isinstance(node, _WRAPPERS):
            inner = self.shape(node.this, scope, env, depth + 1) if isinstance(node.this, nodes.Expr) else None
            return self._aggregated(node, inner) if inner is not None and isinstance(node, nodes.AggFunc) else inner
        if isinstance(node, nodes.Array):
            items = node.expressions
            if len(items) == 1 and isinstance(items[0], nodes.Query):
                return self._query_shape(items[0], scope, env)
            return self._merged([self.shape(item, scope, env, depth + 1) for item in items])
        if isinstance(node, (nodes.Coalesce, nodes.ArrayConcat)):
            return self._merged([self.shape(item, scope, env, depth + 1) for item in (node.this, *node.expressions)])
        if isinstance(node, nodes.If):
            branches = [value for key in ("true", "false") if (value := node.args.get(key)) is not None]
            return self._chosen([node.this], branches, scope, env, depth)
        if isinstance(node, nodes.Case):
            conditions = [branch.this for branch in node.args.get("ifs") or ()]
            values = [branch.args["true"] for branch in node.args.get("ifs") or ()]
            if node.args.get("default") is not None:
                values.append(node.args["default"])
            return self._chosen(conditions, values, scope, env, depth)
        if isinstance(node, nodes.Dot):
            return self._dotted_shape(node, scope, env, depth)
        if isinstance(node, nodes.Anonymous):
            return self._inlined_shape(function_name(node), node, scope, env, depth)
        if isinstance(node, nodes.Query):
            return self._query_shape(node, scope, env)
        return None

    def _ordered(self, node: exp.Order, scope: Scope, env: Environment | None, depth: int) -> QueryOutput | None:
        """The fields of what an aggregate puts in order: the order decides which row each of them comes from."""
        shape = self.shape(node.this, scope, env, depth + 1) if isinstance(node.this, nodes.Expr) else None
        if shape is None:
            return None
        keys = [dep for item in node.expressions for dep in self.collect(item, scope, env, WINDOW, 0)]
        return _with(shape, lambda deps: bounded((*deps, *keys)))

    def _aggregated(self, node: exp.Expr, shape: QueryOutput) -> QueryOutput:
        """The fields of an aggregate's result: of one of many rows, or of several."""
        chain = self.interner.prepend(function_name(node, self.dialect), 0)

        def through(deps: Deps) -> Deps:
            return tuple([compose(dep, AGGREGATION, chain, self.interner) for dep in deps])

        return _with(shape, through)

    def remember_shape(self, node: exp.Expr, output: QueryOutput, scope: Scope, env: Environment | None) -> None:
        """Attach the shape of ``node``, if it has one, to the last column of ``output``."""
        if isinstance(node, SHAPED) or (self.has_shapes and isinstance(node, nodes.Column)):
            shape = self.without_effects(lambda: self.shape(node, scope, env))
            if shape is not None and shape.names:
                output.fields[len(output.names) - 1] = shape
                self.has_shapes = True

    def _column_shape(self, node: exp.Column, scope: Scope) -> QueryOutput | None:
        names = self.qualifier(node.parts) if isinstance(node.this, nodes.Identifier) else ()
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
                return self.source_star(level.by_alias[names[0]])  # the alias of a source is its whole row
            level = level.parent
        return None

    def _struct_shape(
        self, node: exp.Struct | exp.Tuple, scope: Scope, env: Environment | None, depth: int
    ) -> QueryOutput:
        shape = QueryOutput()
        for item in node.expressions:
            if isinstance(item, nodes.Star):  # struct(*)
                for source in scope.sources:
                    every = self.source_star(source)
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
                name = self.name(item.this if isinstance(item, nodes.PropertyEQ) else item.args["alias"])
            elif isinstance(value, nodes.Column) and isinstance(value.this, nodes.Identifier):
                name = self.name(value.this)
            elif isinstance(value, nodes.Dot) and isinstance(value.expression, nodes.Identifier):
                name = self.name(value.expression)
            else:
                name = f"_{len(shape.names)}"
            shape.add(name, self.dependencies(value, scope, env))
            nested = self.shape(value, scope, env, depth + 1)
            if nested is not None:
                shape.fields[len(shape.names) - 1] = nested
        return shape

    def _typed(self, shape: QueryOutput | None, type_: exp.Expr | None) -> QueryOutput | None:
        """Name the fields of a shape after a type such as ``ARRAY<STRUCT<a INT64, b STRING>>``, by position."""
        while isinstance(type_, nodes.DataType) and type_.this == nodes.DType.ARRAY and type_.expressions:
            type_ = type_.expressions[0]
        if shape is None or not isinstance(type_, nodes.DataType):
            return shape
        fields = [item for item in type_.expressions if isinstance(item, nodes.ColumnDef)]
        if len(fields) != len(shape.names):
            return shape
        result = shape.renamed(self.name(item.this) for item in fields)
        for position, item in enumerate(fields):
            inner = self._typed(result.fields.get(position), item.args.get("kind"))
            if inner is not None:
                result.fields[position] = inner
        return result

    def _query_shape(self, node: exp.Expr, scope: Scope, env: Environment | None) -> QueryOutput | None:
        output = self.query(node, scope, env)
        if output.value_table:
            return output
        return output.fields.get(0) if len(output.names) == 1 else None

    def _chosen(
        self, conditions: list[exp.Expr], values: list[exp.Expr], scope: Scope, env: Environment | None, depth: int
    ) -> QueryOutput | None:
        merged = self._merged(
            [self.shape(value, scope, env, depth + 1) for value in values if not isinstance(value, nodes.Null)]
        )
        if merged is None:
            return None
        steering = [dep for condition in conditions for dep in self.collect(condition, scope, env, CONDITIONAL, 0)]
        merged.deps = [bounded((*deps, *steering)) for deps in merged.deps]
        return merged

    def _merged(self, shapes: list[QueryOutput | None]) -> QueryOutput | None:
        """Merge the shapes of alternatives by position, as SQL does; the first one names the fields."""
        known = [shape for shape in shapes if shape is not None]
        if not known or len(known) < len(shapes) or any(shape.open for shape in known):
            return known[0].copy() if len(known) == 1 and len(shapes) == 1 else None
        result = known[0].copy()
        for shape in known[1:]:
            for position, deps in enumerate(shape.deps[: len(result.deps)]):
                result.deps[position] = bounded((*result.deps[position], *deps))
        return result

    def _dotted_shape(self, node: exp.Dot, scope: Scope, env: Environment | None, depth: int) -> QueryOutput | None:
        right = node.expression
        if isinstance(right, nodes.Func):
            return self._inlined_shape(f"{self._dotted(node.this)}.{function_name(right)}", right, scope, env, depth)
        shape = self.shape(node.this, scope, env, depth + 1)
        if shape is None or not isinstance(right, nodes.Identifier):
            return None
        position = shape.index().get(self.name(right))
        return shape.fields.get(position) if position is not None else None

    def _inlined_shape(
        self, name: str, call: exp.Expr, scope: Scope, env: Environment | None, depth: int
    ) -> QueryOutput | None:
        body = self.lookup.function(name)
        if body is None or body.is_table or name in self.inlining or len(self.inlining) > 8:
            return None
        inner = self.bound_arguments(body, call, scope, env)
        self.inlining.append(name)
        try:
            return self.shape(body.body, inner, None, depth + 1)
        finally:
            self.inlining.pop()

    def field_of(self, base: exp.Expr, path: str, scope: Scope, env: Environment | None) -> Deps | None:
        """Return the dependencies of ``path`` below an expression of known shape, else None."""
        shape = self.shape(base, scope, env)
        steps = [step.split("[")[0] for step in path.split(".") if not step.startswith("[")]
        if shape is None or not steps:
            return None
        holder = QueryOutput()
        holder.add("", ())
        holder.fields[0] = shape
        return self._built(Source("", output=holder), "", tuple(steps))


def _descended(source: Source, path: tuple[str, ...]) -> QueryOutput | None:
    shape = source.output
    for step in path:
        if shape is None or not shape.fields:
            return None
        position = shape.index().get(step)
        shape = shape.fields.get(position) if position is not None else None
    return shape


def _with(shape: QueryOutput, change: Callable[[Deps], Deps]) -> QueryOutput:
    """A shape whose fields, and theirs, have other dependencies."""
    found = shape.copy()
    found.deps = [change(deps) for deps in shape.deps]
    found.fields = {position: _with(inner, change) for position, inner in shape.fields.items()}
    return found

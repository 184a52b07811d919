"""Projections: the columns that a SELECT puts out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import CHAIN_MASK, KIND_MASK, REF_SHIFT, TRANSFORMATION, bounded
from govtool.capture.sql.walk.expressions.expression import collect, dependencies
from govtool.capture.sql.walk.expressions.naming import output_name
from govtool.capture.sql.walk.expressions.row_makers import refer_values
from govtool.capture.sql.walk.expressions.rows import extend, source_star
from govtool.capture.sql.walk.expressions.shapes import SHAPED, remember_shape, shape_of
from govtool.capture.sql.walk.expressions.stars import (
    columns_item,
    matching,
    note_listed,
    repeated,
    starred_columns,
    without_columns,
)
from govtool.capture.sql.walk.expressions.types import fields_of
from govtool.capture.sql.walk.expressions.variables import variable_rows
from govtool.capture.sql.walk.queries.table_functions import function_output
from govtool.capture.sql.walk.relation import ArrayElements, FunctionRows, OpenStar, QueryOutput
from govtool.capture.sql.walk.scope import Environment, Scope, is_correlated

_SHAPED: Final = frozenset(SHAPED)


def projections(walk: Walk, node: exp.Select, scope: Scope, env: Environment | None) -> QueryOutput:
    """Return the columns that the SELECT list of a query puts out, and fill the aliases of its scope."""
    output = QueryOutput()
    for item in node.args["expressions"]:
        cls = type(item)
        if cls is nodes.Alias:  # aliases and columns are nearly all items
            _aliased(walk, item, scope, env, output)
        elif cls is nodes.Column:
            _column(walk, item, scope, env, output)
        else:
            _ITEMS.get(cls, _expression)(walk, item, scope, env, output)
    scope.correlated = frozenset()
    for position, name in enumerate(output.names):
        if not name:
            output.names[position] = f"_c{position}"
    exclude = node.args.get("exclude")
    if exclude:
        dropped = {walk.name(column.this if isinstance(column, nodes.Column) else column) for column in exclude}
        note_listed(walk, output, dropped)
        output = without_columns(output, dropped)
    return output


def _aliased(walk: Walk, item: exp.Alias, scope: Scope, env: Environment | None, output: QueryOutput) -> None:
    value = item.args["this"]
    if type(value) is nodes.Columns:
        columns_item(walk, value, scope, env, output)
        return
    name = walk.name(item.args["alias"])
    deps = dependencies(walk, value, scope, env)
    output.add(name, deps)
    if type(value) in _SHAPED or walk.has_shapes:
        remember_shape(walk, value, output, scope, env)
    scope.aliases.setdefault(name, deps)
    if scope.parent is not None and walk.dialect == "duckdb" and is_correlated(value, scope, walk.name):
        scope.correlated |= {name}


def _column(walk: Walk, item: exp.Column, scope: Scope, env: Environment | None, output: QueryOutput) -> None:
    if type(item.args["this"]) is nodes.Star:
        _qualified_star(walk, item, scope, env, output)
        return
    output.add(walk.name(item.args["this"]), dependencies(walk, item, scope, env))
    if walk.has_shapes:
        remember_shape(walk, item, output, scope, env)


def _star(walk: Walk, item: exp.Star, scope: Scope, env: Environment | None, output: QueryOutput) -> None:
    extend(output, starred_columns(walk, item, scope, env))


def _expression(walk: Walk, item: exp.Expr, scope: Scope, env: Environment | None, output: QueryOutput) -> None:
    """An expression without an alias; in DuckDB COLUMNS may be anywhere in it."""
    if walk.dialect == "duckdb" and matching(walk, item, scope, env, output):
        return
    columns = item.find(nodes.Columns) if walk.dialect == "duckdb" else None
    if columns is not None:
        repeated(walk, item, columns, scope, env, output)
    else:
        output.add(output_name(walk, item), dependencies(walk, item, scope, env))


def _dot(walk: Walk, item: exp.Dot, scope: Scope, env: Environment | None, output: QueryOutput) -> None:
    """A field of a struct, or with ``(expression).*`` all of them."""
    if isinstance(item.expression, nodes.Star):
        fields = _struct_fields(walk, item.this, scope, env)
        extend(output, starred_columns(walk, item.expression, scope, env, fields))
    else:
        _expression(walk, item, scope, env, output)


def _inlined(walk: Walk, item: exp.Inline, scope: Scope, env: Environment | None, output: QueryOutput) -> None:
    """Spark's inline(array of structs)."""
    refer_values(walk, [item.args["this"]], dependencies(walk, item.args["this"], scope, env), item)
    extend(output, _struct_fields(walk, item.args["this"], scope, env))


def _unnested(walk: Walk, item: exp.Explode, scope: Scope, env: Environment | None, output: QueryOutput) -> None:
    """DuckDB's unnest(struct) puts out its fields."""
    if walk.dialect == "duckdb" and isinstance(item.args["this"], nodes.Struct):
        extend(output, _struct_fields(walk, item.args["this"], scope, env))
    else:
        _expression(walk, item, scope, env, output)


def _qualified_star(walk: Walk, item: exp.Column, scope: Scope, env: Environment | None, output: QueryOutput) -> None:
    """``t.*`` of a FROM item, of a record variable, or of a struct."""
    qualifier = walk.qualifier(item.parts[:-1])
    source = scope.find(qualifier)
    if source is not None:
        extend(output, starred_columns(walk, item.this, scope, env, source_star(walk, source)))
        return
    rows = variable_rows(walk, qualifier[0], item) if walk.variables and len(qualifier) == 1 else None
    if rows is not None:
        extend(output, starred_columns(walk, item.this, scope, env, rows))
        return
    # Not a source: the fields of a struct column.
    parts = item.parts[:-1]
    column = nodes.Column(
        this=parts[-1].copy(),
        **dict(zip(("table", "db", "catalog"), (p.copy() for p in reversed(parts[:-1])), strict=False)),
    )
    extend(output, starred_columns(walk, item.this, scope, env, _struct_fields(walk, column, scope, env)))


def _struct_fields(walk: Walk, node: exp.Expr, scope: Scope, env: Environment | None) -> QueryOutput:
    """The fields of a struct: as it was built, by its type, or not known."""
    deps = dependencies(walk, node, scope, env)
    shape = walk.without_effects(lambda: shape_of(walk, node, scope, env))
    if shape is not None:
        return shape
    output = QueryOutput()
    if len(deps) == 1 and not deps[0] & (KIND_MASK | CHAIN_MASK):
        ref = walk.interner.refs[deps[0] >> REF_SHIFT]
        inside, names = _typed_fields(walk, ref.dataset, ref.path)
        for name in names:
            whole = walk.interner.field(deps[0], inside) if inside else deps[0]
            output.add(name, (walk.interner.field(whole, name),))
        if not names:
            output.open.append(OpenStar(ArrayElements(ref.dataset, ref.path)))
    else:
        output.open.append(OpenStar(FunctionRows("a struct", deps)))
    return output


def _typed_fields(walk: Walk, dataset: str, path: str) -> tuple[str, tuple[str, ...]]:
    """The fields that a struct below a column has by its type; see ``fields_of``."""
    columns = walk.lookup.table(dataset).columns
    name = max((n for n in columns if path == n or path.startswith((f"{n}.", f"{n}["))), key=len, default="")
    type_ = columns.get(name) if name else None
    return fields_of(type_, path[len(name) :], walk.dialect) if type_ else ("", ())


def _transformed(walk: Walk, item: exp.Expr, scope: Scope, env: Environment | None, output: QueryOutput) -> None:
    """TRANSFORM (a, b) USING 'script' AS (x, y): what the script makes of its input is its own affair."""
    chain = walk.interner.prepend("transform", 0)
    deps = bounded(dep for value in item.expressions for dep in collect(walk, value, scope, env, TRANSFORMATION, chain))
    schema = item.args.get("schema")
    given = schema.expressions if isinstance(schema, nodes.Schema) else ()
    for name in [walk.name(c.this if isinstance(c, nodes.ColumnDef) else c) for c in given] or ["key", "value"]:
        output.add(name, deps)


def _several(walk: Walk, node: exp.Aliases, scope: Scope, env: Environment | None, output: QueryOutput) -> None:
    """A generator with several columns: stack(…) AS (k, v), posexplode(…) AS (pos, col)."""
    names = [walk.name(alias) for alias in node.expressions]
    inner = function_output(walk, node.this, scope, env) if isinstance(node.this, nodes.Func) else QueryOutput()
    spread = len(inner.names) == len(names) and not inner.open
    everything = bounded(dep for deps in inner.deps for dep in deps)
    for position, name in enumerate(names):
        output.add(name, inner.deps[position] if spread else everything)


_ITEMS: Final[dict[type, Callable[[Walk, Any, Scope, Environment | None, QueryOutput], None]]] = {
    nodes.Star: _star,
    nodes.Columns: columns_item,
    nodes.Aliases: _several,
    nodes.Dot: _dot,
    nodes.Inline: _inlined,
    nodes.QueryTransform: _transformed,
    nodes.Explode: _unnested,
}
"""How items of a SELECT list of exactly these classes are walked; the others are expressions."""

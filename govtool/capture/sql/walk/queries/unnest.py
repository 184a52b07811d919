"""UNNEST: arrays turned into rows."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import (
    CHAIN_MASK,
    IDENTITY,
    KIND_MASK,
    REF_SHIFT,
    TRANSFORMATION,
    Deps,
    bounded,
    compose,
)
from govtool.capture.sql.walk.expressions.expression import dependencies
from govtool.capture.sql.walk.expressions.row_makers import refer_values
from govtool.capture.sql.walk.expressions.shapes import shape_of
from govtool.capture.sql.walk.queries.placing import place
from govtool.capture.sql.walk.relation import ArrayElements, FunctionRows, OpenStar, QueryOutput, Source, TableInfo
from govtool.capture.sql.walk.scope import Environment, Scope


def add_unnest(
    walk: Walk, node: exp.Unnest, scope: Scope, env: Environment | None, outer: exp.Expr | None = None
) -> None:
    """UNNEST(a, b): a column an array; the elements of a column are ``column[]``.

    Args:
        walk: The walk.
        node: The UNNEST.
        scope: Where to add it, and what the arrays may name.
        env: The CTEs in sight.
        outer: The LATERAL around it, whose alias it has.
    """
    item = outer or node
    alias, columns = _names(walk, node, outer)
    arrays = node.expressions
    if len(arrays) == 1 and len(columns) <= 1:
        shape = walk.without_effects(lambda: shape_of(walk, arrays[0], scope, env))
        if shape is not None and shape.names:
            refer_values(walk, arrays, dependencies(walk, arrays[0], scope, env), node)
            output = _with_offset(walk, shape.copy(), node.args.get("offset"))
            place(walk, Source(alias or (columns[0] if columns else ""), output=output), item, scope, env)
            return
    found = [dependencies(walk, array, scope, env) for array in arrays]
    refer_values(walk, arrays, [dep for deps in found for dep in deps], node)
    elements = [_elements(walk, deps) for deps in found]
    output = _with_offset(walk, _unnested(walk, elements, columns), node.args.get("offset"))
    if not alias and len(columns) == 1 and len(arrays) == 1:
        alias = columns[0]  # BigQuery: the alias is the element
    elif alias and output.names[:1] == [""]:
        output.names[0] = alias
    source = Source(alias, output=output)
    place(walk, source, item, scope, env)
    if arrays and not _holds_scalars(arrays[0]):
        _open_elements(walk, source, elements[0])


def _names(walk: Walk, node: exp.Unnest, outer: exp.Expr | None) -> tuple[str, list[str]]:
    """The alias of an UNNEST, and the names of its columns."""
    alias, columns = walk.alias(outer or node)
    return alias, walk.alias(node)[1] if outer is not None and not columns else columns


def _unnested(walk: Walk, elements: list[Deps], columns: list[str]) -> QueryOutput:
    """The columns of unnested arrays by the dependencies of their elements."""
    output = QueryOutput()
    for position, deps in enumerate(elements):
        chain = walk.interner.prepend("unnest", 0)
        whole = tuple(compose(dep, TRANSFORMATION, chain, walk.interner) for dep in deps)
        output.add(columns[position] if position < len(columns) else "", whole)
    for name in columns[len(output.names) :]:  # an array of structs: one array, several columns
        output.add(name, bounded(dep for deps in output.deps for dep in deps))
    return output


def _elements(walk: Walk, deps: Deps) -> Deps:
    return bounded(walk.interner.field(dep, "[]") if dep & KIND_MASK == IDENTITY else dep for dep in deps)


def _open_elements(walk: Walk, source: Source, deps: Deps) -> None:
    """Let ``alias.field`` of an unnested array of structs mean the field below the elements."""
    if source.output is None:
        return
    if len(deps) == 1 and not deps[0] & (KIND_MASK | CHAIN_MASK):
        ref = walk.interner.refs[deps[0] >> REF_SHIFT]
        type_ = walk.lookup.table(ref.dataset).columns.get(ref.path.removesuffix("[]"))
        if type_ and _SCALAR_ARRAY.fullmatch(type_):
            return
        hidden: TableInfo = ArrayElements(ref.dataset, ref.path)
    else:
        hidden = FunctionRows("unnest", deps)
    source.output.open.append(OpenStar(hidden))
    source.refresh()


def _with_offset(walk: Walk, output: QueryOutput, offset: object) -> QueryOutput:
    """Add the column of WITH OFFSET or WITH ORDINALITY: a position, which no column contributes to."""
    if isinstance(offset, nodes.Identifier):
        output.add(walk.name(offset), ())
    elif offset:
        output.add("offset" if walk.dialect == "bigquery" else "ordinality", ())
    return output


_SCALAR: Final = (
    r"(?:(?:big|small|tiny)?int(?:eger)?\d*|int64|text|string|(?:var|n|nvar|bp)?char|numeric|decimal|float\d*|double"
    r"(?: precision)?|real|bool(?:ean)?|date|time\w*|datetime|uuid|bytes|bytea)(?:\([\d, ]*\))?"
)

_SCALAR_ARRAY: Final = re.compile(rf"(?:{_SCALAR}\[\d*\]|array\s*[<(]\s*{_SCALAR}\s*[>)])", re.IGNORECASE)
"""The type of an array whose elements have no fields."""

_SCALAR_ARRAYS: Final = (
    nodes.GenerateSeries,
    nodes.GenerateDateArray,
    nodes.GenerateTimestampArray,
    nodes.Split,
    nodes.StringToArray,
)


def _holds_scalars(item: exp.Expr) -> bool:
    """Return whether the elements of an array that is made in place are certain to have no fields."""
    if isinstance(item, nodes.Array):
        return bool(item.expressions) and all(
            isinstance(value, (nodes.Literal, nodes.Neg)) for value in item.expressions
        )
    return isinstance(item, _SCALAR_ARRAYS)

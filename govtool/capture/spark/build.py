"""Plans and expressions as every reader builds them: calls by their SQL name, CASE, windows, unions without casts."""

from __future__ import annotations

from collections.abc import Sequence

from govtool.capture.spark.plan import (
    CONSTANT,
    Apply,
    Attribute,
    CatalogView,
    Conditional,
    Elements,
    Expression,
    Named,
    Node,
    Project,
    Reference,
    Renamed,
    Scan,
    Union,
    Values,
    outputs_of,
)
from govtool.model import EdgeKind
from govtool.model.functions import VALUE_WINDOW_FUNCTIONS

RANKS = frozenset({"rank", "dense_rank", "percent_rank", "row_number", "cume_dist", "ntile"})
"""Catalyst repeats the ORDER BY of the window as their arguments; they have none of their own."""

COLLECTING = frozenset({"collect_list", "collect_set", "array_agg", "listagg", "string_agg"})

AGGREGATES = COLLECTING | frozenset(
    {
        "any", "any_value", "approx_count_distinct", "approx_percentile", "approx_top_k", "avg", "bit_and",
        "bit_or", "bit_xor", "bitmap_construct_agg", "bitmap_or_agg", "bool_and", "bool_or", "corr", "count",
        "count_if", "count_min_sketch", "covar_pop", "covar_samp", "every", "first", "first_value", "grouping",
        "grouping_id", "histogram_numeric", "hll_sketch_agg", "hll_union_agg", "kurtosis", "last", "last_value",
        "max", "max_by", "mean", "median", "min", "min_by", "mode", "percentile", "percentile_approx",
        "percentile_cont", "percentile_disc", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept",
        "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy", "skewness", "some", "std", "stddev",
        "stddev_pop", "stddev_samp", "sum", "theta_sketch_agg", "theta_union_agg", "try_avg", "try_sum",
        "var_pop", "var_samp", "variance",
    }
)  # fmt: skip
"""Spark's aggregate functions."""

_CONDITIONS = frozenset({"if", "nvl2"})
_NO_VALUE = frozenset({"monotonically_increasing_id", "rand", "randn", "uuid", "input_file_name", "current_date"})
_CASTS = frozenset({"cast", "ansi_cast", "upcast", "checkoverflowintableinsert", ""})


def call(name: str, arguments: Sequence[Expression], *, kind: EdgeKind | None = None) -> Expression:
    """A call by its SQL name, as far as the name alone tells: CASE's neighbours, arrays, aggregates, anything else.

    Args:
        name: In any case.
        arguments: In order.
        kind: ``AGGREGATION`` where the plan says that it is an aggregate; by default the name tells.
    """
    name = name.lower()
    items = tuple(arguments)
    if name in _CONDITIONS and len(items) == 3:
        return choice(name, items[:1], items[1:])
    if name in _NO_VALUE:
        return CONSTANT
    if kind is None:
        kind = EdgeKind.AGGREGATION if name in AGGREGATES else EdgeKind.TRANSFORMATION
    if name == "array" or name in COLLECTING:
        return Elements(name, items, kind)
    return Apply(name, items, kind)


def choice(name: str, conditions: Sequence[Expression], values: Sequence[Expression]) -> Expression:
    """CASE, IF and their like: values, steered by conditions."""
    value = Apply(name, tuple(values))
    return Conditional(value, tuple(conditions)) if conditions else value


def over(function: str, arguments: Sequence[Expression], window: Sequence[Expression]) -> Expression:
    """A function over a window; ``window``: the expressions of PARTITION BY and ORDER BY."""
    function = function.lower()
    value: Expression
    if function in RANKS:
        value = CONSTANT
    elif function in VALUE_WINDOW_FUNCTIONS:
        value = Apply(function, tuple(arguments))
    else:
        value = call(function, arguments)
    return Conditional(value, tuple(window), EdgeKind.WINDOW) if window else value


def key_step(key: str) -> str:
    """The step to a key of a map or of a JSON value: ``['user']``."""
    return "['" + key.replace("\\", "\\\\").replace("'", "\\'") + "']"


def union(children: Sequence[Node], outputs: tuple[Named, ...] = (), *, distinct: bool = False) -> Union:
    """A union whose arms are no unions of the same sort: ``a UNION ALL b UNION ALL c`` has three arms."""
    arms: list[Node] = []
    for child in children:
        plain = uncast(child)
        inner = plain.child if isinstance(plain, Renamed) else plain
        if isinstance(inner, Union) and inner.distinct == distinct:
            arms.extend(inner.children)
        else:
            arms.append(plain)
    return Union(tuple(arms), outputs or outputs_of(children[0]), distinct)


def uncast(node: Node) -> Node:
    """A select list that does nothing but cast the columns of a query, in order, is how analysis fits types: below
    an INSERT, and in the arms of a union. It is taken off, as nobody wrote it.

    Of a table it stays: there the query has no other select list, so this may well be written.
    """
    if not isinstance(node, Project) or isinstance(node.child, Scan | CatalogView | Values | Reference):
        return node
    below = outputs_of(node.child)
    if len(below) != len(node.outputs):
        return node
    for column, output in zip(below, node.outputs, strict=True):
        value = output.value
        while isinstance(value, Apply) and value.name in _CASTS and len(value.arguments) == 1:
            value = value.arguments[0]
        if not isinstance(value, Attribute) or value.id != column.id:
            return node
    return Renamed(node.child, tuple(Named(output.id, output.name) for output in node.outputs))

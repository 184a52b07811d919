"""Functions that make rows of a value: UNNEST, explode, generate_series.

How many rows there are depends on the value, so it decides about the rows of the query as a filter does: an empty array
leaves none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import CONDITIONAL, FILTER, TRANSFORMATION
from govtool.capture.sql.walk.expressions.expression import Handler, Visit, collect
from govtool.capture.sql.walk.expressions.functions import function_name
from govtool.functions.facts import SERIES, SINGLE, TABLES

_IN_SELECT: Final = frozenset({"postgres", "redshift", "greenplum", "risingwave", "materialize"})
"""Dialects in which any function that returns rows may be an item of a SELECT list."""


def makes_rows(name: str) -> bool:
    """Return whether a function of FROM returns as many rows as its arguments say."""
    return name.rpartition(".")[2] not in SINGLE


def makes_rows_in_select(name: str, dialect: str) -> bool:
    """Return whether a call in an expression returns rows, as many as its arguments say."""
    return dialect in _IN_SELECT and (name in SERIES or name in TABLES) and name not in SINGLE


def refer_values(walk: Walk, arguments: Sequence[exp.Expr], deps: Sequence[int], node: exp.Expr) -> None:
    """Record that values decide about rows, unless these are arrays that list their elements.

    Args:
        walk: The walk.
        arguments: Of the function.
        deps: What is inside of all of them.
        node: The call.
    """
    if deps and not all([_has_fixed_length(argument) for argument in arguments]):  # noqa: C419
        walk.refer(deps, FILTER, node)


def _has_fixed_length(argument: exp.Expr) -> bool:
    return type(argument) is nodes.Array and not any([isinstance(e, nodes.Query) for e in argument.expressions])  # noqa: C419


def _call(walk: Walk, node: exp.Expr, kind: int, chain: int, at: Visit) -> None:
    """A call in an expression, whose arguments are its value, too."""
    if kind < CONDITIONAL:
        chain = walk.interner.prepend(function_name(node, walk.dialect), chain)
        kind = max(kind, TRANSFORMATION)
    arguments = list(node.iter_expressions())
    found = [dep for item in arguments for dep in collect(walk, item, at.scope, at.env, kind, chain)]
    at.out.extend(found)
    refer_values(walk, arguments, found, node)


HANDLERS: Final[dict[type, Handler]] = {
    nodes.Explode: _call,
    nodes.Posexplode: _call,
    nodes.Inline: _call,
    nodes.ExplodingGenerateSeries: _call,
}

"""Queries, wherever they stand: each is walked by the function of its class, which may meet further queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp

from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dispatch import by_class
from govtool.capture.sql.walk.relation import QueryOutput
from govtool.capture.sql.walk.scope import Environment, Scope

MAX_DEPTH: Final = 1_500
"""Queries that may be walked one for the sake of the other. Compiled, they take the C stack, which nobody guards."""

QueryWalker = Callable[[Walk, Any, Scope | None, Environment | None], QueryOutput]
"""Returns the output of queries of one class."""

QUERIES: Final[dict[type, QueryWalker]] = {}
"""How queries of a class are walked; ``statements`` fills it."""


def output_of(walk: Walk, node: exp.Expr, scope: Scope | None, env: Environment | None) -> QueryOutput:
    """Return the output of a query expression; ``scope`` is what it may be correlated with.

    Raises:
        RecursionError: Subqueries, CTEs and views nest too deeply.
    """
    interner = walk.interner
    if interner.depth >= MAX_DEPTH:
        raise RecursionError
    interner.depth += 1
    if interner.depth > interner.deepest:
        interner.deepest = interner.depth
    try:
        found = by_class(QUERIES, type(node))
        return no_query(walk, node) if found is None else found(walk, node, scope, env)
    finally:
        interner.depth -= 1


def no_query(walk: Walk, node: exp.Expr) -> QueryOutput:
    """Return no columns, as what stands where a query is expected is not understood as one."""
    walk.diagnose("opaque", f"{node.key.upper()} is not understood as a query", node)
    return QueryOutput()

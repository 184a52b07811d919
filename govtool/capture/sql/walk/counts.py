"""What a HAVING counts: the bounds of ``HAVING COUNT(…) >= k``, and of which base columns the values are."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.walk.dependencies import ARM_MASK, CHAIN_MASK, KIND_MASK, Deps

ROWS: Final = "rows"
VALUES: Final = "values"
DISTINCT: Final = "distinct"

Bound = tuple[int, str, Deps]
"""At least so many; rows, values or distinct values; plain dependencies on the columns whose values are counted, none
where that is not known."""


def count_bounds(having: exp.Expr) -> list[tuple[int, exp.Count]]:
    """The conjuncts of a HAVING that say how many there are at least."""
    found: list[tuple[int, exp.Count]] = []
    stack: list[exp.Expr] = [having]
    while stack:
        item = stack.pop()
        left, right = item.args.get("this"), item.args.get("expression")
        if isinstance(item, (nodes.And, nodes.Paren)):
            stack.extend(value for value in (right, left) if isinstance(value, nodes.Expr))
        elif isinstance(item, (nodes.GTE, nodes.GT)):
            if isinstance(left, nodes.Count) and isinstance(right, nodes.Literal) and right.name.isdigit():
                found.append((int(right.name) + isinstance(item, nodes.GT), left))
        elif (
            isinstance(item, (nodes.LTE, nodes.LT))
            and isinstance(right, nodes.Count)
            and isinstance(left, nodes.Literal)
            and left.name.isdigit()
        ):
            found.append((int(left.name) + isinstance(item, nodes.LT), right))
    return found


def counted(count: exp.Count) -> tuple[str, exp.Expr | None]:
    """What is counted, and the expression whose values it is."""
    of = count.args.get("this")
    if count.args.get("expressions"):
        return VALUES, None
    if isinstance(of, nodes.Distinct):
        items = of.expressions
        return DISTINCT, items[0] if len(items) == 1 and not of.args.get("on") else None
    if of is None or isinstance(of, (nodes.Star, nodes.Literal)):
        return ROWS, None
    return VALUES, of


def plain(deps: Deps) -> Deps:
    """The columns that hold exactly the values: none unless all of them are copies, of which none is an alternative.

    Another arm of a UNION may bring values of no column at all.
    """
    return () if any(dep & (KIND_MASK | CHAIN_MASK | ARM_MASK) for dep in deps) else deps

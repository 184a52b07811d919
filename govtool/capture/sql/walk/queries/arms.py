"""The arms of set operations."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.dependencies import bounded
from govtool.capture.sql.walk.relation import QueryOutput
from govtool.capture.sql.walk.scope import CommonTable
from govtool.names import fold

_COUNTS: Final = "govtool.arms"
"""Where a walked UNION keeps how many alternatives its arms are."""


def keep_arm_counts(node: exp.Expr, counts: list[int]) -> None:
    """Keep how many alternatives each arm of a UNION was found to be."""
    node.meta[_COUNTS] = counts


def arm_counts(node: exp.Expr) -> list[int] | None:
    """Return how many alternatives each arm of a UNION was found to be; None if each is one."""
    known = node._meta
    counts: list[int] | None = None if known is None else known.get(_COUNTS)
    return counts


def arms_of(node: exp.Expr, kind: type[exp.SetOperation]) -> list[exp.Expr]:
    """Return the arms of a chain of UNIONs of the same sort, left to right, without recursion."""
    distinct, by_name = node.args.get("distinct"), bool(node.args.get("by_name"))
    arms: list[exp.Expr] = []
    stack: list[exp.Expr] = [node]
    while stack:
        item = stack.pop()
        plain = item
        while isinstance(plain, nodes.Subquery) and plain.is_wrapper and not plain.args.get("with_"):
            plain = plain.this
        same = (
            isinstance(plain, kind)
            and plain.args.get("distinct") == distinct
            and bool(plain.args.get("by_name")) == by_name
        )
        if same and (
            plain is node or not (plain.args.get("with_") or plain.args.get("order") or plain.args.get("limit"))
        ):
            stack.append(plain.args["expression"])
            stack.append(plain.args["this"])
        elif item is node:
            stack.append(node.args["expression"])
            stack.append(node.args["this"])
            node = nodes.Null()
        else:
            arms.append(item)
    return arms


def reads_itself(arm: exp.Expr, cte: CommonTable, dialect: str) -> bool:
    """Return whether a query reads the CTE ``cte`` by name."""
    names = {name for name, table in cte.env.tables.items() if table is cte} if cte.env is not None else set()
    return any(
        fold(table.name, quoted=bool(getattr(table.this, "args", {}).get("quoted")), dialect=dialect) in names
        for table in arm.find_all(nodes.Table)
        if not table.args.get("db")
    )


def merged_outputs(first: QueryOutput, *others: QueryOutput) -> QueryOutput:
    """Return outputs as one, by position: the first names the columns."""
    result = QueryOutput()
    for position, name in enumerate(first.names):
        more = [dep for output in others if position < len(output.deps) for dep in output.deps[position]]
        result.add(name, bounded((*first.deps[position], *more)))
    result.open = [star for output in (first, *others) for star in output.open]
    result.types = first.types
    return result

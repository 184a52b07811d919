"""Tables without which a statement has rows all the same: the outer side of a join, and most subqueries of expressions.

What is read there is marked with ``OPTIONAL``. The mark is taken back where a later part of the FROM needs the item: a
join that is no outer one and names it, or may. A FULL JOIN has rows as long as one of its sides has: its sides are
marked where it is the only kind of join, as "one of all" says it then; beside other joins they stay needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.syntax.tree_search import nodes_of
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.relation import QueryOutput
from govtool.capture.sql.walk.state import OPTIONAL, Reads

_SIDES: Final = frozenset({"LEFT", "RIGHT", "FULL"})


def has_outer(joins: list[exp.Join]) -> bool:
    """Return whether any join keeps rows that find no partner."""
    for join in joins:
        args = join.args
        if (args.get("side") or args.get("kind")) and (join.side in _SIDES or "ANTI" in (join.kind, join.side)):
            return True
    return False


def read_items(walk: Walk, parts: list[Reads], first: exp.Expr | None, joins: list[exp.Join]) -> None:
    """Record what the items of a FROM have read, each apart: the first, and that of each join."""
    for part, optional in zip(parts, _optional(first, joins), strict=True):
        walk.read(as_optional(part) if optional else part)


def as_optional(reads: Reads) -> Reads:
    """The same reads, of rows that are not needed."""
    return {name: tuple([arm | OPTIONAL for arm in arms]) for name, arms in reads.items()}


def read_subquery(walk: Walk, condition: exp.Expr, run: Callable[[], QueryOutput]) -> QueryOutput:
    """Walk the query of an expression; what it reads is optional, unless a row must find a row of it.

    Args:
        walk: The walk.
        condition: The EXISTS or IN that has the query, or the query itself.
        run: Walks it.
    """
    if _is_needed(condition):
        return run()
    reads, walk.reads = walk.reads, {}
    output = run()
    found, walk.reads = walk.reads, reads
    walk.read(as_optional(found))
    return output


def _is_needed(condition: exp.Expr) -> bool:
    """Return whether no row stays without rows of the query: an EXISTS or IN that has to hold, alone or beside others.

    A scalar subquery is NULL, NOT EXISTS holds, and in a SELECT list, in OR or in CASE there is another value.
    """
    at = condition.parent
    while isinstance(at, (nodes.Paren, nodes.And)):
        at = at.parent
    return isinstance(condition, (nodes.Exists, nodes.In)) and isinstance(
        at, (nodes.Where, nodes.Having, nodes.Qualify)
    )


def _optional(first: exp.Expr | None, joins: list[exp.Join]) -> list[bool]:
    """Return of each item of a FROM whether there are rows without it."""
    found = [False] * (1 + len(joins))
    if all([join.side == "FULL" for join in joins]):  # noqa: C419
        return [True] * len(found)
    names = [_name(first), *[_name(join.this) for join in joins]]
    comma = False
    for number, join in enumerate(joins, 1):
        side, kind = join.side, join.kind
        semi = "SEMI" in (side, kind)
        comma = comma or not (side or kind or join.method or join.args.get("on") or join.args.get("using"))
        if "ANTI" in (side, kind) or (side == "LEFT" and not semi):
            found[number] = side != "RIGHT"
        elif side == "RIGHT" and not semi:
            found[:number] = [not comma] * number
        elif side != "FULL":
            _need(found, names, join)
    return found


def _need(found: list[bool], names: list[str], join: exp.Join) -> None:
    """Take the marks back of the items that a join names; of all, where a name of it has no qualifier."""
    if join.args.get("using") or join.method:
        found[:] = [False] * len(found)
        return
    for column in nodes_of(join, nodes.Column):
        qualifiers = {part.name.lower() for part in cast(exp.Column, column).parts[:-1]}
        for number, name in enumerate(names):
            if not qualifiers or not name or name in qualifiers:
                found[number] = False


def _name(item: exp.Expr | None) -> str:
    return item.alias_or_name.lower() if item is not None else ""

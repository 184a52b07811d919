"""Tables without which a statement has rows all the same: those on the outer side of a join, and those of NOT EXISTS.

What is read there is marked with ``OPTIONAL``. The mark is taken back where a later part of the FROM needs the item: a
join that is no outer one and names it, or may. A FULL JOIN has rows as long as one of its sides has: its sides are
marked where it is the only kind of join, as "one of all" says it then; beside other joins they stay needed.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.state import OPTIONAL, Reads

_SIDES: Final = frozenset({"LEFT", "RIGHT", "FULL"})


def has_outer(joins: list[exp.Join]) -> bool:
    """Return whether any join keeps rows that find no partner."""
    return any([join.side in _SIDES or "ANTI" in (join.kind, join.side) for join in joins])  # noqa: C419


def read_items(walk: Walk, parts: list[Reads], first: exp.Expr | None, joins: list[exp.Join]) -> None:
    """Record what the items of a FROM have read, each apart: the first, and that of each join."""
    for part, optional in zip(parts, _optional(first, joins), strict=True):
        walk.read(as_optional(part) if optional else part)


def as_optional(reads: Reads) -> Reads:
    """The same reads, of rows that are not needed."""
    return {name: tuple([arm | OPTIONAL for arm in arms]) for name, arms in reads.items()}


def set_apart(walk: Walk, node: exp.Expr) -> Reads | None:
    """Before a subquery that all rows must not fulfil, NOT EXISTS or NOT IN: put away what was read; else None."""
    if not _is_negated(node):
        return None
    reads, walk.reads = walk.reads, {}
    return reads


def put_back(walk: Walk, reads: Reads | None) -> None:
    """Behind it: record what it read as optional."""
    if reads is not None:
        found, walk.reads = walk.reads, reads
        walk.read(as_optional(found))


def _is_negated(node: exp.Expr) -> bool:
    """Return whether a condition is negated, and one of those that all have to hold."""
    at = node.parent
    while isinstance(at, nodes.Paren):
        at = at.parent
    if not isinstance(at, nodes.Not):
        return False
    at = at.parent
    while isinstance(at, (nodes.Paren, nodes.And)):
        at = at.parent
    return isinstance(at, nodes.Where)


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
    for column in join.find_all(nodes.Column):
        qualifiers = {part.name.lower() for part in column.parts[:-1]}
        for number, name in enumerate(names):
            if not qualifiers or not name or name in qualifiers:
                found[number] = False


def _name(item: exp.Expr | None) -> str:
    return item.alias_or_name.lower() if item is not None else ""

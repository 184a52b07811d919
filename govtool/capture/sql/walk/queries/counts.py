"""Group sizes in HAVING: the bounds of ``HAVING COUNT(…) >= k``, and the base columns of the counted values."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.syntax.tree_search import nodes_of
from govtool.capture.sql.walk.dependencies import ARM_MASK, CHAIN_MASK, KIND_MASK, Deps
from govtool.functions.facts import AGGREGATES

ROWS: Final = "rows"
VALUES: Final = "values"
DISTINCT: Final = "distinct"

_CHOICES: Final = (nodes.Case, nodes.If, nodes.Nvl2, nodes.DecodeCase, nodes.Nullif, nodes.Predicate)

Bound = tuple[int, str, Deps, bool]
"""At least so many; rows, values or distinct values; plain dependencies on the columns whose values are counted, none
where that is not known; whether the rows are those of a join (``joins_rows``)."""


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
    """Return the counted columns, and the expression whose values are counted."""
    of = count.args.get("this")
    if count.args.get("expressions"):
        return VALUES, None
    if isinstance(of, nodes.Distinct):
        items = of.expressions
        one = len(items) == 1 and not of.args.get("on") and not _is_several(items[0])
        return DISTINCT, items[0] if one else None
    if of is None or isinstance(of, (nodes.Star, nodes.Literal)):
        return ROWS, None
    return VALUES, None if _is_several(of) else of


def _is_several(of: exp.Expr) -> bool:
    """Return whether what is counted is a row of values and not one: many rows may hold few values of each column."""
    while isinstance(of, nodes.Paren):
        of = of.this
    return isinstance(of, (nodes.Star, nodes.Tuple, nodes.Struct)) or (
        isinstance(of, nodes.Column) and isinstance(of.this, nodes.Star)
    )


def plain(deps: Deps) -> Deps:
    """The columns that hold exactly the values: none unless all of them are copies, of which none is an alternative.

    Another arm of a UNION may bring values of no column at all.
    """
    return () if any(dep & (KIND_MASK | CHAIN_MASK | ARM_MASK) for dep in deps) else deps


def keys_of_groups(items: list[exp.Expr]) -> list[exp.Column] | None:
    """Return the columns of output expressions that stand outside of aggregates.

    None where an aggregate may see but a part of its group, or another group than the SELECT's own: one with FILTER,
    over a choice or a predicate, over a window, in a subquery. What HAVING counts then says nothing of it.
    """
    keys: list[exp.Column] = []
    stack: list[tuple[exp.Expr, bool]] = [(item, False) for item in items]
    while stack:
        item, inside = stack.pop()
        if isinstance(item, nodes.Query):
            if any([_is_aggregate(part) for part in nodes_of(item, nodes.Func)]):  # noqa: C419
                return None
            continue
        if isinstance(item, (nodes.Filter, nodes.CountIf, nodes.CombinedAggFunc)):
            return None
        if isinstance(item, nodes.Window) and _is_aggregate(item.this):
            return None
        if inside and isinstance(item, _CHOICES):
            return None
        if isinstance(item, nodes.Column) and not inside:
            keys.append(item)
        inside = inside or _is_aggregate(item)
        for value in item.args.values():
            parts = value if isinstance(value, list) else [value]
            stack.extend([(part, inside) for part in parts if isinstance(part, nodes.Expr)])
    return keys


def repeats_rows(node: exp.Select) -> bool:
    """Return whether rows are joined that the query makes itself: then a count of rows counts the same member again.

    ``FROM users, (VALUES (1), (2)) v``, ``CROSS JOIN generate_series(1, 10)``, UNNEST and FLATTEN; in its subqueries
    and CTEs, too. Other tables that are joined are data: what a row of theirs is, is for the author to say.
    """
    bodies: dict[str, exp.Expr] = {}
    for cte in nodes_of(node.root(), nodes.CTE):
        bodies.setdefault(cte.alias.lower(), cte.this)
    made = set(bodies)
    changed = bool(made)
    while changed:  # what is left reads no table
        changed = False
        for name in sorted(made):
            if _reads(bodies[name], made):
                made.discard(name)
                changed = True
    stack: list[exp.Expr] = [node]
    seen: set[str] = set()
    while stack:
        item = stack.pop()
        if isinstance(item, nodes.Select):
            items = _from_items(item)
            if len(items) > 1 and not all([_reads(one, made) for one in items]):  # noqa: C419
                return True
        elif isinstance(item, nodes.Table) and not item.args.get("db"):
            name = item.name.lower()
            if name in bodies and name not in seen:
                seen.add(name)
                stack.append(bodies[name])
        for key, value in item.args.items():
            if key != "with_":  # CTEs count where they are read
                parts = value if isinstance(value, list) else [value]
                stack.extend([part for part in parts if isinstance(part, nodes.Expr) and type(part) not in _LEAVES])
    return False


def joins_rows(node: exp.Select) -> bool:
    """Return whether a row of a relation may be several rows of what a SELECT groups, or one among others' rows.

    So it is where FROM has several items or a UNION, in its subqueries and CTEs, too. A condition of a join does not
    help, as it is not known here which columns are unique. Subqueries of WHERE only choose rows.
    """
    bodies = {cte.alias.lower(): cte.this for cte in nodes_of(node.root(), nodes.CTE)}
    stack: list[exp.Expr] = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, nodes.Union):
            return True
        items = _from_items(item) if isinstance(item, nodes.Select) else []
        pivots = item.args.get("pivots") or ()
        if len(items) > 1 or item.args.get("joins") or any([one.args.get("unpivot") for one in pivots]):  # noqa: C419
            return True
        inner = item.args.get("this")
        if isinstance(item, nodes.Table):
            inner = None if item.args.get("db") else bodies.pop(item.name.lower(), None)
        stack += items if isinstance(item, nodes.Select) else [inner] if isinstance(inner, nodes.Expr) else []
    return False


_LEAVES: Final = frozenset((nodes.Column, nodes.Identifier, nodes.Literal))


def _from_items(select: exp.Select) -> list[exp.Expr]:
    """Return the items of FROM, with what is joined to it."""
    from_ = select.args.get("from_")
    items: list[exp.Expr] = [from_.this] if from_ is not None else []
    joined: list[exp.Expr] = [select, *items]
    while joined:
        owner = joined.pop()
        if isinstance(owner, nodes.Subquery) and isinstance(owner.this, (nodes.Table, nodes.Subquery)):
            joined.append(owner.this)  # (a JOIN b)
        found = [join.this for join in owner.args.get("joins") or []] + list(owner.args.get("laterals") or [])
        items += found
        joined += found
    return items


def _reads(item: exp.Expr, made: set[str]) -> bool:
    """Return whether a part of a query reads a table that is not among the CTEs made of no table."""
    for table in nodes_of(item, nodes.Table):
        if not isinstance(table.this, nodes.Func) and (table.args.get("db") or table.name.lower() not in made):
            return True
    return False


def _is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, nodes.AggFunc) or (isinstance(node, nodes.Anonymous) and node.name.lower() in AGGREGATES)

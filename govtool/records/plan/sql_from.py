"""FROM: relations, joins, subqueries, lateral views, inline tables, PIVOT."""

from __future__ import annotations

from functools import reduce
from typing import Any

from sqlglot import exp

from govtool.records.plan.expressions import (
    AggregateCall,
    Attribute,
    Call,
    Case,
    Cast,
    Expression,
    Literal,
    Named,
    passed,
)
from govtool.records.plan.nodes import (
    Aggregate,
    Generate,
    Join,
    JoinKind,
    LateralJoin,
    LocalRows,
    Project,
    Reference,
    outputs,
)
from govtool.records.plan.sql_aggregates import aggregate_call
from govtool.records.plan.sql_context import Context
from govtool.records.plan.sql_scope import Scope
from govtool.records.plan.sql_terms import Terms
from govtool.records.plan.sql_types import common
from govtool.records.plan.tree import Node, walk
from govtool.records.plan.types import BOOLEAN, INTEGER, LONG, Array, Type

_KINDS: dict[tuple[str, str], JoinKind] = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("", "CROSS"): "cross",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "right",
    ("RIGHT", "OUTER"): "right",
    ("FULL", ""): "full",
    ("FULL", "OUTER"): "full",
    ("LEFT", "SEMI"): "left_semi",
    ("", "SEMI"): "left_semi",
    ("LEFT", "ANTI"): "left_anti",
    ("", "ANTI"): "left_anti",
}
_TABLE = frozenset({"this", "alias", "pivots", "joins", "db", "catalog", "laterals"})


def source(context: Context, query: exp.Select, first: exp.Expr, scope: Scope) -> Node:
    """The rows of FROM with its joins and lateral views; their columns are added to the scope.

    Raises:
        UsageError: See ``from_sql``.
    """
    node = _item(context, first, scope)
    for join in query.args.get("joins") or ():
        node = _joined(context, node, join, scope)
    for view in query.args.get("laterals") or ():
        node = _lateral_view(context, node, view, scope)
    return node


def _item(context: Context, at: exp.Expr, scope: Scope) -> Node:
    node, alias = _rows(context, at, scope)
    for join in at.args.get("joins") or ():
        if isinstance(at, exp.Table):
            raise context.refused("a join in parentheses", at=join)
    for pivot in at.args.get("pivots") or ():
        node = _pivoted(context, pivot, node)
        alias = pivot.alias or alias
    scope.tables.append((alias.lower(), outputs(node)))
    return node


def _rows(context: Context, at: exp.Expr, scope: Scope) -> tuple[Node, str]:
    names = [each.name for each in at.args["alias"].args.get("columns") or ()] if at.args.get("alias") else []
    if isinstance(at, exp.Table):
        _only(context, at, _TABLE)
        node = _named_rows(context, at, scope.seen())
    elif isinstance(at, exp.Subquery):
        _only(context, at, frozenset({"this", "alias", "pivots", "with_"}))
        if not isinstance(at.this, exp.Query):
            raise context.refused("a join in parentheses", at=at)
        node, inner = context.query(at.this, Scope(scope.parent, views=scope.seen()))
        scope.outer.update(inner.outer)
    elif isinstance(at, exp.Values):
        node = _inline(context, at)
    else:
        raise context.refused(f"{type(at).__name__.upper()} in FROM", at=at)
    return renamed(context, node, names, at), at.alias_or_name


def _only(context: Context, at: exp.Expr, known: frozenset[str]) -> None:
    for name, value in at.args.items():
        if value and name not in known:
            raise context.refused(f"{name.strip('_').replace('_', ' ').upper()} of a relation", at=at)


def _named_rows(context: Context, at: exp.Table, views: dict[str, Any]) -> Node:
    if not isinstance(at.this, exp.Identifier):
        raise context.refused("a table function", at=at)
    name = ".".join(part.name for part in at.parts)
    view = views.get(name.lower())
    if view is None:
        return context.relation(name, at)
    return Reference(view.id, tuple(context.attribute(each.name, each.type) for each in outputs(view.child)))


def _inline(context: Context, at: exp.Values) -> Node:
    terms = Terms(context, Scope(None))
    lines = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in at.expressions]
    rows = [[terms.bound(item) for item in line] for line in lines]
    if len({len(row) for row in rows}) != 1:
        raise context.wrong("rows of an inline table with different numbers of columns", at)
    for row in rows:
        for value in row:
            if not isinstance(value, Literal):
                raise context.refused("anything but literals in an inline table", at=at)
    types = [[value.type for value in column] for column in zip(*rows, strict=True)]
    kinds = [reduce(lambda a, b: a and common(a, b), column) for column in types]
    columns = tuple(context.attribute(f"col{n + 1}", _known(context, kind, at)) for n, kind in enumerate(kinds))
    plain = tuple(tuple(_converted(context, v, c.type, at) for v, c in zip(row, columns, strict=True)) for row in rows)
    return LocalRows(context.leaf(), columns, plain)


def _known(context: Context, kind: Type | None, at: exp.Expr) -> Type:
    if kind is None:
        raise context.wrong("a column of an inline table without a common type", at)
    return kind


def _converted(context: Context, value: Expression, kind: Type, at: exp.Expr) -> Any:
    assert isinstance(value, Literal)
    if value.value is not None and value.type != kind and {value.type, kind} != {INTEGER, LONG}:
        raise context.refused("an inline table whose rows differ in type", at=at)
    return value.value


def _joined(context: Context, left: Node, at: exp.Join, scope: Scope) -> Node:
    if at.this.__class__ is exp.Lateral:
        return _lateral(context, left, at, scope)
    kind = _kind(context, at)
    before = list(scope.tables)
    right = _item(context, at.this, scope)
    using = [each.name.lower() for each in at.args.get("using") or ()]
    if str(at.args.get("method") or "").upper() == "NATURAL":
        names = {column.name.lower() for column in outputs(right)}
        using = [column.name.lower() for _, columns in before for column in columns if column.name.lower() in names]
    if using:
        node = _using(context, left, right, kind, list(dict.fromkeys(using)), scope, before, at)
    else:
        clause = at.args.get("on")
        condition = None if clause is None else Terms(context, scope).condition(clause)
        node = Join(left, right, "inner" if kind == "cross" and condition is not None else kind, condition)
    if kind in ("left_semi", "left_anti"):
        scope.tables[:] = before
    return node


def _kind(context: Context, at: exp.Join) -> JoinKind:
    method = str(at.args.get("method") or "").upper()
    found = _KINDS.get(((at.side or "").upper(), (at.kind or "").upper()))
    if found is None or method not in ("", "NATURAL"):
        raise context.refused(" ".join(filter(None, (method, at.side, at.kind, "JOIN"))), at=at)
    return found


def _using(
    context: Context, left: Node, right: Node, kind: JoinKind, names: list[str], scope: Scope,
    before: list[tuple[str, tuple[Attribute, ...]]], at: exp.Join,
) -> Node:  # fmt: skip
    old = Scope(None, before, dict(scope.merged))
    new = Scope(None, [("", outputs(right))])
    pairs = []
    for name in names:
        found = old.found(name, "") + new.found(name, "")
        if len(found) != 2:
            raise context.wrong(f"USING column '{name}' is not once on either side", at)
        pairs.append((found[0], found[1]))
    equal: list[Expression] = [_equals(context, a, b, at) for a, b in pairs]
    node: Node = Join(left, right, kind, reduce(lambda a, b: Call("and", (a, b), BOOLEAN), equal))
    if kind in ("left_semi", "left_anti"):
        return node
    columns = [passed(column) for column in outputs(node)]
    for name, (a, b) in zip(names, pairs, strict=True):
        merged = b if kind == "right" else a
        if kind == "full":
            wide = common(a.type, b.type) or a.type
            sides = tuple(side if side.type == wide else Cast(side, wide) for side in (a, b))
            named = Named(Call("coalesce", sides, wide), context.next_id(), a.name)
            columns.append(named)
            merged = named.attribute
        scope.merged[name] = merged
    return Project(node, tuple(columns)) if kind == "full" else node


def _equals(context: Context, a: Attribute, b: Attribute, at: exp.Expr) -> Expression:
    wide = common(a.type, b.type)
    if wide is None:
        raise context.wrong(f"USING column '{a.name}' has no common type", at)
    left, right = (side if side.type == wide else Cast(side, wide) for side in (a, b))
    return Call("=", (left, right), BOOLEAN)


def _lateral(context: Context, left: Node, at: exp.Join, scope: Scope) -> Node:
    lateral = at.this
    if not isinstance(lateral.this, exp.Subquery) or at.args.get("on"):
        raise context.refused("LATERAL of anything but a subquery, or with ON", at=at)
    kind = _kind(context, at)
    right, inner = context.query(lateral.this.this, scope)
    alias = lateral.args.get("alias")
    right = renamed(context, right, [each.name for each in (alias.args.get("columns") or ())] if alias else [], lateral)
    scope.tables.append((lateral.alias.lower(), outputs(right)))
    own = {column.id for column in outputs(left)}
    outer = tuple(column for column in inner.outer.values() if column.id in own)
    scope.outer.update({number: each for number, each in inner.outer.items() if number not in own})
    return LateralJoin(left, right, kind, None, outer)


def _lateral_view(context: Context, node: Node, at: exp.Lateral, scope: Scope) -> Node:
    if not isinstance(at.this, exp.Explode) or isinstance(at.this, exp.Posexplode) or not at.args.get("view"):
        raise context.refused("a lateral view of anything but explode", at=at)
    value = Terms(context, scope).bound(at.this.this)
    if not isinstance(value.type, Array):
        raise context.refused("explode of anything but an array", at=at)
    alias = at.args["alias"]
    names = [each.name for each in alias.args.get("columns") or ()] or ["col"]
    column = context.attribute(names[0], value.type.element)
    scope.tables.append((alias.name.lower(), (column,)))
    outer = bool(at.args.get("outer")) or isinstance(at.this, exp.ExplodeOuter)
    return Generate(node, Call("explode", (value,), value.type.element), outer, (column,))


def _pivoted(context: Context, at: exp.Pivot, node: Node) -> Node:
    """PIVOT with values: groups by all other columns, one measure a value and aggregate."""
    chosen = _pivot_values(context, at)
    columns = outputs(node)
    terms = Terms(context, Scope(None, [("", columns)]))
    by = terms.column(chosen.this)
    texts = [(each.alias, each.this if isinstance(each, exp.Alias) else each) for each in at.expressions]
    calls = [(alias, aggregate_call(terms, text)) for alias, text in texts]
    used = {term.id for _, call in calls for term in walk(call) if isinstance(term, Attribute)}
    keys = [passed(column) for column in columns if column.id not in used and column != by]
    measures: list[Named] = []
    items: list[Named] = []
    for each in chosen.expressions:
        value = terms.bound(each.this if isinstance(each, exp.PivotAlias) else each)
        if not isinstance(value, Literal):
            raise context.refused("PIVOT by anything but literals", at=each)
        label = each.alias or str(value.value)
        here = Call("<=>", (by, Literal(value.value, by.type)), BOOLEAN)
        rows = Named(AggregateCall("count", (Literal(1, INTEGER),), LONG, filter=here), context.next_id(), "rows")
        measures.append(rows)
        for name, call in calls:
            title = label if len(calls) == 1 else f"{label}_{name or call.name}"
            found, item = _pivot_cell(context, call, here, rows, title)
            measures.append(found)
            items.append(item)
    return Project(Aggregate(node, tuple(keys), tuple(measures)), (*keys, *items))


def _pivot_values(context: Context, at: exp.Pivot) -> exp.In:
    """The column and the values that a PIVOT goes by."""
    if at.args.get("unpivot"):
        raise context.refused("UNPIVOT", at=at)
    fields = at.args.get("fields") or [None]
    if len(fields) != 1 or not isinstance(fields[0], exp.In) or not isinstance(fields[0].this, exp.Column):
        raise context.refused("PIVOT without values, or by several columns", at=at)
    return fields[0]


def _pivot_cell(
    context: Context, call: AggregateCall, here: Expression, rows: Named, title: str
) -> tuple[Named, Named]:
    """A measure under the pivot's value. COUNT is NULL, as in Spark, where no row has the value."""
    both = here if call.filter is None else Call("and", (here, call.filter), BOOLEAN)
    measure = Named(
        AggregateCall(
            call.name, call.arguments, call.type, call.distinct, both, call.order, call.mode, call.options,
            call.deterministic,
        ),
        context.next_id(),
        title,
    )  # fmt: skip
    if call.name != "count":
        return measure, passed(measure.attribute)
    none = Call("=", (rows.attribute, Literal(0, LONG)), BOOLEAN)
    cell = Case(((none, Literal(None, LONG)),), measure.attribute, LONG)
    return measure, Named(cell, context.next_id(), title)


def cast_column(context: Context, column: Attribute, kind: Type | None) -> Named:
    """A column cast to a type; one that has it is passed on."""
    if kind is None or column.type == kind:
        return passed(column)
    return Named(Cast(column, kind), context.next_id(), column.name)


def renamed(context: Context, node: Node, names: list[str], at: exp.Expr) -> Node:
    """A node whose columns have other names."""
    if not names:
        return node
    columns = outputs(node)
    if len(names) != len(columns):
        raise context.wrong(f"{len(names)} names for {len(columns)} columns", at)
    pairs = zip(columns, names, strict=True)
    return Project(node, tuple(Named(column, context.next_id(), name) for column, name in pairs))

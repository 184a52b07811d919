"""SQL queries to operators: FROM, WHERE, GROUP BY, HAVING, windows, SELECT, set operations, ORDER BY and LIMIT."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from govtool.records.plan import sql_from
from govtool.records.plan.expressions import Attribute, Expression, Named, Outer, SortKey, passed
from govtool.records.plan.nodes import (
    Aggregate,
    Definition,
    Distinct,
    Filter,
    Limit,
    LocalRows,
    Project,
    SetOperation,
    Sort,
    Union,
    Window,
    outputs,
)
from govtool.records.plan.sql_context import Context
from govtool.records.plan.sql_forms import plain_form
from govtool.records.plan.sql_groups import Groups, position
from govtool.records.plan.sql_scope import Calls, Scope
from govtool.records.plan.sql_terms import Terms
from govtool.records.plan.sql_types import common
from govtool.records.plan.tree import Node, Term, walk
from govtool.records.plan.types import Type

_SELECT = frozenset(
    {"expressions", "from_", "joins", "laterals", "where", "group", "having", "qualify", "windows", "distinct", "order",
     "limit", "offset", "with_", "hint", "kind"}
)  # fmt: skip
_OPERATION = frozenset({"this", "expression", "distinct", "order", "limit", "offset", "with_"})


def bound_query(context: Context, at: exp.Expr, parent: Scope | None) -> tuple[Node, Scope]:
    """Read a query; the scope holds the columns that it reads of the queries around it.

    Raises:
        UsageError: See ``from_sql``.
    """
    scope = Scope(parent)
    _definitions(context, at, scope)
    if isinstance(at, exp.Subquery):
        _only(context, at, frozenset({"this", "with_", "order", "limit", "offset"}))
        node, inner = bound_query(context, at.this, scope)
        scope.outer.update(inner.outer)
        return _ordered(context, at, node, scope), scope
    if isinstance(at, exp.SetOperation):
        return _ordered(context, at, _set_operation(context, at, scope), scope), scope
    if isinstance(at, exp.Select):
        return _select(context, at, scope), scope
    raise context.refused(f"the query form {type(at).__name__.upper()}", at=at)


def _only(context: Context, at: exp.Expr, known: frozenset[str]) -> None:
    for name, value in at.args.items():
        if value and name not in known:
            raise context.refused(f"the clause {name.strip('_').replace('_', ' ').upper()}", at=at)


def _definitions(context: Context, at: exp.Expr, scope: Scope) -> None:
    clause = at.args.get("with_")
    if clause is None:
        return
    if clause.args.get("recursive"):
        raise context.refused("a recursive common table expression", at=clause)
    for each in clause.expressions:
        node, _ = bound_query(context, each.this, Scope(None, views=scope.seen()))
        names = [name.name for name in (each.args["alias"].args.get("columns") or ())]
        definition = Definition(sql_from.renamed(context, node, names, each), context.next_id(), each.alias)
        context.definitions.append(definition)
        scope.views[each.alias.lower()] = definition


def _set_operation(context: Context, at: exp.SetOperation, scope: Scope) -> Node:
    _only(context, at, _OPERATION)
    sides = []
    for part in (at.this, at.expression):
        node, inner = bound_query(context, part, Scope(scope.parent, views=scope.seen()))
        scope.outer.update(inner.outer)
        sides.append(node)
    columns = [outputs(side) for side in sides]
    if len(columns[0]) != len(columns[1]):
        counts = f"{len(columns[0])} and {len(columns[1])}"
        raise context.wrong(f"UNION, INTERSECT and EXCEPT need the same number of columns: {counts}", at)
    kinds = [common(a.type, b.type) for a, b in zip(*columns, strict=True)]
    if any(kind is None for kind in kinds):
        raise context.wrong("UNION, INTERSECT and EXCEPT need columns of a common type", at)
    left, right = (_of_types(context, side, kinds) for side in sides)
    made = tuple(context.attribute(a.name, k) for a, k in zip(columns[0], kinds, strict=True) if k is not None)
    every = not at.args.get("distinct")
    if isinstance(at, exp.Union):
        united = Union((left, right), made)
        return united if every else Distinct(united)
    return SetOperation(left, right, "intersect" if isinstance(at, exp.Intersect) else "except", every, made)


def _of_types(context: Context, node: Node, kinds: list[Type | None]) -> Node:
    columns = outputs(node)
    if all(column.type == kind for column, kind in zip(columns, kinds, strict=True)):
        return node
    return Project(node, tuple(sql_from.cast_column(context, c, k) for c, k in zip(columns, kinds, strict=True)))


def _select(context: Context, at: exp.Select, scope: Scope) -> Node:
    _only(context, at, _SELECT)
    if at.args.get("windows"):
        raise context.refused("the clause WINDOW", at=at.args["windows"][0])
    at = plain_form(context, at)
    node = _source(context, at, scope)
    if where := at.args.get("where"):
        node = Filter(node, Terms(context, scope).condition(where.this))
    aggregates, windows = Calls(context.next_id), Calls(context.next_id)
    grouped = at.args.get("group") is not None or _aggregated(at)
    terms = Terms(context, scope, aggregates if grouped else None, windows)
    items = _items(context, at, scope, terms)
    having = terms.condition(_with_aliases(at, scope)) if at.args.get("having") else None
    qualify = terms.condition(at.args["qualify"].this) if at.args.get("qualify") else None
    order = _order(context, at, terms, items)
    if grouped:
        groups = Groups(context, at, scope, [named.value for named in items])
        node = groups.aggregate(node, tuple(aggregates.named.values()))
        items = [replace(each, value=groups.over(each.value)) for each in items]
        order = [groups.over(key) for key in order]
        windows.named = {call: replace(named, value=groups.over(named.value)) for call, named in windows.named.items()}
        having = None if having is None else groups.over(having)
        qualify = None if qualify is None else groups.over(qualify)
    # The order of SQL: groups, HAVING, windows, QUALIFY.
    if having is not None:
        node = Filter(node, having)
    if windows.named:
        node = Window(node, tuple(windows.named.values()))
    if qualify is not None:
        node = Filter(node, qualify)
    return _checked(context, at, _projected(context, at, node, items, order))


def _with_aliases(at: exp.Select, scope: Scope) -> exp.Expr:
    """The condition of HAVING, in which a name that is no column stands for what is selected under it."""
    items = {each.alias.lower(): each.this for each in at.expressions if isinstance(each, exp.Alias)}

    def named(part: exp.Expr) -> exp.Expr:
        name = part.name.lower() if isinstance(part, exp.Column) and not part.table else ""
        return exp.Paren(this=items[name].copy()) if name in items and not scope.found(name, "") else part

    having: exp.Expr = at.args["having"].this.transform(named)
    return having


def _aggregated(at: exp.Select) -> bool:
    """Return True if a query aggregates without GROUP BY: it has an aggregate of its own that is no window function."""
    for clause in [*at.expressions, at.args.get("having"), at.args.get("order")]:
        waiting = [clause] if clause is not None else []
        while waiting:
            each = waiting.pop()
            if isinstance(each, (exp.AggFunc, exp.CountIf)) and not isinstance(each, (exp.Lag, exp.Lead)):
                return True
            if isinstance(each, exp.Window):
                waiting += _window_parts(each)
            elif not isinstance(each, exp.Query):
                waiting += list(each.iter_expressions())
    return False


def _window_parts(at: exp.Window) -> list[exp.Expr]:
    inner = at.this
    while isinstance(inner, (exp.Filter, exp.IgnoreNulls)):
        inner = inner.this
    order = at.args.get("order")
    return [*inner.iter_expressions(), *(at.args.get("partition_by") or ()), *([order] if order else [])]


def _source(context: Context, at: exp.Select, scope: Scope) -> Node:
    clause = at.args.get("from_")
    if clause is None:
        return LocalRows(context.leaf(), (), ((),))
    return sql_from.source(context, at, clause.this, scope)


def _items(context: Context, at: exp.Select, scope: Scope, terms: Terms) -> list[Named]:
    if not at.expressions:
        raise context.wrong("nothing is selected", at)
    items: list[Named] = []
    for each in at.expressions:
        star = each.this if isinstance(each, exp.Column) and isinstance(each.this, exp.Star) else each
        if isinstance(star, exp.Star):
            _only(context, star, frozenset())
            items += [passed(column) for column in _starred(context, each, scope)]
        else:
            inner = each.this if isinstance(each, exp.Alias) else each
            value = terms.bound(inner)
            called = inner.unnest()  # (a) is called a
            name = each.alias or (called.name if isinstance(called, exp.Column) else inner.sql(context.dialect))
            items.append(context.named(value, name))
    return items


def _starred(context: Context, at: exp.Expr, scope: Scope) -> tuple[Attribute, ...]:
    if not isinstance(at, exp.Column):
        return scope.columns()
    for alias, columns in scope.tables:
        if alias == at.table.lower():
            return columns
    raise context.unknown("relation", at.table, [alias for alias, _ in scope.tables], at)


def _order(context: Context, at: exp.Select, terms: Terms, items: list[Named]) -> list[SortKey]:
    """The keys of ORDER BY: a position, a name of the select list, or an expression."""
    clause = at.args.get("order")
    keys = []
    for each in clause.expressions if clause else ():
        keys.append(terms.sort_key(each, _sorted_by(context, each.this, terms, items)))
    return keys


def _sorted_by(context: Context, at: exp.Expr, terms: Terms, items: list[Named]) -> Expression:
    if isinstance(at, exp.Literal) and not at.is_string:
        return items[position(context, at, len(items))].attribute
    if isinstance(at, exp.Column) and not at.table:
        found = {each.id: each for each in items if each.name.lower() == at.name.lower()}
        if len(found) == 1:
            return next(iter(found.values())).attribute
    value = terms.bound(at)
    return next((each.attribute for each in items if each.value == value), value)


def _projected(context: Context, at: exp.Select, node: Node, items: list[Named], order: list[SortKey]) -> Node:
    """SELECT, DISTINCT, ORDER BY and LIMIT; sort keys that are not selected are carried as far as the sort."""
    distinct = at.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise context.refused("DISTINCT ON", at=distinct)
    made = {each.id for each in items}
    hidden = [key for key in order if not (isinstance(key.value, Attribute) and key.value.id in made)]
    if hidden and distinct:
        raise context.wrong("SELECT DISTINCT: ORDER BY may only use selected columns", at.args["order"])
    extra = {key: context.named(key.value, "sort") for key in hidden}
    node = Project(node, (*items, *extra.values()))
    if distinct:
        node = Distinct(node)
    if order:
        node = Sort(node, tuple(replace(k, value=extra[k].attribute) if k in extra else k for k in order))
    node = limited(context, at, node)
    return Project(node, tuple(passed(each.attribute) for each in items)) if extra else node


def _ordered(context: Context, at: exp.Expr, node: Node, scope: Scope) -> Node:
    """ORDER BY and LIMIT over a whole query."""
    if clause := at.args.get("order"):
        columns = outputs(node)
        terms = Terms(context, Scope(None, [("", columns)]))
        items = [passed(column) for column in columns]
        keys = tuple(terms.sort_key(each, _sorted_by(context, each.this, terms, items)) for each in clause.expressions)
        node = Sort(node, keys)
    return limited(context, at, node)


def limited(context: Context, at: exp.Expr, node: Node) -> Node:
    """LIMIT and OFFSET."""
    numbers = []
    for name in ("limit", "offset"):
        clause = at.args.get(name)
        value = clause.expression if isinstance(clause, (exp.Limit, exp.Offset)) else None
        if clause is not None and not (isinstance(value, exp.Literal) and value.name.isdigit()):
            raise context.refused(f"{name.upper()} with anything but a number", at=clause)
        numbers.append(None if value is None else int(value.name))
    count, offset = numbers
    return node if count is None and not offset else Limit(node, count, offset or 0)


def _checked(context: Context, at: exp.Select, node: Node) -> Node:
    """The node, if every operator reads columns that its inputs have: else something is not grouped."""
    waiting: list[Node] = [node]
    while waiting:
        each = waiting.pop()
        inputs = {column.id for child in each.nodes() for column in outputs(child)}
        if isinstance(each, (Project, Filter, Window, Sort)):
            made = {named.id for named in each.columns} if isinstance(each, Window) else set()
            around = {term.attribute.id for term in walk(each) if isinstance(term, Outer)}
            for term in walk(each):
                missing = _missing(term, inputs | made | around)
                if missing is not None and isinstance(each.nodes()[0], (Aggregate, Filter, Window, Project, Sort)):
                    raise context.wrong(f"column '{missing.name}' is neither grouped nor aggregated", at)
        waiting.extend(each.nodes())
    return node


def _missing(term: Term, inputs: set[int]) -> Attribute | None:
    return term if isinstance(term, Attribute) and term.id not in inputs else None

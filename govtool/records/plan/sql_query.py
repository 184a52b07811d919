"""SQL queries to operators: FROM, WHERE, GROUP BY, HAVING, windows, SELECT, set operations, ORDER BY and LIMIT."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from govtool.records.plan import sql_from
from govtool.records.plan.expressions import Attribute, Call, Expression, Literal, Named, Outer, SortKey, passed
from govtool.records.plan.nodes import (
    Aggregate,
    Definition,
    Distinct,
    Expand,
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
from govtool.records.plan.sql_forms import plain_form
from govtool.records.plan.sql_scope import Calls, Scope
from govtool.records.plan.sql_terms import Terms
from govtool.records.plan.sql_types import common
from govtool.records.plan.tree import Node, Term, walk
from govtool.records.plan.types import INTEGER, Type

if TYPE_CHECKING:
    from govtool.records.plan.from_sql import Context

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
        node, _ = bound_query(context, each.this, Scope(None, views=seen(scope)))
        names = [name.name for name in (each.args["alias"].args.get("columns") or ())]
        definition = Definition(renamed(context, node, names, each), context.next_id(), each.alias)
        context.definitions.append(definition)
        scope.views[each.alias.lower()] = definition


def seen(scope: Scope) -> dict[str, Definition]:
    """The common table expressions that a scope sees, inner ones first."""
    found: dict[str, Definition] = {}
    at: Scope | None = scope
    while at is not None:
        found = {**at.views, **found}
        at = at.parent
    return found


def renamed(context: Context, node: Node, names: list[str], at: exp.Expr) -> Node:
    """A node whose columns have other names."""
    if not names:
        return node
    columns = outputs(node)
    if len(names) != len(columns):
        raise context.wrong(f"{len(names)} names for {len(columns)} columns", at)
    pairs = zip(columns, names, strict=True)
    return Project(node, tuple(Named(column, context.next_id(), name) for column, name in pairs))


def _set_operation(context: Context, at: exp.SetOperation, scope: Scope) -> Node:
    _only(context, at, _OPERATION)
    sides = []
    for part in (at.this, at.expression):
        node, inner = bound_query(context, part, Scope(scope.parent, views=seen(scope)))
        scope.outer.update(inner.outer)
        sides.append(node)
    columns = [outputs(side) for side in sides]
    if len(columns[0]) != len(columns[1]):
        raise context.wrong(f"a set operation of {len(columns[0])} and {len(columns[1])} columns", at)
    kinds = [common(a.type, b.type) for a, b in zip(*columns, strict=True)]
    if any(kind is None for kind in kinds):
        raise context.wrong("a set operation of columns without a common type", at)
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
    aggregates, windows = Calls(), Calls()
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
    if having is not None:
        node = Filter(node, having)
    if windows.named:
        node = Window(node, tuple(windows.named.values()))
    if qualify is not None:
        node = Filter(node, qualify)
    return _checked(context, at, _projected(context, at, node, items, order), scope)


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
    items: list[Named] = []
    for each in at.expressions:
        star = each.this if isinstance(each, exp.Column) and isinstance(each.this, exp.Star) else each
        if isinstance(star, exp.Star):
            _only(context, star, frozenset())
            items += [passed(column) for column in _starred(context, each, scope)]
        else:
            inner = each.this if isinstance(each, exp.Alias) else each
            value = terms.bound(inner)
            name = each.alias or (inner.name if isinstance(inner, exp.Column) else inner.sql(context.dialect))
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
        return items[_position(context, at, len(items))].attribute
    if isinstance(at, exp.Column) and not at.table:
        found = {each.id: each for each in items if each.name.lower() == at.name.lower()}
        if len(found) == 1:
            return next(iter(found.values())).attribute
    return terms.bound(at)


def _position(context: Context, at: exp.Literal, columns: int) -> int:
    number = int(at.name) if at.name.isdigit() else 0
    if not 1 <= number <= columns:
        raise context.wrong(f"position {at.name} of {columns} columns", at)
    return number - 1


def _projected(context: Context, at: exp.Select, node: Node, items: list[Named], order: list[SortKey]) -> Node:
    """SELECT, DISTINCT, ORDER BY and LIMIT; sort keys that are not selected are carried as far as the sort."""
    distinct = at.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise context.refused("DISTINCT ON", at=distinct)
    made = {each.id for each in items}
    hidden = [key for key in order if not (isinstance(key.value, Attribute) and key.value.id in made)]
    if hidden and distinct:
        raise context.wrong("ORDER BY of a DISTINCT query sorts by what it selects", at.args["order"])
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


class Groups:
    """GROUP BY: its keys, and expressions in terms of them."""

    def __init__(self, context: Context, at: exp.Select, scope: Scope, items: list[Expression]) -> None:
        self._context = context
        self._at = at
        self._terms = Terms(context, scope)
        self._items = items
        self._selected = [each.alias.lower() for each in at.expressions]
        self._keys: list[Expression] = []
        self._sets: list[list[Expression]] = [[]]
        clause = at.args.get("group")
        if clause is not None:
            self._read(clause)
        self._columns: dict[Expression, Named] = {}

    def _read(self, clause: exp.Group) -> None:
        if clause.args.get("all"):
            raise self._context.refused("GROUP BY ALL", at=clause)
        for name in ("totals", "cube", "rollup", "grouping_sets"):
            for part in _listed(clause.args.get(name)):
                self._combine(part)
        for each in clause.expressions:
            self._combine(each)

    def _combine(self, at: Any) -> None:
        """Cross the sets so far with those of one item of GROUP BY."""
        if isinstance(at, (exp.Rollup, exp.Cube, exp.GroupingSets)):
            sets = self._sets_of(at)
        else:
            sets = [[self._key(at)]]
        self._sets = [[*one, *other] for one in self._sets for other in sets]
        if len(self._sets) > 4096:
            raise self._context.refused("more than 4,096 grouping sets", at=self._at)

    def _sets_of(self, at: exp.Expr) -> list[list[Expression]]:
        parts = [self._part(each) for each in at.expressions]
        if isinstance(at, exp.GroupingSets):
            return parts
        if isinstance(at, exp.Rollup):
            return [[key for part in parts[:end] for key in part] for end in range(len(parts), -1, -1)]
        if len(parts) > 12:
            raise self._context.refused("more than 4,096 grouping sets", at=at)
        chosen = range(2 ** len(parts) - 1, -1, -1)
        return [[k for n, part in enumerate(parts) if mask >> n & 1 for k in part] for mask in chosen]

    def _part(self, at: exp.Expr) -> list[Expression]:
        if isinstance(at, exp.Tuple):
            return [self._key(each) for each in at.expressions]
        if isinstance(at, (exp.Rollup, exp.Cube)):
            raise self._context.refused("grouping sets in grouping sets", at=at)
        return [self._key(at.this if isinstance(at, exp.Paren) else at)]

    def _key(self, at: exp.Expr) -> Expression:
        if isinstance(at, exp.Literal) and not at.is_string:
            key = self._items[_position(self._context, at, len(self._items))]
        elif isinstance(at, exp.Column) and self._aliased(at):
            key = self._items[self._selected.index(at.name.lower())]
        else:
            key = self._terms.bound(at)
        if key not in self._keys:
            self._keys.append(key)
        return key

    def _aliased(self, at: exp.Column) -> bool:
        here = self._terms._scope.found(at.name.lower(), at.table.lower())
        return not at.table and not here and at.name.lower() in self._selected

    def aggregate(self, node: Node, measures: tuple[Named, ...]) -> Node:
        """The operators of the groups: an Aggregate, over an Expand for grouping sets."""
        if len(self._sets) == 1 and len(self._sets[0]) == len(self._keys):
            self._columns = {key: self._context.named(key, _name(key)) for key in self._keys}
            return Aggregate(node, tuple(self._columns.values()), measures)
        below = [self._context.named(key, _name(key)) for key in self._keys]
        child = outputs(node)
        extra = [each for each in below if each.attribute not in child]
        if extra:
            node = Project(node, (*map(passed, child), *extra))
        return self._expanded(node, below, measures)

    def _expanded(self, node: Node, below: list[Named], measures: tuple[Named, ...]) -> Node:
        child = outputs(node)
        keys = [self._context.attribute(each.name, each.type) for each in below]
        number = self._context.attribute("grouping set", INTEGER)
        lines = []
        for position, chosen in enumerate(self._sets):
            values = [
                b.attribute if k in chosen else Literal(None, b.type) for b, k in zip(below, self._keys, strict=True)
            ]
            lines.append((*child, *values, Literal(position, INTEGER)))
        node = Expand(node, tuple(lines), (*child, *keys, number))
        self._columns = {k: passed(column) for k, column in zip(self._keys, keys, strict=True)}
        return Aggregate(node, (*map(passed, keys), passed(number)), measures)

    def over(self, term: Any) -> Any:
        """An expression in terms of the groups' keys."""
        if term in self._columns:
            return self._columns[term].attribute
        return term.replaced(terms=tuple(self.over(part) for part in term.terms()))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []


def _name(key: Expression) -> str:
    return key.name if isinstance(key, (Attribute, Call)) else "key"


def _checked(context: Context, at: exp.Select, node: Node, scope: Scope) -> Node:
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

"""Forms of Spark SQL that are read as others: ``explode`` in the select list, other names of aggregates."""

from __future__ import annotations

from sqlglot import exp

from govtool.records.plan.sql_context import Context

_NAMED = {"every": exp.LogicalAnd, "some": exp.LogicalOr}


def plain_form(context: Context, at: exp.Select) -> exp.Select:
    """A SELECT without the forms of this module.

    Raises:
        UsageError: ``explode`` stands where it is not covered.
    """
    return _without_explode(context, _renamed(at))


def _renamed(at: exp.Select) -> exp.Select:
    """``any(b)``, ``some(b)`` and ``every(b)`` under the names ``bool_or`` and ``bool_and``."""
    if not any(_aggregate_of(each) for each in at.find_all(exp.Any, exp.Anonymous)):
        return at
    made = at.transform(lambda each: _aggregate_of(each) or each)
    assert isinstance(made, exp.Select)
    return made


def _aggregate_of(at: exp.Expr) -> exp.Expr | None:
    if isinstance(at, exp.Any) and isinstance(at.this, exp.Paren) and not isinstance(at.this.this, exp.Query):
        made: exp.Expr = exp.LogicalOr(this=at.this.this)
    elif isinstance(at, exp.Anonymous) and at.name.lower() in _NAMED and len(at.expressions) == 1:
        made = _NAMED[at.name.lower()](this=at.expressions[0])
    else:
        return None
    made.meta.update(at.meta)
    return made


def _without_explode(context: Context, at: exp.Select) -> exp.Select:
    """``SELECT …, explode(a) AS e`` as ``LATERAL VIEW explode(a)``."""
    items = [(each.this if isinstance(each, exp.Alias) else each) for each in at.expressions]
    places = [number for number, each in enumerate(items) if _is_explode(each)]
    if not places:
        return at
    if len(places) > 1 or any(each.is_star for each in items):
        raise context.refused("explode beside another one, or beside a star", at=items[places[0]])
    if at.args.get("group") or at.args.get("having") or any(each.find(exp.AggFunc, exp.Window) for each in items):
        raise context.refused("explode in a query that groups or has windows", at=items[places[0]])
    return _as_lateral_view(at.copy(), places[0])


def _is_explode(at: exp.Expr) -> bool:
    return isinstance(at, exp.Explode) and not isinstance(at, exp.Posexplode)


def _as_lateral_view(at: exp.Select, place: int) -> exp.Select:
    item = at.expressions[place]
    generator = item.this if isinstance(item, exp.Alias) else item
    column = exp.to_identifier("generated element")
    alias = exp.TableAlias(this=exp.to_identifier("generated"), columns=[column])
    column_of = exp.Column(this=column.copy(), table=exp.to_identifier("generated"))
    column_of.meta.update(generator.meta)
    item.replace(exp.Alias(this=column_of, alias=exp.to_identifier(item.alias or "col")))
    at.set("laterals", [*(at.args.get("laterals") or []), exp.Lateral(this=generator, view=True, alias=alias)])
    return at

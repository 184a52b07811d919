"""Which rows of a group or of a frame are terms of an aggregate's value.

Source: the specification of fine-grained provenance, section 2: NULL cells give no term. They do where the aggregate
may return one of them.
"""

from __future__ import annotations

from govtool.records.plan.expressions import AggregateCall, Call, Expression, Literal
from govtool.records.plan.types import BOOLEAN

_CHOSEN = frozenset({"first", "last", "any_value", "max_by", "min_by"})
"""Aggregates that return their first argument as one row has it, NULL or not."""


def term_conditions(value: Expression) -> list[Expression]:
    """Conditions that the rows of a group meet which are terms of an aggregate: no NULL cells, and those of FILTER."""
    if not isinstance(value, AggregateCall):
        return []
    keeps_null = value.name in _CHOSEN and not dict(value.options).get("ignore nulls")
    arguments = [each for each in value.arguments[int(keeps_null) :] if not isinstance(each, Literal)]
    conditions: list[Expression] = [Call("is not null", (each,), BOOLEAN) for each in arguments]
    return conditions + ([] if value.filter is None else [value.filter])

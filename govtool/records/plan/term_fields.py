"""The fields of Catalyst's expressions, as ``PlanWalker`` writes them: numbers of terms, types and modes."""

from __future__ import annotations

from typing import Any, cast

from govtool.records.plan import types as t
from govtool.records.plan.expressions import (
    AggregateCall,
    Attribute,
    Call,
    Case,
    Cast,
    Exists,
    Expression,
    InSubquery,
    Lambda,
    Literal,
    Mode,
    Named,
    Opaque,
    Outer,
    ScalarSubquery,
    Udf,
    UdfReference,
    Variable,
    WindowCall,
)
from govtool.records.plan.term_pieces import Common, Unread
from govtool.records.plan.tree import Term

Json = Any
EXPRESSIONS = (
    Literal, Attribute, Outer, Call, Cast, Case, Variable, Lambda, AggregateCall, WindowCall, Udf, ScalarSubquery,
    Exists, InSubquery, Opaque,
)  # fmt: skip


class TermFields:
    """What the expressions of one plan refer to.

    Args:
        types: The types of the plan, as Spark's JSON.
        made: What was read so far, by number.
        zone: The session's time zone.
        udfs: Identities of Python functions by the digest of their command.
    """

    def __init__(self, types: list[Json], made: list[Any], zone: str, udfs: dict[str, UdfReference]) -> None:
        self.types = [_type(each) for each in types]
        self.made = made
        self.zone = zone
        self.udfs = udfs

    def term(self, value: Json) -> Term:
        """The term that a field refers to."""
        if not (isinstance(value, dict) and "$" in value):
            raise Unread("a field is no expression")
        found = self.made[value["$"]]
        if not isinstance(found, Term):
            raise Unread("a field is no expression")
        return found

    def value(self, value: Json) -> Expression:
        """The expression that a field refers to; of a named one its value."""
        found = self.term(value)
        if isinstance(found, Named):
            return found.value
        if isinstance(found, (*EXPRESSIONS, Common)):
            return cast(Expression, found)
        raise Unread(f"{type(found).__name__} where a value is expected")

    def values(self, value: Json) -> tuple[Expression, ...]:
        """The expressions of a field that is a sequence."""
        return tuple(self.value(each) for each in value or ())

    def type(self, value: Json) -> t.Type:
        """A type by its number."""
        return self.types[value["$type"] if isinstance(value, dict) else value]


def read_mode(field: str, value: Json) -> Mode:
    """The mode of a function, by the field that holds it.

    Raises:
        Unread: A mode that the plan form does not cover.
    """
    if isinstance(value, dict) and "$product" in value:
        context = value["f"]
        if not context.get("allowDecimalPrecisionLoss", True):
            raise Unread("decimals under allowPrecisionLoss=false")
        value = context["evalMode"]
    if isinstance(value, dict) and "$enum" in value:
        return cast(Mode, str(value["$enum"]).lower())
    strict = not value if field in ("nullOnInvalidFormat", "legacySizeOfNull") else value
    return "ansi" if strict else "legacy"


def _type(value: Json) -> t.Type:
    try:
        return t.from_json(value)
    except ValueError:
        return t.Unknown(str(value)[:200])

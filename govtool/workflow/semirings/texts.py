"""Expressions and values in canonical strings: ``COUNT(a⊗1 + b⊗1) >= 2``."""

from __future__ import annotations

import decimal
from collections.abc import Mapping
from typing import Any

from govtool.records.plan.expressions import (
    AggregateCall,
    Attribute,
    Call,
    Case,
    Cast,
    Expression,
    Lambda,
    Literal,
    Udf,
    Variable,
)
from govtool.records.plan.tree import Term, walk

INFIX = frozenset({"=", "<=>", "<", "<=", ">", ">=", "+", "-", "*", "/", "div", "%", "and", "or", "like", "||"})
_LISTS = {"collect_list": "COLLECT", "collect_set": "COLLECT"}


def aggregate_name(call: AggregateCall) -> str:
    """The name of an aggregate in a canonical string."""
    return _LISTS.get(call.name, call.name.upper())


def value_text(value: Any) -> str:
    """A value in a canonical string."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(value_text, value))}]"
    return str(value)


def expression_text(value: Expression, columns: Mapping[int, str]) -> str:
    """An expression with texts for its columns; casts are left out, as types are not provenance.

    Args:
        value: The expression.
        columns: Texts; one that is an ``OperatorText`` stands in brackets within an operator.
    """
    return _text(value, columns, False)


class OperatorText(str):
    """The text of an operator between operands, ``COUNT(a⊗1) - 1``: within another one it stands in brackets."""

    __slots__ = ()


def operand(text: str) -> str:
    """A text as it stands within an operator."""
    return f"({text})" if isinstance(text, OperatorText) else text


def folded(value: Expression, computed: frozenset[int]) -> tuple[Expression, dict[int, Expression]]:
    """An expression with columns for its largest parts that read nothing computed, and these parts.

    Args:
        value: The expression.
        computed: The columns that are computed.
    """
    parts: dict[Expression, int] = {}

    def change(term: Term) -> Term:
        if isinstance(term, (Attribute, Literal, Variable)) or not hasattr(term, "type"):
            return term if not isinstance(term, Attribute) or term.id in computed else _named(term)
        if _is_open(term) or any(isinstance(each, Attribute) and each.id in computed for each in walk(term)):
            return term.replaced(terms=tuple(change(each) for each in term.terms()))
        return _named(term)

    def _named(term: Term) -> Term:
        if isinstance(term, Literal):
            return term
        number = parts.setdefault(term, -1 - len(parts))  # type: ignore[arg-type]
        return Attribute(number, "part", term.type)  # type: ignore[attr-defined]

    made = change(value)
    return made, {number: part for part, number in parts.items()}  # type: ignore[return-value]


def _is_open(term: Term) -> bool:
    """Return whether a term is no value by itself: a lambda, or a part of one that reads its parameters."""
    if isinstance(term, Lambda):
        return True
    declared = {each.id for inner in walk(term) if isinstance(inner, Lambda) for each in inner.parameters}
    return any(isinstance(each, Variable) and each.id not in declared for each in walk(term))


def plain_type(value: Expression, number: int) -> Any:
    """The type of a column that an expression reads."""
    return next(term.type for term in walk(value) if isinstance(term, Attribute) and term.id == number)


def _text(term: Term, columns: Mapping[int, str], inside: bool) -> str:
    if isinstance(term, Attribute):
        text = columns.get(term.id, term.name)
        return operand(text) if inside else text
    if isinstance(term, Literal):
        return value_text(_literal(term))
    if isinstance(term, Cast):
        return _text(term.value, columns, inside)
    if isinstance(term, Case):
        parts = [part for branch in term.branches for part in branch]
        other = [] if term.otherwise is None else [term.otherwise]
        return f"CASE({', '.join(_text(each, columns, False) for each in (*parts, *other))})"
    if isinstance(term, Udf):
        return f"{term.reference.qualname}({', '.join(_text(each, columns, False) for each in term.arguments)})"
    if isinstance(term, Lambda):
        names = ", ".join(each.name for each in term.parameters)
        names = names if len(term.parameters) == 1 else f"({names})"
        return f"{names} -> {_text(term.body, columns, False)}"
    if isinstance(term, Variable):
        return term.name
    return _call(term, columns, inside) if isinstance(term, Call) else type(term).__name__


def _call(call: Call, columns: Mapping[int, str], inside: bool) -> str:
    inner = call.arguments[0] if call.arguments else None
    if call.name == "not" and isinstance(inner, Call) and inner.name == "=":
        return _infix("<>", inner, columns, inside)
    if call.name in INFIX and len(call.arguments) == 2:
        return _infix(call.name.upper(), call, columns, inside)
    if call.name in ("is null", "is not null"):
        text = OperatorText(f"{_text(call.arguments[0], columns, True)} {call.name.upper()}")
        return operand(text) if inside else text
    return f"{call.name.upper()}({', '.join(_text(each, columns, False) for each in call.arguments)})"


def _infix(name: str, call: Call, columns: Mapping[int, str], inside: bool) -> str:
    text = OperatorText(f" {name} ".join(_text(each, columns, True) for each in call.arguments))
    return operand(text) if inside else text


def _literal(term: Literal) -> Any:
    import datetime

    from govtool.records.plan.types import DATE

    if term.type == DATE and isinstance(term.value, int):
        return datetime.date(1970, 1, 1) + datetime.timedelta(days=term.value)
    return term.value

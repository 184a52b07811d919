"""What writers of DuckDB's functions share: their type, templates for certain types, and the constants of a call."""

from __future__ import annotations

from collections.abc import Callable

from govtool.records.plan import types as t
from govtool.records.plan.expressions import Call, Expression, Literal
from govtool.records.sql.dialect import Dialect, NotExact

WriteFunction = Callable[[Dialect, Call, list[str], list[t.Type]], str]


def typed(template: str, *allowed: tuple[t.Type, ...]) -> WriteFunction:
    """A template for arguments of exactly these types."""

    def write(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
        if tuple(kinds) not in allowed:
            raise NotExact(f"{call.name} of {', '.join(t.as_text(each) for each in kinds)}")
        return template.format(*parts, kind=dialect.type(call.type))

    return write


def number_of(expression: Expression) -> int | None:
    """The whole number that a constant is; else None."""
    value = expression.value if isinstance(expression, Literal) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text_of(expression: Expression) -> str | None:
    """The text that a constant is; else None."""
    value = expression.value if isinstance(expression, Literal) else None
    return value if isinstance(value, str) else None

"""Types of Spark SQL's operators and functions: what a result is, and what operands are cast to.

Source: Spark SQL reference, "ANSI Compliance" (type promotion, least common type) and "Decimal operations".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from govtool.records.plan.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTEGRAL,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    Array,
    Decimal,
    Scalar,
    Type,
    same,
)

_DIGITS = {BYTE: 3, SHORT: 5, INTEGER: 10, LONG: 20}
_NUMERIC = (*INTEGRAL, FLOAT, DOUBLE)

NAMED: dict[str, Type] = {
    "BOOLEAN": BOOLEAN, "TINYINT": BYTE, "SMALLINT": SHORT, "INT": INTEGER, "BIGINT": LONG, "FLOAT": FLOAT,
    "DOUBLE": DOUBLE, "TEXT": STRING, "VARCHAR": STRING, "DATE": DATE, "TIMESTAMP": TIMESTAMP, "BINARY": BINARY,
    "TIMESTAMPNTZ": TIMESTAMP_NTZ, "TIMESTAMPLTZ": TIMESTAMP, "TIMESTAMPTZ": TIMESTAMP,
}  # fmt: skip
"""Types by sqlglot's names."""


def is_numeric(kind: Type) -> bool:
    """Return True for integers, decimals and floats."""
    return kind in _NUMERIC or isinstance(kind, Decimal)


def as_decimal(kind: Type) -> Decimal:
    """The decimal that holds every value of an integral type; a decimal as it is."""
    return kind if isinstance(kind, Decimal) else Decimal(_DIGITS[Scalar(getattr(kind, "name", "long"))], 0)


def bounded(precision: int, scale: int) -> Decimal:
    """A decimal of at most 38 digits; what does not fit is taken from the scale, down to 6 digits."""
    if precision <= 38:
        return Decimal(precision, scale)
    return Decimal(38, max(38 - (precision - scale), min(scale, 6)))


def common(left: Type, right: Type) -> Type | None:
    """The least common type of two operands or of two branches; None where there is none."""
    if same(left, right):
        return left
    if VOID in (left, right):
        return right if left == VOID else left
    if is_numeric(left) and is_numeric(right):
        return _wider(left, right)
    if isinstance(left, Array) and isinstance(right, Array):
        element = common(left.element, right.element)
        return None if element is None else Array(element, left.nullable or right.nullable)
    if {left, right} == {DATE, TIMESTAMP}:
        return TIMESTAMP
    return _from_text(left, right) if STRING in (left, right) else None


def _from_text(left: Type, right: Type) -> Type | None:
    other = right if left == STRING else left
    if other in INTEGRAL:
        return LONG
    if is_numeric(other):
        return DOUBLE
    return other if other in (DATE, TIMESTAMP, TIMESTAMP_NTZ, BOOLEAN) else None


def _wider(left: Type, right: Type) -> Type:
    if left in _NUMERIC and right in _NUMERIC:
        if FLOAT in (left, right) and DOUBLE not in (left, right) and left != right:
            return DOUBLE  # ANSI: a float does not hold every integer
        return max(left, right, key=_NUMERIC.index)
    if {left, right} & {FLOAT, DOUBLE}:
        return DOUBLE
    a, b = as_decimal(left), as_decimal(right)
    scale, whole = max(a.scale, b.scale), max(a.precision - a.scale, b.precision - b.scale)
    return Decimal(min(whole + scale, 38), min(scale, 38 - whole))


def arithmetic(name: str, left: Type, right: Type) -> tuple[Type, Type, Type] | None:
    """The types that the operands of ``+ - * / div %`` are cast to, and the result's; None where they do not fit.

    Decimals are not cast to one type: the result's digits are those of each as it is.
    """
    if not (_number(left) and _number(right)):
        return None
    if name == "/" and (left == VOID or not (isinstance(left, Decimal) or isinstance(right, Decimal))):
        return DOUBLE, DOUBLE, DOUBLE
    left, right = (right if left == VOID else left), (left if right == VOID else right)
    wide = common(left, right)
    if name == "div":
        return None if wide is None or wide in (FLOAT, DOUBLE) else (wide, wide, LONG)
    if wide is None or not isinstance(wide, Decimal):
        return None if wide is None else (wide, wide, wide)
    a, b = as_decimal(left), as_decimal(right)
    return a, b, _decimal_result(name, a, b)


def _number(kind: Type) -> bool:
    return is_numeric(kind) or kind == VOID


def _decimal_result(name: str, a: Decimal, b: Decimal) -> Decimal:
    p1, s1, p2, s2 = a.precision, a.scale, b.precision, b.scale
    if name == "*":
        return bounded(p1 + p2 + 1, s1 + s2)
    if name == "/":
        scale = max(6, s1 + p2 + 1)
        return bounded(p1 - s1 + s2 + scale, scale)
    if name == "%":
        return bounded(min(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2))
    return bounded(max(p1 - s1, p2 - s2) + max(s1, s2) + 1, max(s1, s2))


def summed(kind: Type) -> Type | None:
    """The type of SUM."""
    if isinstance(kind, Decimal):
        return Decimal(min(kind.precision + 10, 38), kind.scale)
    return LONG if kind in INTEGRAL else DOUBLE if kind in (FLOAT, DOUBLE, VOID) else None


def averaged(kind: Type) -> Type | None:
    """The type of AVG."""
    if isinstance(kind, Decimal):
        return Decimal(min(kind.precision + 4, 38), min(kind.scale + 4, 38))
    return DOUBLE if kind in (*_NUMERIC, VOID) else None


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the allow-list.

    Attributes:
        name: Spark SQL's, in lower case.
        parameters: What arguments are cast to; None leaves one as it is. The last holds for all that follow.
        result: The type of the result, by the arguments' types after the casts.
        least: The fewest arguments.
        most: The most.
    """

    name: str
    parameters: tuple[Type | None, ...]
    result: Callable[[list[Type]], Type]
    least: int = 1
    most: int = 1


def _always(kind: Type) -> Callable[[list[Type]], Type]:
    return lambda types: kind


def _first(types: list[Type]) -> Type:
    return types[0]


FUNCTIONS: dict[str, Function] = {
    "Upper": Function("upper", (STRING,), _always(STRING)),
    "Lower": Function("lower", (STRING,), _always(STRING)),
    "Length": Function("length", (STRING,), _always(INTEGER)),
    "Trim": Function("trim", (STRING,), _always(STRING)),
    "Concat": Function("concat", (STRING,), _always(STRING), most=255),
    "DPipe": Function("concat", (STRING,), _always(STRING), 2, 2),
    "Substring": Function("substring", (STRING, INTEGER), _always(STRING), 2, 3),
    "Abs": Function("abs", (None,), _first),
    "IsNan": Function("isnan", (DOUBLE,), _always(BOOLEAN)),
    "Year": Function("year", (DATE,), _always(INTEGER)),
    "Month": Function("month", (DATE,), _always(INTEGER)),
    "Day": Function("dayofmonth", (DATE,), _always(INTEGER)),
    "DayOfMonth": Function("dayofmonth", (DATE,), _always(INTEGER)),
    "DateDiff": Function("datediff", (DATE,), _always(INTEGER), 2, 2),
    "AddMonths": Function("add_months", (DATE, INTEGER), _always(DATE), 2, 2),
    "TsOrDsToDate": Function("to_date", (DATE,), _always(DATE)),
    "ArraySize": Function("size", (None,), _always(INTEGER)),
    "StartsWith": Function("startswith", (STRING,), _always(BOOLEAN), 2, 2),
    "EndsWith": Function("endswith", (STRING,), _always(BOOLEAN), 2, 2),
    "Contains": Function("contains", (STRING,), _always(BOOLEAN), 2, 2),
}
"""Row functions by sqlglot's class."""

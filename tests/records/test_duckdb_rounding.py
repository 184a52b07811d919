"""Functions that DuckDB computes otherwise than Spark, and how they are written so that it does not."""

from __future__ import annotations

import decimal
import math
import random

import pytest

from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.plan.expressions import AggregateCall, Attribute, Call, Cast, Literal, Named
from govtool.records.plan.nodes import Aggregate, LocalRows, Project, Session
from govtool.records.plan.types import DOUBLE, INTEGER, Decimal
from govtool.records.sql.dialect import NotExact

X = Attribute(1, "x", DOUBLE)


def executor():
    return DuckExecutor(Session("", ansi=True, zone="UTC"))


def rounded(values, places):
    call = Call("round", (X, Literal(places, INTEGER)), DOUBLE)
    plan = Project(LocalRows(0, (X,), tuple((value,) for value in values)), (Named(call, 2, "r"),))
    return [value for (value,) in executor().fetch(plan)]


# The results are those of SELECT round(x, n) in Spark 4.
@pytest.mark.parametrize(
    ("places", "pairs"),
    [
        (2, {2.675: 2.68, -2.675: -2.68, 1.005: 1.01, 0.285: 0.29, 100.0: 100.0, 123456789012345.67: 123456789012345.67}),
        (0, {0.5: 1.0, 1.5: 2.0, -0.5: -1.0, 0.001: 0.0, -0.25: 0.0, 999999999999999.5: 1e15}),
        (3, {-0.0: 0.0, math.inf: math.inf, -math.inf: -math.inf, 1.0005: 1.001, 2.0004999999: 2.0}),
    ],
)  # fmt: skip
def test_floats_are_rounded_by_the_digits_that_they_show(places, pairs):
    assert dict(zip(pairs, rounded(pairs, places), strict=True)) == pairs


def test_a_float_without_a_number_stays():
    assert rounded([None], 2) == [None]
    assert math.isnan(*rounded([math.nan], 2))


@pytest.mark.parametrize("value", [0.0009, -1e15, 1e300, 5e-324])
def test_floats_that_are_shown_with_an_exponent_are_left_to_spark(value):
    with pytest.raises(NotExact, match="round"):
        rounded([1.0, value], 2)


def as_decimal(values, kind):
    plan = Project(LocalRows(0, (X,), tuple((value,) for value in values)), (Named(Cast(X, kind, "ansi"), 2, "d"),))
    return [value for (value,) in executor().fetch(plan)]


def test_doubles_become_decimals_by_the_digits_that_they_show():
    """The oracle is what Spark does: the decimal number that is shown, rounded half up."""
    numbers = random.Random(5)
    values = [
        1.005,
        -1.005,
        2.675,
        0.0,
        -0.0,
        999.995,
        1e-7,
        None,
        *(numbers.randint(-(10**6), 10**6) / 1000 for _ in range(500)),
    ]
    cent = decimal.Decimal("0.01")
    shown = [None if value is None else decimal.Decimal(repr(value)) for value in values]
    expected = [None if value is None else value.quantize(cent, decimal.ROUND_HALF_UP) for value in shown]
    assert as_decimal(values, Decimal(16, 2)) == expected


@pytest.mark.parametrize(
    ("value", "kind"),
    [(1e15, Decimal(38, 2)), (0.0005, Decimal(16, 4)), (math.nan, Decimal(16, 2)), (99.995, Decimal(4, 2))],
)
def test_doubles_without_such_digits_and_those_that_do_not_fit_are_left_to_spark(value, kind):
    with pytest.raises(NotExact, match="a cast of double"):
        as_decimal([1.0, value], kind)


def moments(name, values):
    rows = LocalRows(0, (X,), tuple((value,) for value in values))
    measure = Named(AggregateCall(name, (X,), DOUBLE), 2, "m")
    return executor().fetch(Aggregate(rows, (), (measure,)))[0][0]


def test_moments_of_too_few_values_are_null():
    assert moments("stddev_samp", [3.0]) is None
    assert moments("var_samp", [None, 3.0]) is None
    assert moments("stddev_pop", [3.0]) == 0.0
    assert moments("var_pop", []) is None
    assert moments("var_samp", [1.0, 2.0, 4.0]) == pytest.approx(7 / 3)


def test_moments_of_infinite_values_are_left_to_spark():
    with pytest.raises(NotExact, match="DuckDB"):
        moments("stddev_samp", [1.0, math.inf])


def test_products_of_a_long_and_a_short_decimal_are_rounded_in_either_order():
    """``(50/100.0) * max(total)``: the oracle is the exact product, rounded half up to the places of Spark's type."""
    short, long, own = Decimal(9, 6), Decimal(38, 2), Decimal(38, 6)
    digits = decimal.Context(prec=80, rounding=decimal.ROUND_HALF_UP)
    a, b = Attribute(1, "a", short), Attribute(2, "b", long)
    rng = random.Random(5)
    pairs = [
        (decimal.Decimal("0.500000"), decimal.Decimal("12.35")),
        (decimal.Decimal("-0.000150"), decimal.Decimal("0.01")),
    ]
    pairs += [
        (decimal.Decimal(rng.randint(-999999999, 999999999)).scaleb(-6), decimal.Decimal(rng.randint(-(10**12), 10**12)).scaleb(-2))
        for _ in range(50)
    ]  # fmt: skip
    expected = [digits.quantize(digits.multiply(*pair), decimal.Decimal("0.000001")) for pair in pairs]
    for factors in ((a, b), (b, a)):
        product = Call("*", factors, own, "ansi")
        plan = Project(LocalRows(0, (a, b), tuple(pairs)), (Named(product, 3, "p"),))
        assert [value for (value,) in executor().fetch(plan)] == expected
    huge = Project(LocalRows(0, (a, b), ((pairs[0][0], decimal.Decimal(10) ** 30),)), (Named(product, 3, "p"),))
    with pytest.raises(NotExact, match="product of decimals"):
        executor().fetch(huge)

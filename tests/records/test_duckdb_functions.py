"""Functions on texts and times in DuckDB: what Spark gives, or a refusal. The results are those of Spark 4.1 in UTC."""

from __future__ import annotations

import datetime as dt
import decimal

import pytest

from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.plan.expressions import Attribute, Call, Cast, Literal, Named
from govtool.records.plan.nodes import LocalRows, Project, Session
from govtool.records.plan.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    Array,
    Decimal,
)
from govtool.records.sql.dialect import NotExact

DAY, MOMENT = dt.date(1970, 1, 1), dt.datetime(1970, 1, 1)


def evaluated(make, kind, *values, zone="UTC"):
    """An expression over a column of these values."""
    x = Attribute(1, "x", kind)
    plan = Project(LocalRows(0, (x,), tuple((_stored(each),) for each in values)), (Named(make(x), 2, "r"),))
    return [found for (found,) in DuckExecutor(Session("", ansi=True, zone=zone)).fetch(plan)]


def _stored(value):
    if isinstance(value, dt.datetime):
        return (value - MOMENT) // dt.timedelta(microseconds=1)
    return (value - DAY).days if isinstance(value, dt.date) else value


def call(name, kind, *arguments, first=False):
    """A function of x and constants; ``first``: x is the last argument."""
    constants = tuple(Literal(each, INTEGER if isinstance(each, int) else STRING) for each in arguments)
    return lambda x: Call(name, (*constants, x) if first else (x, *constants), kind)


LIST = Array(STRING, False)


@pytest.mark.parametrize(
    ("name", "arguments", "pairs"),
    [
        ("split", (",", -1), {"a,,b,": ["a", "", "b", ""], "": [""], "a": ["a"]}),
        ("split", ("\\|", -1), {"a|b": ["a", "b"]}),
        ("split", ("[.]", 0), {"a.b": ["a", "b"]}),
        ("split", ("\\s+", -1), {" a \t\nb ": ["", "a", "b", ""]}),
        ("replace", ("", "z"), {"ab": "ab"}),
        ("replace", ("aa", "a"), {"aaaaa": "aaa"}),
        ("lpad", (5, "xy"), {"é日": "xyxé日", "abcdef": "abcde"}),
        ("substring_index", (",", -2), {"a,b,c": "b,c", "a": "a", "": ""}),
        ("split_part", (",", -1), {"a,b": "b", "": ""}),
        ("translate", ("aab", "xyz"), {"abc": "xzc"}),
        ("instr", ("",), {"abc": 1, "": 1}),
        ("concat_ws", ("k",), {"-": "k"}),
    ],
)
def test_functions_on_texts(name, arguments, pairs):
    kind = {"split": LIST, "instr": INTEGER}.get(name, STRING)
    assert evaluated(call(name, kind, *arguments), STRING, *pairs, None) == [*pairs.values(), None]


@pytest.mark.parametrize(
    ("name", "arguments", "value", "reason"),
    [
        ("split", ("a|b", -1), "x", "regular expression"),
        ("split", (",", 2), "x", "with a limit"),
        ("split", ("\\s+", -1), "a\x0bb", "split"),
        ("substring_index", ("ab", 1), "x", "single character"),
        ("lpad", (3, ""), "x", "lpad"),
    ],
)
def test_what_other_engines_do_otherwise_is_left_to_spark(name, arguments, value, reason):
    with pytest.raises(NotExact, match=reason):
        evaluated(call(name, LIST if name == "split" else STRING, *arguments), STRING, value)


@pytest.mark.parametrize(
    ("kind", "pairs", "refused"),
    [
        (DOUBLE, {"-1.5": -1.5, "007": 7.0}, "1e5"),
        (Decimal(10, 2), {"1.005": decimal.Decimal("1.01"), "-1.005": decimal.Decimal("-1.01")}, ".5"),
        (DATE, {"2024-02-29": dt.date(2024, 2, 29)}, "2024-2-9"),
        (TIMESTAMP, {"2024-01-07 12:30:15.5": dt.datetime(2024, 1, 7, 12, 30, 15, 500000)}, "2024-01-07T12:30:15"),
        (BINARY, {"é": "é".encode()}, None),
    ],
)
def test_casts_of_texts(kind, pairs, refused):
    def make(x):
        return Cast(x, kind, "ansi")

    assert evaluated(make, STRING, *pairs, None) == [*pairs.values(), None]
    if refused is not None:
        with pytest.raises(NotExact, match="a cast"):
            evaluated(make, STRING, refused)


SUNDAY = dt.date(2021, 1, 3)
NOON = dt.datetime(1969, 12, 31, 23, 59, 59, 500000)


@pytest.mark.parametrize(
    ("make", "kind", "value", "result"),
    [
        (call("dayofweek", INTEGER), DATE, SUNDAY, 1),
        (call("weekday", INTEGER), DATE, SUNDAY, 6),
        (call("weekofyear", INTEGER), DATE, SUNDAY, 53),
        (call("trunc", DATE, "week"), DATE, SUNDAY, dt.date(2020, 12, 28)),
        (call("date_trunc", TIMESTAMP, "MONTH", first=True), TIMESTAMP, NOON, dt.datetime(1969, 12, 1)),
        (call("hour", INTEGER), TIMESTAMP, NOON, 23),
        (call("unix_seconds", LONG), TIMESTAMP, NOON, -1),
        (call("unix_timestamp", LONG), TIMESTAMP, NOON, 0),
        (lambda x: Cast(x, LONG, "ansi"), TIMESTAMP, NOON, -1),
        (lambda x: Cast(x, STRING, "ansi"), TIMESTAMP, NOON, "1969-12-31 23:59:59.5"),
        (call("date_format", STRING, "dd/MM/yyyy"), TIMESTAMP, NOON, "31/12/1969"),
        (call("to_date", DATE, "yyyy-MM-dd"), STRING, "2021-01-03", SUNDAY),
    ],
)
def test_functions_on_times(make, kind, value, result):
    assert evaluated(make, kind, value, None) == [result, None]


@pytest.mark.parametrize("make", [call("hour", INTEGER), call("date_format", STRING, "yyyy")])
def test_what_depends_on_the_zone_is_left_to_spark(make):
    with pytest.raises(NotExact, match="zone of the session"):
        evaluated(make, TIMESTAMP, NOON, zone="Europe/Berlin")


def test_lists_of_texts_are_joined_without_what_is_unknown():
    def joined(name, first):
        separator = Literal("-", STRING)
        return lambda x: Call(name, (separator, x) if first else (x, separator), STRING)

    values = [("a", None, "b"), (None,), (), ("",), None]
    assert evaluated(joined("concat_ws", True), Array(STRING, True), *values) == ["a-b", "", "", "", ""]
    assert evaluated(joined("array_join", False), Array(STRING, True), *values) == ["a-b", "", "", "", None]


def test_a_value_that_may_be_among_those_that_are_unknown():
    def contains(x):
        return Call("array_contains", (x, Literal("a", STRING)), BOOLEAN)

    values = [("a", None), ("b", None), ("b",), (), None]
    assert evaluated(contains, Array(STRING, True), *values) == [True, None, False, False, None]

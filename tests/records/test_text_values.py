"""Constants that are written as text: their values, and conditions that compare them with other types."""

from __future__ import annotations

import duckdb
import pytest

from govtool.errors import UsageError
from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Call, Cast, Literal, Named
from govtool.records.plan.from_sql import condition_from_sql
from govtool.records.plan.nodes import LocalRows, Project, Session
from govtool.records.plan.text_values import text_value

COLUMNS = (
    Attribute(1, "n", t.LONG),
    Attribute(2, "s", t.STRING),
    Attribute(3, "d", t.DATE),
    Attribute(4, "ts", t.TIMESTAMP),
    Attribute(5, "x", t.DOUBLE),
)
HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        (" +12 ", t.LONG, 12),
        ("128", t.BYTE, None),
        ("1.5", t.INTEGER, None),
        ("1e3", t.DOUBLE, 1000.0),
        ("NaN", t.DOUBLE, None),
        ("0x10", t.DOUBLE, None),
        ("TRUE", t.BOOLEAN, True),
        ("t", t.BOOLEAN, None),
        ("1970-01-03", t.DATE, 2),
        ("2026-02-30", t.DATE, None),
        ("1970-1-3", t.DATE, None),
        ("1970-01-01 02:00:00", t.TIMESTAMP_NTZ, 2 * HOUR),
        ("1970-01-01 02:00:00", t.TIMESTAMP, None),
        ("1970-01-01T02:00:00+02:00", t.TIMESTAMP, 0),
        ("1970-01-01 02:00:00+18:30", t.TIMESTAMP, None),
        ("1970-01-01 02:00:00Z", t.TIMESTAMP_NTZ, None),
    ],
)
def test_texts_as_values(text, kind, value):
    assert text_value(text, kind) == value


def test_local_times_that_a_zone_has_twice_or_skips_are_those_of_java_time():
    twice = text_value("2026-10-25 02:30:00", t.TIMESTAMP, "Europe/Berlin")
    skipped = text_value("2026-03-29 02:30:00", t.TIMESTAMP, "Europe/Berlin")
    early, late = (text_value(text, t.TIMESTAMP, "UTC") for text in ("2026-10-25 00:30:00", "2026-03-29 01:30:00"))
    assert (twice, skipped) == (early, late)
    assert text_value("2026-10-25 02:30:00", t.TIMESTAMP, "no/zone") is None


@pytest.mark.parametrize("condition", ["n = '5'", "n IN ('5', '7')", "n BETWEEN '5' AND '6'", "d < '2026-01-01'"])
def test_texts_in_conditions_become_constants(condition):
    bound = condition_from_sql(condition, COLUMNS)
    waiting, found = [bound], []
    while waiting:
        each = waiting.pop()
        assert not isinstance(each, Cast)
        found += [each] if isinstance(each, Literal) else []
        waiting += each.arguments if isinstance(each, Call) else ()
    assert found
    assert all(not isinstance(each.value, str) for each in found)


@pytest.mark.parametrize("condition", ["n > 'abc'", "'' = n", "x <> 'five'", "n IN (1, 'a')", "n BETWEEN 1 AND 'z'"])
def test_a_word_compared_with_a_number_is_a_mistake_of_the_expression(condition):
    with pytest.raises(UsageError, match="is no number") as caught:
        condition_from_sql(condition, COLUMNS)
    assert caught.value.code == "usage.sql-meaning"


@pytest.mark.parametrize("condition", ["x = 'Infinity'", "x = 'nan'", "coalesce(n, 'none') = 1"])
def test_other_texts_stay_casts(condition):
    assert "Cast(" in repr(condition_from_sql(condition, COLUMNS))


def test_an_empty_expression():
    with pytest.raises(UsageError, match="is empty"):
        condition_from_sql(" \n", COLUMNS)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_duckdb_reads_a_constant_time_in_the_recorded_zone(zone):
    cell = Cast(Literal("2026-07-04 12:00:00.25", t.STRING), t.TIMESTAMP, "ansi")
    node = Project(LocalRows(0, (), ((),)), (Named(cell, 9, "at"),))
    ((found,),) = DuckExecutor(Session("4.0", True, zone), threads=1).fetch(node)
    connection = duckdb.connect()
    connection.execute(f"SET TimeZone = '{zone}'")
    ((same,),) = connection.execute(
        "SELECT CAST(TIMESTAMPTZ '2026-07-04 12:00:00.25' AT TIME ZONE 'UTC' AS TIMESTAMP)"
    ).fetchall()
    assert found == same

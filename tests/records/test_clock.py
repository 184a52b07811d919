"""The recorded run's value of ``current_timestamp`` and its like."""

from __future__ import annotations

import pytest

from govtool.records.plan.clock import Clock

DAY = 86_400_000_000
NOON = 20_000 * DAY + DAY // 2


def test_a_value_that_was_seen_is_the_value():
    clock = Clock((NOON - 5, NOON + 5), {"CurrentTimestamp": NOON + 1, "CurrentDate": 20_000})
    assert clock.value("CurrentTimestamp", "UTC") == NOON + 1
    assert clock.value("Now", "UTC") == NOON + 1
    assert clock.value("CurrentDate", "No/Zone") == 20_000
    assert clock.value("LocalTimestamp", "Asia/Kolkata") == NOON + 1 + 5.5 * 3600 * 1_000_000


def test_a_date_is_known_by_the_span_but_for_midnight():
    assert Clock((NOON - 5, NOON + 5)).value("CurrentDate", "UTC") == 20_000
    assert Clock((NOON - 5, NOON + 5)).value("CurrentDate", "Pacific/Kiritimati") == 20_001
    assert Clock((NOON - 5, NOON + 5)).value("CurrentDate", "Asia/Kamchatka") is None  # midnight there
    assert Clock((NOON - 5, NOON + 5)).value("CurrentDate", "+02:00") is None


@pytest.mark.parametrize("kind", ["CurrentTimestamp", "Now", "LocalTimestamp"])
def test_an_instant_is_not_guessed(kind):
    assert Clock((NOON - 5, NOON + 5)).value(kind, "UTC") is None
    assert Clock().value(kind, "UTC") is None


def test_days_before_1970():
    assert Clock((-5, -3)).value("CurrentDate", "UTC") == -1


def test_what_the_reader_of_plans_writes():
    clock = Clock.of({"from": 1, "to": 2, "values": {"Now": 1500, "Else": 3}})
    assert clock == Clock((1000, 2999), {"Now": 1500})
    assert Clock.of(None).value("CurrentDate", "UTC") is None
    with pytest.raises((KeyError, TypeError, ValueError)):
        Clock.of({"from": None})

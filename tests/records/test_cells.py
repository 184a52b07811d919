"""Cells of the two executors: one form, and timestamps that are shown with their zone."""

from __future__ import annotations

import datetime
import time

import pytest

from govtool.records.cells import json_value, zoned
from govtool.records.execute.spark_executor import plain
from govtool.records.plan import types as t

NOON = datetime.datetime(2026, 1, 1, 12)
NESTED = t.Struct(
    (t.Field("at", t.TIMESTAMP), t.Field("bytes", t.Array(t.BINARY)), t.Field("m", t.Map(t.STRING, t.DATE)))
)


@pytest.fixture
def berlin(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_what_pyspark_collects_has_the_form_that_duckdb_gives(berlin):
    local = NOON + datetime.timedelta(hours=1)
    value = (local, [bytearray(b"a"), None], {"d": NOON.date()})
    assert plain(value, NESTED) == {"at": NOON, "bytes": [b"a", None], "m": {"d": NOON.date()}}
    assert type(plain(bytearray(b"a"), t.BINARY)) is bytes
    assert plain(local, t.TIMESTAMP_NTZ) == local
    assert plain(None, NESTED) is None


def test_timestamps_are_shown_with_their_zone():
    value = {"at": NOON, "bytes": [b"a"], "m": {"d": NOON.date()}}
    assert json_value(zoned(value, NESTED)) == {
        "at": "2026-01-01T12:00:00+00:00", "bytes": ["61"], "m": {"d": "2026-01-01"},
    }  # fmt: skip
    assert json_value(zoned([NOON], t.Array(t.TIMESTAMP))) == ["2026-01-01T12:00:00+00:00"]
    assert json_value(zoned(NOON, t.TIMESTAMP_NTZ)) == "2026-01-01T12:00:00"

"""Timestamps of CSV files in all forms that Spark casts from text, beyond those that Arrow reads.

Source: Spark's cast of text to a timestamp. Two forms are left out, and stay text: a time without a date, which Spark
puts on the day of the query, and a year alone.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

_MOMENT = re.compile(
    r"([0-9]{4})-([0-9]{1,2})(?:-([0-9]{1,2}))?"
    r"(?:[T ]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?(?P<zone> ?[A-Za-z+-].*)?)?)?)?",
    re.ASCII,
)
_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?([+-])"
    r"(?:([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2}))?)?|([0-9]{2})([0-9]{2})([0-9]{2})?)",
    re.ASCII,
)
_MOST = timedelta(hours=18)
"""The largest offset of a zone."""


def moment(text: str) -> datetime | None:
    """The moment that Spark reads in a text, in UTC; None where it reads none."""
    found = _MOMENT.fullmatch(text.strip(" \t\n\r\f\v"))
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction = found.groups()[:7]
    try:
        local = datetime(
            int(year), int(month), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0),
            int((fraction or "").ljust(6, "0")[:6]),
        )  # fmt: skip
        return _in_utc(local, (found["zone"] or "").strip())
    except (ValueError, KeyError, OverflowError, OSError):  # such as 30 February, an hour 25, a zone that is none
        return None


def _in_utc(local: datetime, zone: str) -> datetime | None:
    if zone in ("", "Z", "UTC", "GMT", "UT"):
        return local.replace(tzinfo=UTC)
    offset = _OFFSET.fullmatch(zone)
    if offset is None:
        return local.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    sign, *parts = offset.groups()
    hours, minutes, seconds = parts[:3] if parts[0] is not None else parts[3:]
    shift = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
    if shift > _MOST or int(minutes or 0) > 59 or int(seconds or 0) > 59:
        return None
    return (local - shift if sign == "+" else local + shift).replace(tzinfo=UTC)

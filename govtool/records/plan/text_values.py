"""Constants that are written as text and cast: ``n > '5'``, ``day >= '2026-01-01'``.

Only forms that Spark reads alike in every mode and version are evaluated here; the cast of any other text stays a cast.
Source: Spark SQL reference, "ANSI Compliance" (cast of strings) and "Datetime patterns"; java.time for local times that
a zone skips or has twice.
"""

from __future__ import annotations

import decimal
import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from govtool.records.plan.expressions import Value
from govtool.records.plan.types import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    SHORT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    Type,
)

_BITS = {BYTE: 8, SHORT: 16, INTEGER: 32, LONG: 64}
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_FLOAT = re.compile(r"[+-]?[0-9]{1,300}(\.[0-9]{0,300})?([eE][+-]?[0-9]{1,3})?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_WORDS = {"true": True, "false": False}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS = (*_BITS, DOUBLE)
_EXACT = decimal.Context(prec=38, traps=[decimal.InvalidOperation])


def text_value(text: str, kind: Type, zone: str | None = None) -> Value:
    """The value of a text as a type: days, microseconds, numbers; None where that is not certain.

    Args:
        text: The text.
        kind: What it is cast to.
        zone: The session's time zone; None if it is not known.
    """
    trimmed = text.strip(" ")
    if kind in _BITS:
        return _whole(trimmed, _BITS[kind])
    if kind == DOUBLE:
        return float(trimmed) if _FLOAT.fullmatch(trimmed) else None
    if kind == BOOLEAN:
        return _WORDS.get(trimmed.lower())
    if kind == DATE:
        return _days(trimmed)
    return _micros(trimmed, kind, zone) if kind in (TIMESTAMP, TIMESTAMP_NTZ) else None


def decimal_value(text: str, kind: Decimal) -> decimal.Decimal | None:
    """The value of a text as a decimal with the scale of a type; None where it is none."""
    try:
        return decimal.Decimal(text).quantize(decimal.Decimal(1).scaleb(-kind.scale), context=_EXACT)
    except decimal.InvalidOperation:
        return None


def is_ambiguous(text: str, zone: str) -> bool:
    """Return True for a local time that a zone has twice, or whose zone is not known."""
    place = _zone(None, TIMESTAMP, zone)
    try:
        local = datetime.fromisoformat(text).replace(tzinfo=place)
    except ValueError:
        return True
    return place is None or local.utcoffset() != local.replace(fold=1).utcoffset()


def is_no_number(text: str, kind: Type) -> bool:
    """Return True where a text without any digit is cast to a number: ``inf`` and ``nan`` are numbers of Spark."""
    return kind in _NUMBERS and not re.search(r"[0-9]|inf|nan", text, re.IGNORECASE)


def _whole(text: str, bits: int) -> int | None:
    value = int(text) if _WHOLE.fullmatch(text) else None
    return value if value is not None and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def _days(text: str) -> int | None:
    if not _DAY.fullmatch(text):
        return None
    try:
        return (date.fromisoformat(text) - _EPOCH.date()).days
    except ValueError:
        return None


def _micros(text: str, kind: Type, zone: str | None) -> int | None:
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    place = _zone(found[3], kind, zone)
    if place is None:
        return None
    try:
        local = datetime.fromisoformat(f"{found[1]} {found[2] or '00:00'}")
        # A local time that the zone has twice is the earlier one, as in java.time; one that it skips is moved on.
        return (local.replace(tzinfo=place).astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None


def _zone(offset: str | None, kind: Type, zone: str | None) -> tzinfo | None:
    if kind == TIMESTAMP_NTZ:
        return UTC if offset is None else None
    if offset is not None:
        return _offset(offset)
    try:
        return None if zone is None else ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _offset(text: str) -> tzinfo | None:
    if text == "Z":
        return UTC
    hours, minutes = int(text[1:3]), int(text[4:6])
    if minutes > 59 or hours * 60 + minutes > 18 * 60:  # beyond what java.time takes
        return None
    return timezone((-1 if text[0] == "-" else 1) * timedelta(hours=hours, minutes=minutes))

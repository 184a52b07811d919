"""The time of a recorded run: what ``current_timestamp`` and its like gave in it.

Spark reads the clock once a query, when it optimizes the plan, and writes the value in place of the functions.
Source: ``ComputeCurrentTime`` in Catalyst's ``finishAnalysis.scala``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

CLOCKS = frozenset({"CurrentTimestamp", "Now", "CurrentDate", "LocalTimestamp"})
"""Catalyst's classes of functions that give the time."""
_INSTANTS = ("CurrentTimestamp", "Now")
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Clock:
    """When Spark read the clock.

    Attributes:
        span: The earliest and the latest it can have been, in microseconds since 1970; None: not known.
        values: What it read, by class of function: microseconds since 1970, for ``CurrentDate`` days.
    """

    span: tuple[int, int] | None = None
    values: Mapping[str, int] = field(default_factory=dict)

    @staticmethod
    def of(now: Any) -> Clock:
        """Read what the plan reader wrote; None is an unknown time.

        Raises:
            KeyError, TypeError, ValueError: It is something else.
        """
        if now is None:
            return Clock()
        values = {str(kind): int(value) for kind, value in now["values"].items() if kind in CLOCKS}
        return Clock((int(now["from"]) * 1000, int(now["to"]) * 1000 + 999), values)

    def value(self, kind: str, zone: str) -> int | None:
        """What a function gave: as in ``values``; None where that is not certain.

        Args:
            kind: One of ``CLOCKS``.
            zone: The session's time zone.
        """
        if kind in self.values:
            return self.values[kind]
        instants = {self.values[each] for each in _INSTANTS if each in self.values} or set(self.span or ())
        found = {_converted(kind, instant, zone) for instant in instants}
        return found.pop() if len(found) == 1 else None


def _converted(kind: str, instant: int, zone: str) -> int | None:
    if kind in _INSTANTS:
        return instant
    place = zone_named(zone)
    if place is None:
        return None
    local = (_EPOCH.replace(tzinfo=UTC) + instant * _MICROSECOND).astimezone(place).replace(tzinfo=None) - _EPOCH
    return local.days if kind == "CurrentDate" else local // _MICROSECOND


def zone_named(name: str) -> tzinfo | None:
    """A zone by its name; None of an offset or another form that only Java reads."""
    try:
        return ZoneInfo("UTC" if name in ("Z", "UTC") else name)
    except (ValueError, OSError, KeyError):
        return None

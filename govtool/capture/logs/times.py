"""Times as warehouses write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

_ZONE = re.compile(r"^(.*\d) ?([A-Z]{1,5})$")
_OFFSET = re.compile(r" ?([+-]\d\d):?(\d\d)?$")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e\d+)?$", re.IGNORECASE)
_FRACTION = re.compile(r"(\.\d{6})\d+")

ZONES = {
    "UTC": 0, "GMT": 0, "Z": 0, "WET": 0, "BST": 60, "CET": 60, "WEST": 60, "CEST": 120, "EET": 120, "EEST": 180,
    "MSK": 180, "JST": 540, "KST": 540, "EST": -300, "EDT": -240, "CST": -360, "CDT": -300, "MST": -420, "MDT": -360,
    "PST": -480, "PDT": -420, "AEST": 600, "AEDT": 660, "BRT": -180, "SAST": 120, "SGT": 480, "HKT": 480,
}  # fmt: skip
"""Minutes east of Greenwich of the abbreviations that servers are set to, as PostgreSQL reads them by default."""

_EARLIEST, _LATEST = -2_208_988_800.0, 32_503_680_000.0  # 1900 and 3000: beyond these it is no time of a log


def parse_time(value: Any) -> datetime | None:
    """A point in time as it is, or from ISO 8601, the forms of exports, or a number since 1970; None if there is none.

    Numbers are seconds, milliseconds, microseconds or nanoseconds by their size. Without a zone it is naive.

    Raises:
        ValueError: It is no time.
    """
    if value is None or value == "":
        return None
    if isinstance(value, datetime):
        return value
    if isinstance(value, bool):
        raise ValueError("not a time")
    if isinstance(value, (int, float)):
        return _from_number(float(value))
    if not isinstance(value, str):
        raise ValueError("not a time")
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return _from_text(value.strip())


def _from_text(text: str) -> datetime:
    if _NUMBER.match(text):
        return _from_number(float(text))
    text = _FRACTION.sub(r"\1", text)
    zone = None
    named = _ZONE.match(text)
    if named is not None:
        if named[2] not in ZONES:
            raise ValueError(f"no time zone {named[2]} is known")
        text, zone = named[1], timezone(timedelta(minutes=ZONES[named[2]]))
    elif ":" in text and (offset := _OFFSET.search(text, text.index(":"))):
        minutes = int(offset[1]) * 60 + int(offset[2] or 0) * (-1 if offset[1][0] == "-" else 1)
        text, zone = text[: offset.start()], timezone(timedelta(minutes=minutes))
    try:
        found = datetime.fromisoformat(text.replace("/", "-"))
    except ValueError:
        raise ValueError("not a time") from None
    return found.replace(tzinfo=zone) if zone is not None else found


def _from_number(number: float) -> datetime:
    for unit in (1.0, 1e3, 1e6, 1e9):
        if abs(number) < 1e11 * unit:
            seconds = number / unit
            if not _EARLIEST < seconds < _LATEST:
                break
            return datetime.fromtimestamp(seconds, UTC)
    raise ValueError("not a time")

"""Parquet files whose days and times are those of the calendar before 1582, which Spark reads as others.

Spark before version 3, Hive, and Spark with ``datetimeRebaseModeInWrite=LEGACY`` write days and times of the hybrid
calendar: Julian before 15 October 1582, and local mean times before 1900. Spark's reader shifts them, no other does.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.nodes import Session

_VERSION, _DATES, _INT96 = (
    "org.apache.spark.version",
    "org.apache.spark.legacyDateTime",
    "org.apache.spark.legacyINT96",
)
FACTS = (_VERSION, _DATES, _INT96)
"""What files say about themselves that is needed here."""
_MODES = ("spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.int96RebaseModeInRead")
_MODERN = {
    datetime.date: datetime.date(1582, 10, 15),
    datetime.datetime: datetime.datetime(1900, 1, 2),
}
"""From here on the calendars agree, in every zone."""


def shifted_columns(
    columns: Sequence[Attribute],
    paths: Sequence[str],
    session: Session,
    keys: Callable[[], Iterable[tuple[str, str, str]]],
) -> list[str]:
    """Columns of days or times in which Spark may read others than the files hold.

    Args:
        columns: The columns of the files that are read.
        paths: The files.
        session: What the plan ran in.
        keys: Gives file, key and value of what the files say about themselves; called if days or times are read.
    """
    names = [column.name for column in columns if _has_times(column.type)]
    if not names or not paths:
        return []
    facts: dict[str, dict[str, str]] = {path: {} for path in paths}
    for path, key, value in keys():
        facts.setdefault(path, {})[key] = value
    is_legacy = any(dict(session.settings).get(mode) == "LEGACY" for mode in _MODES)
    old = [path for path in paths if _is_old(facts[path], is_legacy)]
    found: dict[str, None] = {}
    for path in old:
        found.update((name, None) for name in names if name not in found and not _is_modern(path, name))
    return list(found)


def _has_times(kind: t.Type) -> bool:
    if isinstance(kind, t.Array):
        return _has_times(kind.element)
    if isinstance(kind, t.Map):
        return _has_times(kind.key) or _has_times(kind.value)
    if isinstance(kind, t.Struct):
        return any(_has_times(each.type) for each in kind.fields)
    return kind in (t.DATE, t.TIMESTAMP)


def _is_old(facts: dict[str, str], is_legacy: bool) -> bool:
    """Return whether Spark reads the days and times of a file as those of the hybrid calendar."""
    if _DATES in facts or _INT96 in facts:
        return True
    version = facts.get(_VERSION)
    return is_legacy if version is None else version.startswith(("1.", "2.", "3.0."))


def _is_modern(path: str, name: str) -> bool:
    """Return whether all values of a column are of times when the calendars agree, by the statistics of the file."""
    import pyarrow.parquet as pq

    about = pq.read_metadata(path)
    places = [n for n in range(about.num_columns) if about.schema.column(n).path == name]
    if len(places) != 1:
        return bool(about.num_rows == 0)  # a list or a struct of them, or no such column
    for number in range(about.num_row_groups):
        chunk = about.row_group(number).column(places[0])
        known = chunk.statistics
        if known is not None and known.null_count == chunk.num_values:
            continue
        if known is None or not known.has_min_max or not _is_late(known.min):
            return False
    return True


def _is_late(value: Any) -> bool:
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None) >= _MODERN[datetime.datetime]
    return isinstance(value, datetime.date) and value >= _MODERN[datetime.date]

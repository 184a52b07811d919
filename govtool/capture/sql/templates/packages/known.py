"""Packages and macros that are understood here."""

from __future__ import annotations

from collections.abc import Mapping

from govtool.capture.sql.templates.packages import crossdb, dates, fivetran, utils
from govtool.capture.sql.templates.packages.crossdb import Macro
from govtool.capture.sql.templates.run import MacroRun


def _unixtime(run: MacroRun, timestamp: object = "") -> str:
    return dates.to_unixtimestamp(run, timestamp)


def _longest_text(run: MacroRun, *_: object) -> str:
    return "varchar" if crossdb.type_name(run, "string") == "varchar" else "string"


SNOWPLOW: Mapping[str, Macro] = {
    "current_timestamp_in_utc": crossdb.current_timestamp,
    "timestamp_diff": lambda run, first_tstamp="", second_tstamp="", datepart="day": crossdb.datediff(
        run, first_tstamp, second_tstamp, datepart
    ),
    "timestamp_add": lambda run, datepart="day", interval=1, tstamp="": crossdb.dateadd(
        run, datepart, interval, tstamp
    ),
    "to_unixtstamp": _unixtime,
    "type_max_string": _longest_text,
    "type_string": _longest_text,
    "is_run_with_new_events": lambda run, *_, **__: "true",
    "log_message": crossdb.nothing,
}
"""snowplow_utils: its documented helpers for dates and types."""

PACKAGES: Mapping[str, Mapping[str, Macro]] = {
    "dbt": crossdb.MACROS,
    "dbt_utils": utils.MACROS,
    "dbt_date": dates.MACROS,
    "fivetran_utils": fivetran.MACROS,
    "snowplow_utils": SNOWPLOW,
}
"""Macros by package and name."""

QUERYING_MACROS: Mapping[str, frozenset[str]] = {
    "dbt_utils": utils.QUERYING_MACROS,
    "fivetran_utils": fivetran.QUERYING_MACROS,
}
"""Macros that ask the warehouse, by package: what is here goes before the package on disk."""

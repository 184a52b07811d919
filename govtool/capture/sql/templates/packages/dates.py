"""dbt_date (its README on hub.getdbt.com): dates, calendars."""

from __future__ import annotations

from collections.abc import Callable

from govtool.capture.sql.templates.packages import crossdb
from govtool.capture.sql.templates.packages.crossdb import Macro, dateadd, part_of
from govtool.capture.sql.templates.run import MacroRun


def now(run: MacroRun, tz: object = None) -> str:
    """The time of the run, in a time zone."""
    return convert_timezone(run, crossdb.current_timestamp(run), tz)


def today(run: MacroRun, tz: object = None) -> str:
    """The day of the run."""
    return f"cast({now(run, tz)} as date)"


def convert_timezone(run: MacroRun, column: object = "", target_tz: object = None, source_tz: object = None) -> str:
    """A time in another time zone."""
    zone = str(target_tz or "UTC")
    if run.dialect == "bigquery":
        return f"timestamp(datetime({column}, '{zone}'))"
    if run.dialect in ("snowflake", "redshift"):
        source = f"'{source_tz}', " if source_tz else ""
        return f"convert_timezone({source}'{zone}', cast({column} as timestamp))"
    if run.dialect in crossdb.SPARK:
        return f"from_utc_timestamp({column}, '{zone}')"
    return f"(cast({column} as timestamp) at time zone '{zone}')"


def date_part(run: MacroRun, datepart: object = "day", date: object = "") -> str:
    """A part of a date, as a number."""
    return f"extract({part_of(datepart)} from {date})"


def _extracted(part: str) -> Macro:
    def call(run: MacroRun, date: object = "", *_: object, **__: object) -> str:
        return date_part(run, part, date)

    return call


def name_of(run: MacroRun, date: object, form: str) -> str:
    """The name of a day or a month."""
    if run.dialect == "bigquery":
        return f"format_date('{form}', cast({date} as date))"
    return f"to_char({date}, '{form}')"


def day_name(run: MacroRun, date: object = "", short: object = True, **_: object) -> str:
    """The name of a day."""
    return name_of(run, date, "Dy" if short else "Day")


def month_name(run: MacroRun, date: object = "", short: object = True, **_: object) -> str:
    """The name of a month."""
    return name_of(run, date, "Mon" if short else "Month")


def week_start(run: MacroRun, date: object = None, tz: object = None) -> str:
    """The first day of the week that a date is in."""
    return f"cast({crossdb.date_trunc(run, 'week', today(run, tz) if date is None else date)} as date)"


def week_end(run: MacroRun, date: object = None, tz: object = None) -> str:
    """The last day of the week that a date is in."""
    return f"cast({dateadd(run, 'day', 6, week_start(run, date, tz))} as date)"


def _moved(part: str, sign: int, whole: bool = False) -> Macro:
    """So many parts before or after today."""

    def call(run: MacroRun, n: object = 1, date: object = None, tz: object = None) -> str:
        start: object = today(run, tz) if date is None else date
        start = crossdb.date_trunc(run, part, start) if whole else start
        return f"cast({dateadd(run, part, f'-1 * {n}' if sign < 0 else n, start)} as date)"

    return call


def _next_to(part: str, sign: int, then: Callable[[MacroRun, str], str] | None = None) -> Macro:
    """The part before or after today's."""

    def call(run: MacroRun, tz: object = None, *_: object, **__: object) -> str:
        date = dateadd(run, part, sign, crossdb.date_trunc(run, part, today(run, tz)))
        return f"cast({date} as date)" if then is None else then(run, date)

    return call


def periods_since(run: MacroRun, date_col: object = "", period_name: object = "day", tz: object = None) -> str:
    """Return the number of parts between a date and now."""
    return crossdb.datediff(run, date_col, now(run, tz), period_name)


def from_unixtimestamp(run: MacroRun, epochs: object = "", format: object = "seconds") -> str:
    """A time from the seconds since 1970."""
    if run.dialect == "bigquery":
        return f"timestamp_{'millis' if str(format).startswith('milli') else 'seconds'}({epochs})"
    return f"from_unixtime({epochs})" if run.dialect in crossdb.SPARK | crossdb.TRINO else f"to_timestamp({epochs})"


def to_unixtimestamp(run: MacroRun, timestamp: object = "") -> str:
    """The seconds since 1970."""
    return f"unix_seconds({timestamp})" if run.dialect == "bigquery" else f"extract(epoch from {timestamp})"


def round_timestamp(run: MacroRun, timestamp: object = "") -> str:
    """The day that is nearest."""
    return crossdb.date_trunc(run, "day", dateadd(run, "hour", 12, timestamp))


def get_base_dates(
    run: MacroRun,
    start_date: object = None,
    end_date: object = None,
    n_dateparts: object = None,
    datepart: object = "day",
) -> str:
    """A query of one column, ``date_<part>``: the dates between two, or the last so many."""
    part = part_of(datepart)
    if start_date and end_date:
        start, end = f"cast('{start_date}' as timestamp)", f"cast('{end_date}' as timestamp)"
    else:
        end = today(run)
        start = dateadd(run, part, f"-1 * {n_dateparts or 1}", end)
    return (
        f"select cast(date_{part} as timestamp) as date_{part} from ({crossdb.date_spine(run, part, start, end)}) as d"
    )


_DAYS = """date_day prior_date_day next_date_day prior_year_date_day prior_year_over_year_date_day day_of_week
day_of_week_iso day_of_week_name day_of_week_name_short day_of_month day_of_year week_start_date week_end_date
prior_year_week_start_date prior_year_week_end_date week_of_year iso_week_start_date iso_week_end_date
prior_year_iso_week_start_date prior_year_iso_week_end_date iso_week_of_year prior_year_week_of_year
prior_year_iso_week_of_year month_of_year month_name month_name_short month_start_date month_end_date
prior_year_month_start_date prior_year_month_end_date quarter_of_year quarter_start_date quarter_end_date year_number
year_start_date year_end_date""".split()  # noqa: SIM905


def get_date_dimension(run: MacroRun, start_date: object = "", end_date: object = "") -> str:
    """A calendar: a row a day, with the columns of the documentation."""
    days = get_base_dates(run, start_date, end_date)
    items = ", ".join("date_day" if name == "date_day" else f"cast(date_day as date) as {name}" for name in _DAYS)
    return f"select {items} from ({days}) as days"


MACROS: dict[str, Macro] = {
    "now": now,
    "today": today,
    "tomorrow": lambda run, date=None, tz=None: _moved("day", 1)(run, 1, date, tz),
    "yesterday": lambda run, date=None, tz=None: _moved("day", -1)(run, 1, date, tz),
    "convert_timezone": convert_timezone,
    "date_part": date_part,
    "day_name": day_name,
    "month_name": month_name,
    "day_of_month": _extracted("day"),
    "day_of_week": _extracted("dow"),
    "day_of_year": _extracted("doy"),
    "week_of_year": _extracted("week"),
    "iso_week_of_year": _extracted("week"),
    "week_start": week_start,
    "iso_week_start": week_start,
    "week_end": week_end,
    "iso_week_end": week_end,
    "n_days_ago": _moved("day", -1),
    "n_days_away": _moved("day", 1),
    "n_weeks_ago": _moved("week", -1, whole=True),
    "n_weeks_away": _moved("week", 1, whole=True),
    "n_months_ago": _moved("month", -1, whole=True),
    "n_months_away": _moved("month", 1, whole=True),
    "last_week": _next_to("week", -1),
    "next_week": _next_to("week", 1),
    "last_month": _next_to("month", -1),
    "next_month": _next_to("month", 1),
    "last_month_number": _next_to("month", -1, lambda run, date: date_part(run, "month", date)),
    "next_month_number": _next_to("month", 1, lambda run, date: date_part(run, "month", date)),
    "last_month_name": _next_to("month", -1, lambda run, date: month_name(run, date)),
    "next_month_name": _next_to("month", 1, lambda run, date: month_name(run, date)),
    "periods_since": periods_since,
    "from_unixtimestamp": from_unixtimestamp,
    "to_unixtimestamp": to_unixtimestamp,
    "round_timestamp": round_timestamp,
    "get_base_dates": get_base_dates,
    "get_date_dimension": get_date_dimension,
}
"""By name."""

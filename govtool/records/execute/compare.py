"""Results compared as multisets of rows, whatever executor gave them."""

from __future__ import annotations

import datetime
import decimal
import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb
    import pyarrow

DIGITS = 9
"""Significant digits to which floats have to agree: a sum depends on the order of its rows."""
TOLERANCE = 2 * 10.0 ** (1 - DIGITS)
"""Relative difference of floats that were rounded to different sides."""
MANY = 100_000
"""Rows from which DuckDB compares tables."""
Row = tuple[Hashable, ...]
Floats = tuple[float, ...]
_EPOCH = datetime.datetime(1970, 1, 1)


def same_rows(first: pyarrow.Table, second: pyarrow.Table, unordered: Collection[int] = ()) -> bool:
    """Return True if two tables have the same rows, each as often; columns are compared by position.

    Args:
        first: A table.
        second: Another.
        unordered: Positions of columns of lists whose order counts for nothing: ``collect_list`` gives any.

    Large tables are compared by DuckDB, where it is there: only rows that it does not find on both sides become values
    of Python. Floats that differ in their last digits are on both sides of a rounding now and then; they are paired.
    """
    if first.num_rows != second.num_rows or first.num_columns != second.num_columns:
        return False
    if first.num_rows > MANY and first.num_columns:
        first, second = _unmatched(first, second) or (first, second)
    have, want = multiset(first, unordered), multiset(second, unordered)
    return have == want or _paired((have - want).elements(), (want - have).elements())


def _unmatched(first: pyarrow.Table, second: pyarrow.Table) -> tuple[pyarrow.Table, pyarrow.Table] | None:
    """The rows that one table has more often than the other; None where DuckDB cannot compare them."""
    try:
        import duckdb
    except ImportError:
        return None
    names = [f"c{number}" for number in range(first.num_columns)]
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    try:
        connection.register("one", first.rename_columns(names))
        connection.register("other", second.rename_columns(names))
        kinds = {name: kind for name, kind, *_ in connection.execute("DESCRIBE one").fetchall()}
        keys = ", ".join(_rounded_text(name, kinds[name]) for name in names)
        columns = ", ".join(f"any_value({name}) AS {name}" for name in names)
        connection.execute(
            f"CREATE TEMP TABLE left_over AS SELECT {columns}, sum(side)::BIGINT AS side FROM "
            f"(SELECT *, 1 AS side FROM one UNION ALL SELECT *, -1 FROM other) GROUP BY {keys} HAVING sum(side) <> 0"
        )
        return _times(connection, "side"), _times(connection, "-side")
    except (duckdb.Error, OSError):
        return None


def _rounded_text(name: str, kind: str) -> str:
    return f"format('{{:.{DIGITS - 1}e}}', {name} + 0)" if kind in ("FLOAT", "DOUBLE") else name


def _times(connection: duckdb.DuckDBPyConnection, count: str) -> pyarrow.Table:
    return (
        connection.execute(f"SELECT * EXCLUDE (side) FROM left_over, range({count}) AS times(n) WHERE {count} > 0")
        .to_arrow_table()
        .select(range(len(connection.execute("DESCRIBE left_over").fetchall()) - 1))
    )


def _paired(first: Iterable[Row], second: Iterable[Row]) -> bool:
    """Return whether rows are alike but for floats that are close to each other."""
    groups: dict[Row, tuple[list[Floats], list[Floats]]] = {}
    for side, rows in enumerate((first, second)):
        for row in rows:
            bare, floats = _apart(row)
            groups.setdefault(bare, ([], []))[side].append(floats)
    return all(_close(sorted(have), sorted(want)) for have, want in groups.values())


def _apart(row: Row) -> tuple[Row, Floats]:
    """A row without its floats that are numbers, and these."""
    is_number = [isinstance(cell, tuple) and cell[0] == "float" and isinstance(cell[1], float) for cell in row]
    bare = tuple("float" if number else cell for number, cell in zip(is_number, row, strict=True))
    floats = tuple(cell[1] for number, cell in zip(is_number, row, strict=True) if number)  # type: ignore[index]
    return bare, floats


def _close(have: list[Floats], want: list[Floats]) -> bool:
    return len(have) == len(want) and all(
        math.isclose(a, b, rel_tol=TOLERANCE)
        for one, other in zip(have, want, strict=True)
        for a, b in zip(one, other, strict=True)
    )


def multiset(table: pyarrow.Table, unordered: Collection[int] = ()) -> Counter[tuple[Hashable, ...]]:
    """The rows of a table, each with how often it is there.

    Timestamps are microseconds in UTC, floats are rounded to ``DIGITS`` digits, maps are sets of pairs; NaN equals NaN.
    """
    columns = [
        [bag(value) if number in unordered else comparable(value) for value in column.to_pylist()]
        if (moments := _moments(column)) is None
        else moments
        for number, column in enumerate(table.columns)
    ]
    return Counter(zip(*columns, strict=True)) if columns else Counter({(): table.num_rows})


def _moments(column: pyarrow.ChunkedArray) -> list[Hashable] | None:
    """Times and days as numbers, in the form of ``comparable``: Spark has some beyond the years that Python has."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        kind, numbers = "timestamp", column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
    elif pa.types.is_date32(column.type):
        kind, numbers = "day", column.cast(pa.int32())
    else:
        return None
    return [("NoneType", None) if number is None else (kind, number) for number in numbers.to_pylist()]


def comparable(value: Any) -> Hashable:
    """A cell in a form that compares as results do: see ``multiset``."""
    if isinstance(value, bool) or value is None:
        return (type(value).__name__, value)
    if isinstance(value, float):
        return ("float", _rounded(value))
    if isinstance(value, datetime.datetime):
        naive = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo is not None else value
        return ("timestamp", (naive - _EPOCH) // datetime.timedelta(microseconds=1))
    if isinstance(value, decimal.Decimal):
        return ("decimal", value, value.as_tuple().exponent)
    if isinstance(value, dict):
        return ("struct", tuple((name, comparable(item)) for name, item in value.items()))
    if isinstance(value, list):
        return _list(value)
    return (type(value).__name__, value)


def bag(value: list[Any] | None) -> Hashable:
    """A list whose order counts for nothing."""
    return None if value is None else frozenset(Counter(map(comparable, value)).items())


def _list(value: list[Any]) -> Hashable:
    items = tuple(comparable(item) for item in value)
    if value and all(isinstance(item, tuple) and len(item) == 2 for item in value):  # the pairs of a map
        return ("map", frozenset((comparable(key), comparable(item)) for key, item in value))
    return ("list", items)


def _rounded(value: float) -> Hashable:
    if math.isnan(value):
        return "nan"
    if math.isinf(value) or value == 0:
        return value + 0.0
    return float(f"{value:.{DIGITS - 1}e}")

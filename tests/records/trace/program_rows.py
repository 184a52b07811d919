"""Frames of random programs: how Spark makes them, and by brute force what their rows come of.

Shares no code with the product: rows are lists of Python values, annotated with the input rows behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

TABLES = ("r", "s", "t", "e")
"""The inputs; the last has no rows."""
NAMES = ("id", "k", "x", "g")
KINDS = ("int", "int", "int", "str")
SCHEMA = "id int, k int, x int, g string"
NONE: frozenset[tuple[str, int]] = frozenset()

Tokens = frozenset[tuple[str, int]]
"""Input rows: table and ``id``."""
Data = dict[str, list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Row:
    """A row, with what its being there comes of, and what each computed cell comes of."""

    values: tuple[Any, ...]
    there: Tokens
    cells: tuple[Tokens, ...]

    @property
    def trace(self) -> Tokens:
        return self.there.union(*self.cells)


@dataclass(frozen=True)
class Frame:
    """A DataFrame of a program; its columns are called c0, c1 …

    Attributes:
        kinds: ``int`` or ``str``, by column.
        plain: Of each column whether no aggregate or window computed it.
        build: Makes it in Spark.
        rows: Makes its rows of data.
        text: For messages.
        unique: A column without equal values or NULL.
    """

    kinds: tuple[str, ...]
    plain: tuple[bool, ...]
    build: Callable[[Session], Any]
    rows: Callable[[Data], list[Row]]
    text: str
    unique: int | None = None


class Session:
    """A Spark session over the folder of a program's inputs and outputs."""

    def __init__(self, spark: Any, folder: str) -> None:
        from pyspark.sql import Window, functions

        self.spark, self.folder = spark, folder
        self.functions, self.window = functions, Window
        self._views = 0

    def table(self, name: str) -> Any:
        return self.spark.read.schema(SCHEMA).parquet(f"{self.folder}/in/{name}")

    def view(self, frame: Frame) -> str:
        """A new view of a frame."""
        self._views += 1
        name = f"v{self._views}"
        frame.build(self).createOrReplaceTempView(name)
        return name


def union(sets: Iterable[Tokens]) -> Tokens:
    return NONE.union(*sets)


def none(columns: Sequence[Any]) -> tuple[Tokens, ...]:
    """What the cells of some columns come of, where nothing computed them."""
    return (NONE,) * len(columns)


def renamed(frame: Any) -> Any:
    """A DataFrame with the names c0, c1 …"""
    return frame.toDF(*[f"c{i}" for i in range(len(frame.columns))])


def random_data(rng: Random) -> Data:
    """Small tables with NULLs, frequent keys and rows that are equal but for their ids."""
    return {name: _rows(rng, 0 if name == "e" else rng.randint(4, 9)) for name in TABLES}


def _rows(rng: Random, count: int) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for number in range(count):
        row = tuple(_cell(rng, values) for values in ((1, 1, 1, 2, 2, 3), (1, 2, 3, 5, 5, 8), ("a", "a", "b")))
        if rows and rng.random() < 0.3:
            row = rng.choice(rows)[1:]
        rows.append((number, *row))
    return rows


def _cell(rng: Random, values: Sequence[Any]) -> Any:
    return None if rng.random() < 0.18 else rng.choice(values)


def scan(name: str) -> Frame:
    """A table."""
    return Frame(
        KINDS,
        (True,) * 4,
        lambda session: renamed(session.table(name)),
        lambda data: [Row(row, frozenset({(name, row[0])}), none(row)) for row in data[name]],
        name,
        0,
    )


def compared(op: str, a: Any, b: Any) -> bool | None:
    """SQL's comparison: None where a value is NULL."""
    if op == "<=>":
        return a == b
    if a is None or b is None:
        return None
    return {"=": a == b, "<": a < b, ">": a > b, "!=": a != b, ">=": a >= b}[op]


def spark_compared(op: str, a: Any, b: Any) -> Any:
    """The same of columns."""
    if op == "<=>":
        return a.eqNullSafe(b)
    return {"=": a.__eq__, "<": a.__lt__, ">": a.__gt__, "!=": a.__ne__, ">=": a.__ge__}[op](b)


@dataclass(frozen=True)
class Call:
    """An aggregate of a column, or of rows."""

    name: str
    column: int | None

    def spark(self, functions: Any) -> Any:
        if self.name == "count*":
            return functions.count(functions.lit(1))
        return getattr(functions, self.name)(f"c{self.column}")

    def of(self, rows: Sequence[Row]) -> tuple[Any, Tokens]:
        """Its value over rows, and what that comes of."""
        if self.column is None:
            return len(rows), union(row.there for row in rows)
        some = [row for row in rows if row.values[self.column] is not None]
        values = [row.values[self.column] for row in some]
        return self._value(values), union(row.there | row.cells[self.column] for row in some)

    def _value(self, values: list[Any]) -> Any:
        if self.name == "count":
            return len(values)
        if self.name == "countDistinct":
            return len(set(values))
        return {"sum": sum, "min": min, "max": max}[self.name](values) if values else None


def by_key(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def distinct(rows: Iterable[Row]) -> list[Row]:
    """Each value once, with what all its rows come of."""
    groups = by_key(rows, lambda row: row.values)
    return [Row(values, union(row.trace for row in group), none(values)) for values, group in groups.items()]

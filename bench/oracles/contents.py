"""What the views of a warehouse hold before and after a change: a view that still works may mean another column.

A name that is gone may be found elsewhere: in an outer query, in another table of the FROM, among the aliases of the
SELECT list. Then nothing fails, and the values are others. Each warehouse gets a few rows, the same before and after.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from threading import Timer
from typing import Any

from bench.oracles.binder import Columns, defined

ROWS = 12
DATA = 3
"""How many sets of rows are tried."""
MOST_ROWS = 20_000
"""A view of more rows, such as a join of many tables without conditions, is not compared."""
LONGEST = 5
"""Seconds after which a view is given up, and not compared."""

Bags = dict[tuple[str, str], tuple[str, ...]]
"""By relation and column: its values, sorted."""


class Contents:
    """Runs views on rows, in a database of its own.

    Args:
        tables: The tables that every warehouse has, with their columns.
    """

    def __init__(self, tables: Mapping[str, Columns]) -> None:
        import duckdb

        self.refusal: type[Exception] = duckdb.Error
        self.connection: Any = duckdb.connect(config={"threads": 1, "memory_limit": "1GB"})
        self.connection.execute("SET python_enable_replacements = false; PRAGMA disable_optimizer")
        self._tables = [*tables]
        self._before: dict[int, Bags] = {}
        self._long: set[str] = set()
        self._views: dict[str, str] = {}
        for data in range(DATA):
            chance = random.Random(data)
            self.connection.execute(f"CREATE SCHEMA data{data}")
            for name, columns in tables.items():
                rows = [f"({', '.join(_value(chance, type_) for type_ in columns.values())})" for _ in range(ROWS)]
                self.connection.execute(f"CREATE TABLE data{data}.{name} ({defined(columns)})")
                self.connection.execute(f"INSERT INTO data{data}.{name} VALUES {', '.join(rows)}")

    def renew(self, views: Mapping[str, str]) -> None:
        """Another warehouse begins.

        Args:
            views: Name to query, in order.
        """
        self._views = dict(views)
        self._before.clear()
        self._long.clear()

    def differing(self, changed: tuple[str, str, str], names: set[str]) -> set[tuple[str, str]]:
        """The columns of some views that hold other values after a change; none of views that fail.

        Args:
            changed: The relation, the column, and its new name; empty, if it is dropped.
            names: The views to compare.
        """
        found: set[tuple[str, str]] = set()
        for data in range(DATA):
            if data not in self._before:
                self._before[data] = self._bags(data, ("", "", ""), {*self._views})
            before, after = self._before[data], self._bags(data, changed, names)
            found |= {key for key in before.keys() & after.keys() if before[key] != after[key]}
        return found

    def _bags(self, data: int, changed: tuple[str, str, str], names: set[str]) -> Bags:
        self.connection.execute("DROP SCHEMA IF EXISTS w CASCADE; CREATE SCHEMA w; SET schema = 'w'")
        made = {**{name: f"FROM data{data}.{name}" for name in self._tables}, **self._views}
        for name, query in made.items():
            self._try(f"CREATE VIEW {name} AS {_without(query, *changed[1:]) if name == changed[0] else query}")
        return dict(self._read(names))

    def _read(self, names: set[str]) -> Iterable[tuple[tuple[str, str], tuple[str, ...]]]:
        for name in names - self._long:
            guard = Timer(LONGEST, self._give_up, [name])
            guard.start()
            cursor = self._try(f"FROM {name} LIMIT {MOST_ROWS + 1}")
            guard.cancel()
            if cursor is not None:
                titles, rows = [item[0] for item in cursor.description], cursor.fetchall()
                if len(rows) > MOST_ROWS:
                    continue
                for at, title in enumerate(titles):
                    yield (name, title), tuple(sorted(repr(row[at]) for row in rows))

    def _try(self, sql: str) -> Any:
        try:
            return self.connection.execute(sql)
        except self.refusal:
            return None

    def _give_up(self, name: str) -> None:
        self._long.add(name)
        self.connection.interrupt()


def _value(chance: random.Random, type_: str) -> str:
    if chance.random() < 0.1:
        return "NULL"
    return str(chance.randrange(4)) if type_ == "BIGINT" else f"'{chance.choice('abc012')}'"


def _without(query: str, column: str, name: str) -> str:
    return f"SELECT * {f'RENAME ({column} AS {name})' if name else f'EXCLUDE ({column})'} FROM ({query})"

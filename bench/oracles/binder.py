"""DuckDB as a judge of definitions: which columns a query has over relations of given columns, or why it is refused.

What DuckDB makes of a statement depends only on the columns and types of the relations that it names. So relations are
empty tables, made anew only where their columns differ, and answers are kept: a statement whose relations are as they
were before is not planned again. One connection serves many warehouses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

Columns = dict[str, str]
"""Name to type, in order."""

_Inputs = tuple[tuple[str, tuple[tuple[str, str], ...] | None], ...]
"""The columns of each relation that a statement names; None where it is not there."""


class Binder:
    """Judges statements over relations that are described by their columns.

    Args:
        names: All relations that there may be.
    """

    def __init__(self, names: Iterable[str]) -> None:
        import duckdb

        self.refusal: type[Exception] = duckdb.Error
        self.connection: Any = duckdb.connect(config={"threads": 1})
        self.connection.execute("SET python_enable_replacements = false; PRAGMA disable_optimizer")
        self._universe = frozenset(names)
        self._tables: dict[str, Columns] = {}
        """What is there at the moment."""
        self._answers: dict[tuple[str, _Inputs], tuple[Columns | None, str]] = {}
        self._named: dict[str, tuple[str, ...]] = {}

    def renew(self) -> None:
        """Forget the answers: another warehouse begins."""
        self._answers.clear()
        self._named.clear()

    def columns(self, query: str, relations: Mapping[str, Columns]) -> tuple[Columns | None, str]:
        """The columns of a query; or None and DuckDB's reason, where it cannot be bound or planned."""
        return self._answer(query, relations, is_query=True)

    def refused(self, statement: str, relations: Mapping[str, Columns]) -> str:
        """Why a statement that writes cannot be bound or planned; empty if it can."""
        return self._answer(statement, relations, is_query=False)[1]

    def named(self, sql: str) -> tuple[str, ...]:
        """The relations that a statement names."""
        found = self._named.get(sql)
        if found is None:
            found = self._named[sql] = tuple(sorted(self._universe.intersection(re.findall(r"\w+", sql))))
        return found

    def _answer(self, sql: str, relations: Mapping[str, Columns], *, is_query: bool) -> tuple[Columns | None, str]:
        names = self.named(sql)
        key = (sql, tuple((name, tuple(relations[name].items()) if name in relations else None) for name in names))
        answer = self._answers.get(key)
        if answer is None:
            for name in names:
                self._make(name, relations.get(name))
            answer = self._answers[key] = self._plan(sql, is_query=is_query)
        return answer

    def _make(self, name: str, columns: Columns | None) -> None:
        if columns is None:
            if self._tables.pop(name, None) is not None:
                self.connection.execute(f"DROP TABLE {name}")
        elif [*self._tables.get(name, {}).items()] != [*columns.items()]:
            self.connection.execute(f"CREATE OR REPLACE TABLE {name} ({defined(columns)})")
            self._tables[name] = dict(columns)

    def _plan(self, sql: str, *, is_query: bool) -> tuple[Columns | None, str]:
        try:
            columns = self._described(sql) if is_query else {}
            # The tables are empty: to run a statement changes nothing. (MERGE cannot be prepared.)
            self.connection.execute(f"PREPARE planned AS {sql}" if is_query else sql)
        except self.refusal as error:
            return None, str(error).split("\n")[0]
        return columns, ""

    def _described(self, query: str) -> Columns:
        found = self.connection.sql(query)
        names = found.columns
        if len({*names}) < len(names):  # a view gives the second of a name another one
            self.connection.execute(f"CREATE OR REPLACE VIEW named AS {query}")
            names = [row[0] for row in self.connection.execute("DESCRIBE named").fetchall()]
        return dict(zip(names, map(str, found.types), strict=True))


def defined(columns: Columns) -> str:
    """The columns as CREATE TABLE lists them."""
    return ", ".join(f"{name} {type_}" for name, type_ in columns.items())

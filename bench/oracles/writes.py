"""Draws statements that fill and change two tables from the relations of a warehouse, in DuckDB's SQL.

INSERT with a list, by position, by name and behind an import CTE, UPDATE with FROM and with subqueries, DELETE with
USING, IN and EXISTS, MERGE with conditions of its branches, CREATE TABLE AS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.oracles.expressions import INT, TEXT, Chance

TARGETS: dict[str, dict[str, str]] = {"d0": {"a": INT, "b": INT, "c": TEXT}, "d1": {"a": TEXT, "b": INT}}
"""The tables that are written."""

EVERY_ROW = "*"
"""Stands for the columns that a DELETE writes: none, and all of them."""


@dataclass(frozen=True)
class Written:
    """A statement that writes a table."""

    sql: str
    target: str
    columns: tuple[str, ...]
    """The columns that it fills; ``EVERY_ROW`` of a DELETE."""


Shape = Callable[[str, str, list[str], str, list[str]], Written]
"""Makes a statement of its target, and of two relations with their columns."""


class Writes(Chance):
    """Draws the statements of one warehouse."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, "duckdb")

    def draw(self, relations: dict[str, list[str]]) -> Written:
        """A statement that reads one or two relations and writes a target."""
        target = self.pick([*TARGETS])
        name = self.pick([other for other in relations if other != target])
        other = self.pick([one for one in relations if one != target])
        shapes: tuple[Shape, ...] = (
            self._listed, self._listed, self._positional, self._by_name, self._imported, self._updated,
            self._looked_up, self._deleted, self._merged,
        )  # fmt: skip
        return self.pick(shapes)(target, name, relations[name], other, relations[other])

    def table(self, relations: dict[str, list[str]]) -> str:
        """A query for CREATE TABLE AS."""
        name = self.pick([*relations])
        columns = relations[name]
        taken = ", ".join(dict.fromkeys(self.pick(columns) for _ in range(3)))
        return self.pick((f"SELECT {taken} FROM {name}", f"SELECT * FROM {name}", f"FROM {name}"))

    def _value(self, columns: list[str], alias: str, type_: str) -> str:
        column = f"{alias}.{self.pick(columns)}"
        return f"CAST({column} AS {'BIGINT' if type_ == INT else 'VARCHAR'})" if self.chance(0.5) else column

    def _filled(self, target: str) -> list[str]:
        columns = [*TARGETS[target]]
        return self.random.sample(columns, self.random.randrange(1, len(columns) + 1))

    def _where(self, columns: list[str], other: str, theirs: list[str]) -> str:
        inner = f"SELECT o.{self.pick(theirs)} FROM {other} AS o"
        return self.pick(
            (
                "", "", f" WHERE r.{self.pick(columns)} IS NOT NULL", f" WHERE EXISTS ({inner})",
                f" WHERE NOT EXISTS ({inner} WHERE o.{self.pick(theirs)} IS NULL)",
            )
        )  # fmt: skip

    def _listed(self, target: str, name: str, columns: list[str], other: str, theirs: list[str]) -> Written:
        filled = self._filled(target)
        values = ", ".join(self._value(columns, "r", TARGETS[target][one]) for one in filled)
        where = self._where(columns, other, theirs)
        return Written(
            f"INSERT INTO {target} ({', '.join(filled)}) SELECT {values} FROM {name} AS r{where}",
            target,
            tuple(filled),
        )

    def _positional(self, target: str, name: str, columns: list[str], other: str, theirs: list[str]) -> Written:
        values = ", ".join(self._value(columns, "r", type_) for type_ in TARGETS[target].values())
        where = self._where(columns, other, theirs)
        return Written(f"INSERT INTO {target} SELECT {values} FROM {name} AS r{where}", target, (*TARGETS[target],))

    def _by_name(self, target: str, name: str, columns: list[str], *_: object) -> Written:
        filled = self._filled(target)
        values = ", ".join(f"{self._value(columns, 'r', TARGETS[target][one])} AS {one}" for one in filled)
        return Written(f"INSERT INTO {target} BY NAME SELECT {values} FROM {name} AS r", target, tuple(filled))

    def _imported(self, target: str, name: str, columns: list[str], *_: object) -> Written:
        column = self.pick([*TARGETS[target]])
        taken = list(dict.fromkeys(self.pick(columns) for _ in range(3)))
        source = f"WITH src AS (SELECT {', '.join(taken)} FROM {name})"
        return Written(
            f"{source} INSERT INTO {target} ({column}) SELECT {self.pick(taken)} FROM src", target, (column,)
        )

    def _updated(self, target: str, name: str, columns: list[str], *_: object) -> Written:
        filled = self._filled(target)
        sets = ", ".join(f"{one} = {self._value(columns, 'r', TARGETS[target][one])}" for one in filled)
        on = f"r.{self.pick(columns)} = {target}.{self.pick([*TARGETS[target]])}"
        return Written(f"UPDATE {target} SET {sets} FROM {name} AS r WHERE {on}", target, tuple(filled))

    def _looked_up(self, target: str, name: str, columns: list[str], other: str, theirs: list[str]) -> Written:
        column = self.pick([*TARGETS[target]])
        value = f"(SELECT max({self._value(columns, 'r', TARGETS[target][column])}) FROM {name} AS r)"
        test = self.pick((f"EXISTS (SELECT {self.pick(theirs)} FROM {other})", f"{column} IS NULL", "true"))
        return Written(f"UPDATE {target} SET {column} = {value} WHERE {test}", target, (column,))

    def _deleted(self, target: str, name: str, columns: list[str], other: str, theirs: list[str]) -> Written:
        own = self.pick([*TARGETS[target]])
        tests = (
            f" USING {name} AS r WHERE r.{self.pick(columns)} = {target}.{own}",
            f" WHERE {own} IN (SELECT r.{self.pick(columns)} FROM {name} AS r)",
            f" WHERE EXISTS (SELECT o.{self.pick(theirs)} FROM {other} AS o WHERE o.{self.pick(theirs)} = {own})",
        )
        return Written(f"DELETE FROM {target}{self.pick(tests)}", target, (EVERY_ROW,))

    def _merged(self, target: str, name: str, columns: list[str], *_: object) -> Written:
        own = [*TARGETS[target]]
        test = f" AND r.{self.pick(columns)} IS NOT NULL" if self.chance(0.5) else ""
        changed = self.pick(own)
        update = f"UPDATE SET {changed} = {self._value(columns, 'r', TARGETS[target][changed])}"
        matched = self.pick((update, update, "DELETE"))
        filled = self._filled(target)
        values = ", ".join(self._value(columns, "r", TARGETS[target][one]) for one in filled)
        source = self.pick((name, f"(SELECT * FROM {name})", f"(SELECT {', '.join(columns)} FROM {name})"))
        sql = (
            f"MERGE INTO {target} USING {source} AS r ON r.{self.pick(columns)} = {target}.{self.pick(own)}"
            f" WHEN MATCHED{test} THEN {matched}"
            f" WHEN NOT MATCHED THEN INSERT ({', '.join(filled)}) VALUES ({values})"
        )
        return Written(sql, target, tuple(dict.fromkeys([*filled, *([changed] if matched == update else [])])))

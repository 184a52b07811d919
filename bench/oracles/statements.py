"""Random scripts of triggers (of views, too), INSERT, UPDATE, EXISTS, windows and views, in SQLite on changed data.

A script is run twice, the second time with other values in one column of a base table. A column of any table or view
that then holds other values must have a verdict from ``impact``: what is without one is *missed*.
SQLite comes with Python, and its triggers see NEW and OLD as those of other databases do.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field

from govtool.app.versions.index import index_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.model import ColumnRef
from govtool.query.changes.change import ChangeVerdict
from govtool.query.changes.impact import expand, impact
from govtool.query.selection.select import Subject

BASES = ("s", "t")
TARGETS = ("d", "e", "f")
COLUMNS = ("a", "b", "c")
ROWS = 6
"""Rows of each base table."""
Data = dict[str, list[list[int]]]
"""The rows of each base table."""


@dataclass(frozen=True)
class Missed:
    """A column whose values changed and that has no verdict."""

    seed: int
    subject: str
    column: str
    sql: str


@dataclass
class Report:
    """What many scripts showed."""

    scripts: int = 0
    questions: int = 0
    """Pairs of a changed column and a column of another relation."""
    changed: int = 0
    """Those of them that hold other values."""
    missed: list[Missed] = field(default_factory=list)


class Maker:
    """Makes one script."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.readable = [*BASES]
        self.columns = {name: list(COLUMNS) for name in (*BASES, *TARGETS)}
        self.views: list[str] = []
        """Views that rows may be inserted into."""

    def script(self) -> str:
        """Tables, then triggers, then what runs once the base tables are filled: behind a line of its own."""
        tables = [f"CREATE TABLE {name} (a INT, b INT, c INT);" for name in (*BASES, *TARGETS)]
        triggers = [self.trigger(number) for number in range(self.random.randint(1, 3))]
        if self.random.random() < 0.4:
            triggers.append(self.chained())
        self.readable += [*TARGETS]
        if self.random.random() < 0.4:
            triggers += self.through_view()
        made = [self.statement(number) for number in range(self.random.randint(2, 6))]
        return "\n".join([*tables, *triggers, LOAD, *made])

    def chained(self) -> str:
        """A trigger on changes of a target, which sees both rows and fills the target behind it."""
        on, into = self.random.choice((("d", "e"), ("e", "f"), ("d", "f")))
        of = self.random.choice(("", f" OF {self.column()}"))
        when = self.random.choice(
            ("", f" WHEN NEW.{self.column()} > OLD.{self.column()}", f" WHEN OLD.{self.column()} IS NOT NULL")
        )
        first, second = self.random.sample(COLUMNS, 2)
        body = self.random.choice(
            (
                f"INSERT INTO {into} ({first}, {second}) VALUES ({self.value('NEW.')}, {self.value('OLD.')});",
                f"UPDATE {into} SET {first} = {self.value('OLD.')} WHERE {second} = NEW.{self.column()};",
                f"DELETE FROM {into} WHERE {first} = OLD.{self.column()};",
            )
        )
        return f"CREATE TRIGGER chain AFTER UPDATE{of} ON {on} FOR EACH ROW{when} BEGIN {body} END;"

    def through_view(self) -> list[str]:
        """A view whose INSERTs a trigger takes over, for the statements behind it."""
        source, into = self.random.choice(BASES), self.random.choice(TARGETS)
        first, second = self.random.sample(COLUMNS, 2)
        when = f" WHEN NEW.{second} > {self.random.randint(0, 3)}" if self.random.random() < 0.5 else ""
        body = f"INSERT INTO {into} ({first}, {second}) VALUES ({self.value('NEW.')}, {self.value('NEW.')});"
        self.views.append("w")
        self.columns["w"] = ["a", "b", "c"]
        return [
            f"CREATE VIEW w AS SELECT {self.value('x.')} AS a, x.b, x.c FROM {source} x WHERE x.a > 2;",
            f"CREATE TRIGGER takes INSTEAD OF INSERT ON w FOR EACH ROW{when} BEGIN {body} END;",
        ]

    def trigger(self, number: int) -> str:
        """A trigger on a table; those that it fills have none of a later number, so that none goes round."""
        on = self.random.choice(BASES)
        into = self.random.choice(TARGETS)
        when = f" WHEN NEW.{self.column()} > {self.random.randint(0, 3)}" if self.random.random() < 0.3 else ""
        columns = self.random.sample(COLUMNS, 2)
        values = ", ".join(self.value("NEW.") for _ in columns)
        body = f"INSERT INTO {into} ({', '.join(columns)}) VALUES ({values});"
        if self.random.random() < 0.4:
            body = f"UPDATE {into} SET {columns[0]} = {self.value('NEW.')} WHERE {columns[1]} < 5; {body}"
        if self.random.random() < 0.3:
            body += f" INSERT INTO {into} ({columns[0]}) SELECT x.{self.column()} FROM {on} x WHERE x.a = NEW.a;"
        return f"CREATE TRIGGER tr{number} AFTER INSERT ON {on} FOR EACH ROW{when} BEGIN {body} END;"

    def statement(self, number: int) -> str:
        """An INSERT, also into a view, an UPDATE, a DELETE or a view."""
        if self.views and self.random.random() < 0.4:
            source = self.random.choice(BASES)
            values = ", ".join(self.value("x.") for _ in COLUMNS)
            return f"INSERT INTO w (a, b, c) SELECT {values} FROM {source} x WHERE {self.condition('w', source)};"
        into = self.random.choice(TARGETS)
        source = self.random.choice([name for name in self.readable if name != into])
        condition = self.condition(into, source)
        make = self.random.randrange(6)
        first, second = self.random.sample(COLUMNS, 2)
        if make == 0:
            values = f"{self.value('x.')}, {self.value('x.')}"
            return f"INSERT INTO {into} ({first}, {second}) SELECT {values} FROM {source} x WHERE {condition};"
        if make == 1:
            value = f"(SELECT max({self.value('x.')}) FROM {source} x WHERE x.a = {into}.a)"
            return f"UPDATE {into} SET {first} = {value} WHERE {second} > 1;"
        if make == 2:
            value = f"{self.value('x.')}"
            return f"UPDATE {into} SET {first} = {value} FROM {source} x WHERE x.a = {into}.a AND {condition};"
        if make == 4:
            window = f"sum({self.value('x.')}) OVER (PARTITION BY x.{self.column()} ORDER BY x.{self.column()})"
            return (
                f"INSERT INTO {into} ({first}, {second}) SELECT {window}, x.{second} FROM {source} x ORDER BY x.rowid;"
            )
        if make == 3:
            return f"DELETE FROM {into} WHERE {first} IN (SELECT x.{self.column()} FROM {source} x WHERE {condition});"
        name = f"v{number}"
        inner = f"WITH q AS (SELECT * FROM {source}) SELECT {self.value('x.')} AS p, x.{second} FROM q x"
        self.columns[name] = ["p", second]
        return f"CREATE VIEW {name} AS {inner} WHERE {condition} UNION ALL SELECT {first}, {second} FROM {into};"

    def condition(self, into: str, source: str) -> str:
        """A test of a row x, on its values or on whether others are there."""
        plain = f"x.{self.column()} {self.random.choice(('>', '<', '<>'))} {self.random.randint(0, 5)}"
        if self.random.random() < 0.4:
            other = self.random.choice([name for name in BASES if name != into])
            return f"EXISTS (SELECT 1 FROM {other} y WHERE y.{self.column()} = x.{self.column()}) AND {plain}"
        return plain

    def column(self) -> str:
        """One of the columns."""
        return self.random.choice(COLUMNS)

    def value(self, row: str) -> str:
        """An expression over a row."""
        form = self.random.choice(("{0}", "{0}", "{0} + {1}", "abs({0}) * 2", "CASE WHEN {0} > 2 THEN {1} ELSE 0 END"))
        return form.format(f"{row}{self.column()}", f"{row}{self.column()}")


LOAD = "-- here the base tables are filled"


def contents(script: str, data: Data, names: Iterable[str]) -> dict[tuple[str, str], list[object]]:
    """The values of each column after a script, in order of rows.

    Raises:
        sqlite3.Error: SQLite refuses the script.
    """
    before, after = script.split(LOAD)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(before)
        for table, rows in data.items():
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", rows)
        connection.executescript(after)
        found: dict[tuple[str, str], list[object]] = {}
        for name in names:
            cursor = connection.execute(f"SELECT * FROM {name}")
            titles = [item[0] for item in cursor.description]
            rows = cursor.fetchall()
            found.update({(name, title): [row[i] for row in rows] for i, title in enumerate(titles)})
        return found


def _data(seed: int) -> Data:
    values = random.Random(seed)
    return {name: [[values.randint(0, 6) for _ in COLUMNS] for _ in range(ROWS)] for name in BASES}


def _perturbed(data: Data, table: str, column: int, seed: int) -> Data:
    values = random.Random(seed)
    rows = [[values.randint(0, 9) if i == column else value for i, value in enumerate(row)] for row in data[table]]
    return {**data, table: rows}


def _verdicts(script: str, subjects: Iterable[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], set[str]]]:
    """What has a verdict, by changed column."""
    found = extract([Script("q.sql", script)], Options(dialect="sqlite"))
    index = index_of(found.derivations)
    for table, column in subjects:
        node = index.find(ColumnRef(table, column))
        if node is None:
            yield (table, column), set()
            continue
        result = impact(index, Subject(index.node_dataset[node], node, f"{table}.{column}"))
        yield (table, column), {entry.column for entry in expand(index, result)}


def examine(seed: int, report: Report, *, times: int = 4) -> None:
    """Compare the answers about one script with what changes in SQLite."""
    maker = Maker(seed)
    script = maker.script()
    data, names = _data(seed), list(maker.columns)
    before = contents(script, data, names)
    report.scripts += 1
    for (table, column), known in _verdicts(script, [(name, one) for name in BASES for one in COLUMNS]):
        changed: set[tuple[str, str]] = set()
        for again in range(times):
            other = _perturbed(data, table, COLUMNS.index(column), seed * 100 + again)
            after = contents(script, other, names)
            changed |= {one for one in before if before[one] != after[one] and one[0] not in BASES}
        report.questions += sum(name not in BASES for name, _ in before)
        report.changed += len(changed)
        for name, title in sorted(changed):
            if f"{name}.{title}" not in known and f"{name}.*" not in known:
                report.missed.append(Missed(seed, f"{table}.{column}", f"{name}.{title}", script))


def run(seeds: Iterable[int]) -> Report:
    """Examine the scripts of seeds."""
    report = Report()
    for seed in seeds:
        examine(seed, report)
    return report


@dataclass
class Confirmation:
    """Verdicts ``changes``, and what becomes of the columns."""

    verdicts: int = 0
    confirmed: int = 0
    """Columns that hold other values after one of the changes of the subject's values."""


def confirm(seeds: Iterable[int], most: int = 1000, times: int = 50) -> Confirmation:
    """Change the values of columns again and again, and count the columns with the verdict ``changes`` that do change.

    Args:
        seeds: Of the scripts; they are read until there are enough verdicts.
        most: Verdicts to look at.
        times: Changes of the values of each subject.
    """
    result = Confirmation()
    for seed in seeds:
        maker = Maker(seed)
        script = maker.script()
        data, names = _data(seed), list(maker.columns)
        before = contents(script, data, names)
        for (table, column), changing in _changing(script, [(name, one) for name in BASES for one in COLUMNS]):
            open_ = {one for one in before if f"{one[0]}.{one[1]}" in changing and one[0] not in BASES}
            open_ = set(sorted(open_)[: most - result.verdicts])
            result.verdicts += len(open_)
            for again in range(times):
                if not open_:
                    break
                other = _perturbed(data, table, COLUMNS.index(column), seed * 1000 + again)
                after = contents(script, other, names)
                changed = {one for one in open_ if before[one] != after[one]}
                result.confirmed += len(changed)
                open_ -= changed
        if result.verdicts >= most:
            break
    return result


def _changing(script: str, subjects: Iterable[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], set[str]]]:
    """The columns with the verdict ``changes``, by changed column."""
    index = index_of(extract([Script("q.sql", script)], Options(dialect="sqlite")).derivations)
    for table, column in subjects:
        node = index.find(ColumnRef(table, column))
        if node is not None:
            result = impact(index, Subject(index.node_dataset[node], node, f"{table}.{column}"))
            changing = {entry.column for entry in expand(index, result) if entry.verdict is ChangeVerdict.CHANGES}
            yield (table, column), changing


def main() -> None:
    """Examine scripts and print what is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scripts", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--confirm", type=int, default=0, metavar="N", help="look at N verdicts `changes` instead")
    arguments = parser.parse_args()
    if arguments.confirm:
        found = confirm(range(arguments.first, 10**6), arguments.confirm)
        print(f"{found.verdicts:,} verdicts `changes`, {found.confirmed:,} hold other values after one of 50 changes")
        return
    report = run(range(arguments.first, arguments.first + arguments.scripts))
    print(
        f"{report.scripts:,} scripts, {report.questions:,} questions, {report.changed:,} hold other values,"
        f" {len(report.missed):,} of them missed"
    )
    for one in report.missed[:10]:
        print(f"missed {one.seed} {one.subject} -> {one.column}\n{one.sql}\n")
    sys.exit(bool(report.missed))


if __name__ == "__main__":
    main()

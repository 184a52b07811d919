"""Drops, renames and retypes each column of random warehouses in DuckDB, and compares what fails with ``impact``.

A warehouse is made anew with one column changed, view by view, in order. A view that cannot be made, or be read once it
is made (DuckDB plans it only then), fails with all of its columns; a view that can be made may lack columns (those that
a ``*`` brought). What fails must never be without a verdict. A verdict ``breaks`` of what still works is a false alarm.

Where a dropped column makes a view fail, the view stays away, and what reads it fails, too. Where a renamed or retyped
one does, its author is taken to mend it: it is put back with the columns that it had, and no alarm about views over it
is called false. What a new type does is asked of
views: a view that fails must have a column with a verdict.

A statement that writes a table fails with the columns that it fills; a DELETE with the rows. What reads a table that
such a statement fills still works, without the data: no alarm about it is called false.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from bench.oracles.expressions import TABLES
from bench.oracles.layers import Layers, column_type
from bench.oracles.writes import EVERY_ROW, TARGETS, Writes, Written
from govtool.app.versions.index import index_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.graph.index import Index
from govtool.model import ColumnRef
from govtool.query.change import Change, ChangeVerdict
from govtool.query.impact import expand, impact
from govtool.query.select import Subject

FIRST, ABOVE = 2, 6
"""Views of the first layer, and above it."""
STATEMENTS = 5
"""Statements that write a table."""
CHANGES = ("drop", "rename", "retype")
NEW = "new_name"

Columns = dict[str, str]
"""Name to type, in order."""


@dataclass(frozen=True)
class Finding:
    """An answer that DuckDB contradicts."""

    seed: int
    change: str
    subject: str
    what: str
    """``missed``: it fails and has no verdict. ``false alarm``: it is said to break and works; ``by position``:
    likewise, where a list of columns behind an alias, ``t(a, b)``, makes the table's own names of no account."""
    column: str
    sql: str
    """The definition of the view."""
    reason: str = ""
    """DuckDB's message."""


@dataclass
class Report:
    """What many warehouses showed."""

    warehouses: int = 0
    questions: Counter[str] = field(default_factory=Counter)
    """Pairs of a changed column and a column of a view, by change."""
    failing: Counter[str] = field(default_factory=Counter)
    """Those of them that fail."""
    broken: Counter[str] = field(default_factory=Counter)
    """Those of them that are said to break."""
    findings: list[Finding] = field(default_factory=list)

    def of(self, what: str, change: str = "") -> list[Finding]:
        """The findings of one sort, of one change or of all."""
        return [one for one in self.findings if one.what == what and change in ("", one.change)]


@dataclass(frozen=True)
class Warehouse:
    """Tables and views that DuckDB takes, in the order in which they are made."""

    relations: dict[str, Columns]
    views: dict[str, str]
    """Name to query, of views and of tables that are made of one."""
    writes: list[Written] = field(default_factory=list)
    """What fills and changes the targets, in order."""

    def text(self, name: str) -> str:
        """The query of a relation, or the statements that write a table."""
        return self.views.get(name) or "; ".join(one.sql for one in self.writes if one.target == name)

    def readers(self, table: str) -> set[str]:
        """The relations that a table is part of, at any distance, what is written from these, and what changes it."""
        found: set[str] = set()
        sources = {table}
        while sources - found:
            found |= sources
            sources = {name for name, query in self.views.items() if any(_reads(query, one) for one in found)}
            sources |= {w.target for w in self.writes if any(_reads(w.sql, one) for one in found - {w.target})}
        changes = any(w.target == table and not w.sql.startswith(("INSERT", "WITH")) for w in self.writes)
        return found if changes else found - {table}

    def has_list(self, name: str) -> bool:
        """Whether a view, or one that it is made of, has a list of columns behind an alias."""
        query = self.views.get(name, "")
        if "(a0" in query:
            return True
        before = list(self.views)[: list(self.views).index(name)] if name in self.views else []
        return any(self.has_list(other) for other in before if _reads(query, other))

    @property
    def script(self) -> str:
        """Everything as SQL."""
        tables = [f"CREATE TABLE {name} ({_defined(self.relations[name])});" for name in (*TABLES, *TARGETS)]
        made = [f"CREATE {_kind(name)} {name} AS {query};" for name, query in self.views.items()]
        return "\n".join([*tables, *made, *(f"{written.sql};" for written in self.writes)])


class Database:
    """An empty DuckDB in which warehouses are made."""

    def __init__(self) -> None:
        import duckdb

        self.refusal: type[Exception] = duckdb.Error
        self.connection: Any = duckdb.connect(config={"threads": 1})
        self.connection.execute("CREATE SCHEMA w")
        self.kinds: dict[str, str] = {}
        """VIEW or TABLE, of each relation that is there."""

    def renew(self) -> None:
        """Forget what was made."""
        self.connection.execute("DROP SCHEMA w CASCADE; CREATE SCHEMA w; SET schema = 'w'")
        self.kinds.clear()

    def remove(self, names: Iterable[str]) -> None:
        """Drop views and tables, as far as they are there."""
        drops = [f"DROP {kind} {name};" for name in names if (kind := self.kinds.pop(name, ""))]
        self.connection.execute(" ".join(drops))

    def view(self, name: str, query: str) -> tuple[Columns | None, str]:
        """Make a view or table of a query; return its columns, or None and why not."""
        try:
            self.connection.execute(f"CREATE {_kind(name)} {name} AS {query}")
            rows = self.connection.execute(f"DESCRIBE {name}").fetchall()
            if _kind(name) == "VIEW":
                self.connection.execute(f"EXPLAIN FROM {name}")
        except self.refusal as error:
            self.connection.execute(f"DROP {_kind(name)} IF EXISTS {name}")
            return None, str(error).split("\n")[0]
        self.kinds[name] = _kind(name)
        return {row[0]: row[1] for row in rows}, ""

    def write(self, statement: str) -> str:
        """Run a statement that writes; return why it fails, or nothing."""
        try:
            self.connection.execute(statement)
        except self.refusal as error:
            return str(error).split("\n")[0]
        return ""

    def table(self, name: str, columns: Columns) -> None:
        """Make a table."""
        self.connection.execute(f"CREATE TABLE {name} ({_defined(columns)})")
        self.kinds[name] = "TABLE"


def draw(seed: int, database: Database) -> Warehouse:
    """The warehouse of a seed; views that DuckDB does not take, or whose columns clash, are left out."""
    database.renew()
    relations: dict[str, Columns] = {}
    for name, columns in {**TABLES, **TARGETS}.items():
        relations[name] = {column: column_type(kind) for column, kind in columns.items()}
        database.table(name, relations[name])
    views: dict[str, str] = {}
    layers, writes = Layers(seed), Writes(seed)
    for number in range(FIRST + ABOVE + 1):
        name = f"v{number}" if number < FIRST + ABOVE else "made"
        known = {n: [*c] for n, c in relations.items()}
        query = layers.first() if number < FIRST else layers.above(known) if name != "made" else writes.table(known)
        found, _ = database.view(name, query)
        if found is not None and all(column.isidentifier() and column.islower() for column in found):
            relations[name], views[name] = found, query
        else:
            database.connection.execute(f"DROP {_kind(name)} IF EXISTS {name}")
    drawn = [writes.draw({n: [*c] for n, c in relations.items()}) for _ in range(STATEMENTS)]
    return Warehouse(relations, views, [one for one in drawn if not database.write(one.sql)])


def changed(columns: Columns, column: str, change: str) -> Columns:
    """The columns of a relation after a change to one of them."""
    if change == "drop":
        return {name: type_ for name, type_ in columns.items() if name != column}
    if change == "rename":
        return {NEW if name == column else name: type_ for name, type_ in columns.items()}
    return {name: retyped(type_) if name == column else type_ for name, type_ in columns.items()}


def retyped(type_: str) -> str:
    """Another type than that."""
    return "BIGINT" if type_ == "VARCHAR" else "VARCHAR"


@dataclass
class Outcome:
    """What a change did."""

    failing: set[tuple[str, str]] = field(default_factory=set)
    """Columns of views."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Why views fail."""
    unjudged: set[str] = field(default_factory=set)
    """Views over one that was put back: whether they would work depends on how its author mends it. Likewise what
    reads a table that a failing statement fills."""


class Trial:
    """A warehouse in which one relation is changed again and again; only what reads it is made anew."""

    def __init__(self, database: Database, warehouse: Warehouse, relation: str) -> None:
        self.database, self.warehouse, self.relation = database, warehouse, relation
        below = warehouse.readers(relation)
        self.views = [name for name in warehouse.views if name in below and name != relation]
        touched = {relation, *self.views}
        self.writes = [w for w in warehouse.writes if w.target in touched or any(_reads(w.sql, t) for t in touched)]
        database.renew()
        for name, columns in warehouse.relations.items():
            if name in warehouse.views:
                database.view(name, warehouse.views[name])
            else:
                database.table(name, columns)

    def outcome(self, column: str, change: str) -> Outcome | None:
        """What a change to a column does; None if it is the only column."""
        database, relations = self.database, self.warehouse.relations
        after = changed(relations[self.relation], column, change)
        if not after:
            return None
        database.remove((*self.views, self.relation))
        database.table(self.relation, after)
        result = Outcome()
        put_back: set[str] = set()
        for name in self.views:
            query, columns = self.warehouse.views[name], relations[name]
            if any(_reads(query, other) for other in put_back):
                put_back.add(name)
                result.unjudged.add(name)
            found, result.reasons[name] = database.view(name, query)
            result.failing |= {(name, one) for one in columns if found is None or one not in found}
            if found is None and change != "drop":
                database.table(name, columns)
                put_back.add(name)
        for written in self.writes:
            if any(_reads(written.sql, other) for other in put_back):
                result.unjudged.add(written.target)
            self._write(written, column, result)
        return result

    def _write(self, written: Written, column: str, result: Outcome) -> None:
        reason = self.database.write(written.sql)
        if reason:
            columns = {(written.target, one) for one in written.columns} - {(self.relation, column)}
            result.failing |= columns or {(written.target, EVERY_ROW)}
            result.reasons.setdefault(written.target, f"{reason} in {written.sql}")
            result.unjudged |= self.warehouse.readers(written.target)


def examine(database: Database, seed: int, report: Report, changes: Iterable[str] = CHANGES) -> None:
    """Change every column of a warehouse in every way."""
    warehouse = draw(seed, database)
    extraction = extract([Script("w.sql", warehouse.script)], Options(dialect="duckdb", evidence=True))
    index = index_of(extraction.derivations)
    report.warehouses += 1
    for relation, columns in warehouse.relations.items():
        trial = Trial(database, warehouse, relation)
        for change, column in product(changes, columns):
            found = trial.outcome(column, change)
            if found is None:
                continue
            verdicts = _verdicts(index, relation, column, change, columns[column])
            for finding in _compared(warehouse, (relation, column, change), found, verdicts, report):
                what, (name, column_of_view) = finding
                at, query = f"{name}.{column_of_view}", warehouse.text(name)
                subject, reason = f"{relation}.{column}", found.reasons.get(name, "")
                report.findings.append(Finding(seed, change, subject, what, at, query, reason))


def _compared(
    warehouse: Warehouse,
    subject: tuple[str, str, str],
    outcome: Outcome,
    verdicts: dict[str, ChangeVerdict],
    report: Report,
) -> Iterator[tuple[str, tuple[str, str]]]:
    change, failing = subject[2], outcome.failing
    for name, column in _questions(warehouse, subject, failing):
        verdict = verdicts.get(f"{name}.{column}")
        report.questions[change] += 1
        report.failing[change] += (name, column) in failing
        report.broken[change] += verdict is ChangeVerdict.BREAKS
        if (name, column) in failing:
            if change == "retype" or (verdict is None and column == EVERY_ROW):
                rows = (*warehouse.relations[name], EVERY_ROW)
                verdict = next((v for one in rows if (v := verdicts.get(f"{name}.{one}")) is not None), None)
            if verdict is None or (verdict is ChangeVerdict.PASSES and change != "retype"):
                yield "missed", (name, column)
        elif verdict is ChangeVerdict.BREAKS and name not in outcome.unjudged:
            yield "by position" if warehouse.has_list(name) else "false alarm", (name, column)


def _questions(
    warehouse: Warehouse, subject: tuple[str, str, str], failing: set[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """The columns that may have a verdict: of views and of written tables; rows, where these alone fail."""
    for name in (*warehouse.views, *dict.fromkeys(written.target for written in warehouse.writes)):
        if name in TARGETS or name != subject[0]:
            yield from ((name, one) for one in warehouse.relations[name] if (name, one) != subject[:2])
        if (name, EVERY_ROW) in failing:
            yield name, EVERY_ROW


def _verdicts(index: Index, relation: str, column: str, change: str, type_: str) -> dict[str, ChangeVerdict]:
    """What ``impact`` says of each column; nothing where it does not reach."""
    node = index.find(ColumnRef(relation, column))
    if node is None:
        return {}
    to = {"drop": None, "rename": NEW, "retype": retyped(type_)}[change]
    subject = Subject(index.node_dataset[node], node, index.name(node))
    result = impact(index, subject, change=Change(change, to))
    found: dict[str, ChangeVerdict] = {}
    for entry in expand(index, result):
        if entry.verdict is not None:
            found[entry.column] = entry.verdict
    return found


def _kind(name: str) -> str:
    return "TABLE" if name == "made" else "VIEW"


def _reads(query: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", query) is not None


def _defined(columns: Columns) -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in columns.items())


def run(seeds: Iterable[int], changes: Iterable[str] = CHANGES) -> Report:
    """Examine the warehouses of seeds."""
    report, database = Report(), Database()
    for seed in seeds:
        examine(database, seed, report, changes)
    return report


def section(warehouses: int) -> str:
    """The figures as a table of Markdown."""
    from bench.page import table

    report = run(range(warehouses))
    rows = []
    for change in CHANGES:
        alarms = len(report.of("false alarm", change))
        broken = report.broken[change]
        share = f"{alarms:,} ({alarms / broken:.2%})" if broken else "0"
        missed = len(report.of("missed", change))
        listed = f"{len(report.of('by position', change)):,}"
        counts = (f"{report.questions[change]:,}", f"{report.failing[change]:,}")
        rows.append([change, *counts, f"**{missed:,}**", share, listed])
    head = ["change", "questions", "fail in DuckDB", "… said unaffected", "false alarms", "… behind `t(a, b)`"]
    return f"{report.warehouses:,} warehouses (`python -m bench.oracles.changes`).\n\n{table(head, rows)}\n"


def main() -> None:
    """Examine warehouses and print what contradicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--warehouses", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    arguments = parser.parse_args()
    report = run(range(arguments.first, arguments.first + arguments.warehouses))
    for change in CHANGES:
        missed, alarms, listed = (len(report.of(what, change)) for what in ("missed", "false alarm", "by position"))
        print(
            f"{change}: {report.questions[change]:,} questions, {report.failing[change]:,} fail, {missed:,} missed,"
            f" {report.broken[change]:,} said to break, {alarms:,} false alarms, {listed:,} by position"
        )
    seen: set[tuple[str, str, str]] = set()
    for one in sorted(report.findings, key=lambda f: (f.what, f.change, len(f.sql))):
        key = (one.what, one.change, one.sql)
        if key not in seen:
            seen.add(key)
            print(f"{one.what} {one.seed} {one.change} {one.subject} -> {one.column}: {one.reason}\n    {one.sql}")
    sys.exit(bool(report.of("missed")))


if __name__ == "__main__":
    main()

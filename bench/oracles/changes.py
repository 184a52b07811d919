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
import random
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from bench.oracles.binder import Binder, Columns, defined
from bench.oracles.change_report import (
    ANOTHER_MEANING,
    BY_POSITION,
    FALSE_ALARM,
    MISSED,
    Finding,
    Report,
    resumed,
)
from bench.oracles.contents import Contents
from bench.oracles.expressions import TABLES
from bench.oracles.layers import Layers, column_type
from bench.oracles.writes import EVERY_ROW, TARGETS, Writes, Written
from govtool.app.versions.index import index_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.graph.index import Index
from govtool.model import ColumnRef
from govtool.query.changes.change import Change, ChangeVerdict
from govtool.query.changes.impact import expand, impact
from govtool.query.selection.select import Subject

FIRST, ABOVE = 2, 6
"""Views of the first layer, and above it."""
STATEMENTS = 5
"""Statements that write a table."""
SAMPLE = 0.05
"""The share of drops and renames after which the values of all views are compared."""
CHANGES = ("drop", "rename", "retype")
NEW = "new_name"
MADE = "made"
"""A table that is made of a query."""
VIEWS = (*(f"v{number}" for number in range(FIRST + ABOVE)), MADE)


@dataclass(frozen=True)
class Warehouse:
    """Tables and views that DuckDB takes, in the order in which they are made."""

    relations: dict[str, Columns]
    views: dict[str, str]
    """Name to query, of views and of tables that are made of one."""
    writes: list[Written]
    """What fills and changes the targets, in order."""
    naming: dict[str, tuple[str, ...]]
    """The relations that each query and statement names."""

    def reads(self, sql: str, relations: Collection[str]) -> bool:
        """Whether a query or statement names one of some relations."""
        return not set(self.naming[sql]).isdisjoint(relations)

    def text(self, name: str) -> str:
        """The query of a relation, or the statements that write a table."""
        return self.views.get(name) or "; ".join(one.sql for one in self.writes if one.target == name)

    def readers(self, table: str) -> set[str]:
        """The relations that a table is part of, at any distance, what is written from these, and what changes it."""
        found: set[str] = set()
        sources = {table}
        while sources - found:
            found |= sources
            sources = {name for name, query in self.views.items() if self.reads(query, found)}
            sources |= {w.target for w in self.writes if self.reads(w.sql, found - {w.target})}
        changes = any(w.target == table and not w.sql.startswith(("INSERT", "WITH")) for w in self.writes)
        return found if changes else found - {table}

    def has_list(self, name: str) -> bool:
        """Whether a view, or one that it is made of, has a list of columns behind an alias."""
        open_, seen = [name], {name}  # the name of a CTE may be that of the view
        while open_:
            query = self.views.get(open_.pop(), "")
            if "(a0" in query or "(k0" in query:
                return True
            new = set(self.naming.get(query, ())) - seen
            seen |= new
            open_ += new
        return False

    @property
    def script(self) -> str:
        """Everything as SQL."""
        tables = [f"CREATE TABLE {name} ({defined(self.relations[name])});" for name in (*TABLES, *TARGETS)]
        made = [
            f"CREATE {'TABLE' if name == MADE else 'VIEW'} {name} AS {query};" for name, query in self.views.items()
        ]
        return "\n".join([*tables, *made, *(f"{written.sql};" for written in self.writes)])


def draw(seed: int, binder: Binder) -> Warehouse:
    """The warehouse of a seed; views that DuckDB does not take, or whose columns clash, are left out."""
    binder.renew()
    relations = base_tables()
    views: dict[str, str] = {}
    layers, writes = Layers(seed), Writes(seed)
    for number, name in enumerate(VIEWS):
        known = {n: [*c] for n, c in relations.items()}
        query = layers.first() if number < FIRST else layers.above(known) if name != MADE else writes.table(known)
        found, _ = binder.columns(query, relations)
        if found is not None and all(column.isidentifier() and column.islower() for column in found):
            relations[name], views[name] = found, query
    drawn = [writes.draw({n: [*c] for n, c in relations.items()}) for _ in range(STATEMENTS)]
    taken = [one for one in drawn if not binder.refused(one.sql, relations)]
    naming = {sql: binder.named(sql) for sql in (*views.values(), *(one.sql for one in taken))}
    return Warehouse(relations, views, taken, naming)


def base_tables() -> dict[str, Columns]:
    """The tables that every warehouse has, with their columns and types."""
    return {
        name: {column: column_type(kind) for column, kind in columns.items()}
        for name, columns in {**TABLES, **TARGETS}.items()
    }


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
    """A warehouse in which one relation is changed again and again."""

    def __init__(self, binder: Binder, warehouse: Warehouse, relation: str) -> None:
        self.binder, self.warehouse, self.relation = binder, warehouse, relation
        below = warehouse.readers(relation)
        self.views = [name for name in warehouse.views if name in below and name != relation]
        touched = {relation, *self.views}
        self.writes = [w for w in warehouse.writes if w.target in touched or warehouse.reads(w.sql, touched)]

    def outcome(self, column: str, change: str) -> Outcome | None:
        """What a change to a column does; None if it is the only column."""
        relations = dict(self.warehouse.relations)
        relations[self.relation] = changed(relations[self.relation], column, change)
        if not relations[self.relation]:
            return None
        result = Outcome()
        put_back: set[str] = set()
        for name in self.views:
            query, columns = self.warehouse.views[name], self.warehouse.relations[name]
            if self.warehouse.reads(query, put_back):
                put_back.add(name)
                result.unjudged.add(name)
            found, result.reasons[name] = self.binder.columns(query, relations)
            result.failing |= {(name, one) for one in columns if found is None or one not in found}
            if found is not None:
                relations[name] = found
            elif change == "drop":
                del relations[name]
            else:
                put_back.add(name)
        for written in self.writes:
            if self.warehouse.reads(written.sql, put_back):
                result.unjudged.add(written.target)
            reason = self.binder.refused(written.sql, relations)
            if reason:
                self._fail(written, column, reason, result)
        return result

    def _fail(self, written: Written, column: str, reason: str, result: Outcome) -> None:
        columns = {(written.target, one) for one in written.columns} - {(self.relation, column)}
        result.failing |= columns or {(written.target, EVERY_ROW)}
        result.reasons.setdefault(written.target, f"{reason} in {written.sql}")
        result.unjudged |= self.warehouse.readers(written.target)


@dataclass(frozen=True)
class Engines:
    """The databases in which warehouses are examined."""

    binder: Binder = field(default_factory=lambda: Binder([*TABLES, *TARGETS, *VIEWS]))
    contents: Contents = field(default_factory=lambda: Contents(base_tables()))


def examine(engines: Engines, seed: int, changes: Iterable[str] = CHANGES, *, evidence: bool = True) -> Report:
    """Change every column of a warehouse in every way."""
    warehouse = draw(seed, engines.binder)
    extraction = extract([Script("w.sql", warehouse.script)], Options(dialect="duckdb", evidence=evidence))
    index = index_of(extraction.derivations)
    engines.contents.renew(warehouse.views)
    report, chance = Report(1), random.Random(seed)
    for relation, columns in warehouse.relations.items():
        trial = Trial(engines.binder, warehouse, relation)
        for change, column in product(changes, columns):
            found = trial.outcome(column, change)
            if found is None:
                continue
            verdicts = _verdicts(index, relation, column, change, columns[column])
            compared = [*_compared(warehouse, (relation, column, change), found, verdicts, report)]
            sampled = change != "retype" and chance.random() < SAMPLE
            names = set(trial.views) if sampled else {name for what, (name, _) in compared if what != MISSED}
            other: set[tuple[str, str]] = set()
            if names and change != "retype":
                new = (relation, column, "" if change == "drop" else NEW)
                other = engines.contents.differing(new, names)
            if sampled:
                report.compared[change] += sum(len(warehouse.relations[name]) for name in names)
                mended = _behind_broken(warehouse, verdicts)
                compared += [
                    (MISSED, at)
                    for at in sorted(other - found.failing)
                    if at[0] not in mended and not _has_verdict(verdicts, at)
                ]
            elsewhere = {name for name, _ in other}
            for what, (name, column_of_view) in compared:
                what = ANOTHER_MEANING if what != MISSED and name in elsewhere else what
                at, query = f"{name}.{column_of_view}", warehouse.text(name)
                subject, reason = f"{relation}.{column}", found.reasons.get(name, "")
                report.findings.append(Finding(seed, change, subject, what, at, query, reason))
    return report


def _behind_broken(warehouse: Warehouse, verdicts: dict[str, ChangeVerdict]) -> set[str]:
    """What reads a view that is said to break: its values are those of the view as its author mends it."""
    broken = {at.partition(".")[0] for at, verdict in verdicts.items() if verdict is ChangeVerdict.BREAKS}
    return {reader for name in broken for reader in warehouse.readers(name)}


def _has_verdict(verdicts: dict[str, ChangeVerdict], at: tuple[str, str]) -> bool:
    return any(verdicts.get(f"{at[0]}.{column}") not in (None, ChangeVerdict.PASSES) for column in (at[1], EVERY_ROW))


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
                yield MISSED, (name, column)
        elif verdict is ChangeVerdict.BREAKS and name not in outcome.unjudged:
            yield BY_POSITION if warehouse.has_list(name) else FALSE_ALARM, (name, column)


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


def run(
    seeds: Iterable[int], changes: Iterable[str] = CHANGES, *, log: Path | None = None, evidence: bool = True
) -> Report:
    """Examine the warehouses of seeds; those that a log has are taken from it."""
    engines = Engines()
    return resumed(seeds, lambda seed: examine(engines, seed, changes, evidence=evidence), log)


def write_section(report: Report) -> None:
    """Put the figures into docs/verdicts.md."""
    from bench.page import ROOT, put

    seeds = sorted({one.seed for one in report.of(MISSED)})
    missed = f" Seeds with a miss: {', '.join(map(str, seeds))}." if seeds else ""
    compared = f"{sum(report.compared.values()):,} columns compared by value"
    put(
        ROOT / "docs" / "verdicts.md",
        "changes",
        f"{report.warehouses:,} warehouses, {compared}.{missed}\n\n{_table(report)}",
    )


def _table(report: Report) -> str:
    from bench.page import table

    rows = []
    for change in CHANGES:
        missed, alarms, meant, listed = (
            len(report.of(what, change)) for what in (MISSED, FALSE_ALARM, ANOTHER_MEANING, BY_POSITION)
        )
        broken = report.broken[change]
        share = f"{alarms:,} ({alarms / broken:.2%})" if broken else "0"
        counts = (f"{n:,}" for n in (report.questions[change], report.failing[change]))
        rows.append([change, *counts, f"**{missed:,}**", f"{broken:,}", share, f"{meant:,}", f"{listed:,}"])
    head = ["change", "questions", "fail in DuckDB", "… said unaffected", "said to break", "false alarms"]
    return table([*head, "mean another column", "behind `t(a, b)`"], rows)


def main() -> None:
    """Examine warehouses and print what contradicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--warehouses", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--log", type=Path, help="a file for what each seed showed; a later run goes on behind it")
    parser.add_argument("--no-evidence", action="store_true", help="without the texts of statements")
    parser.add_argument(
        "--page", action="store_true", help="write the figures of the log and the seeds into docs/verdicts.md"
    )
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.warehouses)
    report = run(seeds, log=arguments.log, evidence=not arguments.no_evidence)
    print(f"{report.warehouses:,} warehouses, {sum(report.compared.values()):,} columns compared by value")
    print(_table(report))
    if arguments.page:
        write_section(report)
    seen: set[tuple[str, str, str]] = set()
    for one in sorted(report.findings, key=lambda f: (f.what, f.change, len(f.sql))):
        key = (one.what, one.change, one.sql)
        if key not in seen:
            seen.add(key)
            print(f"{one.what} {one.seed} {one.change} {one.subject} -> {one.column}: {one.reason}\n    {one.sql}")
    sys.exit(bool(report.of(MISSED)))


if __name__ == "__main__":
    main()

"""Asks DuckDB whether an answer of the extractor can be true: by what a query does, not by how it is written.

If a column of a table reaches neither an output column nor the rows, then changing its values must not change that
output. So for every output column the values of *all* columns that the extractor leaves out are changed at once,
twice, and the values of the output, as a bag, must stay what they were. The names of the outputs are compared too.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from bench.oracles.expressions import INT, TABLES
from bench.oracles.queries import Generator
from govtool.capture.sql.extract import Extraction, Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.schemas.supplied import schema_from_mapping
from govtool.model import ROWS, EdgeKind
from govtool.model.kinds import CONTRIBUTED, ROW_SET
from govtool.names import split_name

Column = tuple[str, str]

PATIENCE = 2.0
"""Seconds after which a query is given up: a few generated ones multiply their tables too often."""

VERSIONS = 3
"""The values as they are, and two changes of all of them."""

_ROWS_OF = {"people": 8, "orders": 10, "items": 9, "places": 5}

_SCHEMA = schema_from_mapping(
    {t: {c: "bigint" if k == INT else "varchar" for c, k in cs.items()} for t, cs in TABLES.items()}, "duckdb"
)


@dataclass
class Finding:
    """One query where DuckDB and the extractor differ."""

    sql: str
    what: str
    """``names``, ``unsound`` or ``diagnostics``."""
    detail: str
    seed: int = -1


@dataclass
class Report:
    """What many queries showed."""

    queries: int = 0
    refused: int = 0
    """Queries that DuckDB does not take."""
    outputs: int = 0
    runs: int = 0
    findings: list[Finding] = field(default_factory=list)

    def without(self, what: str) -> int:
        """How many queries have no finding of a sort."""
        return self.queries - len({finding.sql for finding in self.findings if finding.what == what})


class Database:
    """A DuckDB in memory with a few rows a table, whose columns can be changed one by one."""

    def __init__(self, seed: int = 0) -> None:
        import duckdb

        self._refusals: tuple[type[Exception], ...] = (duckdb.Error,)
        self.connection = duckdb.connect(config={"threads": 1, "temp_directory": ""})
        chance = random.Random(seed)
        for table, columns in TABLES.items():
            defined = ", ".join(
                f"{name}_{v} {'BIGINT' if kind == INT else 'VARCHAR'}"
                for name, kind in columns.items()
                for v in range(VERSIONS)
            )
            self.connection.execute(f"CREATE TABLE {table}_data ({defined})")
            for _ in range(_ROWS_OF[table]):
                row = [_value(chance, kind) for kind in columns.values() for _ in range(VERSIONS)]
                self.connection.execute(f"INSERT INTO {table}_data VALUES ({', '.join('?' * len(row))})", row)
        self._state: dict[str, tuple[int, ...]] = {}
        self.change((), 0)

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.connection.close()

    def change(self, columns: Iterable[Column], version: int) -> None:
        """Give some columns other values, and all others their own."""
        changed = set(columns)
        for table, names in TABLES.items():
            state = tuple(version if (table, name) in changed else 0 for name in names)
            if self._state.get(table) != state:
                items = ", ".join(f"{name}_{v} AS {name}" for name, v in zip(names, state, strict=True))
                self.connection.execute(f"CREATE OR REPLACE VIEW {table} AS SELECT {items} FROM {table}_data")
                self._state[table] = state

    def run(self, sql: str) -> tuple[list[str], list[tuple[Any, ...]]] | None:
        """Names and rows; None where DuckDB refuses, or takes too long."""
        alarm = threading.Timer(PATIENCE, self.connection.interrupt)
        alarm.start()
        try:
            answer = self.connection.execute(sql)
            return [item[0] for item in answer.description], answer.fetchall()
        except self._refusals:
            return None
        finally:
            alarm.cancel()


def _value(chance: random.Random, kind: str) -> int | str | None:
    if chance.random() < 0.1:
        return None
    return chance.randrange(3) if kind == INT else chance.choice("abc")


def examine(database: Database, sql: str, report: Report, seed: int = -1) -> None:
    """Compare one query, and add what was found to the report."""
    database.change((), 0)
    truth = database.run(sql)
    if truth is None:
        report.refused += 1
        return
    report.queries += 1

    def finding(what: str, detail: str) -> None:
        report.findings.append(Finding(sql, what, detail, seed))

    names, rows = truth
    extraction = extract([Script("query.sql", sql)], Options(dialect="duckdb", schema=_SCHEMA, evidence=False))
    notes = [f"{note.code}: {note.message}" for note in extraction.diagnostics if note.severity != "info"]
    if notes:
        finding("diagnostics", "; ".join(notes))
    if len(extraction.derivations) != 1:
        finding("names", f"{len(extraction.derivations)} derivations")
        return
    ours = [plain(column.path) for column in extraction.derivations[0].columns]
    # A column without a name is named after the text of its expression, by the rules of the database.
    fits = [
        mine == f"_c{n}" or mine == theirs.lower() for n, (mine, theirs) in enumerate(zip(ours, names, strict=False))
    ]
    if len(ours) != len(names) or not all(fits):
        finding("names", f"{ours} instead of {names}")
        return
    rows_from, reached = _reach(extraction)
    everything = {(table, column) for table, columns in TABLES.items() for column in columns}
    outputs: dict[frozenset[Column], list[int]] = {}
    for position, name in enumerate(ours):
        left_out = frozenset(everything - rows_from - reached.get(name, set()))
        outputs.setdefault(left_out, []).append(position)
    report.outputs += len(ours)
    for left_out, positions in outputs.items():
        before = _bag(rows, positions)
        for version in range(1, VERSIONS):
            database.change(left_out, version)
            report.runs += 1
            again = database.run(sql)
            if again is not None and _bag(again[1], positions) != before:
                wrong = [ours[p] for p in positions if _bag(again[1], [p]) != _bag(rows, [p])]
                culprits = _culprits(database, sql, left_out, version, positions, before)
                finding("unsound", f"{wrong or [ours[p] for p in positions]} changed with {culprits}")
                break
    database.change((), 0)


def _culprits(
    database: Database, sql: str, left_out: frozenset[Column], version: int, positions: list[int], before: Counter[Any]
) -> list[str]:
    """The columns that change the outputs alone; all of them where it takes several."""
    alone = []
    for column in sorted(left_out):
        database.change([column], version)
        again = database.run(sql)
        if again is not None and _bag(again[1], positions) != before:
            alone.append(".".join(column))
    return alone or sorted(".".join(column) for column in left_out)


def _bag(rows: list[tuple[Any, ...]], positions: list[int]) -> Counter[Any]:
    return Counter(repr([row[p] for p in positions]) for row in rows)


def _reach(extraction: Extraction) -> tuple[set[Column], dict[str, set[Column]]]:
    """The columns that decide the rows, and those that reach each output."""
    rows: set[Column] = set()
    reached: dict[str, set[Column]] = {}
    for edge in extraction.derivations[0].edges:
        source = (edge.source.dataset, plain(edge.source.path))
        if edge.target_path == ROWS and edge.kind in ROW_SET and edge.kind is not EdgeKind.UNION_ALL:
            rows.add(source)
        elif edge.kind in CONTRIBUTED:
            reached.setdefault(plain(edge.target_path), set()).add(source)
    return rows, reached


def plain(path: str) -> str:
    """The column of a path, without quotes."""
    first = split_name(path)[0]
    if first.startswith('"'):
        return first[1 : first.rindex('"')].replace('""', '"')
    return first.partition("[")[0]


def run(seeds: Iterable[int]) -> Report:
    """Examine one generated query a seed."""
    report = Report()
    with Database() as database:
        for seed in seeds:
            examine(database, Generator(seed, "duckdb").draw(), report, seed)
    return report

"""The comparison of traces with the reference: one case is a random plan over random data.

python tests/records/trace/differential.py 2000 [first seed] [--files] [--spark] [--twice]
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from duck import Duck
from reference.algebra import Data, Row, Union, bag, evaluate, only, present
from reference.generate import RELATIONS, Plans, Sql, random_data
from reference.polynomial import NOTHING, Trace, Value

from govtool.model.token import pack, unpack
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Expression, Literal, passed
from govtool.records.plan.from_sql import from_sql, table
from govtool.records.plan.nodes import File, LocalRows, Project, Relation, Session
from govtool.records.sql.dialect import NotExact
from govtool.records.trace.back import ReachedRows, Stage, chosen, trace_back
from govtool.records.trace.forward import Forward, input_key
from govtool.records.trace.rules import traceable
from govtool.records.trace.segment import LinkSource, alike, both

Change = Callable[[Any, str], tuple[Any, str]]
"""Makes another plan of a plan, and its SQL."""
KINDS: dict[str, tuple[str, t.Type]] = {
    "int": ("INTEGER", t.INTEGER),
    "str": ("VARCHAR", t.STRING),
    "list": ("INTEGER[]", t.Array(t.INTEGER)),
}


@dataclass
class Report:
    """What a run of cases came to."""

    cases: int = 0
    traces: int = 0
    supersets: int = 0
    skipped: int = 0
    revived: int = 0
    """Traces whose replay needs what took off a traced row elsewhere in the plan."""
    reasons: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def catalog() -> dict[str, Relation]:
    return {
        name: table(name, t.Struct(tuple(t.Field(column, KINDS[kind][1]) for column, kind in columns)))
        for name, columns in RELATIONS.items()
    }


def load(duck: Duck, data: Data) -> None:
    for name, columns in RELATIONS.items():
        duck.load(name, [(column, KINDS[kind][0]) for column, kind in columns], [values for _, values in data[name]])


def normal(value: Any) -> Any:
    if isinstance(value, (float, Fraction)):
        return round(float(value), 9)
    return tuple(value) if isinstance(value, list) else value


def normal_rows(rows: Any) -> list[tuple[Any, ...]]:
    return [tuple(normal(value) for value in row) for row in rows]


def same_as(columns: list[Attribute], values: list[Any]) -> Expression | None:
    """The condition that a row has these values."""
    return both(alike(column, constant(column, value)) for column, value in zip(columns, values, strict=True))


def constant(column: Attribute, value: Any) -> Expression:
    return Literal(tuple(value) if isinstance(value, list) else value, column.type)


def steered(plan: Any, data: Data) -> bool:
    """Whether computed values steer rows, so that others may take a row's place in a replay of a part of the data."""
    rows = evaluate(plan, data)
    texts = [str(row.annotation) for row in rows] + [str(c) for row in rows for c in row.cells if isinstance(c, Value)]
    return any(mark in text for text in texts for mark in ("[", "RANK", "ROW_NUMBER", "LAG"))


class Tables:
    """Data as tables of the thin evaluator; ids are positions."""

    def __init__(self, data: Data) -> None:
        self.data = data
        self.executor: Any = Duck()
        load(self.executor, data)
        self.catalog = catalog()

    def token(self, name: str, record: int) -> str:
        return self.data[name][record][0]

    def record(self, name: str, position: int) -> int:
        return position

    def close(self) -> None:
        self.executor.connection.close()


class Files:
    """Data as Parquet files, two a relation, read by the product's executor."""

    def __init__(self, data: Data, folder: Path, spark: Any = None) -> None:
        from govtool.records.execute.duckdb import DuckExecutor
        from govtool.records.execute.spark_executor import SparkExecutor
        from govtool.records.sidecar.lookup import SidecarExecutor, SidecarUse

        self.data = data
        session = Session("4.0", ansi=True, zone="UTC")
        self.executor: Any = (
            SparkExecutor(session, spark)
            if spark is not None
            else SidecarExecutor(DuckExecutor(session, threads=1), SidecarUse())
        )
        self.split = {name: (len(rows) + 1) // 2 for name, rows in data.items()}
        self.catalog = {name: self._written(name, relation, folder) for name, relation in catalog().items()}

    def _written(self, name: str, relation: Relation, folder: Path) -> Relation:
        types = {"int": pa.int32(), "str": pa.string(), "list": pa.list_(pa.int32())}
        files = []
        for ordinal, rows in enumerate((self.data[name][: self.split[name]], self.data[name][self.split[name] :])):
            columns = RELATIONS[name]
            cells = {column: pa.array([v[n] for _, v in rows], types[kind]) for n, (column, kind) in enumerate(columns)}
            path = folder / f"{name}-{ordinal}.parquet"
            pq.write_table(pa.table(cells), path)
            files.append(File(ordinal, path.as_uri(), path.stat().st_size, path.stat().st_mtime_ns // 1_000_000))
        return replace(relation, format="parquet", files=tuple(files))

    def token(self, name: str, record: int) -> str:
        _, file, row = unpack(record)
        return self.data[name][row + (self.split[name] if file else 0)][0]

    def record(self, name: str, position: int) -> int:
        split = self.split[name]
        return pack(0, 0, position) if position < split else pack(0, 1, position - split)

    def close(self) -> None:
        if hasattr(self.executor, "base"):
            self.executor.base.connection.close()
        else:
            self.executor.close()


def read_twice(plan: Any, sql: str) -> tuple[Any, str]:
    """A plan beside itself, as a common table expression that is read twice."""
    return Union(plan, plan), f"WITH twice AS ({sql}) SELECT * FROM twice UNION ALL SELECT * FROM twice"


class Case:
    """A plan over data, in the reference and in the product."""

    def __init__(
        self, seed: int, folder: Path | None = None, spark: Any = None, change: Change = lambda *plan: plan
    ) -> None:
        rng = Random(seed)
        self.rng = rng
        self.data = random_data(rng)
        self.tables = Tables(self.data) if folder is None else Files(self.data, folder, spark)
        self.duck = self.tables.executor
        self.plan = Plans(rng).plan(rng.randint(1, 4)).plan
        self.plan, self.sql = change(self.plan, Sql().text(self.plan))
        self.seed = seed
        self.segment, self.ids, _ = traceable(from_sql(self.sql, self.tables.catalog))
        self.stage = Stage(self.segment)

    def run(self, report: Report) -> None:
        report.cases += 1
        expected = Counter(normal_rows(bag(self.plan, self.data)))
        visible = self.segment.visible
        try:
            raw = self.duck.fetch(Project(self.segment.node, tuple(passed(column) for column in visible)))
        except (duckdb.NotImplementedException, NotExact) as error:  # what DuckDB cannot, Spark does
            report.skipped += 1
            report.reasons[str(error).splitlines()[0][:80]] += 1
            return
        found = Counter(normal_rows(raw))
        if found != expected:
            report.wrong.append(f"{self.seed}: result {found} instead of {expected}: {self.sql}")
            return
        rows = present(self.plan, self.data)
        self.chosen = [at for at, column in enumerate(visible) if not isinstance(column.type, t.Array)]
        values = sorted({self.key(row.values) for row in rows}, key=repr)
        originals = {self.key(row): row for row in raw}
        for value in self.rng.sample(values, min(2, len(values))):
            self._back(report, originals[value], value, [r for r in rows if self.key(r.values) == value])
        self._forward(report, rows)

    def key(self, values: Any) -> tuple[Any, ...]:
        """What rows are selected by: the cells that may be compared, which lists may not."""
        return tuple(normal(values[at]) for at in self.chosen)

    def _back(self, report: Report, raw: tuple[Any, ...], value: tuple[Any, ...], rows: list[Row]) -> None:
        report.traces += 1
        expected = NOTHING
        for row in rows:
            expected |= row.trace
        _, reached = trace_back(
            self.duck,
            [
                chosen(
                    self.stage,
                    same_as([self.segment.visible[at] for at in self.chosen], [raw[at] for at in self.chosen]),
                )
            ],
        )
        exact = all(each.grade.exactness == "exact" for each in reached)
        found = Trace(self.tokens(reached, False), self.tokens(reached, True))
        where = f"{self.seed} row {value}: "
        if exact and found.rows != expected.rows:
            report.wrong.append(f"{where}rows {sorted(found.rows)} instead of {sorted(expected.rows)}: {self.sql}")
        if exact and found.against - found.rows != expected.against - expected.rows:
            report.wrong.append(
                f"{where}against {sorted(found.against - found.rows)} instead of {sorted(expected.against - expected.rows)}: {self.sql}"
            )
        if not exact:
            report.supersets += 1
            if not found.rows >= expected.rows:
                report.wrong.append(
                    f"{where}superset {sorted(found.rows)} misses some of {sorted(expected.rows)}: {self.sql}"
                )
        if steered(self.plan, self.data):
            return
        traced = found.rows | found.against
        times = sum(row.annotation.count() for row in rows)
        replayed = self._replayed(traced)
        if replayed[value] >= times:
            return
        # A traced row may also be one that something takes off elsewhere in the plan, where no row of the result comes
        # of it. What took it off is no part of the trace, so that a replay of the trace alone finds the row there.
        if self._replayed(traced | self._right_operands())[value] >= times:
            report.revived += 1
        else:
            report.wrong.append(f"{where}replay gives it {replayed[value]} times, not {times}: {self.sql}")

    def _replayed(self, tokens: frozenset[str]) -> Counter[Any]:
        return Counter(map(self.key, bag(self.plan, only(self.data, tokens))))

    def _right_operands(self) -> frozenset[str]:
        """The tokens of all rows of relations that stand against others somewhere in the plan."""
        found: set[str] = set()
        waiting = [(self.stage, False)]
        for stage, below in waiting:
            for number, source in enumerate(stage.segment.sources):
                against = below or source.against
                if isinstance(source, LinkSource):
                    waiting.append((stage.below(number), against))
                elif against and isinstance(source.leaf, Relation):
                    found |= {token for token, _ in self.data[source.leaf.dataset]}
        return frozenset(found)

    def tokens(self, reached: list[ReachedRows], against: bool) -> frozenset[str]:
        found = set()
        for each in reached:
            if each.against == against:
                assert isinstance(each.leaf, Relation)
                found |= {self.tables.token(each.leaf.dataset, record) for (record,) in self.duck.fetch(each.rows)}
        return frozenset(found)

    def _forward(self, report: Report, rows: list[Row]) -> None:
        names = [name for name in self.data if self.data[name]]
        if not names:
            return
        name = self.rng.choice(names)
        number = self.rng.randrange(len(self.data[name]))
        token = self.data[name][number][0]
        expected = Counter(
            normal_rows(row.values for row in rows for _ in range(row.annotation.count()) if token in row.trace.rows)
        )
        record = self.ids.attribute("record", t.LONG)
        kept = self.duck.keep(LocalRows(0, (record,), ((self.tables.record(name, number),),)))
        position = Forward(self.duck, self.ids).from_inputs(self.stage, {input_key(self.tables.catalog[name]): kept})
        found: Counter[Any] = Counter()
        if position is not None:
            plan = Project(position.rows, tuple(passed(column) for column in self.segment.visible))
            found = Counter(normal_rows(self.duck.fetch(plan)))
        exact = position is None or position.grade.exactness == "exact"
        if (found != expected) if exact else (expected - found):
            report.wrong.append(f"{self.seed} forward {token}: {found} instead of {expected}: {self.sql}")


def run(seeds: range, folder: Path | None = None, spark: Any = None, change: Change = lambda *plan: plan) -> Report:
    """Compare the cases of some seeds; over Parquet files where a folder is given, in Spark where a session is."""
    report = Report()
    for seed in seeds:
        case = Case(seed, folder, spark, change)
        try:
            case.run(report)
        finally:
            case.tables.close()
    return report


def main(arguments: list[str]) -> int:
    """Run many cases, over Parquet files with ``--files`` or ``--spark``; print what is wrong and the totals."""
    spark = None
    change: Change = read_twice if "--twice" in arguments else lambda *plan: plan
    if "--spark" in arguments:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "1")
        spark = builder.config("spark.ui.enabled", "false").getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
    files = "--files" in arguments or spark is not None
    numbers = [int(text) for text in arguments if not text.startswith("-")]
    start = numbers[1] if len(numbers) > 1 else 0
    total = Report()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(start, start + numbers[0]):
            try:
                one = run(range(number, number + 1), Path(folder) if files else None, spark, change)
            except Exception as error:
                one = Report(wrong=[f"{number}: {type(error).__name__}: {error}"])
            total.cases += one.cases
            total.traces += one.traces
            total.supersets += one.supersets
            total.skipped += one.skipped
            total.revived += one.revived
            total.reasons += one.reasons
            total.wrong += one.wrong
    print(*total.wrong, sep="\n")
    counts = f"{total.traces} traces, {total.supersets} supersets, {total.skipped} skipped, {total.revived} revived, "
    counts += f"{len(total.wrong)} wrong"
    print(f"{total.cases} cases, {counts}", *total.reasons.items(), sep="\n  ")
    return bool(total.wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

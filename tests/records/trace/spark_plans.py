"""The comparison of traces with the reference, of plans that a real Spark session made of the generated queries.

Each query is analyzed by Spark, its plan is read as a recorded action's is, and traced: in DuckDB where that is exact,
else in Spark, or in Spark alone.

python tests/records/trace/spark_plans.py 200 [first seed] [--spark]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from random import Random

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

import pyarrow as pa
import pyarrow.parquet as pq
from differential import Case, Report
from reference.generate import RELATIONS, Plans, Sql, random_data

from govtool.model.token import pack, unpack
from govtool.records.execute.chain import ExecutorChain, PlanEngine
from govtool.records.execute.inputs import relations
from govtool.records.plan import catalyst
from govtool.records.plan.nodes import Relation
from govtool.records.spooled_plans import session_of
from govtool.records.trace.back import Stage
from govtool.records.trace.rules import traceable
from govtool.spark.live.records.exact import Walker

TYPES = {"int": pa.int32(), "str": pa.string(), "list": pa.list_(pa.int32())}


class CapturedTables:
    """Data as folders of two Parquet files, seen by the plan that Spark made of a query over them."""

    def __init__(self, data, folder, spark, sql, engines):
        self.data = data
        self.split = {name: (len(rows) + 1) // 2 for name, rows in data.items()}
        for name in data:
            self._write(name, folder)
            spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)
        walker = Walker(spark.sparkContext._gateway, spark.version)
        self.captured = json.loads(walker.read(spark.sql(sql)._jdf.queryExecution()))
        session = session_of(walker.version, self.captured["settings"])
        self.plan = catalyst.read(self.captured["exact"], session)
        self.executor = ExecutorChain(engines(session))
        self.leaves = {leaf.dataset: leaf for leaf in relations(self.plan.root)}
        self.catalog = {name: next((x for x in self.leaves.values() if _name(x) == name), None) for name in data}

    def _write(self, name, folder):
        (folder / name).mkdir(parents=True)
        split = self.split[name]
        for number, rows in enumerate((self.data[name][:split], self.data[name][split:])):
            cells = [
                pa.array([values[n] for _, values in rows], TYPES[kind]) for n, (_, kind) in enumerate(RELATIONS[name])
            ]
            table = pa.table(dict(zip((column for column, _ in RELATIONS[name]), cells, strict=True)))
            pq.write_table(table, folder / name / f"part-{number}.parquet")

    def token(self, dataset, record):
        """The reference's name of a record."""
        leaf = self.leaves[dataset]
        _, ordinal, row = unpack(record)
        (file,) = (each for each in leaf.files if each.ordinal == ordinal)
        name = _name(leaf)
        return self.data[name][row + (self.split[name] if file.uri.endswith("part-1.parquet") else 0)][0]

    def record(self, name, position):
        """The id of a record."""
        split = self.split[name]
        second = position >= split
        (file,) = (x for x in self.catalog[name].files if x.uri.endswith(f"part-{int(second)}.parquet"))
        return pack(0, file.ordinal, position - split if second else position)

    def close(self):
        """Free what executors hold."""


def _name(leaf: Relation) -> str:
    return leaf.dataset.rstrip("/").rpartition("/")[2]


class CapturedCase(Case):
    """A query in Spark, and its plan in the reference."""

    def __init__(self, seed, folder, spark, engines):
        rng = Random(seed)
        self.rng, self.seed = rng, seed
        self.data = random_data(rng)
        self.plan = Plans(rng).plan(rng.randint(1, 4)).plan
        self.sql = Sql().text(self.plan)
        self.tables = CapturedTables(self.data, folder, spark, self.sql, engines)
        self.duck = self.tables.executor
        self.segment, self.ids, self.blank = traceable(self.tables.plan.root)
        self.stage = Stage(self.segment)

    def _forward(self, report, rows):
        names = [name for name in self.data if self.data[name]]
        read = [name for name in names if self.tables.catalog[name] is not None]
        if not read:
            return
        self.data, whole = {name: self.data[name] for name in read}, self.data
        try:
            super()._forward(report, rows)
        finally:
            self.data = whole


def engines_of(spark, only_spark):
    """What evaluates the plans of a session."""
    from govtool.records.execute.duckdb import DuckExecutor
    from govtool.records.execute.spark_executor import SparkExecutor

    def engines(session):
        own = PlanEngine("Spark", lambda: SparkExecutor(session, spark))
        return (own,) if only_spark else (PlanEngine("DuckDB", lambda: DuckExecutor(session, threads=1)), own)

    return engines


def run(seeds, folder, spark, only_spark=False):
    """Compare the cases of some seeds; the report counts cases that Spark evaluated among the reasons."""
    report = Report()
    for seed in seeds:
        case = CapturedCase(seed, Path(folder) / str(seed), spark, engines_of(spark, only_spark))
        if case.blank:
            report.wrong.append(f"{seed}: columns that cannot be evaluated again: {case.sql}")
        case.run(report)
        report.reasons[case.duck.engine] += 1
    return report


def main(arguments):
    """Compare many cases; print what is wrong and the totals."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "1")
    builder = builder.config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    numbers = [int(text) for text in arguments if not text.startswith("-")]
    start = numbers[1] if len(numbers) > 1 else 0
    total = Report()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(start, start + numbers[0]):
            try:
                one = run(range(seed, seed + 1), folder, spark, "--spark" in arguments)
            except Exception as error:
                one = Report(1, wrong=[f"{seed}: {type(error).__name__}: {str(error)[:300]}"])
            for name in ("cases", "traces", "supersets", "skipped"):
                setattr(total, name, getattr(total, name) + getattr(one, name))
            total.reasons += one.reasons
            for line in one.wrong:
                total.wrong.append(line)
                print(line, flush=True)
    counts = f"{total.traces} traces, {total.supersets} supersets, {total.skipped} skipped, {len(total.wrong)} wrong"
    print(f"{total.cases} cases, {counts}", *total.reasons.items(), sep="\n  ")
    return bool(total.wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Stores with records, made by hand: SQL over Parquet files, run by DuckDB, committed as a recorded write is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from govtool.app.datasets.places import path_id
from govtool.app.records.tables import RecordTables
from govtool.model.run import RUNS, Run, RunInput, RunOutput, encode_runs
from govtool.records.capture import RecordedWrite
from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.from_sql import from_sql
from govtool.records.plan.nodes import File, Plan, Relation, Session, Write, outputs
from govtool.store import Changes, Fragment, Store

SESSION = Session("4.0.1", True, "UTC")
_TYPES = {
    pa.int64(): t.LONG,
    pa.int32(): t.INTEGER,
    pa.string(): t.STRING,
    pa.float64(): t.DOUBLE,
    pa.bool_(): t.BOOLEAN,
    pa.binary(): t.BINARY,
    pa.date32(): t.DATE,
    pa.timestamp("us"): t.TIMESTAMP,
}


def _type(kind: pa.DataType) -> t.Type:
    if pa.types.is_list(kind):
        return t.Array(_type(kind.value_type))
    if pa.types.is_struct(kind):
        return t.Struct(tuple(t.Field(each.name, _type(each.type)) for each in kind))
    if pa.types.is_decimal(kind):
        return t.Decimal(kind.precision, kind.scale)
    return t.Map(_type(kind.key_type), _type(kind.item_type)) if pa.types.is_map(kind) else _TYPES[kind]


VIEWS = [("ann", 1, 10), ("ann", 2, 20), ("bob", 1, 30), ("bob", 1, 30), (None, 3, None), ("eve", 9, 5)]
USERS = [("ann", "fr"), ("bob", "de"), ("zoe", "fr"), (None, "uk")]
BY_LAND = """
    SELECT land, sum(spent) AS total, count(*) AS n
    FROM views JOIN users ON views.user = users.name
    GROUP BY land HAVING sum(spent) > 20
"""


@dataclass
class Warehouse:
    """Folders of Parquet files, and jobs over them that are recorded."""

    folder: Path
    store: Store
    source: str = "run:job.py"
    runs: list[Run] = field(default_factory=list)
    committed: set[str] = field(default_factory=set)
    """Applications of runs that are in the store."""

    def table(self, name: str, columns: dict[str, pa.DataType], *parts: list[tuple]) -> Path:
        """Write a folder with a file a part."""
        place = self.folder / name
        place.mkdir(exist_ok=True)
        for number, rows in enumerate(parts):
            arrays = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(columns.values())]
            pq.write_table(pa.table(dict(zip(columns, arrays, strict=True))), place / f"part-{number}.parquet")
        return place

    def relation(self, place: Path) -> Relation:
        """A folder, or a file of one, as a leaf that was read now."""
        files = [place] if place.is_file() else sorted(place.glob("*.parquet"))
        schema = pq.read_schema(files[0])
        fields = tuple(t.Field(each.name, _type(each.type)) for each in schema)
        columns = tuple(Attribute(i, each.name, each.type) for i, each in enumerate(fields))
        return Relation(0, place.as_uri(), "parquet", listing(files), columns, t.Struct(fields))

    def plan(self, sql: str, *inputs: str) -> Plan:
        """The plan of a query over folders."""
        leaves = {name: self.relation(self.folder / name) for name in inputs}
        return Plan(from_sql(sql, leaves), SESSION)

    def run(self, sql: str, output: str, *inputs: str, run: str = "app-1/0", part: str = "out") -> RecordedWrite:
        """Run a query, and write its rows into a folder as a file of its own."""
        plan = self.plan(sql, *inputs)
        table = DuckExecutor(plan.session).arrow(plan.root)
        place = self.folder / output
        place.mkdir(exist_ok=True)
        pq.write_table(table, place / f"{part}.parquet")
        names = tuple(each.name for each in outputs(plan.root))
        left = self.relation(place)
        own = tuple(each for each in left.files if each.uri.endswith(f"{part}.parquet"))
        files = replace(left, files=tuple(replace(each, ordinal=i) for i, each in enumerate(own)))
        written = Plan(Write(plan.root, place.as_uri(), "parquet", "append", names), SESSION)
        self.runs.append(
            Run(
                id=run,
                job="job.py → out",
                status="complete",
                how="plan",
                application=run.partition("/")[0],
                inputs=tuple(RunInput(path_id(str(self.folder / name))) for name in inputs),
                outputs=(RunOutput(path_id(str(place))),),
            )
        )
        return RecordedWrite(run, written, path_id(str(place)), files)

    def commit(self, *writes: RecordedWrite) -> None:
        """Commit writes as ``govtool run --records`` does, beside those of earlier runs."""
        tables = RecordTables.of(writes)
        change = tables.beside(self.store, self.store.head("main"), self.source, self.committed)
        self.committed.update(run.application for run in self.runs)
        runs = Fragment(self.source, RUNS, encode_runs(self.runs), len(self.runs))
        self.store.commit(
            Changes(retract=(self.source,), add=(runs, *change.added), uploaded=change.kept),
            message="run",
            author="test",
            batch=f"run:{len(self.runs)}:{change.identity}",
            summary={},
        )


def listing(files: list[Path]) -> tuple[File, ...]:
    """Files as Spark lists them."""
    stats = [file.stat() for file in files]
    return tuple(
        File(i, file.as_uri(), stat.st_size, stat.st_mtime_ns // 1_000_000)
        for i, (file, stat) in enumerate(zip(files, stats, strict=True))
    )


def shop(folder: Path, store: Store | None = None) -> Warehouse:
    """Views of pages in two files, users, and the recorded write of a report over both."""
    warehouse = Warehouse(folder, store or Store.init(str(folder / ".govtool")))
    columns = {"user": pa.string(), "page": pa.int64(), "spent": pa.int64()}
    warehouse.table("views", columns, VIEWS[:3], VIEWS[3:])
    warehouse.table("users", {"name": pa.string(), "land": pa.string()}, USERS)
    warehouse.commit(warehouse.run(BY_LAND, "report", "views", "users"))
    return warehouse

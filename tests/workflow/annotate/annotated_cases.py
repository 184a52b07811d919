"""Random plans of the reference, annotated by the product."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from reference.generate import RELATIONS, Plans, Sql, random_data

from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.plan import types as t
from govtool.records.plan.from_sql import from_sql, table
from govtool.records.plan.nodes import File, Session
from govtool.workflow.annotate.query import annotate_query

KINDS = {
    "int": (pa.int32(), t.INTEGER),
    "str": (pa.string(), t.STRING),
    "list": (pa.list_(pa.int32()), t.Array(t.INTEGER)),
}
SESSION = Session("4.0", ansi=True, zone="UTC")


def written(data: Any, folder: Path, relations: Any = RELATIONS) -> dict[str, Any]:
    """Relations as Parquet files, one each."""
    found = {}
    for name, columns in relations.items():
        cells = {
            column: pa.array([values[n] for _, values in data[name]], KINDS[kind][0])
            for n, (column, kind) in enumerate(columns)
        }
        path = folder / f"{name}.parquet"
        pq.write_table(pa.table(cells), path)
        schema = t.Struct(tuple(t.Field(column, KINDS[kind][1]) for column, kind in columns))
        stat = path.stat()
        file = File(0, path.as_uri(), stat.st_size, stat.st_mtime_ns // 1_000_000)
        found[name] = replace(table(name, schema), format="parquet", files=(file,))
    return found


def annotated(sql: str, data: Any, folder: Path, relations: Any = RELATIONS, executor: Any = None) -> Any:
    """A query over data, annotated by an executor (DuckDB's if none is given), with the tokens by node."""
    catalog = written(data, folder, relations)
    executor = executor or DuckExecutor(SESSION, threads=1)
    sizes = {name: len(rows) for name, rows in data.items()}
    found = annotate_query(from_sql(sql, catalog), executor, sizes)
    tokens = {start + at: token for name, start in found.sources.items() for at, (token, _) in enumerate(data[name])}
    return found, tokens


def case(seed: int) -> tuple[Any, Any, str]:
    """The data, the plan and the SQL of a seed."""
    rng = Random(seed)
    data = random_data(rng)
    plan = Plans(rng).plan(rng.randint(1, 4)).plan
    return data, plan, Sql().text(plan)

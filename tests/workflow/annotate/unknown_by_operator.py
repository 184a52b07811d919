"""The share of rows that a deletion leaves unknown, operator by operator; every other row is compared with DuckDB's.

python tests/workflow/annotate/unknown_by_operator.py [data sets a query] [first seed] [operator]: a table in Markdown

An answer is open if rows may appear that it does not name.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from govtool.app.why.deletion import delete_rows
from govtool.workflow.queries.statuses import key_of

OPERATORS = {
    "projection, filter": ["select id, x + 1 as y from r where x > 3"],
    "inner join": ["select r.id, s.y from r join s on r.k = s.k"],
    "left, right, full join": [
        "select r.id, s.y from r left join s on r.id = s.k",
        "select r.id, s.y from r full join s on r.k = s.id",
    ],
    "semi join, EXISTS, IN": [
        "select id from r where exists (select 1 from s where s.k = r.k and s.y > 4)",
        "select id from r where k in (select k from s where y > 6)",
    ],
    "anti join, NOT EXISTS": ["select id from r where not exists (select 1 from s where s.k = r.k and s.y > 6)"],
    "NOT IN, NULLs on the right": ["select id, k from r where k not in (select nullif(k, 6) from s where id < 2)"],
    "UNION ALL": ["select k from r union all select k from s"],
    "DISTINCT, UNION": ["select distinct g, k from r", "select k from r union select k from s"],
    "INTERSECT, INTERSECT ALL": [
        "select k from r intersect select k from s",
        "select k from r intersect all select k from s",
    ],
    "EXCEPT, EXCEPT ALL": ["select k from r except select k from s", "select k from r except all select k from s"],
    "GROUP BY, COUNT, SUM, AVG": ["select g, k, count(*) as n, sum(x) as s, avg(x) as a from r group by g, k"],
    "MIN, MAX": ["select g, min(x) as l, max(x) as h from r group by g"],
    "COUNT(DISTINCT …)": ["select g, count(distinct x) as n from r group by g"],
    "aggregate without keys": ["select count(*) as n, sum(x) as s, min(x) as l from r where x > 2"],
    "HAVING": ["select g, k, count(*) as n from r group by g, k having count(*) > 1"],
    "ROLLUP, CUBE": [
        "select g, k, count(*) as n from r group by rollup (g, k)",
        "select g, k, sum(x) as n from r group by cube (g, k)",
    ],
    "filter on an aggregate of another query": ["select id from r where x >= (select avg(x) from s join t using (id))"],
    "group by an aggregate": ["select n, count(*) as m from (select k, count(*) as n from r group by k) group by n"],
    "aggregate over a partition": ["select id, sum(x) over (partition by g) as s from r"],
    "aggregate over a frame in order": ["select id, sum(x) over (partition by g order by id) as s from r"],
    "frame of rows": [
        "select id, sum(x) over (partition by g order by id rows between 1 preceding and current row) as s from r"
    ],
    "row_number, rank, ntile": [
        "select id, row_number() over (partition by g order by x, id) as n from r",
        "select id, rank() over (partition by g order by x) as n from r",
    ],
    "lag, lead": ["select id, lag(x) over (partition by g order by id) as p from r"],
    "first rows of a partition": [
        "select id, x from (select *, row_number() over (partition by g order by x, id) as n from r) where n <= 2"
    ],
    "top-k": ["select id, x from r order by x, id limit 5", "select id from r order by x desc nulls last, id limit 3"],
    "top-k with OFFSET": ["select id, x from r order by x, id limit 5 offset 2"],
    "join over a top-k": ["select s.id from s join (select k from r order by id limit 4) as q on s.k = q.k"],
}
COLUMNS = {"r": ("id", "k", "x", "g"), "s": ("id", "k", "y"), "t": ("id", "x")}
SIZE = 30
DELETIONS = 4
MODES = ("propagate", "auto")


@dataclass
class Share:
    """Rows by mode and status, answers by mode to which rows may be added, and what a run contradicts."""

    statuses: dict[str, Counter[str]] = field(default_factory=lambda: {mode: Counter() for mode in MODES})
    open: Counter[str] = field(default_factory=Counter)
    deletions: int = 0
    wrong: list[str] = field(default_factory=list)

    def unknown(self, mode: str) -> float:
        """The share of unknown rows."""
        return self.statuses[mode]["unknown"] / max(self.statuses[mode].total(), 1)


def random_tables(rng: Random) -> dict[str, pa.Table]:
    """Relations of 30 rows with NULLs and few distinct values."""

    def cell(column: str, at: int) -> Any:
        if column == "id":
            return at
        if rng.random() < 0.1:
            return None
        return rng.choice("abc") if column == "g" else rng.randint(1, 6 if column == "k" else 9)

    types = {"g": pa.string()}
    return {
        name: pa.table({c: pa.array([cell(c, at) for at in range(SIZE)], types.get(c, pa.int32())) for c in columns})
        for name, columns in COLUMNS.items()
    }


def deletions(rng: Random) -> list[list[str]]:
    """Lists of one to six records."""
    every = [f"{name}:{at}" for name in COLUMNS for at in range(SIZE)]
    return [sorted(rng.sample(every, rng.choice((1, 2, 3, 6)))) for _ in range(DELETIONS)]


def without(tables: dict[str, pa.Table], gone: list[str]) -> dict[str, pa.Table]:
    """Relations without some records."""
    return {
        name: table.filter(pa.array([f"{name}:{at}" not in gone for at in range(SIZE)]))
        for name, table in tables.items()
    }


def answer(sql: str, tables: dict[str, pa.Table]) -> Counter[Any]:
    """The rows that DuckDB gives."""
    with duckdb.connect() as connection:
        connection.execute("set default_null_order = 'nulls_first'; set threads = 1")  # Spark's order
        for name, table in tables.items():
            connection.register(name, table)
        return Counter(map(key_of, connection.execute(sql).fetchall()))


def measure(sql: str, seed: int, share: Share) -> None:
    """Add the deletions of one query over random data."""
    rng = Random(seed)
    tables, lists = random_tables(rng), deletions(rng)
    with tempfile.TemporaryDirectory() as folder:
        for name, table in tables.items():
            pq.write_table(table, Path(folder) / f"{name}.parquet")
        share.deletions += len(lists)
        for mode in MODES:
            for gone, made in zip(lists, delete_rows(sql, folder, lists, mode=mode), strict=True):
                share.statuses[mode].update(row.status for row in made.result.rows)
                share.open[mode] += made.result.gains_possible
                share.wrong += problems(made.result, answer(sql, tables), answer(sql, without(tables, gone)), f"{seed} {mode}: {sql}")  # fmt: skip


def problems(result: Any, before: Counter[Any], after: Counter[Any], name: str) -> Iterator[str]:
    """Contradictions between the rows of a deletion and a run without the records."""
    certain = Counter(key_of(row.after) for row in result.rows if row.after is not None)
    certain += Counter(map(key_of, result.gains))
    unknown = sum(row.status == "unknown" for row in result.rows)
    taken = Counter(key_of(row.before) for row in result.rows if row.status == "deleted")
    if wrong := certain - after:
        yield f"{name}: {wrong} is not in a re-run"
    if not result.gains_possible and (after - certain).total() > unknown:
        yield f"{name}: {after - certain} is left for {unknown} unknown rows"
    if result.is_certain and certain != after:
        yield f"{name}: certain, and {after - certain} is missing"
    if returned := taken - (before - after):
        yield f"{name}: {returned} are called deleted, and are in a re-run"


def row(operator: str, sets: int, first: int) -> tuple[str, list[str]]:
    """The row of an operator, and what a run without the records contradicts."""
    share = Share()
    for sql in OPERATORS[operator]:
        for seed in range(first, first + sets):
            measure(sql, seed, share)
    rows = share.statuses["propagate"].total()
    cells = [f"{value:.1%}" for mode in MODES for value in (share.unknown(mode), share.open[mode] / share.deletions)]
    return f"| {operator} | {rows:,} | {' | '.join(cells)} |", share.wrong


def main(arguments: list[str]) -> int:
    numbers = [int(text) for text in arguments if text.isdigit()]
    chosen = [name for name in OPERATORS if all(text in name for text in arguments if not text.isdigit())]
    print("| operator | rows | unknown | open answers | unknown, `auto` | open, `auto` |\n|---|--:|--:|--:|--:|--:|")
    wrong: list[str] = []
    for operator in chosen:
        line, found = row(operator, numbers[0] if numbers else 10, numbers[1] if numbers[1:] else 0)
        print(line, *found, sep="\n", flush=True)
        wrong += found
    print(f"{len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Affected rows against brute force: random jobs that read one another, some rows of an input taken away or changed.

python tests/records/affected.py 500 [first seed]
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent)]

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from recorded import Warehouse

from govtool.app.datasets.places import path_id
from govtool.app.trace.affected_rows import RowRequest, affected_rows
from govtool.store import Store

COLUMNS = {"id": pa.int64(), "k": pa.int64(), "v": pa.int64()}
MONOTONE = (
    "SELECT id, k, v FROM {a} WHERE k <> 2",
    "SELECT id, k, v + 1 AS v FROM {a}",
    "SELECT k AS id, k, sum(v) AS v FROM {a} GROUP BY k",
    "SELECT k AS id, count(*) AS k, max(v) AS v FROM {a} GROUP BY k",
    "SELECT {a}.id, {b}.k, {a}.v FROM {a} JOIN {b} ON {a}.k = {b}.k",
    "SELECT id, k, v FROM {a} UNION ALL SELECT id, k, v FROM {b}",
    "SELECT DISTINCT k AS id, k, k AS v FROM {a}",
    "SELECT id, k, v FROM {a} WHERE id IN (SELECT id FROM {b})",
    "SELECT id, k, sum(v) OVER (PARTITION BY k) AS v FROM {a}",
    "SELECT id, k, v FROM {a} INTERSECT SELECT id, k, v FROM {b}",
)
OTHERS = (
    "SELECT id, k, v FROM {a} WHERE id NOT IN (SELECT id FROM {b} WHERE id IS NOT NULL)",
    "SELECT id, k, v FROM {a} EXCEPT SELECT id, k, v FROM {b}",
    "SELECT {a}.id, {a}.k, {b}.v FROM {a} LEFT JOIN {b} ON {a}.id = {b}.id",
    "SELECT {a}.k AS id, count({b}.id) AS k, sum({a}.v) AS v FROM {a} LEFT JOIN {b} ON {a}.id = {b}.id GROUP BY {a}.k",
)


@dataclass
class Totals:
    """What some cases came to."""

    cases: int = 0
    datasets: int = 0
    exact: int = 0
    counted: int = 0
    changed: int = 0
    keeps_out: int = 0
    unknown: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Totals) -> None:
        for name in ("cases", "datasets", "exact", "counted", "changed", "keeps_out", "unknown", "wrong"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def rows_of(random: Random, size: int) -> list[tuple[int | None, ...]]:
    """Rows with unique ids, but for some that are there twice; keys are skewed, some NULL."""
    found = [(n, random.choice((1, 1, 1, 2, 3, None)), random.choice((0, 5, 10, 10, None))) for n in range(size)]
    return found + [random.choice(found) for _ in range(random.randint(0, 2))]


def check(seed: int, folder: Path) -> Totals:
    """Record a chain of jobs, count what a selection reached, and compare with the jobs run again without it."""
    random = Random(seed)
    warehouse = Warehouse(folder, Store.init(str(folder / ".govtool")))
    known = ["r", "s"]
    for name in known:
        rows = rows_of(random, random.randint(3, 8))
        cut = random.randint(0, len(rows) - 1)
        warehouse.table(name, COLUMNS, rows[:cut], rows[cut:])
    jobs = []
    for number in range(random.randint(1, 4)):
        one, other = random.sample(known, 2)
        sql = random.choice(MONOTONE if random.random() < 0.7 else OTHERS).format(a=one, b=other)
        output = f"t{number}"
        inputs = sorted({one, other} & set(re.findall(r"\w+", sql)))
        warehouse.commit(warehouse.run(sql, output, *inputs, run=f"app-{number}/0"))
        jobs.append((output, sql))
        known.append(output)
    where = random.choice(("id = 1", "k = 1", "id < 2", "v = 10 OR id = 2", "k IS NULL OR id = 0"))
    reached = tuple(path_id(str(folder / name)) for name, _ in jobs)
    request = RowRequest(path_id(str(folder / "r")), where, reached)
    total = Totals(cases=1)
    store = warehouse.store
    try:
        answer = affected_rows(store, store.head("main"), request)
    except Exception as error:
        if getattr(error, "code", "") not in ("usage.no-rows", "usage.no-run"):
            total.wrong.append(f"{seed}: {type(error).__name__}: {error}")
        return total
    lost = [evaluated(folder, jobs, where, change) for change in ("DELETE", "UPDATE")]
    before = evaluated(folder, jobs, where, "")
    for name, sql in jobs:
        found = answer.of(path_id(str(folder / name)))
        total.datasets += 1
        if found.exactness == "unknown":
            total.unknown += 1
            continue
        gone = max((before[name] - after[name]).total() for after in lost)
        total.keeps_out += found.keeps_out
        total.exact += found.exactness == "exact"
        total.counted += found.count or 0
        total.changed += gone
        if gone > (found.count or 0) and not found.keeps_out:
            total.wrong.append(f"{seed}: {name}: {gone} rows differ, {found} where {where}: {sql} of {jobs}")
        if found.total is not None and found.total != before[name].total():
            total.wrong.append(f"{seed}: {name}: {found.total} rows, there are {before[name].total()}")
    return total


def evaluated(folder: Path, jobs: list[tuple[str, str]], where: str, change: str) -> dict[str, Counter]:
    """The rows of each job's output, over inputs of which the selected rows are deleted or have another value."""
    connection = duckdb.connect()
    for name in ("r", "s"):
        files = [pq.read_table(file) for file in sorted((folder / name).glob("*.parquet"))]
        connection.register("read", pa.concat_tables(files))
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM read")
    if change == "DELETE":
        connection.execute(f"DELETE FROM r WHERE {where}")
    if change == "UPDATE":
        connection.execute(f"UPDATE r SET v = v + 1000 WHERE {where}")
    found = {}
    for name, sql in jobs:
        connection.execute(f"CREATE TABLE {name} AS SELECT id, k, v FROM ({sql})")
        found[name] = Counter(connection.execute(f"SELECT id, k, v FROM {name}").fetchall())
    connection.close()
    return found


def run(seeds: range) -> Totals:
    """Check some seeds, each in a folder of its own."""
    total = Totals()
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            total.add(check(seed, Path(folder)))
    return total


def main(arguments: list[str]) -> int:
    """Check many seeds; print what is wrong, and the totals."""
    first = int(arguments[1]) if len(arguments) > 1 else 0
    total = run(range(first, first + int(arguments[0])))
    print(*total.wrong, sep="\n")
    print(
        {
            name: getattr(total, name)
            for name in ("cases", "datasets", "exact", "counted", "changed", "keeps_out", "unknown")
        }
    )
    return bool(total.wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

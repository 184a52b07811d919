"""Rows that differ between two runs, against brute force: random queries over an input and a changed copy of it.

python tests/records/rowdiffs.py 300 [first seed]
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent)]

import pyarrow.parquet as pq
from affected import COLUMNS, MONOTONE, OTHERS, rows_of
from by_seed import checked, main
from recorded import Warehouse

from govtool.answers.row_diff import CHANGED, DIFFERENT, GONE, NEW
from govtool.app.row_diff.compare import row_diff
from govtool.app.runs.lookup import compare_runs, find_run, read_history
from govtool.store import Store


@dataclass
class Differences:
    """What some cases came to."""

    cases: int = 0
    rows: int = 0
    behind: int = 0
    wrong: list[str] = field(default_factory=list)


def changed(random: Random, rows: list[tuple]) -> list[tuple]:
    """Rows with a few of them gone, changed or new."""
    found = [row for row in rows if random.random() > 0.15]
    found = [(*row[:2], random.choice((0, 7, None))) if random.random() < 0.15 else row for row in found]
    return found + [(90 + n, random.choice((1, 2, None)), 3) for n in range(random.randint(0, 2))]


def check(seed: int, folder: Path, total: Differences) -> None:
    """Run one query over an input and over a changed copy, and compare the rows that differ."""
    random = Random(seed)
    house = Warehouse(folder, Store.init(str(folder / ".govtool")))
    one = rows_of(random, random.randint(2, 9))
    other = changed(random, one)
    house.table("s", COLUMNS, rows_of(random, random.randint(2, 6)))
    house.table("r1", COLUMNS, one)
    house.table("r2", COLUMNS, other)
    monotone = random.random() < 0.7
    sql = random.choice(MONOTONE if monotone else OTHERS).format(a="{r}", b="s")
    inputs = ["s"] if " s" in sql else []
    for number in (1, 2):
        write = house.run(sql.format(r=f"r{number}"), f"t{number}", f"r{number}", *inputs, run=f"app-{number}/0")
        house.commit(write)
    store = house.store
    commit = store.head("main")
    history = read_history(store, commit)
    runs = [find_run(history, f"app-{number}/0") for number in (1, 2)]
    (found,) = row_diff(store, commit, compare_runs(store, commit, *runs)).outputs
    rows = [
        Counter(map(tuple, (r.values() for r in pq.read_table(folder / name).to_pylist()))) for name in ("t1", "t2")
    ]
    gone, new = rows[0] - rows[1], rows[1] - rows[0]
    total.cases += 1
    total.rows += gone.total() + new.total()
    left = Counter(row.before for row in found.rows if row.kind in (GONE, CHANGED))
    came = Counter(row.after for row in found.rows if row.kind in (NEW, CHANGED))
    if (left, came) != (gone, new) or (found.verdict == DIFFERENT) != bool(gone or new):
        total.wrong.append(f"{seed}: {left} {came}, not {gone} {new}: {sql}")
    removed, added = Counter(one) - Counter(other), Counter(other) - Counter(one)
    for row in found.rows:
        (behind,) = [each for each in row.inputs if each.dataset.endswith("/r2")] or [None]
        if row.why or (behind is not None and behind.why and not behind.why.startswith("superset")):
            total.wrong.append(f"{seed}: {row}: {sql}")
            continue
        sides = ([], []) if behind is None else (
            [*behind.removed, *(old for old, _ in behind.changed)], [*behind.added, *(new for _, new in behind.changed)]
        )  # fmt: skip
        total.behind += sum(map(len, sides))
        if Counter(sides[0]) - removed or Counter(sides[1]) - added:
            total.wrong.append(f"{seed}: {row} has input rows that both runs read: {sql}")
        if "OVER" in sql and row.kind != CHANGED:
            continue  # without a key nothing leads from a row of one run to what its partition is in the other
        if monotone and not sides[0] and not sides[1]:
            total.wrong.append(f"{seed}: nothing is behind {row}: {sql}")


def run(seeds: range) -> Differences:
    """Check some seeds."""
    return checked(seeds, check, Differences())


if __name__ == "__main__":
    main(check, Differences(), lambda total: (total.cases, total.rows, total.behind))

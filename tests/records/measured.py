"""Smallest groups against brute force: the trace of each row of a random query, one by one.

python tests/records/measured.py 500 [first seed]
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent)]

from affected import COLUMNS, MONOTONE, OTHERS, rows_of
from by_seed import checked, main
from recorded import Warehouse

from govtool.errors import EvidenceError
from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.lineage import Lineage
from govtool.records.plan import types as t
from govtool.records.plan.nodes import LocalRows
from govtool.records.trace.groups import smallest_group
from govtool.store import Store

AROUND = (
    "{q}",
    "SELECT k, avg(v) AS v FROM ({q}) q GROUP BY k",
    "SELECT max(id) AS top, sum(v) AS v FROM ({q}) q",
    "SELECT k, v FROM ({q}) q WHERE v > 0",
    "SELECT DISTINCT v FROM ({q}) q",
)


@dataclass
class Measured:
    """What some cases came to."""

    cases: int = 0
    same: int = 0
    above_one: int = 0
    wrong: list[str] = field(default_factory=list)


def check(seed: int, folder: Path, total: Measured) -> None:
    """Measure one query, and trace each of its rows."""
    random = Random(seed)
    warehouse = Warehouse(folder, Store.init(str(folder / ".govtool")))
    for name in "rs":
        warehouse.table(name, COLUMNS, rows_of(random, random.randint(2, 8)))
    inner = random.choice(MONOTONE + OTHERS).format(a="r", b="s")
    sql = random.choice(AROUND).format(q=inner)
    plan = warehouse.plan(sql, "r", "s")
    lineage = Lineage.of(plan.root, DuckExecutor(plan.session))
    dataset = (folder / "r").as_uri()
    column = random.choice((None, None, "id"))
    valued = random.choice((None, "v"))
    total.cases += 1
    try:
        found = smallest_group(lineage, {dataset: column}, {} if valued is None else {dataset: valued})
    except EvidenceError:
        return
    rows = lineage.executor.fetch(lineage.stage.segment.node)
    width = len(lineage.stage.segment.visible)
    values = Counter(row[:width] for row in rows)
    behind = (_behind(lineage, row, count, dataset, column, valued) for row, count in values.items())
    sizes = [size for size in behind if size]
    fewest = min(sizes, default=None)
    if found is None or fewest is None:
        if (found is None) != (fewest is None):
            total.wrong.append(f"{seed}: {found}, brute force {fewest}: {sql}")
        return
    single = all(count == 1 for count in values.values())
    total.same += found.at_least == found.at_most == fewest
    total.above_one += fewest > 1
    if not found.at_least <= found.at_most <= fewest or (single and found.at_most != fewest):
        total.wrong.append(f"{seed}: {found}, brute force {fewest}: {sql}")


def _behind(lineage: Lineage, row: tuple, count: int, dataset: str, column: str | None, valued: str | None) -> int:
    visible = lineage.stage.segment.visible
    columns = tuple(lineage.ids.attribute(each.name, each.type) for each in visible)
    stored = tuple(
        value if each.type != t.LONG or value is None else int(value) for value, each in zip(row, visible, strict=True)
    )
    reached = lineage.recorded(LocalRows(0, columns, (stored,) * count)).go_back_all()
    rows = [part for part in reached.answer().inputs if part.dataset == dataset]
    if column is None and valued is None:
        return sum(part.count for part in rows)
    left = [each for part in rows for each in part.rows if valued is None or each[valued] is not None]
    return len(left) if column is None else len({each[column] for each in left} - {None})


def run(seeds: range) -> Measured:
    """Check some seeds."""
    return checked(seeds, check, Measured())


if __name__ == "__main__":
    main(check, Measured(), lambda total: (total.cases, total.same, total.above_one))

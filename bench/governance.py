"""Policies on large graphs: propagation beside DuckDB's recursive SQL, check beside impact, diff beside set difference.

All on the warehouses of ``bench/graph.py``. What is compared is compared in one run, in turn, and must agree: the
number of (column, class, mode) facts, and the number of edges added and removed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from govtool.graph.codes import KIND_MASK
from govtool.graph.index import Index
from govtool.model.kinds import VALUE_FLOW, EdgeKind
from govtool.policy.seeds import Seeds
from govtool.query.patterns import ColumnPaths

TITLE = "## Policies on large graphs"
CLASSES = 50
NAMES = 4
"""Names of columns that ``classify`` gives each class."""
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Spent:
    """What one measurement took and found."""

    wall: float
    cpu: float
    found: int


def timed(run: Callable[[], int]) -> Spent:
    """Seconds by the clock and of all threads of this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = run()
    return Spent(time.perf_counter() - wall, time.process_time() - cpu, found)


def median(spent: list[Spent]) -> Spent:
    """The median of each figure; what was found must be the same every time."""
    if len({s.found for s in spent}) != 1:
        raise RuntimeError(f"rounds disagree: {[s.found for s in spent]}")
    return Spent(statistics.median(s.wall for s in spent), statistics.median(s.cpu for s in spent), spent[0].found)


# Propagation.

SETS = """
WITH RECURSIVE reached(node, class, mode) AS (
    SELECT node, class, 0::TINYINT FROM seeds
    UNION
    SELECT e.target, r.class, greatest(r.mode, e.mode)
    FROM reached r JOIN edges e ON e.source = r.node
    WHERE NOT (e.reads AND r.mode = 0)
)
SELECT count(*) FROM reached
"""
"""A row a fact. (With the classes in one integer and ``USING KEY``, DuckDB 1.5 takes ten times as long.)"""


def seeds_of(index: Index) -> Seeds:
    """What ``classify`` gives for classes of ``NAMES`` names each, wherever in the warehouse these occur."""
    paths = ColumnPaths(index)
    order = sorted(range(len(paths.texts)), key=paths.texts.__getitem__)[: CLASSES * NAMES]
    return Seeds.gathered((f"c{i % CLASSES}", np.array(paths.nodes(path), np.int64)) for i, path in enumerate(order))


def propagation(index: Index, rounds: int) -> dict[str, Any]:
    """Propagate in turn by govtool and by SQL."""
    import duckdb

    from govtool.policy.lattice import Lattice
    from govtool.policy.propagate import propagate
    from govtool.policy.tokens import Mode
    from govtool.policy.transfer import transfers

    seeds = seeds_of(index)
    lattice = Lattice({f"c{n}": () for n in range(CLASSES)})
    none = transfers(index, (), _today(), ColumnPaths(index))
    connection = duckdb.connect()
    _load(connection, index, seeds)

    def own() -> int:
        spread = propagate(index, lattice, none, seeds)
        return sum(int(np.bitwise_count(word[mode]).sum()) for word in spread.sets for mode in Mode)

    def sql(text: str) -> Callable[[], int]:
        return lambda: int(connection.execute(text).fetchall()[0][0])

    ways = {"govtool": own, "duckdb": sql(SETS)}
    taken: dict[str, list[Spent]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, run in ways.items():
            taken[name].append(timed(run))
    figures = {name: median(spent) for name, spent in taken.items()}
    if len({f.found for f in figures.values()}) != 1:
        raise RuntimeError(f"they disagree: {figures}")
    return {"edges": index.edge_count, "seeds": len(seeds), "duckdb": duckdb.__version__, **figures}


def _today() -> Any:
    from datetime import date

    return date(2026, 11, 21)


def _load(connection: Any, index: Index, seeds: Seeds) -> None:
    import pyarrow as pa

    a = index.arrays
    kind = np.asarray(a["edge_tag"]) & KIND_MASK
    if (kind == EdgeKind.OPAQUE).any():
        raise RuntimeError("the SQL knows nothing of opaque edges")
    used = kind != EdgeKind.UNION_ALL
    mode = (~np.isin(kind, [int(k) for k in VALUE_FLOW])).astype(np.int8)
    edges = pa.table(
        {
            "source": np.asarray(a["edge_source"])[used],
            "target": np.asarray(a["edge_target"])[used],
            "mode": mode[used],
            "reads": kind[used] == EdgeKind.READ,
        }
    )
    pairs = [(node, int(name[1:])) for node, names in seeds.items() for name in names]
    nodes, classes = zip(*pairs, strict=True)
    starts = pa.table({"node": pa.array(nodes, pa.uint32()), "class": pa.array(classes, pa.uint8())})
    connection.register("edges_arrow", edges)
    connection.register("seeds_arrow", starts)
    connection.execute("CREATE TABLE edges AS SELECT * FROM edges_arrow ORDER BY source")
    connection.execute("CREATE TABLE seeds AS SELECT * FROM seeds_arrow")

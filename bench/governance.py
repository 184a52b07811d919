"""Policies on large graphs: propagation beside DuckDB's recursive SQL, check beside impact, diff beside set difference.

All on the warehouses of ``bench/graph.py``. What is compared is compared in one run, in turn, and must agree: the
number of (column, class, mode) facts, and the number of edges added and removed.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.graph import Generated, subjects, write_store
from bench.page import table
from bench.processes import Cost, interleaved
from govtool.graph.codes import KIND_MASK
from govtool.graph.index import Index
from govtool.model.columnar import DERIVATIONS, write_table
from govtool.model.kinds import VALUE_FLOW, EdgeKind
from govtool.policy.classes.taints import Seeds
from govtool.query.selection.patterns import ColumnPaths

if TYPE_CHECKING:
    from govtool.query.versions.diff import Difference
    from govtool.store import Commit

TITLE = "## Policies on large graphs"
CLASSES = 50
NAMES = 4
"""Names of columns that ``classify`` gives each class."""
SPARSE = 20
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


def seeds_of(index: Index, every: int = 1) -> Seeds:
    """What ``classify`` gives for classes of ``NAMES`` names each, wherever in the warehouse these occur.

    Args:
        index: The graph.
        every: Of the columns of each name only one in so many.
    """
    paths = ColumnPaths(index)
    order = sorted(range(len(paths.texts)), key=paths.texts.__getitem__)[: CLASSES * NAMES]
    return Seeds.gathered(
        (f"c{i % CLASSES}", np.array(paths.nodes(path), np.int64)[::every]) for i, path in enumerate(order)
    )


def propagation(index: Index, rounds: int, every: int = 1) -> dict[str, Any]:
    """Propagate in turn by govtool and by SQL."""
    import duckdb

    from govtool.policy.classes.propagate import propagate
    from govtool.policy.classes.taints import Mode
    from govtool.policy.classes.transfer import transfers
    from govtool.policy.files.policy_set import Lattice

    seeds = seeds_of(index, every)
    lattice = Lattice({f"c{n}": () for n in range(CLASSES)})
    none = transfers(index, (), date(2026, 11, 21), ColumnPaths(index))
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
    return {"edges": index.edge_count, "seeds": len(seeds), "duckdb_version": duckdb.__version__, **figures}


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


# Check beside impact.

POLICY = textwrap.dedent(
    """
    version: 1
    name: bench
    classes: {personal: {}, personal.contact: {}, personal.id: {}, pseudonymous: {}}
    classify:
      - {class: personal.contact, columns: ["layer0.domain7.**.name_3"]}
      - {class: personal.id, columns: ["layer0.domain7.**.id_1*"]}
    declassify:
      - {name: rounded, kind: mask, functions: [round], from: [personal.id], to: pseudonymous}
    zones:
      marketing: {datasets: ["layer9.domain13.**"], region: us}
    rules:
      - id: PII001
        title: Contact data must not reach marketing
        deny: {flow: {class: personal.contact, to: {zone: marketing}}}
      - id: PII002
        title: Ids must not reach marketing in clear
        deny: {flow: {class: personal.id, to: {zone: marketing}, via: any}}
        unless: [{declassified: [rounded]}]
    """
)


def checking(uri: str, environment: dict[str, str], rounds: int) -> dict[str, Cost]:
    """Whole processes of check, and of impact on a small and a large closure, in turn."""
    command = [sys.executable, "-c", "from govtool.cli.main import main; main()"]
    with tempfile.TemporaryDirectory() as folder:
        policy = Path(folder, "policy.yml")
        policy.write_text(POLICY)
        requested = ["check", "--store", uri, "--policy", str(policy), "--today", "2026-11-21", "--fail-on", "none"]
        commands = {"check": [*command, *requested]}
        for size, (column, _) in subjects(uri).items():
            commands[size] = [*command, "impact", "--store", uri, column, "--limit", "20"]
        return interleaved(commands, environment, rounds)


# Diff beside set difference.

EXCEPT = "SELECT (SELECT count(*) FROM ({0} EXCEPT {1})) + (SELECT count(*) FROM ({1} EXCEPT {0}))"
CHANGES = (
    ("25 datasets, one fragment", 160, 1, False),
    ("250 datasets, a tenth of the fragments", 100, 6, False),
    ("250 datasets, all statements elsewhere: other lines, other fragments", 100, 6, True),
)
"""What is changed: a name, every so many datasets, of so many fragments; and whether nothing stays in its place."""


def differing(uri: str, made: Generated, rounds: int) -> list[dict[str, Any]]:
    """Versions of one store that differ a little: what changed in the edges, by ``govtool diff`` and by SQL."""
    import duckdb

    from govtool.app.questions.diff import diff_commits
    from govtool.app.versions.index import open_index
    from govtool.store import Changes, Fragment, Store

    store = Store.open(uri)
    first = store.head()
    if first is None:
        raise RuntimeError("the store is empty")
    connection = duckdb.connect()
    _edge_table(connection, "old", made.tables)
    rows = []
    for what, stride, count, elsewhere in CHANGES:
        tables = [*(_changed(t, stride) for t in made.tables[:count]), *made.tables[count:]]
        if elsewhere:
            tables = _elsewhere(tables)
        fragments = tuple(Fragment("bench", DERIVATIONS, write_table(t), t.num_rows) for t in tables)
        changes = Changes(retract=("bench",), add=fragments)
        store.commit(changes, message=what, author="bench", batch=what, summary={})
        second = store.head()
        if second is None:
            raise RuntimeError("the commit is not there")
        open_index(store, second)
        _edge_table(connection, "new", tables)

        def own(second: Commit = second) -> int:
            return _edges_of(diff_commits(store, first, second))

        def bare(second: Commit = second) -> int:
            """Without any index of either version."""
            cache, os.environ["GOVTOOL_CACHE"] = os.environ["GOVTOOL_CACHE"], os.devnull
            try:
                return own(second)
            finally:
                os.environ["GOVTOOL_CACHE"] = cache

        def sql() -> int:
            text = EXCEPT.format("(SELECT * FROM old)", "(SELECT * FROM new)")
            return int(connection.execute(text).fetchall()[0][0])

        ways = {"govtool": own, "fragments": bare, "duckdb": sql}
        taken: dict[str, list[Spent]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, run in ways.items():
                taken[name].append(timed(run))
        figures = {name: median(spent) for name, spent in taken.items()}
        if len({f.found for f in figures.values()}) != 1:
            raise RuntimeError(f"they disagree: {what}: {figures}")
        rows.append({"what": what, **figures})
    return rows


def _edges_of(found: Difference) -> int:
    """Edges that differ, as SQL counts them: by the functions, too, of which each is a row."""
    reported = ((c.before, c.after) for c in found.changes if c.what == "edge")
    return sum(len(({*(old or "").split(" | ")} ^ {*(new or "").split(" | ")}) - {""}) for old, new in reported)


def _elsewhere(tables: list[Any]) -> list[Any]:
    """The same statements on other lines, in other fragments: each half of one and half of the next."""
    import pyarrow as pa

    halves = []
    for made in tables:
        lower = made.set_column(made.schema.get_field_index("line"), "line", pa.array([7] * made.num_rows, pa.int64()))
        middle = made.num_rows // 2
        halves += [lower.slice(0, middle), lower.slice(middle)]
    turned = [*halves[1:], halves[0]]
    return [pa.concat_tables(turned[i : i + 2]).combine_chunks() for i in range(0, len(turned), 2)]


def _changed(made: Any, stride: int) -> Any:
    """A table in which every so many derivations lose an edge."""
    import pyarrow as pa

    picked = list(range(0, made.num_rows, stride))
    some = made.take(picked).to_pylist()
    for row in some:
        row["edges"] = row["edges"][1:]
    left = made.take([i for i in range(made.num_rows) if i % stride])
    return pa.concat_tables([left, pa.Table.from_pylist(some, schema=made.schema)]).combine_chunks()


def _edge_table(connection: Any, name: str, tables: list[Any]) -> None:
    """The edges of derivations as rows of text: what a set difference by hand would be over."""
    connection.execute(f"DROP TABLE IF EXISTS {name}")
    for number, made in enumerate(tables):
        connection.register("part", made)
        text = (
            "SELECT DISTINCT target, e.source_dataset, e.source_path, e.target_path, e.kind, e.functions "
            "FROM (SELECT target, unnest(edges) AS e FROM part)"
        )
        connection.execute(f"CREATE TABLE {name} AS {text}" if not number else f"INSERT INTO {name} {text}")
        connection.unregister("part")


_DIFF_HEAD = [
    "changed", "edges that differ", "govtool", "DuckDB", "DuckDB / govtool", "govtool, no index", "DuckDB / that",
]  # fmt: skip


def section(sizes: tuple[int, int] = (1_000_000, 10_000_000)) -> str:
    """Measure, and write the section."""
    from govtool.app.versions.index import open_index
    from govtool.store import Store

    small, large = sizes
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "GOVTOOL_CACHE": f"{folder}/cache", "COLUMNS": "120"}
        os.environ["GOVTOOL_CACHE"] = environment["GOVTOOL_CACHE"]
        uris = f"{folder}/small", f"{folder}/large"
        write_store(uris[0], small)
        made = write_store(uris[1], large)
        for uri in uris:
            store = Store.open(uri)
            open_index(store, store.head())
        costs = checking(uris[0], environment, ROUNDS)
        store = Store.open(uris[1])
        index = open_index(store, store.head())
        spreads = [propagation(index, ROUNDS, every) for every in (1, SPARSE)]
        del index
        differences = differing(uris[1], made, ROUNDS)
    propagated = [
        [
            f"{spread['edges']:,}",
            f"{spread['seeds']:,}",
            f"{spread['govtool'].found:,}",
            _seconds(spread["govtool"]),
            _seconds(spread["duckdb"]),
            _times(spread["duckdb"], spread["govtool"]),
        ]
        for spread in spreads
    ]
    checked = [
        [
            f"impact, {size} closure",
            _cost(costs[size]),
            _cost(costs["check"]),
            f"**{costs['check'].cpu / costs[size].cpu:.2f}**",
        ]
        for size in ("small", "large")
        if size in costs
    ]
    compared = [
        [
            d["what"],
            f"{d['govtool'].found:,}",
            _seconds(d["govtool"]),
            _seconds(d["duckdb"]),
            _times(d["duckdb"], d["govtool"]),
            _seconds(d["fragments"]),
            _times(d["duckdb"], d["fragments"]),
        ]
        for d in differences
    ]
    head = ["edges", "classified columns", "facts", "govtool", "DuckDB", "DuckDB / govtool"]
    return f"""{TITLE}

Generated warehouses (`bench/graph.py`); medians of {ROUNDS} rounds in turn, wall (CPU). DuckDB
{spreads[0]["duckdb_version"]} has its tables in memory, govtool its index mapped; both have all cores, and must find
the same.

Propagation of {CLASSES} classes, each of {NAMES} names of columns, to their fixpoint; a fact is a column, a class, and
whether it is there as a value or as an influence. In SQL: one recursive query with UNION, a row a fact. Goal: 20 times.
The second row has one in {SPARSE} of the classified columns: what govtool does once for the graph weighs more then.

{table(head, propagated)}

`govtool check` of two flow rules on {small:,} edges, whole processes, beside `govtool impact` (wall, CPU; the
ratio is of CPU). Goal: at most twice.

{table(["beside", "impact", "check", "check / impact"], checked)}

Two versions of {large:,} edges, by `govtool diff` and by EXCEPT in both directions over tables that hold each edge
once. `govtool` with the indexes of both versions there (they are built once, and hold what tells datasets apart), and
with neither, from the fragments in the store. Goal: 6 times.

{table(_DIFF_HEAD, compared)}
"""


def _seconds(spent: Spent) -> str:
    return f"{spent.wall:.2f} s ({spent.cpu:.2f})"


def _cost(cost: Cost) -> str:
    return f"{cost.wall * 1000:.0f} ms ({cost.cpu * 1000:.0f})"


def _times(slow: Spent, fast: Spent) -> str:
    return f"**{slow.wall / fast.wall:.1f}**"

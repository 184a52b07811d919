"""Provenance graphs of workflows: building, opening, zoom, deletion, subgraph, dependency; networkx and DuckDB beside.

A generated execution is a chain of module invocations. In each, tuples of the input are joined with tuples of the
state, five of those make a group with a SUM, and a group is an output tuple with a cell, read by the next module. A
state record is read by as many invocations as the fan-out says.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from bench.page import table
from govtool.arrays.sets import Array
from govtool.workflow.builder import GraphBuilder
from govtool.workflow.deletion import delete, removed_by
from govtool.workflow.dependency import dependency
from govtool.workflow.graph import ProvenanceGraph
from govtool.workflow.rules import is_joint, support_of
from govtool.workflow.storage.mapped import pack
from govtool.workflow.subgraph import subgraph
from govtool.workflow.zoom import GraphView

MODULES = 16
GROUP = 5
PER_GROUP = 35
"""Nodes of a group with all that it is made of."""
GROUPS = 20
"""Groups of an invocation."""
FAN_OUTS = (2, 20, 200)
ROUNDS = 5
NETWORKX_NODES = 1_000_000
"""Nodes up to which networkx is given the same graph: it takes 1 KB a node."""
SHARES = (0.0001, 0.001, 0.01)


def generate(nodes: int, fan_out: int = FAN_OUTS[0], seed: int = 11) -> ProvenanceGraph:
    """Make a graph of about so many nodes."""
    builder, chance = GraphBuilder(), np.random.default_rng(seed)
    layers = max(1, nodes // (PER_GROUP * GROUPS))
    cars = max(1, layers * GROUPS * GROUP // fan_out)
    states = builder.nodes("st", [f"cars:{n}" for n in range(cars)], cars)
    previous: Array | None = None
    for layer in range(layers):
        module, invocation = f"M{layer % MODULES}", layer // MODULES + 1
        previous = _invocation(builder, chance, states, previous, module, invocation, layer)
    return builder.build()


def _invocation(
    builder: GraphBuilder,
    chance: np.random.Generator,
    states: Array,
    previous: Array | None,
    module: str,
    invocation: int,
    layer: int,
) -> Array:
    """One invocation; returns its output tuples."""
    tuples, of = GROUPS * GROUP, {"module": module, "invocation": invocation}
    call = builder.nodes("m", module, **of)  # type: ignore[arg-type]
    fresh = tuples if previous is None else tuples - GROUPS
    records = builder.nodes("wi", [f"req:{layer}.{n}" for n in range(fresh)], fresh)
    sources = records if previous is None else np.concatenate([previous, records])
    inputs, rows, joined = (
        builder.nodes(type_, "·", tuples, **of)  # type: ignore[arg-type]
        for type_ in ("i", "s", "op")
    )
    for made, source in ((inputs, sources), (rows, chance.choice(states, tuples))):
        builder.edges(source, made)
        builder.edges(call, made)
    builder.edges(inputs, joined)
    builder.edges(rows, joined)
    constants = builder.nodes("val", "const", tuples, values=chance.integers(1, 99, tuples), **of)  # type: ignore[arg-type]
    terms = builder.nodes("val", "⊗", tuples, **of)  # type: ignore[arg-type]
    builder.edges(joined, terms)
    builder.edges(constants, terms)
    groups = builder.nodes("op", "δ", GROUPS, **of)  # type: ignore[arg-type]
    sums = builder.nodes("val", "SUM", GROUPS, **of)  # type: ignore[arg-type]
    builder.edges(joined, np.repeat(groups, GROUP))
    builder.edges(terms, np.repeat(sums, GROUP))
    outputs = builder.nodes("o", "·", GROUPS, **of)  # type: ignore[arg-type]
    cells = builder.nodes("o", "value", GROUPS, **of)  # type: ignore[arg-type]
    builder.edges(groups, outputs)
    builder.edges(call, outputs)
    builder.edges(sums, cells)
    return outputs


def section(sizes: Iterable[int]) -> str:
    """Measure, and write the section of docs/benchmarks.md."""
    once, deletions, zooms, nodes = [], [], [], []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            graph, row = _built(size, Path(folder))
            once.append(row)
            other, duck = _networkx(graph), _Duck(graph)
            deletions += _deletions(graph, other, duck)
            zooms += _zooms(graph, other, duck)
            nodes += _questions(graph, FAN_OUTS[0], other, duck)
        for fan_out in FAN_OUTS[1:]:
            del graph, other, duck
            graph = generate(size, fan_out)
            support_of(graph)
            other, duck = _networkx(graph), _Duck(graph)
            nodes += _questions(graph, fan_out, other, duck)
        del graph, other, duck
    return _TEXT.format(
        once=table(_ONCE, once),
        deletions=table(_DELETIONS, deletions),
        zooms=table(_ZOOMS, zooms),
        questions=table(_QUESTIONS, nodes),
    )


_ONCE = ["nodes", "edges", "build", "support", "file", "opened", "resident", "1% deleted there", "resident then"]
_DELETIONS = ["nodes", "deleted", "removed", "CPU", "with certainty", "plain Python", "ratio", "DuckDB, reached"]
_QUESTIONS = ["nodes", "fan-out", "subgraph", "CPU", "depends", "networkx", "ratio", "DuckDB", "ratio"]
_ZOOMS = ["nodes", "modules out", "hidden", "ZoomOut", "ZoomIn of one", "networkx", "ratio", "DuckDB", "ratio"]
_TEXT = """## Provenance graphs of workflows

Generated executions of 16 modules (`bench/workflow_graphs.py`), CPU time, medians. A graph is written once as a file of
arrays, and mapped into memory when it is opened. Goals at 10M nodes: opened in 0.3 s, at most 1 GB resident, deletion
of 1% of the records in 50 ms.

{once}

`opened` and `resident` are those of a process of its own, Python and its imports included. Deletion of random records
(Def. 4.2); `with certainty` also judges all survivors: aggregates are worked out again. The plain Python is the
propagation by counting over the adjacency of networkx. DuckDB has no such propagation: the column is a recursive CTE
that finds what the records reach, a part of the work.

{deletions}

ZoomOut by the number of modules (of 16), and ZoomIn of one of them; in plain Python, the same walk over networkx, and
in DuckDB, which has the nodes as a table, a recursive CTE. Both hide the same nodes:

{zooms}

The subgraph of a state record and the dependency of an output tuple on it, by fan-out; networkx and DuckDB, by two
recursive CTEs, compute the ancestors, the descendants and their inputs, and find the same:

{questions}
"""


def _built(size: int, folder: Path) -> tuple[ProvenanceGraph, list[object]]:
    build, graph = _cpu(partial(generate, size))
    support, _ = _cpu(partial(support_of, graph))
    file = folder / "graph"
    with file.open("wb") as handle:
        handle.writelines(pack(graph))
        handle.flush()
        os.fsync(handle.fileno())  # pages that wait to be written are slow to map
    row: list[object] = [f"{graph.node_count:,}", f"{graph.edge_count:,}", f"{build:.1f} s", f"{support:.1f} s"]
    row += [f"{file.stat().st_size / 1e6:,.0f} MB", *_opened(file)]
    return graph, row


_OPEN = """
import sys, time
began = time.process_time()
import mmap
from govtool.workflow.storage.mapped import opened
with open(sys.argv[1], "rb") as handle:
    graph = opened(memoryview(mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)))
took = time.process_time() - began
def resident():
    return int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))) / 1e3
first = resident()
import numpy as np
from govtool.workflow.deletion import removed_by
records = graph.tokens()
some = np.random.default_rng(3).choice(records, len(records) // 100, replace=False)
removed_by(graph, some[:10])
began = time.process_time()
removed_by(graph, some)
print(took, first, time.process_time() - began, resident())
"""


def _opened(file: Path) -> list[object]:
    """Seconds of CPU to open a graph in a new process, what is resident then, and after a deletion: of 3 processes."""
    command = [sys.executable, "-c", _OPEN, str(file)]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(3)]
    took, first, deleted, then = (statistics.median(map(float, each)) for each in zip(*runs, strict=True))
    return [f"{took:.2f} s", f"{first:,.0f} MB", _ms(deleted), f"{then:,.0f} MB"]


def _deletions(graph: ProvenanceGraph, other: nx.DiGraph[int] | None, duck: _Duck) -> list[list[object]]:
    chance, records, rows = np.random.default_rng(3), graph.tokens(), []
    for share in SHARES:
        some = chance.choice(records, max(1, round(len(records) * share)), replace=False)
        cost, found = _median(partial(removed_by, graph, some))
        judged, _ = _median(partial(delete, graph, some), 1)
        reached, _ = _median(partial(duck.reached, some), 1)
        row: list[object] = [f"{graph.node_count:,}", f"{len(some):,}", f"{len(found):,}", _ms(cost), _ms(judged)]
        if other is None:
            rows.append([*row, "", "", _ms(reached)])
            continue
        joint = is_joint(graph)
        waiting = dict(enumerate(np.where(joint, 1, np.diff(graph.edges.backward.astype(np.int64))).tolist()))
        slow, plain = _median(partial(_count, other, waiting, some.tolist()), 3)
        if plain != set(found.tolist()):
            raise AssertionError("the propagation by counting answers otherwise")
        rows.append([*row, _ms(slow), f"**{slow / cost:.1f}**", _ms(reached)])
    return rows


def _count(graph: nx.DiGraph[int], left: dict[int, int], deleted: list[int]) -> set[int]:
    """The textbook propagation: a node is lost when it has lost as many inputs as its rule allows."""
    lost, hits, queue = set(deleted), dict[int, int](), deque(deleted)
    while queue:
        for target in graph.adj[queue.popleft()]:
            hits[target] = hits.get(target, 0) + 1
            if target not in lost and hits[target] >= left[target]:
                lost.add(target)
                queue.append(target)
    return lost


def _zooms(graph: ProvenanceGraph, other: nx.DiGraph[int] | None, duck: _Duck) -> list[list[object]]:
    rows = []
    for modules in (1, 4, MODULES):
        names = graph.modules[:modules]
        cost, hidden = _median(lambda names=names: GraphView(graph, frozenset(names)).hidden, 3)  # type: ignore[misc]
        back, _ = _median(lambda names=names: GraphView(graph, frozenset(names[1:])).hidden, 3)  # type: ignore[misc]
        row: list[object] = [f"{graph.node_count:,}", modules, f"{int(hidden.sum()):,}", _ms(cost), _ms(back)]
        walk = None if other is None else partial(_zoomed, graph, other, modules)
        rows.append([*row, *_beside(cost, np.flatnonzero(hidden), walk, partial(duck.zoomed, modules))])
    return rows


def _beside(
    cost: float, found: Array, walk: Callable[[], Any] | None, query: Callable[[], Any], rounds: int = 1
) -> list[object]:
    """Four cells: what networkx and DuckDB take, and how many times longer that is; both must find the same nodes."""
    cells: list[object] = []
    for name, run in (("networkx", walk), ("DuckDB", query)):
        if run is None:
            cells += ["", ""]
            continue
        slow, other = _median(run, rounds)
        if not np.array_equal(np.unique(np.fromiter(other, np.int64)), np.unique(found)):
            raise AssertionError(f"{name} finds other nodes")
        cells += [_ms(slow), f"**{slow / cost:.1f}**"]
    return cells


def _zoomed(graph: ProvenanceGraph, other: nx.DiGraph[int], modules: int) -> set[int]:
    """ZoomOut by a plain walk: what is behind inputs and states, up to outputs; constants; states used nowhere else."""
    types, module = graph.type.tolist(), graph.module.tolist()
    starts = [n for n, type_ in enumerate(types) if type_ in (3, 5) and 0 <= module[n] < modules]
    hidden, queue = set[int](), deque(starts)
    while queue:
        for target in other.adj[queue.popleft()]:
            if target not in hidden and types[target] not in (3, 4, 5):
                hidden.add(target)
                queue.append(target)
    hidden |= {n for n in starts if types[n] == 5}
    for n, type_ in enumerate(types):
        is_source = type_ in (1, 7) and n not in hidden and not other.pred[n]
        if is_source and other.adj[n] and all(target in hidden for target in other.adj[n]):
            hidden.add(n)
    return hidden


def _questions(graph: ProvenanceGraph, fan_out: int, other: nx.DiGraph[int] | None, duck: _Duck) -> list[list[object]]:
    record = int(np.argmax(np.diff(graph.edges.forward[: int((graph.type == 1).sum()) + 1])))
    output = int(np.flatnonzero((graph.type == 4) & (graph.kind == 0))[-1])
    cost, found = _median(partial(subgraph, graph, record))
    asked, _ = _median(partial(dependency, graph, output, [record]), 1)
    row: list[object] = [f"{graph.node_count:,}", fan_out, f"{len(found.nodes):,}", _ms(cost), _ms(asked)]
    walk = None if other is None else partial(_around, other, record)
    return [[*row, *_beside(cost, found.nodes, walk, partial(duck.around, record))]]


def _around(graph: nx.DiGraph[int], node: int) -> set[int]:
    below = nx.descendants(graph, node)
    return {node} | nx.ancestors(graph, node) | below | {each for one in below for each in graph.pred[one]}


class _Duck:
    """The nodes and edges in DuckDB."""

    def __init__(self, graph: ProvenanceGraph) -> None:
        import duckdb
        import pyarrow as pa

        self.connection = duckdb.connect()
        edges = pa.table({"source": np.asarray(graph.edges.source), "target": np.asarray(graph.edges.target)})
        nodes = {"node": np.arange(graph.node_count, dtype=np.uint32), "type": graph.type, "module": graph.module}
        for name, given in (("edges", edges), ("nodes", pa.table({name: np.asarray(nodes[name]) for name in nodes}))):
            self.connection.register("given", given)
            self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")

    def reached(self, nodes: Iterable[int]) -> Array:
        """The nodes that a walk from some reaches."""
        import pyarrow as pa

        self.connection.register("starts", pa.table({"node": pa.array(list(map(int, nodes)), pa.uint32())}))
        return self._nodes(
            "WITH RECURSIVE reached AS (SELECT node FROM starts UNION "
            "SELECT target FROM edges JOIN reached ON source = node) SELECT node FROM reached"
        )

    def around(self, node: int) -> Array:
        """The subgraph of a node."""
        return self._nodes(f"""
            WITH RECURSIVE
            below AS (SELECT {node}::UINTEGER AS node UNION SELECT target FROM edges JOIN below ON source = node),
            above AS (SELECT {node}::UINTEGER AS node UNION SELECT source FROM edges JOIN above ON target = node)
            SELECT node FROM above UNION SELECT node FROM below
            UNION SELECT source FROM edges JOIN below ON target = node WHERE node <> {node}""")

    def zoomed(self, modules: int) -> Array:
        """The nodes that ZoomOut of the first modules hides; types are those of ``_zoomed``."""
        return self._nodes(f"""
            WITH RECURSIVE
            starts AS (SELECT node FROM nodes WHERE type IN (3, 5) AND module >= 0 AND module < {modules}),
            walk AS (SELECT node FROM starts UNION SELECT target FROM edges JOIN walk ON source = walk.node
                     JOIN nodes ON nodes.node = target WHERE type NOT IN (3, 4, 5)),
            hidden AS MATERIALIZED (
                SELECT node FROM walk WHERE node NOT IN (FROM starts)
                UNION SELECT node FROM starts JOIN nodes USING (node) WHERE type = 5),
            unread AS (SELECT nodes.node FROM nodes JOIN edges ON source = nodes.node
                       LEFT JOIN hidden ON target = hidden.node
                       WHERE type IN (1, 7) GROUP BY nodes.node HAVING bool_and(hidden.node IS NOT NULL))
            FROM hidden UNION SELECT node FROM unread ANTI JOIN edges ON target = node""")

    def _nodes(self, query: str) -> Array:
        found: Array = self.connection.execute(query).fetchnumpy()["node"]
        return found


def _networkx(graph: ProvenanceGraph) -> nx.DiGraph[int] | None:
    """The same graph in networkx, where it holds it."""
    if graph.node_count > 1.1 * NETWORKX_NODES:
        return None
    other: nx.DiGraph[int] = nx.DiGraph()
    other.add_nodes_from(range(graph.node_count))
    other.add_edges_from(zip(graph.edges.source.tolist(), graph.edges.target.tolist(), strict=True))
    return other


def _cpu(run: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    found = run()
    return time.process_time() - began, found


def _median(run: Callable[[], Any], rounds: int = ROUNDS) -> tuple[float, Any]:
    """The median CPU time, and the outcome; where there are several rounds, one before them warms up."""
    found = run() if rounds > 1 else None
    times = []
    for _ in range(rounds):
        took, found = _cpu(run)
        times.append(took)
    return statistics.median(times), found


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms"

"""Large graphs: a generator of layered warehouses, and what a question about them costs.

    python -m bench.graph generate STORE --edges 1000000     writes a store
    python -m bench.graph measure [--edges 1000000 --edges 10000000]

A warehouse has layers; a dataset of a layer is made of one to three datasets of the layers below, mostly of its own
domain. Edges out of a dataset are uneven, as they are in life: a few are read by thousands.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from govtool.graph.index import Index
from govtool.model.columnar import DERIVATIONS, schema, write_table
from govtool.model.kinds import EdgeKind

LAYERS = 10
COLUMNS = 20
"""Columns of a dataset."""
VALUE_EDGES = 36
"""Edges into the columns of a derived dataset."""
ROW_EDGES = 6
PER_FRAGMENT = 4096

_VALUE_KINDS = np.array([EdgeKind.IDENTITY] * 6 + [EdgeKind.TRANSFORMATION] * 3 + [EdgeKind.CONDITIONAL], np.uint8)
_ROW_KINDS = np.array([EdgeKind.JOIN] * 3 + [EdgeKind.FILTER] * 2 + [EdgeKind.GROUP_BY], np.uint8)
_FUNCTIONS = np.array(["lower", "coalesce", "round", "sum", "date_trunc", "case"], object)
_NAMES = np.array(
    [f"{stem}_{i}" for stem in ("id", "amount", "name", "date", "status", "code") for i in range(40)], object
)


@dataclass(frozen=True, slots=True)
class Generated:
    """Arrow tables of ``govtool.model.columnar``, about as many edges as asked for."""

    tables: list[Any]
    edges: int
    datasets: int


def generate(edges: int, seed: int = 7) -> Generated:
    """Make the derivations of a warehouse with about ``edges`` edges."""
    rng = np.random.default_rng(seed)
    datasets = max(LAYERS * 8, round(edges / (VALUE_EDGES + ROW_EDGES + 2) * LAYERS / (LAYERS - 1)))
    per_layer = datasets // LAYERS
    names = np.array([f"layer{i // per_layer}.domain{i % 97}.table_{i}" for i in range(per_layer * LAYERS)], object)
    starts = rng.integers(0, len(_NAMES), len(names))
    derived = np.arange(per_layer, per_layer * LAYERS)
    tables, total = [], 0
    for low in range(0, len(derived), PER_FRAGMENT):
        targets = derived[low : low + PER_FRAGMENT]
        table, count = _table(rng, targets, per_layer, names, starts)
        tables.append(table)
        total += count
    return Generated(tables, total, len(names))


def _table(rng: Any, targets: Any, per_layer: int, names: Any, starts: Any) -> tuple[Any, int]:
    n = len(targets)
    layer = targets // per_layer
    parents = _parents(rng, targets, layer, per_layer)
    per = VALUE_EDGES + ROW_EDGES + 2
    source = np.concatenate([parents[np.arange(n)[:, None], rng.integers(0, 3, (n, per - 2))], parents[:, :2]], axis=1)
    column = rng.integers(0, COLUMNS, (n, per))
    goal = np.concatenate([np.tile(np.arange(VALUE_EDGES) % COLUMNS, (n, 1)), np.full((n, ROW_EDGES + 2), -1)], axis=1)
    kind = np.concatenate(
        [
            rng.choice(_VALUE_KINDS, (n, VALUE_EDGES)),
            rng.choice(_ROW_KINDS, (n, ROW_EDGES)),
            np.full((n, 2), EdgeKind.READ, np.uint8),
        ],
        axis=1,
    )
    column[:, -2:] = -1
    source_path = _paths(starts[source], column)
    target_path = _paths(np.repeat(starts[targets][:, None], per, axis=1), goal)
    functions = rng.integers(0, len(_FUNCTIONS), n * per)
    plain = kind.ravel() != EdgeKind.TRANSFORMATION
    types = schema()
    edge = types.field("edges").type.value_type
    size = n * per
    values = {
        "source_dataset": pa.array(names[source.ravel()], pa.string()),
        "source_path": pa.array(source_path.ravel(), pa.string()),
        "target_path": pa.array(target_path.ravel(), pa.string()),
        "kind": pa.array(kind.ravel(), pa.uint8()),
        "functions": pa.array(_FUNCTIONS[functions], pa.string(), mask=plain),
        "star": pa.array(np.zeros(size, bool)),
        "arm": pa.array(np.zeros(size, np.int32)),
        "masking": pa.array(np.zeros(size, bool)),
        "reason": pa.nulls(size, pa.string()),
    }
    outputs = _paths(np.repeat(starts[targets][:, None], COLUMNS, axis=1), np.tile(np.arange(COLUMNS), (n, 1)))
    texts = {
        "target": names[targets],
        "fingerprint": np.array([f"{i:016x}" for i in targets.tolist()], object),
        "file": np.array([f"layer{i // per_layer}/table_{i}.sql" for i in targets.tolist()], object),
    }
    constant = {
        "target_kind": "view", "mode": "replace", "status": "understood", "namespace": "default", "kind": "create_view",
        "dialect": "postgres", "source": "bench", "how": "sql", "text": "", "columns_complete": True,
        "line": 1, "count": 1,
    }  # fmt: skip
    arrays = []
    for field in types:
        if field.name in texts:
            arrays.append(pa.array(texts[field.name], field.type))
        elif field.name == "edges":
            arrays.append(_lists(field.type, per, n, [values[edge.field(i).name] for i in range(edge.num_fields)]))
        elif field.name == "columns":
            paths = pa.array(outputs.ravel(), pa.string())
            arrays.append(_lists(field.type, COLUMNS, n, [paths, pa.nulls(len(paths), pa.string())]))
        elif field.name == "diagnostics":
            arrays.append(pa.array([[]] * n, field.type))
        else:
            value = constant.get(field.name)
            arrays.append(pa.nulls(n, field.type) if value is None else pa.array([value] * n, field.type))
    return pa.Table.from_arrays(arrays, schema=types), size


def _parents(rng: Any, targets: Any, layer: Any, per_layer: int) -> Any:
    """Three datasets below each target: unevenly popular, the first of the layer right below."""
    n = len(targets)
    below = np.stack([layer - 1, (rng.random(n) * layer).astype(np.int64), (rng.random(n) * layer).astype(np.int64)], 1)
    place = (rng.random((n, 3)) ** 3 * per_layer).astype(np.int64)
    # Most parents lie near by: a warehouse is made of domains.
    near = (targets[:, None] % per_layer + rng.integers(-40, 40, (n, 3))) % per_layer
    place = np.where(rng.random((n, 3)) < 0.9, near, place)
    return below * per_layer + place


def _paths(start: Any, column: Any) -> Any:
    """Names of columns by position; position -1 is the row set."""
    return np.where(column < 0, "*", _NAMES[(start + column) % len(_NAMES)])


def _lists(list_type: Any, length: int, rows: int, children: list[Any]) -> Any:
    item = list_type.value_type
    fields = [item.field(i) for i in range(item.num_fields)]
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * length)
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(children, fields=fields), type=list_type)


def write_store(uri: str, edges: int) -> Generated:
    """Generate a warehouse and commit it to a new store."""
    from govtool.store import Changes, Fragment, Store

    made = generate(edges)
    fragments = tuple(Fragment("bench", DERIVATIONS, write_table(t), t.num_rows) for t in made.tables)
    store = Store.init(uri)
    store.commit(Changes(add=fragments), message="bench", author="bench", batch=f"bench-{edges}", summary={})
    return made


BARE = textwrap.dedent(
    """
    import typer
    from rich.console import Console
    from rich.table import Table

    app = typer.Typer()

    @app.command()
    def impact(column: str, change: str = "logic", limit: int = 20) -> None:
        table = Table("verdict", "column", "hops", "via", "evidence")
        for i in range(limit):
            table.add_row("changes", f"{column}_{i}", "1", "copy", "file.sql:1")
        Console().print(table)

    app()
    """
)
"""A bare typer program that prints a table: what a command costs before it does anything."""


def subjects(uri: str) -> dict[str, tuple[str, int]]:
    """A column with a small closure and one with hundreds of thousands of columns; each with its size."""
    from govtool.app.versions.index import open_index
    from govtool.query.changes.impact import impact
    from govtool.store import Store

    store = Store.open(uri)
    index = open_index(store, store.head())
    found: dict[str, tuple[str, int]] = {}
    for dataset in _candidates(index):
        column = max(index.columns(dataset), key=lambda node: len(index.out_edges(node)))
        size = impact(index, index.name(column), limit=1).summary.columns
        if 5 <= size <= 500:
            found.setdefault("small", (index.name(column), size))
        if 200_000 <= size <= 900_000:
            found.setdefault("large", (index.name(column), size))
        if len(found) == 2:
            break
    return found


def _candidates(index: Index) -> list[int]:
    """Some datasets that hundreds read, the most popular first, then any."""
    readers = np.diff(np.asarray(index.forward)[np.asarray(index.dataset_base)])
    return [*np.argsort(-readers)[:50].tolist(), *range(0, index.dataset_count, max(1, index.dataset_count // 400))]


def measure(sizes: list[int], rounds: int) -> dict[str, Any]:
    """Generate, index and ask; returns the figures. Stores are kept in a temporary folder while it runs."""
    figures: dict[str, Any] = {}
    for edges in sizes:
        with tempfile.TemporaryDirectory(prefix="govtool-bench-") as folder:
            figures[str(edges)] = _measure(edges, Path(folder), rounds)
    return figures


def _measure(edges: int, folder: Path, rounds: int) -> dict[str, Any]:
    os.environ["GOVTOOL_CACHE"] = str(folder / "cache")
    environment = {**os.environ, "NO_COLOR": "1", "GOVTOOL_STORE": str(folder / "store")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # An installed program has its bytecode.
    made = write_store(str(folder / "store"), edges)
    from bench.one_file import OPEN, after_commits
    from bench.processes import interleaved, run
    from govtool.app.versions.index import open_index
    from govtool.store import Store

    uri = str(folder / "store")
    build = json.loads(run([sys.executable, "-c", OPEN, uri], environment)[1])
    store = Store.open(uri)
    index = open_index(store, store.head())
    result: dict[str, Any] = {
        "edges": index.edge_count,
        "columns": index.meta["columns"],
        "datasets": made.datasets,
        "index build": build,
        "index MB": round(len(index.buffer) / 1e6, 1),
    }
    bare = folder / "bare.py"
    bare.write_text(BARE)
    govtool = [sys.executable, "-c", "from govtool.cli.main import main; main()", "impact"]
    for name, (column, size) in subjects(str(folder / "store")).items():
        commands = {
            "bare": [sys.executable, str(bare), column],
            "logic": [*govtool, column, "--limit", "20"],
            "drop": [*govtool, column, "--limit", "20", "--change", "drop"],
        }
        costs = interleaved(commands, environment, rounds)
        result[name] = {"subject": column, "closure": size} | {
            f"{what} {clock}": round(getattr(cost, clock), 3)
            for what, cost in costs.items()
            for clock in ("wall", "cpu")
        }
        result[name]["ratio to bare"] = round(costs["logic"].wall / costs["bare"].wall, 2)
        kept = commands
    result["after commits"] = after_commits(uri, environment, rounds)
    costs = interleaved(kept, environment, rounds)
    result["impact after commits"] = round(costs["logic"].wall / costs["bare"].wall, 2)
    return result


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("generate", help="write a store")
    one.add_argument("store")
    one.add_argument("--edges", type=int, default=1_000_000)
    two = commands.add_parser("measure", help="what questions cost")
    two.add_argument("--edges", type=int, action="append")
    two.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    if arguments.command == "generate":
        made = write_store(arguments.store, arguments.edges)
        print(f"{made.edges} edges, {made.datasets} datasets")
    else:
        print(json.dumps(measure(arguments.edges or [1_000_000, 10_000_000], arguments.rounds), indent=2))


if __name__ == "__main__":
    main()

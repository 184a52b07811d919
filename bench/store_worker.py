"""One tool's side of the store benchmark, run in the tool's own environment: ``store_worker.py TOOL ACTION …``.

Actions: ``init URI``, ``commit URI WHO FIRST COUNT`` (COUNT commits of 50 nodes and 200 edges each, prints seconds),
``read URI`` (all rows of the newest version), ``find URI WHO`` (the rows of one writer). Imports what its tool needs.
"""

from __future__ import annotations

import os
import random
import sys
import time
from importlib import import_module
from typing import Any

NODES, EDGES = 50, 200


def rows(who: str, n: int) -> dict[str, list[Any]]:
    """One commit: node rows, then edge rows."""
    rng = random.Random(f"{who} {n}")
    names = [f"mart_{who}.t{n}.column_{i}" for i in range(NODES)]
    ends = [(rng.choice(names), rng.choice(names)) for _ in range(EDGES)]
    return {
        "who": [who] * (NODES + EDGES),
        "batch": [f"{who}-{n}"] * (NODES + EDGES),
        "kind": [0] * NODES + [rng.randrange(1, 14) for _ in range(EDGES)],
        "source": names + [source for source, _ in ends],
        "target": [""] * NODES + [target for _, target in ends],
    }


class Govtool:
    """One derivations fragment a commit: 50 output columns, 200 edges."""

    modules = ("pyarrow.parquet", "obstore", "govtool.store.store", "govtool.model.columnar")

    def __init__(self, uri: str) -> None:
        self.uri = uri

    def init(self) -> None:
        """Make the store."""
        from govtool.store import Store

        Store.init(self.uri)

    def commit(self, who: str, n: int) -> None:
        """Commit once."""
        from govtool.model import ColumnRef, Derivation, Edge, EdgeKind, OutputColumn, Statement
        from govtool.model.columnar import DERIVATIONS, encode
        from govtool.store import Changes, Fragment, Store

        data = rows(who, n)
        target = f"mart_{who}.t{n}"
        derivation = Derivation(
            target,
            "view",
            "replace",
            Statement(f"{who}-{n}", "create_view", "postgres", f"{n}.sql", source=who),
            tuple(OutputColumn(name.rsplit(".", 1)[1]) for name in data["source"][:NODES]),
            edges=tuple(
                Edge(ColumnRef(target, source.rsplit(".", 1)[1]), to.rsplit(".", 1)[1], EdgeKind(kind % 5))
                for source, to, kind in zip(
                    data["source"][NODES:], data["target"][NODES:], data["kind"][NODES:], strict=True
                )
            ),
        )
        fragment = Fragment(who, DERIVATIONS, encode([derivation]), 1)
        Store.open(self.uri).commit(Changes(add=(fragment,)), message="", author=who, batch=f"{who}-{n}")

    def read(self, who: str | None = None) -> int:
        """The edges of the newest version, of one writer or of all."""
        from govtool.model.columnar import read_table
        from govtool.store import Store

        store = Store.open(self.uri)
        head = store.head()
        refs = [ref for ref in store.fragments(head) if who is None or ref.source == who] if head else []
        tables = [read_table(data) for data in store.read_many(refs)]
        return sum(len(edges) for table in tables for edges in table.column("edges").to_pylist())


class DeltaLake:
    """One table of nodes and edges."""

    modules = ("pyarrow", "deltalake")

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.options = {
            "endpoint": os.environ["AWS_ENDPOINT_URL"],
            "allow_http": "true",
            "conditional_put": "etag",
        }

    def init(self) -> None:
        """Make the table."""
        import pyarrow as pa
        from deltalake import write_deltalake

        write_deltalake(self.uri, pa.table(rows("init", 0)).slice(0, 0), storage_options=self.options)

    def commit(self, who: str, n: int) -> None:
        """Append once; with as many tries as it takes, as the 15 of its own run out among eight writers."""
        import pyarrow as pa
        from deltalake import CommitProperties, write_deltalake

        tries = CommitProperties(max_commit_retries=1000)
        table = pa.table(rows(who, n))
        write_deltalake(self.uri, table, mode="append", storage_options=self.options, commit_properties=tries)

    def read(self, who: str | None = None) -> int:
        """The edges of the newest version, of one writer or of all."""
        from deltalake import DeltaTable

        table = DeltaTable(self.uri, storage_options=self.options)
        found = table.to_pyarrow_table(filters=[("who", "=", who)] if who else None)
        return sum(kind > 0 for kind in found.column("kind").to_pylist())


class Lance:
    """One dataset of nodes and edges."""

    modules = ("pyarrow", "lance")

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.options = {"endpoint": os.environ["AWS_ENDPOINT_URL"], "allow_http": "true"}

    def init(self) -> None:
        """Make the dataset."""
        import lance
        import pyarrow as pa

        lance.write_dataset(pa.table(rows("init", 0)).slice(0, 0), self.uri, storage_options=self.options)

    def commit(self, who: str, n: int) -> None:
        """Append once."""
        import lance
        import pyarrow as pa

        lance.write_dataset(pa.table(rows(who, n)), self.uri, mode="append", storage_options=self.options)

    def read(self, who: str | None = None) -> int:
        """The edges of the newest version, of one writer or of all."""
        import lance

        dataset = lance.dataset(self.uri, storage_options=self.options)
        found = dataset.to_table(columns=["kind"], filter=f"who = '{who}'" if who else None)
        return sum(kind > 0 for kind in found.column("kind").to_pylist())


class PyIceberg:
    """One table of nodes and edges; the catalog, SQLite on disk, costs no requests."""

    modules = ("pyarrow.parquet", "pyiceberg.catalog.sql", "pyiceberg.io.pyarrow")

    def __init__(self, uri: str) -> None:
        self.uri = uri

    def _catalog(self) -> Any:
        from pyiceberg.catalog.sql import SqlCatalog

        options = {
            "uri": f"sqlite:///{os.environ['BENCH_CATALOG']}?timeout=60",
            "warehouse": self.uri,
            "s3.endpoint": os.environ["AWS_ENDPOINT_URL"],
            "s3.access-key-id": os.environ["AWS_ACCESS_KEY_ID"],
            "s3.secret-access-key": os.environ["AWS_SECRET_ACCESS_KEY"],
            "s3.region": os.environ["AWS_REGION"],
            "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
        }
        return SqlCatalog("bench", **options)

    def init(self) -> None:
        """Make the table."""
        import pyarrow as pa

        catalog = self._catalog()
        catalog.create_namespace("bench")
        catalog.create_table("bench.graph", schema=pa.table(rows("init", 0)).schema)

    def commit(self, who: str, n: int) -> None:
        """Append once, again from the newest version if another writer won."""
        import pyarrow as pa
        from pyiceberg.exceptions import CommitFailedException

        data = pa.table(rows(who, n))
        while True:
            try:
                self._catalog().load_table("bench.graph").append(data)
            except CommitFailedException:
                time.sleep(random.uniform(0, 0.05))
            else:
                return

    def read(self, who: str | None = None) -> int:
        """The edges of the newest version, of one writer or of all."""
        from pyiceberg.expressions import EqualTo

        table = self._catalog().load_table("bench.graph")
        found = (table.scan(row_filter=EqualTo("who", who)) if who else table.scan()).to_arrow()
        return sum(kind > 0 for kind in found.column("kind").to_pylist())


TOOLS: dict[str, Any] = {"govtool": Govtool, "deltalake": DeltaLake, "lance": Lance, "pyiceberg": PyIceberg}


def main() -> None:
    """Run one action."""
    tool = TOOLS[sys.argv[1]](sys.argv[3])
    for module in tool.modules:
        import_module(module)
    match sys.argv[2], sys.argv[4:]:
        case "init", []:
            tool.init()
        case "commit", [who, first, count]:
            started = time.perf_counter()
            for n in range(int(first), int(first) + int(count)):
                tool.commit(who, n)
            print(time.perf_counter() - started)
        case "read", []:
            print(tool.read())
        case "find", [who]:
            print(tool.read(who))
    sys.stdout.flush()
    os._exit(0)  # Some of them crash in threads that outlive their work.


if __name__ == "__main__":
    main()

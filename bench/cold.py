"""Questions to a store on S3 from machines that have nothing yet: requests and bytes, as counted at a proxy."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench import servers
from bench.graph import write_store
from bench.page import table
from bench.proxy import Proxy

_SUBJECTS = 9
_ENTRIES = range(10, 41)
"""Closures of so many entries: what a person looks at."""


class Cost(NamedTuple):
    """What one question cost."""

    requests: int
    received: int


def section(sizes: list[int]) -> str:
    """The section of docs/benchmarks.md.

    Args:
        sizes: About how many edges the graphs have.
    """
    rows = [row for edges in sizes for row in _rows(edges)]
    head = ["edges", "question", "requests", "most", "bytes received", "most"]
    return f"""## Cold reads from S3

Whole processes of govtool with an empty cache against seaweedfs on loopback, requests and bodies counted at a proxy:
medians and maxima over {_SUBJECTS} columns all over the graph, closures of {_ENTRIES.start} to {_ENTRIES[-1]} entries.
Five of the requests find the head and the published index; the rest are range requests for pages. Goal: 11 to 35 of
these a question. "The whole index" is what is downloaded where much is asked, "from the fragments" what a reader does
without a published index, before it builds one.

{table(head, rows)}
"""


def _rows(edges: int) -> Iterator[list[str]]:
    with (
        servers.seaweedfs() as server,
        Proxy((server.host, server.port)) as proxy,
        tempfile.TemporaryDirectory() as folder,
    ):
        uri = f"s3://{servers.BUCKET}/warehouse"
        environment = {**os.environ, **servers.environment(proxy.url)}
        os.environ.update(environment)
        made = write_store(uri, edges)
        machine = iter(range(10**6))

        def ask(*arguments: str, cache: str | None = None) -> Cost:
            proxy.reset()
            own = str(Path(folder, cache or f"machine{next(machine)}"))
            command = [sys.executable, "-m", "govtool", *arguments, "--store", uri]
            # Beside the store: the policies of this repository would be judged on the whole graph.
            subprocess.run(
                command, env={**environment, "GOVTOOL_CACHE": own}, cwd=folder, check=True, capture_output=True
            )
            return Cost(len(proxy.exchanges), sum(exchange.received for exchange in proxy.exchanges))

        fragments = ask("index")
        ask("index", "--publish", cache="publisher")
        names = _subjects(uri, str(Path(folder, "publisher")))
        questions: dict[str, list[list[str]]] = {
            "`impact`": [["impact", name, "--limit", "20"] for name in names],
            "`impact`, by the end of its name": [["impact", name.split(".", 1)[1], "--limit", "20"] for name in names],
            "`explain`": [["explain", name] for name in names],
            "`ls` of a dataset": [["ls", name.rsplit(".", 1)[0]] for name in names],
        }
        for question, commands in questions.items():
            yield [f"{made.edges:,}", question, *_told([ask(*command) for command in commands])]
        again = "asked again"
        ask("impact", names[0], "--limit", "20", cache=again)
        repeated = ask("impact", names[0], "--limit", "20", cache=again)
        yield [f"{made.edges:,}", "`impact`, asked again", *_told([repeated])]
        yield [f"{made.edges:,}", "the whole index", *_told([ask("index")])]
        yield [f"{made.edges:,}", "from the fragments", *_told([fragments])]


def _told(costs: list[Cost]) -> list[str]:
    requests, received = zip(*costs, strict=True)
    return [
        f"{statistics.median(requests):.0f}",
        f"{max(requests)}",
        f"{statistics.median(received) / 1000:,.0f} kB",
        f"{max(received) / 1000:,.0f} kB",
    ]


def _subjects(uri: str, cache: str) -> list[str]:
    """Columns all over the graph whose closures are of the wanted size."""
    from govtool.app.versions.index import open_index
    from govtool.query.changes.impact import impact
    from govtool.store.quick import open_reader

    os.environ["GOVTOOL_CACHE"] = cache
    store = open_reader(uri)
    index = open_index(store, store.head())
    found: list[str] = []
    for node in range(1, index.node_count, max(1, index.node_count // 4001)):
        if index.is_rows(node) or index.is_unknown(node):
            continue
        if impact(index, index.name(node), limit=0).summary.entries in _ENTRIES:
            found.append(index.name(node))
    step = max(1, len(found) // _SUBJECTS)
    return found[::step][:_SUBJECTS]

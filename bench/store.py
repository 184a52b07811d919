"""The store beside table formats: requests and bytes a commit and a question, and commits a second from eight writers.

All talk to the same S3 server on loopback, each from its own environment; requests are counted by a proxy on a socket.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import servers
from bench.page import table
from bench.peers import PEERS
from bench.proxy import Proxy

TITLE = "## The store beside table formats"

REQUIREMENTS = {
    "deltalake": ("deltalake", "pyarrow"),
    "lance": ("pylance", "pyarrow"),
    "pyiceberg": ("pyiceberg[sql-sqlite,pyarrow]",),
}
DISTRIBUTION = {"lance": "pylance"}
TOOLS = ("govtool", *REQUIREMENTS)
AGES = (10, 200)
WRITERS = 8
COMMITS = 10
ROUNDS = 3
_WORKER = Path(__file__).with_name("store_worker.py")


@dataclass(frozen=True, slots=True)
class Cost:
    """Requests and bytes on the wire, heads included."""

    requests: float
    size: float


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one tool."""

    name: str
    version: str
    commit: dict[int, Cost]
    """By the number of commits before it."""
    find: Cost
    read: Cost
    per_second: float


def measure(tool: str) -> Figures:
    """Run one tool through everything; ages in turn on one table, the writers on a new one."""
    python = _ensure(tool)
    with (
        running_server() as server,
        Proxy((server.host, server.port)) as proxy,
        tempfile.TemporaryDirectory() as folder,
    ):
        direct = _environment(server.url, Path(folder, "aged.db"))
        counted = _environment(proxy.url, Path(folder, "aged.db"))
        uri = f"s3://{servers.BUCKET}/{uuid.uuid4().hex}"
        _run(python, tool, direct, "init", uri)
        commits: dict[int, Cost] = {}
        made = 0
        for age in AGES:
            _run(python, tool, direct, "commit", uri, f"w{age}", made, age - made)
            made = age
            costs = []
            for _ in range(ROUNDS):
                costs.append(_counted(proxy, python, tool, counted, "commit", uri, "cold", made, 1))
                made += 1
            commits[age] = _median(costs)
        find = _counted(proxy, python, tool, counted, "find", uri, "cold")
        read = _counted(proxy, python, tool, counted, "read", uri)
        return Figures(tool, _version(python, tool), commits, find, read, _throughput(python, tool, server, folder))


def _throughput(python: str, tool: str, server: servers.Server, folder: str) -> float:
    """Commits a second of eight writers on one new table, from the first start to the last end of their work."""
    environment = _environment(server.url, Path(folder, "shared.db"))
    uri = f"s3://{servers.BUCKET}/{uuid.uuid4().hex}"
    _run(python, tool, environment, "init", uri)
    _run(python, tool, environment, "commit", uri, "warm", 0, 1)
    started = time.perf_counter()
    writers = [
        subprocess.Popen(
            [python, str(_WORKER), tool, "commit", uri, f"w{who}", "0", str(COMMITS)],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for who in range(WRITERS)
    ]
    seconds = [float(writer.communicate()[0]) for writer in writers]
    if any(writer.returncode for writer in writers):
        raise RuntimeError(f"a writer of {tool} failed")
    found = int(_run(python, tool, environment, "read", uri))
    if found != (WRITERS * COMMITS + 1) * 200:
        raise RuntimeError(f"{tool} lost commits: {found} edges")
    # Starting an interpreter and importing are not what is compared; the writers overlap for the longest of them.
    return WRITERS * COMMITS / min(max(seconds), time.perf_counter() - started)


def section() -> str:
    """Measure, and write the section."""
    figures = [measure(tool) for tool in TOOLS]
    rows = [
        [
            f.name,
            f.version,
            *(f"{f.commit[age].requests:.0f}" for age in AGES),
            *(f"{f.commit[age].size / 1000:,.0f} kB" for age in AGES),
            f"{f.find.requests:.0f} / {f.find.size / 1000:,.0f} kB",
            f"{f.read.requests:.0f} / {f.read.size / 1000:,.0f} kB",
            f"{f.per_second:.1f}",
        ]
        for f in figures
    ]
    head = [
        "store",
        "version",
        *(f"requests, commit {age}" for age in AGES),
        *(f"bytes, commit {age}" for age in AGES),
        "read one writer's rows",
        "read all",
        "commits/s, 8 writers",
    ]
    with running_server() as server:
        name = server.name
    return f"""{TITLE}

Commits of 50 nodes and 200 edges against {name} on loopback, each counted commit and question by a cold process
(median of {ROUNDS}), requests and bytes (heads included) at a proxy. Peers keep nodes and edges in one table. govtool
opens the store again for every commit; pyiceberg's catalog is SQLite on disk and is not counted. Both readings are of
{AGES[-1] + ROUNDS} commits. Eight writers of {COMMITS} commits each append to a new table, imports not counted; that
everything is there afterwards is checked. Goal: at most 6 requests a commit at any age.

{table(head, rows)}
"""


@contextmanager
def running_server() -> Iterator[servers.Server]:
    """SeaweedFS where it is installed, else moto."""
    with servers.seaweedfs() if servers.weed() else servers.moto() as server:
        yield server


def _environment(endpoint: str, catalog: Path) -> dict[str, str]:
    root = str(Path(__file__).resolve().parents[1])
    own = {"BENCH_CATALOG": str(catalog), "PYTHONPATH": root, "AWS_ALLOW_HTTP": "true"}
    return {**os.environ, **servers.environment(endpoint), **own}


def _ensure(tool: str) -> str:
    """The interpreter of a tool's own environment, which is made if it is not there."""
    if tool == "govtool":
        return sys.executable
    python = PEERS / tool / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PEERS / tool)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *REQUIREMENTS[tool]], check=True)
    return str(python)


def _version(python: str, tool: str) -> str:
    code = f"from importlib.metadata import version; print(version({DISTRIBUTION.get(tool, tool)!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def _run(python: str, tool: str, environment: dict[str, str], *arguments: object) -> str:
    command = [python, str(_WORKER), tool, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{tool} {arguments}: {done.stderr[-2000:]}")
    return done.stdout


def _counted(proxy: Proxy, python: str, tool: str, environment: dict[str, str], *arguments: object) -> Cost:
    """What a process needs that has nothing in a cache of its own."""
    proxy.reset()
    with tempfile.TemporaryDirectory() as cache:
        _run(python, tool, {**environment, "GOVTOOL_CACHE": cache}, *arguments)
    return Cost(len(proxy.exchanges), sum(exchange.wire for exchange in proxy.exchanges))


def _median(costs: list[Cost]) -> Cost:
    return Cost(statistics.median(c.requests for c in costs), statistics.median(c.size for c in costs))

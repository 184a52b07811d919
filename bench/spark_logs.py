"""A generated Spark event log, read by ``govtool ingest spark``, beside a reader that parses every line as JSON.

The log has the proportions of real ones: most of it are plans that adaptive execution repeats, then task events; the
plans that matter are a few percent. Some plans have lines of several MB.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.corpora import ROOT
from bench.page import table

TITLE = "## Spark event logs"

SIZE = 1 << 30
"""Bytes of the log, plain."""
ROUNDS = 1
UPDATES = 12
"""Adaptive updates of an execution."""
TASKS = 120
LARGE = 97
"""Every so many executions one has a plan of thousands of columns."""

_PACKAGE = "org.apache.spark.sql.execution.ui."


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one whole process."""

    wall: float
    cpu: float
    peak: float
    """MB."""
    stated: str


def plan(number: int, tables: int, columns: int) -> tuple[str, dict[str, Any], int]:
    """A plan that joins tables, computes and aggregates, as text and as the tree with its accumulators; and how many
    accumulators it has.
    """
    pick = random.Random(number)
    base = number * 100_000
    drawn: list[str] = []
    details: list[str] = []
    metric = base
    info: dict[str, Any] | None = None
    operator = 0
    scans = []
    for t in range(tables):
        operator += 1
        ids = [base + t * (columns + 1) + c for c in range(columns)]
        names = [f"t{t}_c{c}#{i}" for c, i in enumerate(ids)]
        name = f"Scan parquet spark_catalog.shop.t{pick.randrange(400)}"
        location = f"file:/warehouse/shop.db/{name.rsplit('.', 1)[-1]}"
        details.append(
            f"({operator}) {name}\nOutput [{columns}]: [{', '.join(names)}]\nBatched: true\n"
            f"Location: InMemoryFileIndex [{location}]\n"
            f"ReadSchema: struct<{','.join(n.split('#')[0] + ':int' for n in names)}>\n"
        )
        metrics = [
            {"name": text, "accumulatorId": metric + n, "metricType": "sum"}
            for n, text in enumerate(
                ("number of output rows", "number of files read", "size of files read", "scan time")
            )
        ]
        metric += len(metrics)
        scans.append((operator, name, names))
        node = {
            "nodeName": name,
            "simpleString": f"File{name}[{','.join(names[:25])}] Batched: true, Format: Parquet, Location: {location}",
            "children": [],
            "metadata": {"Location": f"InMemoryFileIndex(1 paths)[{location}]", "Format": "Parquet"},
            "metrics": metrics,
        }
        if info is None:
            info, left = node, names
            continue
        operator += 1
        keys = f"Left keys [1]: [{left[0]}]\nRight keys [1]: [{names[0]}]"
        details.append(f"({operator}) SortMergeJoin\n{keys}\nJoin type: Inner\nJoin condition: None\n")
        left = left + names
        info = {
            "nodeName": "SortMergeJoin",
            "simpleString": f"SortMergeJoin [{left[0]}], [{names[0]}], Inner",
            "children": [info, node],
            "metadata": {},
            "metrics": [{"name": "number of output rows", "accumulatorId": metric, "metricType": "sum"}],
        }
        metric += 1
    assert info is not None
    outputs = [
        f"CASE WHEN ({pick.choice(left)} > {pick.randrange(999)}) THEN {pick.choice(left)}"
        f" ELSE upper({pick.choice(left)}) END AS o{c}#{base + 90_000 + c}"
        for c in range(columns)
    ]
    project, write = operator + 1, operator + 2
    details.append(
        f"({project}) Project\nOutput [{columns}]: [{', '.join(outputs)}]\nInput [{len(left)}]: [{', '.join(left)}]\n"
    )
    target = f"file:/out/o{number % 300}"
    made = [f"o{c}#{base + 90_000 + c}" for c in range(columns)]
    written = [name.split("#")[0] for name in made]
    details.append(
        f"({write}) Execute InsertIntoHadoopFsRelationCommand\nInput [{columns}]: [{', '.join(made)}]\n"
        f"Arguments: {target}, false, Parquet, [path={target}], Overwrite, [{', '.join(written)}]\n"
    )
    drawn = [f"Execute InsertIntoHadoopFsRelationCommand ({write})", f"+- Project ({project})"]
    indent = "   "
    joins = list(range(project - 1, 1, -2))
    for depth, join in enumerate(joins):
        drawn.append(f"{indent}+- SortMergeJoin ({join})" if not depth else f"{indent}:- SortMergeJoin ({join})")
        indent += "   " if not depth else ":  "
    at = len(joins)
    # The tree is drawn from the top: the right side of each join comes after all of its left one.
    drawn.append(f"{indent}{':- ' if joins else '+- '}{scans[0][1]} ({scans[0][0]})")
    for (numbered, name, _), join_depth in zip(scans[1:], range(at - 1, -1, -1), strict=True):
        drawn.append(f"{'   ' * 2 + ':  ' * join_depth}+- {name} ({numbered})")
    text = "== Physical Plan ==\n" + "\n".join(drawn) + "\n\n\n" + "\n".join(details) + "\n"
    root = {
        "nodeName": "Execute InsertIntoHadoopFsRelationCommand",
        "simpleString": f"Execute InsertIntoHadoopFsRelationCommand {target}",
        "children": [info],
        "metadata": {},
        "metrics": [
            {"name": "number of written files", "accumulatorId": metric, "metricType": "sum"},
            {"name": "written output", "accumulatorId": metric + 1, "metricType": "size"},
            {"name": "number of output rows", "accumulatorId": metric + 2, "metricType": "sum"},
        ],
    }
    return text, root, metric + 3 - base


def events(size: int) -> Iterator[bytes]:
    """A log of about so many bytes."""
    made = 0
    number = 0
    moment = 1_767_225_600_000

    def line(event: dict[str, Any]) -> bytes:
        nonlocal made
        data = json.dumps(event, separators=(",", ":")).encode() + b"\n"
        made += len(data)
        return data

    yield line({"Event": "SparkListenerLogStart", "Spark Version": "4.3.0"})
    yield line(
        {
            "Event": "SparkListenerApplicationStart",
            "App Name": "bench",
            "App ID": "app-1",
            "Timestamp": moment,
            "User": "u",
        }
    )
    while made < size:
        large = number % LARGE == LARGE - 1
        text, info, accumulators = plan(number % 700, 3 + number % 4, 4000 if large else 12 + number % 30)
        moment += 60_000
        start = {
            "executionId": number,
            "rootExecutionId": number,
            "description": "parquet at /jobs/bench.py:7",
            "details": "",
            "physicalPlanDescription": text,
            "sparkPlanInfo": info,
            "time": moment,
            "modifiedConfigs": {},
        }
        yield line({"Event": f"{_PACKAGE}SparkListenerSQLExecutionStart", **start})
        update = {"executionId": number, "physicalPlanDescription": text, "sparkPlanInfo": info}
        for _ in range(2 if large else UPDATES):
            yield line({"Event": f"{_PACKAGE}SparkListenerSQLAdaptiveExecutionUpdate", **update})
        for task in range(TASKS):
            accumulables = [
                {"ID": 1 + n, "Name": f"internal.metrics.m{n}", "Update": task, "Value": task * n, "Internal": True}
                for n in range(24)
            ]
            yield line(
                {
                    "Event": "SparkListenerTaskEnd",
                    "Stage ID": number,
                    "Task Type": "ShuffleMapTask",
                    "Task Info": {"Task ID": task, "Host": "10.0.0.7", "Accumulables": accumulables},
                }
            )
        base = (number % 700) * 100_000
        totals = [
            {
                "ID": base + n,
                "Name": "number of output rows",
                "Value": str(1000 + n),
                "Internal": True,
                "Metadata": "sql",
            }
            for n in range(accumulators)
        ]
        yield line({"Event": "SparkListenerStageCompleted", "Stage Info": {"Stage ID": number, "Accumulables": totals}})
        yield line(
            {
                "Event": f"{_PACKAGE}SparkListenerSQLExecutionEnd",
                "executionId": number,
                "time": moment + 30_000,
                "errorMessage": "",
            }
        )
        number += 1
    yield line({"Event": "SparkListenerApplicationEnd", "Timestamp": moment + 60_000})


def write(path: Path, size: int) -> None:
    """Write a log, plain and, beside it, as zstd."""
    import pyarrow as pa

    with path.open("wb") as plain, pa.CompressedOutputStream(str(path) + ".zstd", "zstd") as packed:
        for data in events(size):
            plain.write(data)
            packed.write(data)


def ingest(log: Path, folder: Path) -> Cost:
    """``govtool ingest spark`` as a process of its own, into a new store."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GOVTOOL_CACHE": str(folder / "cache")}
    store = str(folder / f"store-{time.monotonic_ns()}")
    command = [sys.executable, "-m", "govtool"]
    subprocess.run([*command, "init", "--store", store], env=environment, check=True, capture_output=True)
    return _process([*command, "ingest", "spark", str(log), "--store", store, "--quiet"], environment)


def parse_all(log: Path) -> Cost:
    """What it takes to parse each line as JSON and do nothing with it."""
    code = "import json,sys\nfor line in open(sys.argv[1], 'rb'): json.loads(line)\n"
    return _process([sys.executable, "-c", code, str(log)], dict(os.environ))


def _process(command: list[str], environment: dict[str, str]) -> Cost:
    start = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    stated = process.stdout.read() if process.stdout is not None else ""
    problem = process.stderr.read() if process.stderr is not None else ""
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(problem[-2000:])
    lines = stated.strip().splitlines()
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, lines[-1] if lines else "")


def section(size: int = SIZE, rounds: int = ROUNDS) -> str:
    """The section of the page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log, tenth = folder / "log", folder / "tenth"
        write(log, size)
        write(tenth, size // 10)
        packed = Path(f"{log}.zstd")
        costs: dict[str, list[Cost]] = {"plain": [], "zstd": [], "tenth": [], "json": []}
        for _ in range(rounds):
            costs["plain"].append(ingest(log, folder))
            costs["json"].append(parse_all(log))
            costs["zstd"].append(ingest(packed, folder))
            costs["tenth"].append(ingest(tenth, folder))
        sizes = {"plain": log.stat().st_size, "zstd": log.stat().st_size, "json": log.stat().st_size}
        sizes["tenth"] = tenth.stat().st_size
        ratio = log.stat().st_size / packed.stat().st_size
        stated = costs["plain"][0].stated.split(" · ", 1)[-1]
    labels = {
        "plain": "govtool, plain",
        "zstd": f"govtool, zstd ({ratio:.0f} times smaller)",
        "tenth": "govtool, a log a tenth as long",
        "json": "`json.loads` of every line, nothing else",
    }
    rows = []
    for key in labels:
        cpu = statistics.median(cost.cpu for cost in costs[key])
        peak = max(cost.peak for cost in costs[key])
        rows.append(
            [
                labels[key],
                f"{sizes[key] / 1e6:,.0f} MB",
                f"{cpu:.1f} s",
                f"**{sizes[key] / 1e6 / cpu:.0f}**",
                f"{peak:,.0f} MB",
            ]
        )
    return f"""{TITLE}

A generated event log (`bench/spark_logs.py`): {stated}. More than half of it are plans that adaptive execution repeats;
some plans have 4,000 columns and lines of several MB. Whole processes, reading, extracting and committing; the CPU time
is the median of {rounds} {"round" if rounds == 1 else "rounds, in turn"}, memory at its highest.

{table(["reader", "log", "CPU", "MB/s of CPU", "memory"], rows)}
"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=1)
    chosen = parser.parse_args()
    print(section(chosen.megabytes << 20, chosen.rounds))

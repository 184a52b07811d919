"""Event logs for tests: the real ones of fixtures/spark/logs, and pieces to make others of."""

from __future__ import annotations

import gzip
import json
import re
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa

from govtool.capture.spark.eventlog.files import find
from govtool.capture.spark.eventlog.gathered import EventLogFindings
from govtool.capture.spark.eventlog.read import read_logs

LOGS = Path(__file__).parents[3] / "fixtures" / "spark" / "logs"
SHOP = LOGS / "spark-4.3.0.gz"


def lines_of(path: Path = SHOP) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines(keepends=True)


def gathered(path: Path) -> EventLogFindings:
    return read_logs([(log, Path(log.name).name) for log in find(path)], EventLogFindings("s"))


def edges_of(found: EventLogFindings) -> dict[str, list[str]]:
    """What is said of each target, as the expected files have it."""
    stated: dict[str, list[str]] = {}
    for d in found.derivations():
        if d.mode == "declare" or d.statement.kind == "alias":
            continue
        target = "query" if d.target.startswith("query:") else _short(d.target)
        head = f"{target} {d.statement.kind} {d.mode}"
        stated.setdefault(head, []).extend(
            f"{e.target_path} <- {_short(e.source.text)} {e.kind.label} {'.'.join(e.functions)}".rstrip()
            for e in d.edges
        )
    return {head: sorted(edges) for head, edges in stated.items()}


def _short(name: str) -> str:
    return re.sub(r"file:///tmp/shop\d?/", "/", name)


def expected(path: Path) -> dict[str, list[str]]:
    stated: dict[str, list[str]] = {}
    head = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            head = line[3:]
            stated[head] = []
        elif line and not line.startswith("#"):
            stated[head].append(line)
    return {head: sorted(edges) for head, edges in stated.items()}


def event(name: str, **fields: Any) -> bytes:
    package = "org.apache.spark.sql.execution.ui." if "SQL" in name or "Driver" in name else ""
    return json.dumps({"Event": package + name, **fields}, separators=(",", ":")).encode() + b"\n"


def started(number: int, plan: str, *, time: int = 1_600_000_000_000, root: int | None = None, **more: Any) -> bytes:
    return event(
        "SparkListenerSQLExecutionStart",
        executionId=number,
        rootExecutionId=number if root is None else root,
        description="save at job.py:1",
        details="",
        physicalPlanDescription=plan,
        sparkPlanInfo={"nodeName": "x", "simpleString": "x", "children": [], "metadata": {}, "metrics": []},
        time=time,
        **more,
    )


def ended(number: int, *, time: int = 1_600_000_001_000, error: str = "") -> bytes:
    return event("SparkListenerSQLExecutionEnd", executionId=number, time=time, errorMessage=error)


def write_plan(target: str = "/out/t", source: str = "/in/s", mode: str = "Overwrite") -> str:
    return f"""== Physical Plan ==
Execute InsertIntoHadoopFsRelationCommand (2)
+- Scan parquet  (1)


(1) Scan parquet{" "}
Output [2]: [a#1, b#2L]
Batched: true
Location: InMemoryFileIndex [file:{source}]
ReadSchema: struct<a:int,b:bigint>

(2) Execute InsertIntoHadoopFsRelationCommand
Input [2]: [a#1, b#2L]
Arguments: file:{target}, false, Parquet, [path={target}], {mode}, [a, b]

"""


def lz4_blocks(data: bytes, size: int = 1 << 15) -> bytes:
    """As lz4-java's LZ4BlockOutputStream writes: incompressible blocks as they are, an empty block at the end."""
    codec = pa.Codec("lz4_raw")
    out = []
    for at in range(0, len(data), size):
        block = data[at : at + size]
        packed = codec.compress(block, asbytes=True)
        method = 0x20
        if len(packed) >= len(block):
            packed, method = block, 0x10
        out.append(b"LZ4Block" + bytes([method | 5]) + struct.pack("<iii", len(packed), len(block), 0) + packed)
    return b"".join(out) + b"LZ4Block" + bytes([0x15]) + struct.pack("<iii", 0, 0, 0)


def snappy_stream(data: bytes, size: int = 1 << 15) -> bytes:
    """As snappy-java's SnappyOutputStream writes."""
    codec = pa.Codec("snappy")
    out = [b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)]
    for at in range(0, len(data), size):
        packed = codec.compress(data[at : at + size], asbytes=True)
        out.append(struct.pack(">i", len(packed)) + packed)
    return b"".join(out)


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()

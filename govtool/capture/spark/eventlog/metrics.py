"""Rows, files and bytes of scans and writes, by accumulator.

A plan's nodes name their accumulators. Adaptive execution registers the nodes it copies again, with new accumulators,
of which one copy's counts: so the maximum over all copies of a scan is its figure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

ROWS, FILES, BYTES = "rows", "files", "bytes"

_TEXT = rb'"((?:[^"\\]|\\.)*)"'
_SCAN = re.compile(
    rb'"nodeName":"((?:Photon|Gpu)?(?:Scan |BatchScan |FileScan )(?:[^"\\]|\\.)*)","simpleString":' + _TEXT
    + rb',"children":\[\],"metadata":(\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\}),"metrics":\[([^\]]*)\]'
)  # fmt: skip
_METRIC = re.compile(rb'"name":' + _TEXT + rb',"accumulatorId":(\d+)')
_TOTAL = re.compile(
    rb'"ID":(\d+),"Name":"(?:number of output rows|number of files read|size of files read|number of written files'
    rb'|written output|total number of files)"(?:,"Update":[^,]*)?,"Value":"?(-?\d+)'
)
_IDS = re.compile(r"#(\d+)L?(?=[,\]])")
_READ_NAMES = {b"number of output rows": ROWS, b"number of files read": FILES, b"size of files read": BYTES}
_WRITE_NAMES = {b"number of output rows": ROWS, b"number of written files": FILES, b"written output": BYTES}

KEPT = 200_000
"""Values of accumulators that no plan has named yet, or will."""


class ScanKey(NamedTuple):
    """The key of a scan within its plan: its name and the ids of its columns, as far as they are known."""

    name: str
    ids: tuple[int, ...]


@dataclass(slots=True)
class Registered:
    """The accumulators of one execution."""

    scans: dict[ScanKey, dict[str, set[int]]] = field(default_factory=dict)
    writes: dict[str, set[int]] = field(default_factory=dict)
    metadata: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    """By name of a scan: what its nodes are said to be."""

    def ids(self) -> Iterator[int]:
        """All of them."""
        for found in (*self.scans.values(), self.writes):
            for ids in found.values():
                yield from ids


def register(line: bytes, into: Registered, *, first: bool) -> None:
    """Take up the accumulators of a plan, from the event as it stands; ``first``: of an execution's start."""
    at = line.find(b'"sparkPlanInfo":')
    if at < 0:
        return
    for found in _SCAN.finditer(line, at):
        name = _text(found[1]).strip()
        key = ScanKey(name, scan_ids(_text(found[2])))
        known = into.scans.setdefault(key, {})
        for metric, number in _METRIC.findall(found[4]):
            if metric in _READ_NAMES:
                known.setdefault(_READ_NAMES[metric], set()).add(int(number))
        if first:
            try:
                metadata = json.loads(found[3])
            except ValueError:
                continue
            into.metadata.setdefault(name, []).append({str(k): str(v) for k, v in metadata.items()})
    while (at := line.find(b'"number of written files"', at)) >= 0:
        start, end = line.rfind(b"[", 0, at), line.find(b"]", at)
        at += 1
        for metric, number in _METRIC.findall(line, start, end if end >= 0 else len(line)):
            if metric in _WRITE_NAMES:
                into.writes.setdefault(_WRITE_NAMES[metric], set()).add(int(number))


def scan_ids(text: str) -> tuple[int, ...]:
    """The ids of the first list of a node's one-line text."""
    start = text.find("[")
    end = text.find("]", start)
    return tuple(int(number) for number in _IDS.findall(text[start : end + 1])) if start >= 0 else ()


def _text(data: bytes) -> str:
    try:
        return str(json.loads(b'"' + data + b'"'))
    except ValueError:
        return data.decode("utf-8", "replace")


class MetricValues:
    """Values of accumulators, the largest of each; of those that nobody asks for only the latest are kept."""

    def __init__(self) -> None:
        self._values: dict[int, int] = {}

    def add(self, number: int, value: int) -> None:
        """Take up a value."""
        if value > self._values.get(number, -1):
            self._values[number] = value
            if len(self._values) > 2 * KEPT:
                for old in list(self._values)[:KEPT]:
                    del self._values[old]

    def add_stage(self, line: bytes) -> None:
        """Take up the totals of a completed stage, from the event as it stands in the log."""
        at = line.rfind(b'"Accumulables":[')
        if at >= 0:
            for number, value in _TOTAL.findall(line, at):
                self.add(int(number), int(value))

    def most(self, ids: Iterable[int]) -> int | None:
        """The largest of several; None if there is none."""
        return max((value for number in ids if (value := self._values.get(number)) is not None), default=None)

    def forget(self, ids: Iterable[int]) -> None:
        """Drop what is counted."""
        for number in ids:
            self._values.pop(number, None)


class Figures(NamedTuple):
    """Figures of a read or write."""

    rows: int | None = None
    files: int | None = None
    bytes: int | None = None


def figures_of(registered: Mapping[str, Iterable[int]], values: MetricValues) -> Figures:
    """The figures of one scan or write."""
    return Figures(*(values.most(registered.get(name, ())) for name in (ROWS, FILES, BYTES)))


def summed(figures: Iterable[Figures]) -> Figures:
    """The sum of several scans of one dataset; unknown where none is known."""
    rows = list(figures)
    totals = []
    for position in range(3):
        known = [row[position] for row in rows if row[position] is not None]
        totals.append(sum(v for v in known if v is not None) if known else None)
    return Figures(*totals)

"""Batches of streaming queries, and how far each read its sources, as Spark reports their progress."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from govtool.model.run import Batches, Offsets
from govtool.redaction import clean_text

_DESCRIBED = re.compile(r"\bid = ([0-9a-f-]{36})\s+runId = ([0-9a-f-]{36})\s+batch = (\d+)")
_FOLDER = re.compile(r"File(?:StreamSource|Sink|StreamSink)\[(.*)\]\Z", re.DOTALL)
MAX_OFFSET = 4096
"""Characters of an offset that are kept; a longer one is left out."""


class BatchKey(NamedTuple):
    """A batch of one run of a streaming query."""

    query: str
    run: str
    batch: int

    @classmethod
    def read(cls, value: object) -> BatchKey | None:
        """The batch of ``[query, run, batch]``; None if it is none."""
        if isinstance(value, list | tuple) and len(value) == 3:
            query, run, batch = value
            if query and run and isinstance(batch, int) and not isinstance(batch, bool):
                return cls(str(query), str(run), batch)
        return None

    @classmethod
    def described(cls, text: str) -> BatchKey | None:
        """The batch that the description of an execution names; None if it names none."""
        found = _DESCRIBED.search(text)
        return cls(found[1], found[2], int(found[3])) if found is not None else None


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """The progress of a batch in one source."""

    offsets: Offsets
    path: str
    """Of a source of files: its folder."""


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """The progress of a batch in its sources, and its target."""

    key: BatchKey
    offsets: tuple[SourceProgress, ...] = ()
    sink: str = ""
    """The folder that a sink of files writes into; empty: another sink."""
    is_kept: bool = False
    """The sink keeps its rows in the driver's memory, where any query of the application may read them."""

    @classmethod
    def read(cls, line: Mapping[str, Any]) -> BatchProgress | None:
        """The progress that a line of a spool holds; None if it holds none."""
        key = BatchKey.read([line.get("query"), line.get("run"), line.get("batch")])
        if key is None:
            return None
        sink = str(line.get("sink") or "")
        return cls(key, tuple(_sources(line.get("sources"))), folder_of(sink), sink.startswith("MemorySink"))

    @classmethod
    def reported(cls, event: Mapping[str, Any]) -> BatchProgress | None:
        """The progress that an event of Spark holds; None if it holds none."""
        listed = event.get("sources")
        sources = [
            {
                "source": source.get("description"),
                "start": source.get("startOffset"),
                "end": source.get("endOffset"),
                "rows": source.get("numInputRows"),
            }
            for source in (listed if isinstance(listed, list) else ())
            if isinstance(source, Mapping)
        ]
        sink = event.get("sink")
        line = {"query": event.get("id"), "run": event.get("runId"), "batch": event.get("batchId"), "sources": sources}
        return cls.read({**line, "sink": sink.get("description") if isinstance(sink, Mapping) else ""})


def _sources(value: object) -> Iterable[SourceProgress]:
    for item in value if isinstance(value, list) else ():
        if not isinstance(item, Mapping):
            continue
        rows = item.get("rows")
        name = str(item.get("source") or "")
        offsets = Offsets(
            clean_text(name),
            _offset(item.get("start")),
            _offset(item.get("end")),
            rows if isinstance(rows, int) else None,
        )
        yield SourceProgress(offsets, folder_of(name))


def _offset(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= MAX_OFFSET else ""


def folder_of(description: str) -> str:
    """The folder of a source or sink of files by its description; empty if it is another.

    >>> folder_of("FileStreamSource[file:/data/in]")
    'file:/data/in'
    """
    found = _FOLDER.match(description)
    return found[1] if found is not None else ""


def batches_from(progress: Iterable[BatchProgress]) -> Batches | None:
    """Batches of one run of a query as one: from where the first began to where the last ended; None of none."""
    ordered = sorted(progress, key=lambda each: each.key.batch)
    if not ordered:
        return None
    first, last = ordered[0].key, ordered[-1].key
    joined: dict[str, Offsets] = {}
    for each in ordered:
        for position, source in enumerate(each.offsets):
            key = f"{position} {source.offsets.source}"
            joined[key] = _extended(joined.get(key), source.offsets)
    return Batches(first.query, first.run, first.batch, last.batch, tuple(joined.values()))


def _extended(known: Offsets | None, more: Offsets) -> Offsets:
    if known is None:
        return more
    rows = None if known.rows is None or more.rows is None else known.rows + more.rows
    return known._replace(end=more.end or known.end, rows=rows)

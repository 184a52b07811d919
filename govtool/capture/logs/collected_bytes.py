"""A collected log as bytes: what one process reads and another one goes on with."""

from __future__ import annotations

import json
from array import array
from dataclasses import dataclass, field
from typing import Any

from govtool.capture.logs.dedup import DistinctStatement, Log, NameContext, RecordCounts, Withheld
from govtool.capture.logs.effects import Effect, effects
from govtool.capture.logs.query_record import Reject

_ARRAYS = (("statement", "i"), ("context", "i"), ("session", "i"), ("user", "i"), ("file", "i"), ("line", "q"),
           ("time", "d"), ("order", "q"))  # fmt: skip


@dataclass(slots=True)
class Collected:
    """A piece of a log, read."""

    log: Log = field(default_factory=Log)
    rejects: list[Reject] = field(default_factory=list)
    """The first ones."""
    rejected: int = 0
    """Their number."""
    unknown: list[str] = field(default_factory=list)
    """Dialects that the log names and nobody knows, sorted."""


def dump(collected: Collected) -> bytes:
    """As bytes."""
    log = collected.log
    value = {
        "rejects": collected.rejects,
        "rejected": collected.rejected,
        "unknown": collected.unknown,
        "statements": [(s.text, s.fingerprint, s.dialect, bool(s.effects)) for s in log.statements],
        "contexts": [(c.catalog, c.schema, c.search_path) for c in log.contexts],
        "names": [log.sessions, log.users, log.files],
        "withheld": [(*key, w.file, w.line, w.characters, w.runs) for key, w in log.withheld.items()],
        "counts": [log.counts.records, log.counts.failed, log.counts.unfinished],
        "scripts": log.scripts,
        "parents": sorted(log.parents),
        "sizes": [len(getattr(log, name)) for name, _ in _ARRAYS],
    }
    head = json.dumps(value, separators=(",", ":")).encode()
    body = [getattr(log, name).tobytes() for name, _ in _ARRAYS]
    return b"".join((len(head).to_bytes(8, "little"), head, *body, bytes(log.spans)))


def load(data: bytes) -> Collected:
    """Load what ``dump`` made, on the same machine or one of its kind."""
    end = 8 + int.from_bytes(data[:8], "little")
    value: dict[str, Any] = json.loads(data[8:end])
    log = Log(
        statements=[
            DistinctStatement(t, f, d, _effects(t, d) if acts else ()) for t, f, d, acts in value["statements"]
        ],
        contexts=[NameContext(catalog, schema, tuple(path)) for catalog, schema, path in value["contexts"]],
        withheld={(reason, digest): Withheld(*about) for reason, digest, *about in value["withheld"]},
        counts=RecordCounts(*value["counts"]),
        scripts=[(query, index) for query, index in value["scripts"]],
        parents=set(value["parents"]),
    )
    log.sessions, log.users, log.files = value["names"]
    for (name, kind), count in zip(_ARRAYS, value["sizes"], strict=True):
        found = array(kind)
        size = count * found.itemsize
        found.frombytes(data[end : end + size])
        setattr(log, name, found)
        end += size
    log.spans = bytearray(data[end:])
    return Collected(log, [Reject(*reject) for reject in value["rejects"]], value["rejected"], value["unknown"])


def _effects(text: str, dialect: str) -> tuple[Effect, ...]:
    """Return the effects of a statement on its session; one whose text was left out has unknown effects."""
    return effects(text, dialect) if text else (Effect("unknown"),)

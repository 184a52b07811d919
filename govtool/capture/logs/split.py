"""A collected log by sessions, to be folded in several places.

Each part has the records of some sessions, all of each. Texts are left out: most statements need none to be folded, and
those that do (``needed``) are given theirs by ``supply``.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from govtool.capture.logs.dedup import FAILED_STATEMENT, DistinctStatement, Log
from govtool.capture.logs.sessions import StatementIdentity

ORDER_BITS = 40
"""A piece has fewer records than two to the power of this."""


def split(log: Log, piece: int, parts: int) -> Iterator[tuple[int, Log]]:
    """The parts of a piece of a log that are not empty, each with its number.

    Args:
        log: A piece.
        piece: Its number: the order of records in the whole log.
        parts: Into how many parts all pieces are split.
    """
    import numpy as np

    if not log.statement:
        return
    arrays = {
        name: np.frombuffer(getattr(log, name), dtype=dtype)
        for name, dtype in (
            ("statement", np.int32), ("context", np.int32), ("session", np.int32), ("user", np.int32),
            ("file", np.int32), ("line", np.int64), ("time", np.float64),
        )
    }  # fmt: skip
    spans = np.frombuffer(log.spans, dtype=np.uint8)
    part_of = np.array([zlib.crc32(name.encode("utf-8", "surrogatepass")) % parts for name in log.sessions])
    where = part_of[arrays["session"]]
    scripts = {index: query for query, index in log.scripts}
    for part in np.unique(where).tolist():
        records = np.flatnonzero(where == part)
        made = Log(parents=log.parents)
        for name in ("context", "session", "user", "file"):
            used, codes = np.unique(arrays[name][records], return_inverse=True)
            listed = {"context": "contexts", "session": "sessions", "user": "users", "file": "files"}[name]
            values = getattr(log, listed)
            setattr(made, listed, [values[number] for number in used.tolist()])
            setattr(made, name, _array("i", codes.astype(np.int32)))
        used, codes = np.unique(arrays["statement"][records], return_inverse=True)
        fails = int(used[0] == FAILED_STATEMENT)
        made.statement = _array("i", (codes - fails).astype(np.int32))
        made.statements = [replace(log.statements[number], text="") for number in used[fails:].tolist()]
        made.line = _array("q", arrays["line"][records])
        made.time = _array("d", arrays["time"][records])
        made.order = _array("q", records.astype(np.int64) + (piece << ORDER_BITS))
        made.spans = bytearray(spans[records].tobytes())
        if scripts:
            made.scripts = [(scripts[i], at) for at, i in enumerate(records.tolist()) if i in scripts]
        yield part, made


def _array(kind: str, values: Any) -> array[Any]:
    made: array[Any] = array(kind)
    made.frombytes(values.tobytes())
    return made


def needed(log: Log) -> set[StatementIdentity]:
    """The statements of sessions in which one does something to its session: their texts are needed to fold them."""
    import numpy as np

    if not log.statement:
        return set()
    statement = np.frombuffer(log.statement, dtype=np.int32)
    session = np.frombuffer(log.session, dtype=np.int32)
    acts = np.array([bool(s.effects) for s in log.statements] + [False], dtype=bool)
    stateful = np.zeros(len(log.sessions), dtype=bool)
    stateful[session[acts[statement]]] = True
    numbers = np.unique(statement[stateful[session]])
    return {
        StatementIdentity(s.fingerprint, s.dialect) for s in (log.statements[n] for n in numbers.tolist() if n >= 0)
    }


def supply(log: Log, texts: Mapping[StatementIdentity, DistinctStatement]) -> None:
    """Give statements the texts that they are known by."""
    log.statements = [texts.get(StatementIdentity(s.fingerprint, s.dialect), s) for s in log.statements]

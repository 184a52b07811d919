"""Digests of datasets (``govtool.graph.digests``), range by range of datasets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from govtool.app.versions.spark_index.frames import arrow_rows, long_schema, number_columns
from govtool.graph.codes import DECLARE, STAR_BIT
from govtool.graph.digests import SCRIPT, WORDS, mixed, text_code

if TYPE_CHECKING:
    from govtool.app.versions.spark_index.frames import Frames
    from govtool.app.versions.spark_index.words import Words

_SIGN = "shiftleft(1L, 63)"
_HEAD, _NODE, _EDGE, _STATEMENT = range(4)
"""The parts of a dataset, in the order in which a digest covers them."""
_COLUMNS = ("ds", "part", "o1", "o2", "o3", "o4", "a", "b", "c", "d", "e", "f")


def dataset_digests(frames: Frames, words: Words) -> Any:
    """A frame of the datasets and their digests, in order."""
    frames.put("code", frames["t2"].mapInArrow(_codes, "id long, c1 long, c2 long"), keep=True)
    frames.put("nc", _coded(frames, "SELECT node, ds, path, type FROM {nt}", ("path", "type")), keep=True)
    frames.put("dc", _coded(frames, "SELECT ds, fid, kind, flags FROM {ds}", ("fid", "kind")), keep=True)
    frames.put("lc", _coded(frames, "SELECT label, functions, reason FROM {label}", ("functions", "reason")))
    frames.put("lm", _mixed(frames["lc"], ("label",), ("functions", "reason")), keep=True)
    frames.put("nm", _mixed(frames["nc"], ("node", "ds"), ("path", "type")))
    frames.put(
        "ec",
        f"""
        SELECT b.ds, e.stop, e.start, e.tag & ~{STAR_BIT}L AS tag, l.m1 AS label_1, l.m2 AS label_2, b.path_1, b.path_2,
            s.fid_1, s.fid_2, a.path_1 AS from_1, a.path_2 AS from_2
        FROM {{edge}} e JOIN {{nc}} b ON e.stop = b.node JOIN {{nc}} a ON e.start = a.node
            JOIN {{dc}} s ON a.ds = s.ds JOIN {{lm}} l ON e.label = l.label""",
    )
    parts = ("tag", "label", "path", "fid", "from")
    frames.put("em", _mixed(frames["ec"], ("ds", "stop", "start"), parts).distinct())
    sql = words.find(SCRIPT) or -1
    made = f"""SELECT DISTINCT made AS ds, fingerprint, literals FROM {{dv}}
        WHERE alive AND how = {sql} AND first_seen = 0 AND mode_code <> {DECLARE}"""
    frames.put("sm", _mixed(_coded(frames, made, ("fingerprint", "literals")), ("ds",), ("fingerprint", "literals")))
    frames.put(
        "digested",
        f"""
        SELECT d.ds, {_HEAD}L AS part, 0L AS o1, 0L AS o2, 0L AS o3, 0L AS o4, d.fid_1 AS a, d.fid_2 AS b,
            d.kind_1 AS c, d.kind_2 AS d, d.flags AS e, c.nodes AS f
        FROM {{dc}} d JOIN (SELECT ds, count(*) AS nodes FROM {{n}} GROUP BY ds) c ON d.ds = c.ds
        UNION ALL SELECT ds, {_NODE}L, node, 0L, 0L, 0L, m1, m2, 0L, 0L, 0L, 0L FROM {{nm}}
        UNION ALL SELECT ds, {_EDGE}L, stop, start, m1 ^ {_SIGN}, m2 ^ {_SIGN}, m1, m2, 0L, 0L, 0L, 0L FROM {{em}}
        UNION ALL SELECT ds, {_STATEMENT}L, 0L, 0L, 0L, 0L, m1, m2, 0L, 0L, 0L, 0L FROM {{sm}}""",
    )
    ranges = frames["digested"].repartitionByRange(frames.partitions, "ds")
    rows = ranges.sortWithinPartitions("ds", "part", "o1", "o2", "o3", "o4")
    return rows.mapInArrow(_digests, long_schema(("ds", "digest_1", "digest_2")))


def _coded(frames: Frames, query: str, texts: Sequence[str]) -> Any:
    """A frame with the codes of some texts: ``name_1`` and ``name_2`` for each."""
    frame = frames.sql(query)
    for name in texts:
        frames.put("uncoded", frame)
        more = f"coalesce(c.c1, 0L) AS {name}_1, coalesce(c.c2, 0L) AS {name}_2"
        frame = frames.sql(f"SELECT u.*, {more} FROM {{uncoded}} u LEFT JOIN {{code}} c ON u.{name} = c.id")
    return frame


def _mixed(frame: Any, kept: Sequence[str], parts: Sequence[str]) -> Any:
    """Some columns of a frame, and the codes ``m1`` and ``m2`` of a row's parts."""
    names = [*kept, *(each for part in parts for each in _words(frame.columns, part))]
    mapped = partial(_mix, kept=kept, parts=parts)
    return frame.select(*names).mapInArrow(mapped, long_schema((*kept, "m1", "m2")))


def _words(columns: Sequence[str], part: str) -> list[str]:
    return [name for name in (f"{part}_1", f"{part}_2") if name in columns] or [part]


def _mix(batches: Iterator[Any], kept: Sequence[str], parts: Sequence[str]) -> Iterator[Any]:
    import numpy as np

    for batch in batches:
        columns = number_columns(batch)
        together = [
            np.stack([columns[name].view(np.uint64) for name in _words(list(columns), part)], axis=1) for part in parts
        ]
        found = mixed(together).view(np.int64)
        yield arrow_rows([*kept, "m1", "m2"], [*(columns[name] for name in kept), found[:, 0], found[:, 1]])


def _codes(batches: Iterator[Any]) -> Iterator[Any]:
    import numpy as np

    for batch in batches:
        data = b"".join(map(text_code, batch.column(1).to_pylist()))
        codes = np.frombuffer(data, "<i8").reshape(-1, WORDS)
        yield arrow_rows(["id", "c1", "c2"], [number_columns(batch.select([0]))["id"], codes[:, 0], codes[:, 1]])


def _digests(batches: Iterator[Any]) -> Iterator[Any]:
    """The parts of datasets, in order, to their digests."""
    import numpy as np

    held: _Digest | None = None
    done: list[tuple[int, bytes]] = []
    for batch in batches:
        columns = number_columns(batch)
        values = np.stack([columns[name] for name in _COLUMNS[6:]], axis=1)
        ds, part = columns["ds"], columns["part"]
        cuts = np.flatnonzero((np.diff(ds) != 0) | (np.diff(part) != 0)) + 1
        for low, high in zip([0, *cuts.tolist()], [*cuts.tolist(), len(ds)], strict=True):
            if low == high:
                continue
            number, what = int(ds[low]), int(part[low])
            if held is None or held.number != number:
                if held is not None:
                    done.append((held.number, held.end()))
                held = _Digest(number)
            held.add(what, values[low:high])
        if len(done) > 1 << 16:
            yield _rows(done)
            done = []
    if held is not None:
        done.append((held.number, held.end()))
    yield _rows(done)


def _rows(done: list[tuple[int, bytes]]) -> Any:
    import numpy as np

    digests = np.frombuffer(b"".join(digest for _, digest in done), "<i8").reshape(-1, WORDS)
    return arrow_rows(["ds", "digest_1", "digest_2"], [np.array([n for n, _ in done], np.int64), *digests.T])


class _Digest:
    """The digest of one dataset in the making."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._hash = hashlib.blake2b(digest_size=8 * WORDS)
        self._statements: set[bytes] = set()

    def add(self, part: int, values: Any) -> None:
        """Take in rows of a part."""
        if part == _STATEMENT:
            self._statements |= {row.tobytes() for row in values[:, :WORDS].copy()}
        else:
            self._hash.update((values if part == _HEAD else values[:, :WORDS].copy()).tobytes())

    def end(self) -> bytes:
        """The digest."""
        self._hash.update(b"".join(sorted(self._statements)))
        return self._hash.digest()

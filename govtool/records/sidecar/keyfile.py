r"""Files of key hashes: made for one data file as it is now, and valid for as long as that file stays the same.

"GTKEYS2\n"  length of the header  header (JSON)  padding to 8 bytes
hashes       4 bytes a row, ascending, little-endian
rows         the row of each hash: 3 bytes where the file has less than 2^24 rows, else 4
firsts       the first hash of each block of 65,536 rows
checksums    CRC-32 of each block: its hashes, then its rows

The header holds the CRC-32 of the last two. A lookup compares the checksum of each block that it reads: a sidecar that
rots is not used, and goes.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import uuid
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from govtool.records.execute.inputs import local_path

if TYPE_CHECKING:
    import numpy as np

_MAGIC = b"GTKEYS2\n"
_BLOCK = 1 << 16
_LENGTH = struct.Struct("<I")
_MAX_HEADER = 1 << 20
_SHORT_ROWS = 1 << 24
MAX_ROWS = 1 << 32
"""A file with more rows than their numbers have room for gets no sidecar."""


@dataclass(frozen=True, slots=True)
class KeySet:
    """Columns by which rows are looked up.

    Attributes:
        columns: Name and type of each, by name; a type as the engine that hashes writes it.
        hashed: The engine that hashes, and its version: hashes of another are not compared.
    """

    columns: tuple[tuple[str, str], ...]
    hashed: str

    @property
    def names(self) -> frozenset[str]:
        """The names of the columns."""
        return frozenset(name for name, _ in self.columns)

    def __str__(self) -> str:
        """Return the columns' names, for people."""
        return ", ".join(name for name, _ in self.columns)


def identity(uri: str) -> tuple[int, ...] | None:
    """Size, inode, times of writing and of change of a file on this machine; None where it is not there.

    The time of change cannot be set: a file that was replaced under its name, with the same size and time of writing,
    is another one.
    """
    path = local_path(uri)
    try:
        facts = None if path is None else path.stat()
    except OSError:
        facts = None
    return None if facts is None else (facts.st_size, facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns)


def file_name(uri: str, keys: KeySet) -> str:
    """The name of the sidecar of a file: another version of the file takes its place."""
    text = json.dumps([uri, keys.columns, keys.hashed])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40] + ".keys"


@dataclass(frozen=True, slots=True)
class KeyFile:
    """An open sidecar.

    Attributes:
        hashes: ``[rows] uint32``, ascending.
        rows: ``[rows] uint32``, or ``[rows, 3] uint8``, little-endian.
        firsts: ``[blocks] uint32``, the first hash of each block.
        checksums: ``[blocks] uint32``.
        place: The file.
    """

    hashes: np.ndarray[Any, Any]
    rows: np.ndarray[Any, Any]
    firsts: np.ndarray[Any, Any]
    checksums: np.ndarray[Any, Any]
    place: Path

    def found(self, wanted: np.ndarray[Any, Any], limit: int) -> np.ndarray[Any, Any] | None:
        """The rows with one of some hashes, ascending; None where there are more than a limit, or the file is damaged.

        Args:
            wanted: ``[k] uint32``, each once.
            limit: The most rows.
        """
        import numpy as np

        if not len(self.hashes) or not len(wanted):
            return np.empty(0, np.int64)
        first = np.maximum(np.searchsorted(self.firsts, wanted, "left") - 1, 0)
        last = np.maximum(np.searchsorted(self.firsts, wanted, "right") - 1, 0)
        if not self._is_sound(first, last):
            self.place.unlink(missing_ok=True)
            return None
        low = self._positions(wanted, first, "left")
        high = self._positions(wanted, last, "right")
        counts = high - low
        total = int(counts.sum())
        if total > limit:
            return None
        starts = np.repeat(low - np.concatenate(([0], counts.cumsum()[:-1])), counts) if total else low[:0]
        found = self.rows[starts + np.arange(total)]
        if found.ndim == 2:
            wide = found.astype(np.uint32)
            found = wide[:, 0] | wide[:, 1] << 8 | wide[:, 2] << 16
        return np.sort(found.astype(np.int64))

    def _is_sound(self, first: np.ndarray[Any, Any], last: np.ndarray[Any, Any]) -> bool:
        """Return whether the blocks from some to others are what was written."""
        import numpy as np

        ends = np.zeros(len(self.firsts) + 1, np.int64)
        np.add.at(ends, first, 1)
        np.add.at(ends, last + 1, -1)
        touched = np.flatnonzero(ends[:-1].cumsum())
        return all(_checksum(self.hashes, self.rows, int(block)) == self.checksums[block] for block in touched)

    def _positions(
        self, wanted: np.ndarray[Any, Any], blocks: np.ndarray[Any, Any], side: Literal["left", "right"]
    ) -> np.ndarray[Any, Any]:
        """Where hashes stand or would stand, each looked for in its own block only."""
        import numpy as np

        found = np.empty(len(wanted), np.int64)
        for block in np.unique(blocks).tolist():
            here, start = blocks == block, block * _BLOCK
            found[here] = start + np.searchsorted(self.hashes[start : start + _BLOCK], wanted[here], side)
        return found


def _checksum(hashes: np.ndarray[Any, Any], rows: np.ndarray[Any, Any], block: int) -> int:
    part = slice(block * _BLOCK, (block + 1) * _BLOCK)
    return zlib.crc32(rows[part].tobytes(), zlib.crc32(hashes[part].tobytes()))


def opened(place: Path, uri: str, keys: KeySet) -> KeyFile | None:
    """A sidecar, if it is whole and that of the file as it is now."""
    import numpy as np

    try:
        with place.open("rb") as source:
            header, start = _header(source)
    except (OSError, ValueError, RecursionError):
        return None
    now = identity(uri)
    if header is None or now is None or header.get("identity") != list(now) or header.get("uri") != uri:
        return None
    if header.get("columns") != [list(each) for each in keys.columns] or header.get("hashed") != keys.hashed:
        return None
    count = header.get("rows", -1)
    width = _width(count)
    if not isinstance(count, int) or count < 0:
        return None
    blocks, body = -(-count // _BLOCK), start + count * (4 + width)
    if place.stat().st_size != body + 8 * blocks:
        return None
    with place.open("rb") as source:
        source.seek(body)
        tail = source.read()
    if zlib.crc32(tail) != header.get("tail"):
        return None
    firsts, checksums = np.frombuffer(tail, "<u4").reshape(2, blocks)
    if count == 0:
        return KeyFile(np.empty(0, "<u4"), np.empty(0, "<u4"), firsts, checksums, place)
    hashes = np.memmap(place, "<u4", "r", start, (count,))
    shape = (count,) if width == 4 else (count, 3)
    rows = np.memmap(place, "<u4" if width == 4 else np.uint8, "r", start + 4 * count, shape)
    return KeyFile(hashes, rows, firsts, checksums, place)


def write(place: Path, uri: str, keys: KeySet, known: tuple[int, ...], packed: np.ndarray[Any, Any]) -> None:
    """Write a sidecar beside its place and rename it there: it is whole, or not there.

    Args:
        place: Its file.
        uri: The data file.
        keys: The columns.
        known: The data file's ``identity`` before it was read.
        packed: ``[rows] uint64``, ascending: hash in the upper half, row in the lower.

    Raises:
        OSError: It cannot be written.
    """
    import numpy as np

    hashes = (packed >> np.uint64(32)).astype("<u4")
    rows = (packed & np.uint64(0xFFFFFFFF)).astype("<u4").view(np.uint8).reshape(-1, 4)[:, : _width(len(packed))]
    blocks = range(-(-len(packed) // _BLOCK))
    checksums = np.array([_checksum(hashes, rows, block) for block in blocks], "<u4")
    tail = hashes[::_BLOCK].tobytes() + checksums.tobytes()
    facts: dict[str, object] = {"uri": uri, "identity": list(known), "columns": [list(each) for each in keys.columns]}
    facts |= {"hashed": keys.hashed, "rows": len(packed), "tail": zlib.crc32(tail)}
    header = json.dumps(facts).encode("utf-8", "surrogatepass")
    header += b" " * (-(len(_MAGIC) + _LENGTH.size + len(header)) % 8)
    building = place.parent / f".build-{uuid.uuid4().hex}"
    try:
        with building.open("wb") as target:
            target.write(_MAGIC + _LENGTH.pack(len(header)) + header)
            for part in (hashes.tobytes(), rows.tobytes(), tail):
                target.write(part)
            target.flush()
            os.fsync(target.fileno())
        building.replace(place)
    finally:
        building.unlink(missing_ok=True)


def _width(rows: object) -> int:
    return 3 if isinstance(rows, int) and rows < _SHORT_ROWS else 4


def _header(source: Any) -> tuple[dict[str, Any] | None, int]:
    start = source.read(len(_MAGIC) + _LENGTH.size)
    if len(start) < len(_MAGIC) + _LENGTH.size or not start.startswith(_MAGIC):
        return None, 0
    (length,) = _LENGTH.unpack(start[len(_MAGIC) :])
    if length > _MAX_HEADER:
        return None, 0
    header = json.loads(source.read(length).decode("utf-8", "surrogatepass"))
    return (header if isinstance(header, dict) else None), len(start) + length

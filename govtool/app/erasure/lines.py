"""Files with one row per line, without some rows: every other byte stays."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from govtool.errors import EngineError

if TYPE_CHECKING:
    from govtool.records.plan.nodes import Relation

_ENDS = re.compile(rb"\r\n|\n|\r")
_BLOCK = 1 << 20
_UTF8 = ("", "utf-8", "utf8", "us-ascii", "iso-8859-1")


def without_lines(source: Path, place: Path, drops: set[int], relation: Relation) -> None:
    """Copy a file without the lines of some rows, as Spark counts rows of the format.

    Raises:
        EngineError: The encoding or compression is none that lines can be cut in (``engine.format``).
    """
    options = {name.lower(): value for name, value in relation.options}
    if (options.get("encoding") or options.get("charset") or "").lower() not in _UTF8:
        raise EngineError("lines of files in this encoding cannot be left out", code="engine.format")
    separator = options.get("linesep", "").encode()
    ends = re.compile(re.escape(separator)) if separator else _ENDS
    row = -1
    header = relation.format == "csv" and options.get("header", "false").lower() == "true"
    with _opened(source, "rb") as read, _opened(place, "xb") as written:
        for line in _lines(read, ends):
            if not _is_row(line, relation.format, options.get("comment", "")):
                written.write(line)
                continue
            if header:  # the first line of a file that is one
                header = False
                written.write(line)
                continue
            row += 1
            if row not in drops:
                written.write(line)


def _is_row(line: bytes, kind: str, comment: str) -> bool:
    """Return whether Spark makes a row of a line: of a blank one only in text."""
    if kind == "text":
        return True
    bare = line.strip()
    return bool(bare) and not (kind == "csv" and comment and bare.startswith(comment.encode()))


def _lines(handle: IO[bytes], ends: re.Pattern[bytes]) -> Iterator[bytes]:
    """Lines with their ends."""
    rest = b""
    while block := handle.read(_BLOCK):
        rest += block
        last = 0
        for found in ends.finditer(rest):
            if found.end() == len(rest):  # a separator may go on in the next block
                break
            yield rest[last : found.end()]
            last = found.end()
        rest = rest[last:]
    last = 0
    for found in ends.finditer(rest):
        yield rest[last : found.end()]
        last = found.end()
    if rest[last:]:
        yield rest[last:]


def _opened(path: Path, mode: str) -> IO[bytes]:
    if path.suffix == ".gz":
        return gzip.open(path, mode)  # type: ignore[return-value]
    if path.suffix in (".bz2", ".deflate", ".lz4", ".snappy", ".zst", ".xz"):
        raise EngineError(f"lines of {path.suffix} files cannot be left out", code="engine.format")
    return path.open(mode)

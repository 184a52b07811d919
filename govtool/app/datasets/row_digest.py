"""A digest of the rows of a dataset, independent of their order and files.

Each row is written down canonically, each cell with its length, and hashed with BLAKE2b to 128 bits; the digest is the
sum of the hashes modulo 2^128, with the number of rows and the columns. A sum has no order, and unlike XOR it counts
duplicates (Clarke et al., "Incremental Multiset Hash Functions and Their Application to Memory Integrity Checking",
ASIACRYPT 2003; theirs is keyed, this one guards against accidents only).

A row is its partition folder and its columns by position. Floats count by value: ``-0.0`` is ``0.0``, all NaN are one.
Timestamps count in microseconds, decimals by value and scale. Rows of text, CSV and JSON are lines.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

_LINES = frozenset({".csv", ".json", ".jsonl", ".ndjson", ".txt", ".tsv"})
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
_BYTES = 16
"""Of the digest of a row."""
_MASK = (1 << 128) - 1
_BATCH = 1 << 16
"""Rows that are in memory at a time."""
_FEW = 64
"""Rows of a batch that are put into their canonical form faster one by one than by Arrow's kernels."""


class RowDigest:
    """The sum of the hashes of rows."""

    def __init__(self) -> None:
        self.rows = 0
        self._sum = 0
        self._columns: str | None = None

    def add(self, rows: Iterable[bytes | memoryview]) -> None:
        """Add rows in their canonical form."""
        blake2b = hashlib.blake2b
        digests = b"".join([blake2b(row, digest_size=_BYTES).digest() for row in rows])
        self._sum = (self._sum + _total(digests)) & _MASK
        self.rows += len(digests) // _BYTES

    def columns(self, names: str) -> None:
        """Set the columns of the rows that follow.

        Raises:
            ValueError: Rows before had others.
        """
        if self._columns not in (None, names):
            raise ValueError("files of one dataset have different columns")
        self._columns = names

    @property
    def text(self) -> str:
        """``rows-1:<rows>:<digest>``."""
        digest = hashlib.sha256(f"{self._columns or ''}\n{self._sum:032x}".encode()).hexdigest()
        return f"rows-1:{self.rows}:{digest[:32]}"


def _total(digests: bytes) -> int:
    """The sum of digests, each a number from its highest byte to its lowest."""
    import numpy as np

    words = np.frombuffer(digests, ">u4").reshape(-1, _BYTES // 4).sum(axis=0, dtype=np.uint64)
    total = 0
    for word in words.tolist():
        total = (total << 32) + word
    return total


def digest_rows(files: Iterable[Path], root: Path) -> str | None:
    """Digest the rows of some files of one dataset.

    Args:
        files: Parquet, ORC, or lines, plain or compressed with gzip or bzip2.
        root: The dataset's folder; what lies between it and a file are partitions.

    Returns:
        The digest; None if a file is of a format that is not read.
    """
    import pyarrow as pa

    found = RowDigest()
    try:
        for file in files:
            folder = file.parent.relative_to(root).as_posix() if file != root else "."
            if not _add_file(found, file, folder):
                return None
    except (OSError, EOFError, ValueError, pa.ArrowException):
        return None
    return found.text


def _add_file(found: RowDigest, file: Path, folder: str) -> bool:
    suffixes = [suffix.lower() for suffix in file.suffixes]
    if suffixes[-1:] == [".parquet"]:
        _add_batches(found, _parquet(file), folder)
    elif suffixes[-1:] == [".orc"]:
        _add_batches(found, _orc(file), folder)
    elif _LINES & set(suffixes[-2:]) and suffixes[-1] in (*_LINES, *_OPENERS):
        opener = _OPENERS.get(suffixes[-1], open)
        found.columns("lines")
        with opener(file, "rb") as lines:
            found.add(folder.encode() + b"\0" + line.rstrip(b"\r\n") for line in lines)
    else:
        return False
    return True


def _parquet(file: Path) -> Iterator[Any]:
    import pyarrow.parquet as pq

    # Files are small: what reads ahead and in threads costs more than reading.
    with pq.ParquetFile(file, pre_buffer=False) as opened:
        yield opened.schema_arrow
        yield from opened.iter_batches(batch_size=_BATCH, use_threads=False)


def _orc(file: Path) -> Iterator[Any]:
    from pyarrow import orc

    table = orc.ORCFile(file).read()
    yield table.schema
    yield from table.to_batches(max_chunksize=_BATCH)


def _add_batches(found: RowDigest, parts: Iterator[Any], folder: str) -> None:
    schema = next(parts)
    found.columns(json.dumps([[field.name, _type_name(field.type)] for field in schema]))
    prefix = folder.encode()
    for batch in parts:
        few = _few_rows(prefix, batch)
        if few is not None:
            found.add(few)
        elif batch.num_columns:
            found.add(_slices(_rows(prefix, batch)))
        else:
            found.add(prefix for _ in range(batch.num_rows))


def _few_rows(prefix: bytes, batch: Any) -> list[bytes] | None:
    """What ``_rows`` gives, of a few rows of integers, texts and bytes; None of any others."""
    if batch.num_rows > _FEW or not batch.num_columns:
        return None
    columns = []
    for column in batch.columns:
        values = _plain_values(column)
        if values is None:
            return None
        columns.append([b"\0N" if text is None else b"\0%d:%b" % (len(text), text) for text in values])
    return [prefix + b"".join(cells) for cells in zip(*columns, strict=True)]


def _plain_values(column: Any) -> list[bytes | None] | None:
    """The cells of a column of integers, texts or bytes as bytes; None of any other."""
    import pyarrow as pa

    type_ = column.type
    if pa.types.is_integer(type_):
        return [None if value is None else b"%d" % value for value in column.to_pylist()]
    if pa.types.is_string(type_):  # not every text in a file is UTF-8
        column = column.view(pa.binary())
    elif not pa.types.is_binary(type_):
        return None
    values: list[bytes | None] = column.to_pylist()
    return values


def _rows(prefix: bytes, batch: Any) -> Any:
    """The rows of a batch in their canonical form."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = pa.large_binary()
    nothing, before, between, none = (pa.scalar(text, kind) for text in (b"", b"\0", b":", b"\0N"))
    parts = [pa.scalar(prefix, kind)]
    for column in batch.columns:
        texts = _texts(column)
        cell = before, pc.binary_length(texts).cast(pa.large_string()).cast(kind), between, texts.cast(kind)
        if texts.null_count:
            parts.append(pc.coalesce(pc.binary_join_element_wise(*cell, nothing), none))
        else:
            parts += cell
    return pc.binary_join_element_wise(*parts, nothing)


def _slices(texts: Any) -> Iterator[memoryview]:
    """The bytes of each text of an array without NULLs."""
    import numpy as np

    _, offsets, data = texts.buffers()
    places = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1].tolist()
    view = memoryview(data)
    return map(view.__getitem__, map(slice, places, places[1:]))


def _type_name(type_: Any) -> str:
    """A type, reduced to what its values depend on: units of time, wide and dictionary forms do not count."""
    import pyarrow as pa

    if pa.types.is_dictionary(type_):
        return _type_name(type_.value_type)
    if pa.types.is_timestamp(type_):
        return "timestamp" if type_.tz is None else "timestamp with time zone"
    return str(type_).removeprefix("large_")


def _texts(column: Any) -> Any:
    """The cells of a column as texts or bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    type_ = column.type
    if pa.types.is_dictionary(type_):
        return _texts(column.dictionary_decode())
    if pa.types.is_floating(type_):
        column = _canonical_floats(column)
    elif pa.types.is_timestamp(type_):
        column = column.cast(pa.timestamp("us", type_.tz), safe=False).cast(pa.int64())
    if pa.types.is_nested(type_):
        return pa.array(
            [None if value is None else repr(_canonical(value)) for value in column.to_pylist()], pa.string()
        )
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return column
    return pc.cast(column, pa.large_string())


def _canonical_floats(column: Any) -> Any:
    """Floats by the bits of their value as a double, one zero and one NaN."""
    import numpy as np
    import pyarrow as pa

    values = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False).copy()
    values[values == 0] = 0.0
    values[np.isnan(values)] = np.nan
    return pa.array(values.view(np.int64), mask=column.is_null().to_numpy(zero_copy_only=False))


def _canonical(value: Any) -> Any:
    """A nested value with canonical floats."""
    if isinstance(value, float):
        return "nan" if value != value else 0.0 if value == 0 else value
    if isinstance(value, dict):
        return {key: _canonical(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(each) for each in value]
    return value

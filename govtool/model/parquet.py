"""Reads small Parquet files out of memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def read_parquet(data: bytes, *, dictionary: Sequence[str] = (), columns: Sequence[str] | None = None) -> Any:
    """The ``pyarrow.Table`` of a Parquet file, read by this thread alone.

    ``pyarrow.parquet.read_table`` imports the dataset API and starts threads for what is in memory already; a process
    that ends while one of them is starting is aborted by Arrow ("terminate called without an active exception").

    Args:
        data: The file.
        dictionary: Columns to leave as dictionary arrays, by their paths in the file.
        columns: Those to read, by their paths; by default all.

    Raises:
        pyarrow.ArrowException, OSError: It is no Parquet file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(pa.BufferReader(data), read_dictionary=list(dictionary) or None, pre_buffer=False) as file:
        return file.read(columns=None if columns is None else list(columns), use_threads=False)

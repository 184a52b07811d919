"""Rows of a Parquet file, which is how warehouses unload their query history. A row's line is its number."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from decimal import Decimal
from typing import IO, Any

from govtool.capture.logs.query_record import Reject
from govtool.capture.logs.rows import Row

MAGIC = b"PAR1"

_BATCH = 1_000
"""Rows that are held at a time, besides the pages that they are in."""


def is_parquet(raw: IO[bytes]) -> bool:
    """Return whether a stream that can seek begins like a Parquet file; it stays where it is, at its beginning."""
    if not raw.seekable():
        return False
    found = raw.read(len(MAGIC)) == MAGIC
    raw.seek(0)
    return found


def parquet_names(raw: IO[bytes]) -> list[str]:
    """The names of the columns; none if the file is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with suppress(pa.ArrowException, OSError):
        return [str(name) for name in pq.read_schema(raw).names]
    return []


def parquet_rows(raw: IO[bytes], file: str, wanted: Collection[str] | None = None) -> Iterator[Row | Reject]:
    """The rows, their names as they are; damage is a reject.

    Args:
        raw: The file; it can seek.
        file: The log's name.
        wanted: Columns to read, in lower case; None: all.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        table = pq.ParquetFile(raw)
        names = [name for name in table.schema_arrow.names if wanted is None or name.lower() in wanted]
        for batch in table.iter_batches(_BATCH, columns=names):
            for row in batch.to_pylist():
                number += 1
                yield number, {name: _plain(value) for name, value in row.items()}
    except (pa.ArrowException, OSError, ValueError) as error:
        yield Reject(file, number + 1, f"no Parquet: {str(error).splitlines()[0][:80]}", fatal=True)


def _plain(value: Any) -> Any:
    """A value as JSON would have it: Snowflake's numbers are decimals, and old writers' texts are bytes."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value

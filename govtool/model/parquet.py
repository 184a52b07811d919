"""Small Parquet files in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from govtool.errors import GovtoolError, IntegrityError


@contextmanager
def refusing_damage(message: str) -> Iterator[None]:
    """Make every failure of a decoder an error of the store; a decorator, too.

    A fragment whose digest is right may hold anything, if someone made it: columns that are missing or of another
    type, text that is no UTF-8, JSON of another shape.

    Args:
        message: What the fragment is not.

    Raises:
        IntegrityError: ``store.corrupt-fragment``.
    """
    try:
        yield
    except (GovtoolError, MemoryError):
        raise
    except Exception as error:
        raise IntegrityError(f"{message}: {error}"[:500], code="store.corrupt-fragment") from error


def write_parquet(table: Any, *, statistics: bool = False) -> bytes:
    """A ``pyarrow.Table`` as a compressed Parquet file; the same table gives the same bytes.

    Args:
        table: The table.
        statistics: Write the least and greatest values of columns, too.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_statistics=statistics)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def read_parquet(data: bytes, *, dictionary: Sequence[str] = (), columns: Sequence[str] | None = None) -> Any:
    """The ``pyarrow.Table`` of a Parquet file, read by this thread alone.

    ``pyarrow.parquet.read_table`` imports the dataset API and starts threads for what is in memory already; a process
    that ends while one of them is starting is aborted by Arrow ("terminate called without an active exception").

    Args:
        data: The file.
        dictionary: Columns to leave as dictionary arrays, by their paths in the file; those that it lacks do not count.
        columns: Those to read, by their paths; by default all.

    Raises:
        pyarrow.ArrowException, OSError: It is no Parquet file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    def read(encoded: Sequence[str]) -> Any:
        with pq.ParquetFile(pa.BufferReader(data), read_dictionary=list(encoded) or None, pre_buffer=False) as file:
            return file.read(columns=None if columns is None else list(columns), use_threads=False)

    try:
        return read(dictionary)
    except KeyError:  # an older version wrote fewer columns
        footer = pq.read_metadata(pa.BufferReader(data))
        there = {footer.schema.column(number).path for number in range(footer.num_columns)}
        return read([path for path in dictionary if path in there])


def of_text(table: Any, columns: Sequence[str]) -> Any:
    """A table, if some columns of it are text.

    Raises:
        TypeError: One is of another type.
    """
    import pyarrow as pa

    for name in columns:
        kind = table.schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise TypeError(f"{name} is of type {kind}")
    return table


def of_format(table: Any, key: bytes, known: int, what: str) -> Any:
    """A table, if it is of the format that is known, or was written when there was none.

    Args:
        table: The ``pyarrow.Table`` of a fragment.
        key: Of its metadata, that tells the format.
        known: The format that this version reads.
        what: The beginning of the message: ``runs have``.

    Raises:
        IntegrityError: It is of another.
    """
    written = (table.schema.metadata or {}).get(key)
    if written is not None and written != str(known).encode():
        raise IntegrityError(
            f"{what} format {written.decode('ascii', 'replace')}; this version reads {known}",
            code="store.format-fragment",
            hint="pip install --upgrade govtool",
        )
    return table

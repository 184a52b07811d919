"""Rows that Spark carries between steps, and how steps read and make them.

All exchanges have one form, whatever they carry: ``part`` decides who gets a row, ``kind`` what it is, ``number`` its
order, and ``data`` holds bytes that only the steps understand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyarrow import RecordBatch

SCHEMA = "part long, kind string, name string, number long, data binary"
BATCH_BYTES = 8 << 20
"""Bytes of rows that are handed to Spark at a time, about."""


class ExchangeRow(NamedTuple):
    """One row of an exchange."""

    part: int
    kind: str
    name: str
    number: int
    data: bytes


Step = Callable[[Iterator[ExchangeRow]], Iterable[ExchangeRow]]
"""A function over the rows of one partition."""


def arrow_step(step: Step) -> Callable[[Iterator[RecordBatch]], Iterator[RecordBatch]]:
    """A step as ``DataFrame.mapInArrow`` wants it."""

    def run(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        held: list[ExchangeRow] = []
        size = 0
        for row in step(_rows(batches)):
            held.append(row)
            size += len(row.data) + 64
            if size >= BATCH_BYTES:
                yield _batch(held)
                held, size = [], 0
        if held:
            yield _batch(held)

    return run


def _rows(batches: Iterator[RecordBatch]) -> Iterator[ExchangeRow]:
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in ExchangeRow._fields]
        yield from map(ExchangeRow._make, zip(*columns, strict=True))


def _batch(rows: list[ExchangeRow]) -> Any:
    import pyarrow as pa

    kinds = (pa.int64(), pa.string(), pa.string(), pa.int64(), pa.binary())
    arrays = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
    return pa.RecordBatch.from_arrays(arrays, names=list(ExchangeRow._fields))

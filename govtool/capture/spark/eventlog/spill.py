"""Findings of logs, spilled to disk as they come, so that memory does not grow with them.

Items are sorted into parts by a number of their own. Each part is kept as Arrow tables, one after the other, in one
file without a name, and is read again as one table.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from typing import IO, Any, Generic, TypeVar

PARTS = 128
"""A power of two. At the end a part at a time is in memory."""
HELD = 20_000
"""The weight of items that are held before they are written."""

Item = TypeVar("Item")


class Spill(Generic[Item]):
    """Items of one kind on disk.

    Args:
        tabled: Items as a ``pyarrow.Table``, a row each.
    """

    def __init__(self, tabled: Callable[[Sequence[Item]], Any]) -> None:
        self._tabled = tabled
        self._held: dict[int, list[Item]] = {}
        self._weight = 0
        self._file: IO[bytes] | None = None
        self._blocks: dict[int, list[tuple[int, int]]] = {}
        self._counts: dict[int, int] = {}

    def add(self, number: int, item: Item, weight: int) -> int:
        """Put an item into the part of its number; returns its row there.

        Raises:
            OSError: It cannot be written.
        """
        part = number % PARTS
        row = self._counts.get(part, 0)
        self._counts[part] = row + 1
        self._held.setdefault(part, []).append(item)
        self._weight += weight + 1
        if self._weight > HELD:
            self._write()
        return row

    def part(self, part: int) -> Any:
        """All rows of a part, in the order in which they came; None if there is none."""
        import pyarrow as pa

        tables = []
        for start, size in self._blocks.get(part, ()):
            assert self._file is not None
            self._file.seek(start)
            tables.append(pa.ipc.open_stream(self._file.read(size)).read_all())
        if self._held.get(part):
            tables.append(self._tabled(self._held[part]))
        return pa.concat_tables(tables).combine_chunks() if tables else None

    def close(self) -> None:
        """Give the disk back."""
        if self._file is not None:
            self._file.close()
        self._held.clear()
        self._blocks.clear()

    def _write(self) -> None:
        import pyarrow as pa

        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="govtool-")  # noqa: SIM115 — closed by close()
        self._file.seek(0, 2)
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        for part, items in self._held.items():
            table = self._tabled(items)
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
                writer.write_table(table)
            data = sink.getvalue()
            self._blocks.setdefault(part, []).append((self._file.tell(), data.size))
            self._file.write(data)
        self._held.clear()
        self._weight = 0

"""Arrays of an index, from the rows of frames in order: the driver holds one piece of one at a time."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from govtool.app.versions.spark_index.frames import Frames

_SCHEMA = "array string, width int, data binary"
_PIECE = 1 << 22
"""Bytes of an array that are widened at a time."""


@dataclass(slots=True)
class _Array:
    """An array on the driver's disk: pieces of their own widths."""

    path: Path
    pieces: list[tuple[int, int]] = field(default_factory=list)
    """Width and bytes of each; neighbours of one width are one."""
    total: int | None = None
    """Of offsets: the sum so far."""


class ArrayFiles:
    """Collects the arrays of an index in a folder.

    Args:
        folder: The folder; its files are as large as the index.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._arrays: dict[str, _Array] = {}
        self._open: list[mmap.mmap] = []

    def add(self, name: str, width: int, data: bytes) -> None:
        """Take in the next piece of an array, of little-endian items."""
        array = self._array(name)
        with array.path.open("ab") as file:
            file.write(data)
        if array.pieces and array.pieces[-1][0] == width:
            array.pieces[-1] = (width, array.pieces[-1][1] + len(data))
        elif data:
            array.pieces.append((width, len(data)))

    def add_counts(self, name: str, width: int, data: bytes) -> None:
        """Take in the next counts of an array of offsets."""
        import numpy as np

        array = self._array(name)
        if array.total is None:
            array.total = 0
            self.add(name, 8, bytes(8))
        ends = np.frombuffer(data, f"<u{width}").astype(np.int64).cumsum() + array.total
        self.add(name, 8, ends.astype("<u8").tobytes())
        if len(ends):
            array.total = int(ends[-1])

    def _array(self, name: str) -> _Array:
        return self._arrays.setdefault(name, _Array(self._folder / name))

    def take(
        self, frames: Frames, frame: Any, names: Mapping[str, str], order: Sequence[str], counts: Sequence[str] = ()
    ) -> None:
        """Take in columns of a frame as arrays, in a total order of its rows.

        Args:
            frames: The frames.
            frame: The frame.
            names: The array of each column.
            order: Columns.
            counts: Arrays that are offsets: their columns are counts.
        """
        for name in names.values():
            (self.add_counts if name in counts else self.add)(name, 1, b"")  # one without items is an array, too
        rows = frames.in_order(frame.select(*{*names, *order}), *order).select(*names)
        pieces = rows.mapInArrow(partial(_pieces, names=list(names.values())), _SCHEMA)
        for row in pieces.toLocalIterator():
            put = self.add_counts if row["array"] in counts else self.add
            put(row["array"], row["width"], bytes(row["data"]))

    def take_texts(self, frames: Frames) -> None:
        """Take in the texts of ``t2`` as the arrays ``string`` and ``text``."""
        self.add_counts("string", 1, b"\0")  # the text that stands for the absent one
        self.add("text", 1, b"")
        pieces = frames.in_order(frames["t2"], "id").select("text").mapInArrow(_text_pieces, _SCHEMA)
        for row in pieces.toLocalIterator():
            put = self.add_counts if row["array"] == "string" else self.add
            put(row["array"], row["width"], bytes(row["data"]))

    def arrays(self) -> dict[str, tuple[str, Any]]:
        """The arrays as ``govtool.arrays.layout.pack`` takes them, mapped."""
        return {name: self._packed(self._arrays[name]) for name in sorted(self._arrays)}

    def _packed(self, array: _Array) -> tuple[str, Any]:
        import numpy as np

        width = max((width for width, _ in array.pieces), default=1)
        if array.total is not None:
            width = next(each for each in (1, 2, 4, 8) if array.total < 1 << 8 * each)
        if any(each != width for each, _ in array.pieces):
            packed = array.path.with_suffix(".packed")
            with array.path.open("rb") as file, packed.open("wb") as out:
                for own, size in array.pieces:
                    for low in range(0, size, _PIECE):
                        data = file.read(min(_PIECE, size - low))
                        out.write(np.frombuffer(data, f"<u{own}").astype(f"<u{width}").tobytes())
            array.path.unlink()
            array.path = packed
        code = {1: "B", 2: "H", 4: "I", 8: "Q"}[width]
        if not array.path.exists() or not array.path.stat().st_size:
            return code, b""
        with array.path.open("rb") as file:
            return code, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _pieces(batches: Iterator[Any], names: Sequence[str]) -> Iterator[Any]:
    from govtool.app.versions.spark_index.frames import number_columns
    from govtool.arrays.layout import narrow

    for batch in batches:
        arrays = [narrow(values.view("<u8")) for values in number_columns(batch).values()]
        yield _piece_rows(names, [values.itemsize for values in arrays], [values.tobytes() for values in arrays])


def _text_pieces(batches: Iterator[Any]) -> Iterator[Any]:
    import numpy as np

    from govtool.arrays.layout import narrow

    for batch in batches:
        encoded = [text.encode("utf-8", "replace") for text in batch.column(0).to_pylist()]
        sizes = narrow(np.array([len(text) for text in encoded], np.int64))
        yield _piece_rows(["string", "text"], [sizes.itemsize, 1], [sizes.tobytes(), b"".join(encoded)])


def _piece_rows(names: Sequence[str], widths: Sequence[int], data: Sequence[bytes]) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays(
        [pa.array(list(names), pa.string()), pa.array(list(widths), pa.int32()), pa.array(list(data), pa.binary())],
        names=["array", "width", "data"],
    )

"""Many texts as two arrays: where each begins, and the bytes of all, one after the other.

Ten million Python strings take half a gigabyte and as many objects; here they are views of a mapped file. Searching is
done by Arrow, over all texts at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from govtool.arrays.numpy_threads import np
from govtool.arrays.sets import Array


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts by number.

    Attributes:
        offsets: int64[n + 1]: text i is ``data[offsets[i]:offsets[i + 1]]``.
        data: uint8: UTF-8.
    """

    offsets: Array
    data: Array

    @classmethod
    def of(cls, texts: Iterable[str] | Any) -> Texts:
        """Return texts given as strings, or as an Arrow array of strings (not copied).

        Raises:
            UnicodeEncodeError: A string has half of a surrogate pair, which UTF-8 does not have.
        """
        import pyarrow as pa

        if isinstance(texts, pa.ChunkedArray):
            texts = texts.combine_chunks()
        if not isinstance(texts, pa.Array):
            texts = pa.array(list(texts), pa.large_string())
        column = texts.cast(pa.large_string())
        if column.null_count:
            raise ValueError("a text is missing")
        _, offsets, data = column.buffers()
        if not len(column) or offsets is None:
            return cls(np.zeros(len(column) + 1, np.int64), np.empty(0, np.uint8))
        places = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
        whole = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
        return cls(places - places[0], whole[places[0] : places[-1]])

    @classmethod
    def joined(cls, parts: Sequence[Texts]) -> Texts:
        """Return several one after the other."""
        ends = np.cumsum([0, *(int(part.offsets[-1]) for part in parts)])
        offsets = [part.offsets[:-1] + start for part, start in zip(parts, ends, strict=False)]
        return cls(
            np.concatenate([*offsets, ends[-1:]]).astype(np.int64),
            np.concatenate([np.empty(0, np.uint8), *(part.data for part in parts)]),
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, number: int) -> str:
        return self.data[int(self.offsets[number]) : int(self.offsets[number + 1])].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrow().to_pylist())

    def take(self, numbers: Array) -> list[str]:
        """Return some texts as strings, in the order of their numbers given."""
        if len(numbers) * 20 < len(self):
            return [self[number] for number in np.asarray(numbers).tolist()]
        found: list[str] = self.arrow().take(np.asarray(numbers, np.int64)).to_pylist()
        return found

    def find(self, wanted: Iterable[str]) -> Array:
        """Return the numbers of the texts that equal one of those wanted: int64, ascending."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values = pa.array(list(wanted), pa.large_string())
        found: Array = np.flatnonzero(pc.is_in(self.arrow(), value_set=values).to_numpy(zero_copy_only=False))
        return found

    def arrow(self) -> Any:
        """The texts as an Arrow array over the same memory."""
        import pyarrow as pa

        offsets, data = np.ascontiguousarray(self.offsets, np.int64), np.ascontiguousarray(self.data)
        return pa.LargeStringArray.from_buffers(len(self), pa.py_buffer(offsets), pa.py_buffer(data))

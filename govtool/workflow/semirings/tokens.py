"""Names of source records by node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.arrays.long_text import LongList
from govtool.arrays.sets import Array
from govtool.arrays.threads import mapped_ahead

MANY = 10_000
"""Tokens from which a list is made when it is written."""
_PIECE = 1 << 17
_ESCAPED = '["\\\\\\x00-\\x1f\\x7f-\\x{9f}\\x{61c}\\x{200b}-\\x{200f}\\x{2028}-\\x{202e}\\x{2060}-\\x{2069}\\x{feff}]'


@dataclass(frozen=True)
class Tokens:
    """Tokens of the records of a circuit's sources.

    Attributes:
        starts: The first node of each relation, by name.
        labels: The tokens of each relation's records, in order, as pyarrow arrays of strings.
    """

    starts: Mapping[str, int]
    labels: Mapping[str, Any]

    def __len__(self) -> int:
        return sum(len(self.labels[name]) for name in self.starts)

    def names(self, nodes: Array) -> list[str]:
        """The tokens of some source nodes, in their order."""
        found = np.empty(len(nodes), object)
        for name, start in self.starts.items():
            inside = (nodes >= start) & (nodes < start + len(self.labels[name]))
            if inside.any():
                found[inside] = self.labels[name].take(nodes[inside] - start).to_pylist()
        return list(found)

    @cached_property
    def is_plain(self) -> bool:
        """No token has a character that JSON, or the safety of terminals, wants escaped."""
        import pyarrow.compute as pc

        found = (pc.any(pc.match_substring_regex(each, _ESCAPED)).as_py() for each in self.labels.values())
        return not any(found)

    def column(self, nodes: Array) -> Any:
        """The tokens of some source nodes as an Arrow array; many at a time."""
        import pyarrow as pa

        order, parts = [], []
        for name, start in self.starts.items():
            inside = np.flatnonzero((nodes >= start) & (nodes < start + len(self.labels[name])))
            if len(inside):
                order.append(inside)
                found = self.labels[name].take(nodes[inside] - start).cast(pa.large_string())
                parts.append(found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found)
        if len(parts) == 1:
            return parts[0]
        return pa.concat_arrays([*parts, pa.array([], pa.large_string())]).take(_inverse(order))

    def listed(self, nodes: Array) -> list[str] | LongList:
        """The tokens of some source nodes; a long list is made when it is written."""
        if len(nodes) < MANY:
            return self.names(nodes)
        return LongList(lambda separator: self._parts(nodes, separator), lambda: self.names(nodes), self.is_plain)

    def _parts(self, nodes: Array, separator: str) -> Iterator[str]:
        return joined_pieces(len(nodes), lambda low, high: self.column(nodes[low:high]), separator)

    def nodes(self, wanted: Sequence[str]) -> dict[str, int]:
        """The nodes of tokens; those that no relation of the query has are missing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = pa.array(wanted, pa.string())
        found: dict[str, int] = {}
        for name, start in self.starts.items():
            places = pc.index_in(texts, value_set=self.labels[name].cast(pa.string())).to_pylist()
            found.update({token: start + at for token, at in zip(wanted, places, strict=True) if at is not None})
        return found

    def relation(self, node: int) -> str:
        """The relation of a source node."""
        return next(n for n, start in self.starts.items() if start <= node < start + len(self.labels[n]))


def _inverse(order: list[Array]) -> Array:
    places = np.concatenate([np.empty(0, np.int64), *order])
    found = np.empty(len(places), np.int64)
    found[places] = np.arange(len(places))
    return found


def concatenated(*parts: Any) -> Any:
    """Texts side by side: Arrow arrays of one length, and strings that stand in every row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = pa.large_string()
    texts = [pa.scalar(each, kind) if isinstance(each, str) else each.cast(kind) for each in parts]
    return pc.binary_join_element_wise(*texts, pa.scalar("", kind))


def joined_pieces(count: int, texts: Callable[[int, int], Any], separator: str) -> Iterator[str]:
    """Many texts as one, piece by piece; the next pieces are made while one is used.

    Args:
        count: How many texts there are.
        texts: Gives those from one place up to another as an Arrow array.
        separator: Stands between two texts.
    """

    def piece(low: int) -> str:
        return joined_text(texts(low, min(low + _PIECE, count)), separator)

    for number, made in enumerate(mapped_ahead(piece, range(0, count, _PIECE))):
        yield f"{separator if number else ''}{made}"


def joined_text(texts: Any, separator: str) -> str:
    """The texts of an Arrow array as one; there is at least one."""
    column = concatenated(texts, separator)
    offsets = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]
    end = int(offsets[-1]) - len(separator.encode())
    return bytes(memoryview(column.buffers()[2])[int(offsets[0]) : end]).decode()

"""Ids of records, packed in the tasks of a job: pairs of 64-bit integers as bytes. Shipped to executors by value."""

from __future__ import annotations

import array
from collections.abc import Callable, Iterable, Iterator
from typing import Any

MAX_PAIRS = 8_000_000
"""Pairs of ids that are kept of one action."""
PARTITION_BITS = 33
"""Bits below the partition in a number of ``monotonically_increasing_id``."""


def numbered(stops: int) -> Callable[[int, Iterable[Any]], Iterator[Any]]:
    """Pack rows of ids under their own number: partition and place.

    A row's own number is unique, so that no pair comes twice: 16 bytes a pair, in the order of the rows.

    Returns:
        For a partition and its rows: its number, how many rows it has, and pairs by stop; None: too many.
    """

    def pack(partition: int, rows: Iterable[Any]) -> Iterator[tuple[int, int, list[bytes | None]]]:
        first = own = partition << PARTITION_BITS
        found = [array.array("q") for _ in range(stops)]
        for row in rows:
            if own - first < MAX_PAIRS:
                for pairs, other in zip(found, row):
                    if other is not None:
                        pairs.extend((own, other))
            else:
                found.clear()
            own += 1
        yield partition, own - first, [pairs.tobytes() for pairs in found] or [None] * stops

    return pack


def keyed(stops: int) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Pack rows of a hash and ids: for the rows of a partition, pairs by stop, each once; None: too many."""

    def pack(rows: Iterable[Any]) -> Iterator[list[bytes | None]]:
        found = _Pairs(stops)
        for row in rows:
            found.add(row[0], row[1:])
        yield found.packed()

    return pack


def counted(partition: int, rows: Iterable[Any]) -> Iterator[tuple[int, int]]:
    """Count the rows of a partition."""
    yield partition, sum(1 for _ in rows)


class _Pairs:
    """Pairs by stop, each once: many rows of a group share its hash and the ids below it."""

    def __init__(self, stops: int) -> None:
        self._found: list[set[tuple[int, int]]] = [set() for _ in range(stops)]
        self._full = False

    def add(self, own: int, ids: Iterable[Any]) -> None:
        """Pair an id with those that are there."""
        if self._full:
            return
        for found, other in zip(self._found, ids):
            if other is not None:
                found.add((own, other))
                self._full = self._full or len(found) > MAX_PAIRS

    def packed(self) -> list[bytes | None]:
        """The pairs of each stop as bytes."""
        if self._full:
            return [None for _ in self._found]
        return [array.array("q", (n for pair in sorted(found) for n in pair)).tobytes() for found in self._found]

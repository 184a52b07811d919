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

    A row's own number is unique, so that no pair comes twice: 16 bytes a pair. What a row has behind its ids is where
    it is written: folder and bucket. Rows of one such place keep their order; the places follow each other.

    Returns:
        For a partition and its rows: its number, places with how many rows each has, and pairs by stop; None: too many.
    """

    def pack(partition: int, rows: Iterable[Any]) -> Iterator[tuple[int, list[Any], list[bytes | None]]]:
        found: dict[tuple[Any, ...], list[array.array[int]]] = {}
        counts: dict[tuple[Any, ...], int] = {}
        whole = 0
        for row in rows:
            place = tuple(row[stops:])
            number = counts.get(place, 0)
            if whole < MAX_PAIRS:
                for pairs, other in zip(found.setdefault(place, [array.array("q") for _ in range(stops)]), row):
                    if other is not None:
                        pairs.extend((number, other))
            else:
                found.clear()
            counts[place] = number + 1
            whole += 1
        first, packed = partition << PARTITION_BITS, [array.array("q") for _ in range(stops)]
        for place, count in counts.items():
            for pairs, own in zip(packed, found.pop(place, ())):
                own[::2] = array.array("q", [first + number for number in own[::2]])
                pairs.extend(own)
            first += count
        is_kept = whole <= MAX_PAIRS
        yield partition, [*counts.items()] or [((), 0)], [pairs.tobytes() if is_kept else None for pairs in packed]

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

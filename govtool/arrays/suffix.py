"""Names read from their end: ``users.email`` finds ``crm.users.email``.

A name is cut into parts at its dots, and at the slashes of a namespace, file or bucket; the key of a name is its parts
from last to first. Names sorted by key are searched by bisection: all that end in given parts lie side by side.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence

from govtool.names import split_name


def parts_of(name: str) -> list[str]:
    """Cut canonical text into the parts at which a short form may begin."""
    if "/" not in name and not name.startswith("file:"):
        return split_name(name)
    if name.startswith("file:") and not name.startswith("file:/"):  # a relative path begins behind the scheme
        name = name.replace(":", ":/", 1)
    return [piece for part in split_name(name) for piece in (part.split("/") if '"' not in part else [part])]


def suffix_key(name: str) -> str:
    """The sort key of a name: its parts from last to first, each ended by U+0000."""
    return "".join(part + "\0" for part in reversed(parts_of(name)))


def alike(numbers: Iterable[int], name: Callable[[int], str], like: Sequence[str], most: int) -> list[int]:
    """The numbers whose names share most sequences of three letters (two, if a wanted name is short) with any of the
    wanted names, in order. A name with one wrong letter shares all but three of its own.
    """
    pieces: set[str] = set()
    for wanted in like:
        size = 3 if len(wanted) > 5 else 2
        pieces |= {wanted[i : i + size] for i in range(max(1, len(wanted) - size + 1))}
    scored: list[tuple[int, int]] = []
    for number in numbers:
        text = name(number).lower()
        shared = sum([piece in text for piece in pieces])
        if shared:
            scored.append((-shared, number))
    return sorted(number for _, number in heapq.nsmallest(most, scored))


def places_ending(count: int, name: Callable[[int], str], parts: Sequence[str]) -> Iterator[int]:
    """Places in a list sorted by suffix key whose names end in the parts."""
    if not parts or not all(parts):
        return
    key = "".join(part + "\0" for part in reversed(parts))
    at = bisect_left(range(count), key, key=lambda i: suffix_key(name(i)))
    while at < count and suffix_key(name(at)).startswith(key):
        yield at
        at += 1

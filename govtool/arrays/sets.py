"""Small helpers on arrays of nodes. The first call of ``numpy.unique`` imports ``numpy.ma``, a third of numpy."""

from __future__ import annotations

import contextlib
import mmap
from typing import Any

from govtool.arrays.numpy_threads import np

Array = np.ndarray[Any, np.dtype[Any]]

_SIGNIFICANT = 63
"""Bits of an integer without its sign."""
_PART = 1 << 16
_HUGE = 1 << 22
"""Bytes from which on the system is asked for large pages."""


def distinct(values: Array) -> Array:
    """The distinct values, sorted.

    >>> distinct(np.array([3, 1, 3]))
    array([1, 3])
    """
    if len(values) < 2:
        return values
    ordered = np.sort(values)
    first = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def stable_order(values: Array) -> Array:
    """The stable order of integers of at least 0: ``argsort(kind="stable")``, five times as fast.

    Each value is sorted together with its place, as one integer, where both fit into one.

    >>> stable_order(np.array([3, 1, 3]))
    array([1, 0, 2])
    """
    bits = max(1, len(values) - 1).bit_length()
    if len(values) < 2 or int(values.max()).bit_length() + bits > _SIGNIFICANT:
        return np.argsort(values, kind="stable")
    packed = values.astype(np.int64)
    packed <<= bits
    packed |= np.arange(len(values))
    packed.sort()
    packed &= (1 << bits) - 1
    return packed


def distinct_nodes(parts: list[Array], count: int) -> Array:
    """The distinct nodes of several arrays, sorted; ``count`` is how many nodes there are."""
    if sum(map(len, parts)) * 100 < count:
        return distinct(np.concatenate(parts))
    some = np.zeros(count, bool)
    for nodes in parts:
        some[nodes] = True
    return np.flatnonzero(some)


def marked_places(marks: Array, values: Array) -> Array:
    """The places of the values that are marked, in parts that fit into a processor's cache.

    >>> marked_places(np.array([False, True]), np.array([1, 0, 1]))
    array([0, 2])
    """
    parts = [np.flatnonzero(marks.take(values[low : low + _PART])) + low for low in range(0, len(values), _PART)]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def zero_bytes(count: int) -> Array:
    """Bytes that are 0, in memory of which only what is touched costs anything: much of it in pages of 2 MB.

    >>> zero_bytes(2)
    array([0, 0], dtype=uint8)
    """
    if count < _HUGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros(count, np.uint8)
    memory = mmap.mmap(-1, count)
    with contextlib.suppress(OSError):  # a kernel without such pages
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8)

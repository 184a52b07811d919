"""Orders of many texts by code point, without an object a text."""

from __future__ import annotations

from typing import Any

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.arrays.sets import Array

_MOST_KEYS = 4
"""Keys of eight bytes that are sorted by; longer texts are compared whole."""


def text_order(texts: Any) -> Array:
    """The places of an Arrow array of strings in the order of their code points: int64[n].

    The bytes behind the common prefix are packed into integers: UTF-8 sorts as code points do.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = texts.cast(pa.large_string())
    if len(column) < 2:
        return np.arange(len(column))
    extremes = pc.min_max(column)
    ends = [extremes[name].as_py().encode() for name in ("min", "max")]
    shared = next((at for at, (a, b) in enumerate(zip(*ends, strict=False)) if a != b), min(map(len, ends)))
    offsets = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]
    data = np.frombuffer(column.buffers()[2] or b"\0", np.uint8)
    starts = offsets[:-1] + shared
    lengths = offsets[1:] - starts
    width = int(lengths.max())
    if width > 8 * _MOST_KEYS:
        found: Array = pc.sort_indices(column).to_numpy(zero_copy_only=False).astype(np.int64)
        return found
    keys = [_packed(data, starts, lengths, first) for first in range(0, width, 8)]
    if (data == 0).any():  # a text that goes on with NUL, and one that ends there
        keys.append(lengths.astype(np.uint64))
    if len(keys) == 1:
        return np.argsort(keys[0], kind="stable")
    return np.lexsort(keys[::-1]) if keys else np.arange(len(column))


def _packed(data: Array, starts: Array, lengths: Array, first: int) -> Array:
    """Eight bytes of each text as one integer, the first one highest; NUL behind its end."""
    key = np.zeros(len(starts), np.uint64)
    for place in range(first, first + 8):
        inside = place < lengths
        key <<= np.uint64(8)
        key[inside] |= data[starts[inside] + place]
    return key


def ranks(order: Array) -> Array:
    """The rank of each place, from the places in order."""
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order))
    return found

"""Signatures of the rows of derivations tables: equal for rows that say the same of the graph, wherever they stand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_SCALARS = ("target", "target_kind", "mode", "columns_complete", "source", "file", "fingerprint", "kind", "how", "run")
_COLUMNS = ("path", "type")
_EDGES = (
    "source_dataset", "source_path", "target_path", "kind", "functions", "star", "arm", "masking", "reason",
)  # fmt: skip
_SEEDS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_FACTOR = 0xFF51AFD7ED558CCD
_SHIFT = 32


def signatures(table: Any) -> Any:
    """128 bits a row (complex128, to be compared only): what the derivation says, its statement, and its file.

    Neither where in its file the statement stands nor how often and when it ran matters. Values are numbered within
    the table first, so that signatures of different tables have nothing to do with each other: concatenate first.

    Args:
        table: A ``pyarrow.Table`` of ``govtool.model.columnar.schema()``.
    """
    import numpy as np

    halves = []
    scalars = [_codes(table.column(name)) for name in _SCALARS]
    lists = [_flat(table.column(name), fields) for name, fields in (("columns", _COLUMNS), ("edges", _EDGES))]
    for seed in _SEEDS:
        found = _mixed(np.full(table.num_rows, seed, np.uint64), scalars)
        for offsets, parts in lists:
            item = _mixed(np.full(len(parts[0]), seed, np.uint64), parts)
            # The sum does not depend on the order of edges, which says nothing; their number goes in as well.
            total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(item, dtype=np.uint64)])
            found = _mixed(found, [total[offsets[1:]] - total[offsets[:-1]], offsets[1:] - offsets[:-1]])
        halves.append(found)
    return np.stack(halves, axis=1).view(np.dtype((np.void, 16)))[:, 0]


def _flat(column: Any, fields: Iterable[str]) -> tuple[Any, list[Any]]:
    """Offsets of a column of lists of structs, and the codes of the fields of all items."""
    import numpy as np
    import pyarrow.compute as pc

    lists = _one(column)
    items = lists.flatten()
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return offsets, [_codes(items.field(name)) for name in fields]


def _codes(column: Any) -> Any:
    """Values as integers that are equal exactly if the values are."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    values = _one(column)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        values = values.dictionary_encode()
    if pa.types.is_dictionary(values.type):
        # Of equal texts, which a concatenated dictionary may hold twice, the first number counts.
        texts = values.dictionary.dictionary_encode()
        first = texts.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        at = pc.fill_null(values.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
        return np.where(at < 0, -1, first[at] if len(first) else -1).astype(np.uint64)
    return pc.fill_null(values.cast(pa.int64()), -1).to_numpy(zero_copy_only=False).astype(np.uint64)


def _one(column: Any) -> Any:
    """A column in one piece."""
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return column
    joined = column.unify_dictionaries().combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined


def _mixed(start: Any, parts: Iterable[Any]) -> Any:
    """Fold numbers into 64 bits each, as murmur3 finishes its hash."""
    import numpy as np

    found = start
    for part in parts:
        found = (found ^ part.astype(np.uint64)) * np.uint64(_FACTOR)
        found ^= found >> np.uint64(_SHIFT)
        found *= np.uint64(_SEEDS[0])
    return found

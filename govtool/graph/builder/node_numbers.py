"""Numbers of nodes: datasets in order, in each its row set first, then its columns by path, containers included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from govtool.graph.builder.columns import Strings
from govtool.graph.paths import ancestors
from govtool.model.derivation import ROWS

_PART = 1 << 18
"""Names that are looked up at a time."""


@dataclass(frozen=True, slots=True)
class NodeNumbers:
    """The nodes of a graph, as arrays of integers."""

    dataset: Any
    """Per node the number of its dataset."""
    path: Any
    """Per node the number of its path among the strings."""
    base: Any
    """Per dataset its first node, its row set; then the number of nodes."""
    nested: tuple[Any, Any]
    """Nodes that are fields of others, in order, and the node above each."""
    ends: tuple[Any, ...]
    """Per list of names the node of each."""


def number_nodes(strings: Strings, datasets: int, ends: Sequence[tuple[Any, Any]]) -> NodeNumbers:
    """Number the columns that are named somewhere, the columns that contain them, and all row sets.

    Args:
        strings: The texts of paths; those of containers are added.
        datasets: The number of datasets.
        ends: Lists of names: numbers of datasets, and as many numbers of paths among ``strings``.
    """
    import numpy as np

    from govtool.arrays.sets import distinct

    rows = strings.add(ROWS)
    named = np.zeros(len(strings.texts), bool)
    named[rows] = True
    for _, path in ends:
        named[path] = True
    used = np.flatnonzero(named).tolist()
    up = {i: [strings.add(a) for a in ancestors(strings.texts[i])] for i in used}
    up = {i: found for i, found in up.items() if found}
    paths = sorted(
        {*used, *(a for found in up.values() for a in found)},
        key=lambda i: (strings.texts[i] != ROWS, strings.texts[i]),
    )
    width = len(paths)
    rank = np.zeros(len(strings.texts), np.int32)
    rank[paths] = np.arange(width)
    found = [distinct(_keys(*end, rank, width)) for pair in ends for end in _parts(*pair)]
    known = distinct(np.concatenate([*found, np.arange(datasets, dtype=np.int64) * width]))
    del found
    if up:
        known = distinct(np.concatenate([known, _containers(known, width, paths, up, rank)]))
    dataset = (known // width).astype(np.int32)
    place = (known - dataset.astype(np.int64) * width).astype(np.int32)
    base = np.searchsorted(known, np.arange(datasets + 1, dtype=np.int64) * width)
    nested = _nested(strings, known, width, paths if up else [], rank)
    del known
    return NodeNumbers(
        dataset=dataset,
        path=np.array(paths, np.int32)[place],
        base=base,
        nested=nested,
        ends=tuple(_nodes_of(pair, rank, place, base) for pair in ends),
    )


def _parts(dataset: Any, path: Any) -> Iterator[tuple[Any, Any]]:
    """Names in parts that fit into a processor's cache."""
    for low in range(0, len(dataset), _PART):
        yield dataset[low : low + _PART], path[low : low + _PART]


def _keys(dataset: Any, path: Any, rank: Any, width: int) -> Any:
    """An integer for each name, in the order of the names."""
    import numpy as np

    return dataset.astype(np.int64) * width + rank[path]


def _nodes_of(names: tuple[Any, Any], rank: Any, place: Any, base: Any) -> Any:
    """The nodes of names, by bisection among the columns of each dataset: int32.

    Args:
        names: Numbers of datasets, and as many of paths.
        rank: Per text its place among all paths.
        place: Per node the place of its path; ascending within a dataset.
        base: Per dataset its first node; then the number of nodes.
    """
    import numpy as np

    most = int(np.diff(base).max()) if len(base) > 1 else 1
    padded = np.append(place, 0)  # what a step beyond the last node finds; it is not taken
    found = np.empty(len(names[0]), np.int32)
    low = 0
    for dataset, path in _parts(*names):
        wanted, end, node = rank[path], base[dataset + 1], base[dataset]
        for step in (1 << power for power in reversed(range((most - 1).bit_length()))):
            further = node + step
            taken = further < end
            np.minimum(further, len(place), out=further)
            taken &= padded[further] <= wanted
            node = np.where(taken, further, node)
        found[low : low + len(node)] = node
        low += len(node)
    return found


def _containers(known: Any, width: int, paths: list[int], up: dict[int, list[int]], rank: Any) -> Any:
    """The keys of the columns that contain known ones."""
    import numpy as np

    deep = np.zeros(width, bool)
    deep[rank[list(up)]] = True
    place = known % width
    found = [
        (key // width) * width + int(rank[a])
        for key, p in zip(known[deep[place]].tolist(), place[deep[place]].tolist(), strict=True)
        for a in up[paths[p]]
    ]
    return np.unique(np.array(found, np.int64))


def _nested(strings: Strings, known: Any, width: int, paths: list[int], rank: Any) -> tuple[Any, Any]:
    """Nested nodes in order, and the parent of each."""
    import numpy as np

    parent = np.full(width, -1, np.int64)
    for path in paths:
        above = ancestors(strings.texts[path])
        if above:
            parent[rank[path]] = rank[strings.add(above[0])]
    place = known % max(1, width)
    nested = np.flatnonzero(parent[place] >= 0)
    return nested, np.searchsorted(known, known[nested] // max(1, width) * width + parent[place[nested]])

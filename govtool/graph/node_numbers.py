"""Numbers of nodes: datasets in order, in each its row set first, then its columns by path, containers included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from govtool.graph.columns import Strings
from govtool.graph.paths import ancestors
from govtool.model.derivation import ROWS


@dataclass(frozen=True, slots=True)
class NodeNumbers:
    """The nodes of a graph, as arrays of int64."""

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

    rows = strings.add(ROWS)
    used = np.unique(np.concatenate([np.unique(path) for _, path in ends] + [np.array([rows])]))
    up = {int(i): [strings.add(a) for a in ancestors(strings.texts[i])] for i in used.tolist()}
    up = {i: found for i, found in up.items() if found}
    paths = sorted(
        {*used.tolist(), *(a for found in up.values() for a in found)},
        key=lambda i: (strings.texts[i] != ROWS, strings.texts[i]),
    )
    width = len(paths)
    rank = np.zeros(len(strings.texts), np.int64)
    rank[paths] = np.arange(width)
    keys = [dataset * width + rank[path] for dataset, path in ends]
    known = np.unique(np.concatenate([*(np.unique(k) for k in keys), np.arange(datasets, dtype=np.int64) * width]))
    if up:
        known = np.union1d(known, _containers(known, width, paths, up, rank))
    return NodeNumbers(
        dataset=known // max(1, width),
        path=np.array(paths, np.int64)[known % max(1, width)],
        base=np.searchsorted(known, np.arange(datasets + 1, dtype=np.int64) * width),
        nested=_nested(strings, known, width, paths if up else [], rank),
        ends=tuple(np.searchsorted(known, key) for key in keys),
    )


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

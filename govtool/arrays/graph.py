"""A directed graph as arrays, indexed both ways.

The arrays are whatever holds integers by place: memoryviews of a mapped file (``govtool.arrays.layout``), numpy arrays
or lists. Importing this module imports no numpy, so that a question about a small graph does not wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from govtool.errors import IntegrityError

NAMES = ("forward", "source", "target", "backward", "backward_edge")
"""The arrays of a graph, as a file has them."""

SMALL = 15_000
"""Edges up to which plain Python is as fast as numpy, its import counted."""


@dataclass(frozen=True, slots=True)
class ArrayGraph:
    """A directed graph of ``n`` nodes and ``m`` edges. Edges are numbered by source, those of one source by target.

    Attributes:
        forward: [n + 1]: the edges that leave node v are ``forward[v]..forward[v + 1]``.
        source: [m].
        target: [m].
        backward: [n + 1]: the same as ``forward`` for ``backward_edge``.
        backward_edge: [m]: the edges that enter each node, ascending.
    """

    forward: Any
    source: Any
    target: Any
    backward: Any
    backward_edge: Any

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Any], prefix: str = "") -> ArrayGraph:
        """Return the graph whose arrays are in a file, each under its name with a prefix.

        Raises:
            IntegrityError: An array is missing, or they do not fit together.
        """
        try:
            graph = cls(*(arrays[f"{prefix}{name}"] for name in NAMES))
        except KeyError as error:
            raise IntegrityError(f"The graph lacks the array {error}", code="store.corrupt-index") from error
        graph.check()
        return graph

    def arrays(self, prefix: str = "") -> dict[str, Any]:
        """The arrays by name, for a file."""
        return {f"{prefix}{name}": getattr(self, name) for name in NAMES}

    def check(self) -> None:
        """Compare the lengths and the ends of the arrays, in no time.

        Raises:
            IntegrityError: They do not fit together.
        """
        nodes, edges = self.nodes, self.edges
        lengths = (nodes + 1, edges, edges) == (len(self.backward), len(self.source), len(self.backward_edge))
        if nodes < 0 or not lengths or not int(self.forward[-1]) == int(self.backward[-1]) == edges:
            raise IntegrityError("The arrays of the graph do not fit together", code="store.corrupt-index")

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return len(self.forward) - 1

    @property
    def edges(self) -> int:
        """The number of edges."""
        return len(self.target)

    def out_edges(self, node: int) -> range:
        """The edges that leave a node."""
        return range(self.forward[node], self.forward[node + 1])

    def in_edges(self, node: int) -> list[int]:
        """The edges that enter a node, ascending."""
        found: list[int] = list(self.backward_edge[self.backward[node] : self.backward[node + 1]])
        return found

    def in_python(self) -> ArrayGraph:
        """Return the graph with views of its numpy arrays: their items are plain numbers, and quick to get."""
        return ArrayGraph(*(getattr(values, "data", values) for values in (getattr(self, name) for name in NAMES)))

    def in_numpy(self) -> ArrayGraph:
        """Return the graph with its arrays as numpy arrays; nothing is copied but lists."""
        import numpy as np

        values = (getattr(self, name) for name in NAMES)
        return ArrayGraph(*(np.array(v, np.uint32) if isinstance(v, list) else np.asarray(v) for v in values))


def graph_of(
    source: Sequence[int], target: Sequence[int], count: int, small: int = SMALL
) -> tuple[ArrayGraph, Sequence[int]]:
    """Number edges by source and target, and index them both ways.

    Args:
        source: [m], below ``count``; a list for a small graph, a numpy array for a large one.
        target: [m], below ``count``. Parallel edges and loops are edges like others.
        count: The number of nodes.
        small: Edges up to which lists are indexed in plain Python.

    Returns:
        The graph, and for each of its edges the place that it had, to bring other arrays of edges into their order.

    Raises:
        IndexError: An edge is of a node that there is not.
    """
    check_nodes(source, count)
    check_nodes(target, count)
    if isinstance(source, list) and isinstance(target, list) and len(source) <= small:
        return _graph_of_lists(source, target, count)
    return _graph_of_arrays(source, target, count)


def check_nodes(nodes: Any, count: int) -> None:
    """Refuse numbers of nodes that there are not; a negative one would count from the end.

    Args:
        nodes: Numbers, as a collection or a numpy array.
        count: The number of nodes.

    Raises:
        IndexError: A number is negative or too large.
    """
    if not len(nodes):
        return
    least, most = (nodes.min(), nodes.max()) if hasattr(nodes, "min") else (min(nodes), max(nodes))
    if least < 0 or most >= count:
        raise IndexError(f"there is no node {least if least < 0 else most} among {count}")


def _graph_of_lists(source: list[int], target: list[int], count: int) -> tuple[ArrayGraph, list[int]]:
    order = sorted(range(len(source)), key=target.__getitem__)
    order.sort(key=source.__getitem__)  # stable: by source, then target
    starts, ends = [source[edge] for edge in order], [target[edge] for edge in order]
    back = sorted(range(len(ends)), key=ends.__getitem__)
    return ArrayGraph(_offsets(starts, count), starts, ends, _offsets(ends, count), back), order


def _offsets(numbers: list[int], count: int) -> list[int]:
    """Return the start of each number below ``count`` among the numbers in order."""
    sizes = [0] * (count + 1)
    for number in numbers:
        sizes[number + 1] += 1
    for number in range(count):
        sizes[number + 1] += sizes[number]
    return sizes


def _graph_of_arrays(source: Sequence[int], target: Sequence[int], count: int) -> tuple[ArrayGraph, Sequence[int]]:
    import numpy as np

    from govtool.arrays.csr import offsets_of, order_of

    order = order_of(np.asarray(source, np.int64), np.asarray(target, np.int64))
    width = np.uint32 if max(count, len(order)) < 1 << 32 else np.uint64
    starts, ends = (np.asarray(values, width)[order] for values in (source, target))
    graph = ArrayGraph(
        offsets_of(starts.astype(np.int64), count).astype(width),
        starts,
        ends,
        offsets_of(ends.astype(np.int64), count).astype(width),
        np.argsort(ends, kind="stable").astype(width),
    )
    ordered: Any = order
    return graph, ordered

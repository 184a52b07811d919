"""The part of a graph that decides what a deletion takes, so that the rest need not be looked at.

What does not hang on what goes keeps its support. So it is enough to prove again what hangs on it, from its borders:
and these are grounded, unless they hang on a loop, or on a column that nothing puts out. What may not be grounded to
begin with, and is needed to tell, belongs to the region as well. Everything is arrays of the index; a region may be
larger than it must be, never smaller.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from govtool.graph.codes import KIND_MASK, MODES
from govtool.graph.index import Index
from govtool.model.kinds import EdgeKind


class Region:
    """Works out the datasets of a region.

    Args:
        index: The graph.
        not_needed: Kinds of edges that nothing needs.
        fills: Modes that make rows.
    """

    def __init__(self, index: Index, not_needed: Collection[EdgeKind], fills: Collection[str]) -> None:
        import numpy as np

        a = index.resident().arrays
        self._a = a
        self._base = np.asarray(a["dataset_base"]).astype(np.int64)
        self._of = np.asarray(a["node_dataset"]).astype(np.int64)
        self._datasets = len(self._base) - 1
        source, target = (np.asarray(a[f"edge_{end}"]).astype(np.int64) for end in ("source", "target"))
        self._own = self._of[source] == self._of[target]
        kind = np.asarray(a["edge_tag"]) & KIND_MASK
        used = ~self._own & ~np.isin(kind, [int(k) for k in not_needed])
        self._next = _Ways(source[used], target[used], len(self._of))
        pairs = np.unique(self._of[source[used]] * self._datasets + self._of[target[used]])
        self._from, self._to = pairs // self._datasets, pairs % self._datasets
        self._fills = [MODES.index(mode) for mode in fills]

    def around(self, gone: Collection[int]) -> set[int]:
        """The datasets that decide what the deletion of these nodes takes."""
        import numpy as np

        hit = self._touched(np.array(sorted(gone), np.int64))
        doubtful = self._touched(self._doubtful()) | self._behind_loops()
        region = hit.copy()
        before = _Ways(self._to, self._from, self._datasets)
        front = np.flatnonzero(hit)
        while len(front):
            found = np.unique(before.after(front))
            front = found[doubtful[found] & ~region[found]]
            region[front] = True
        return set(np.flatnonzero(region).tolist())

    def _touched(self, nodes: Any) -> Any:
        """The datasets of nodes and of all that hangs on them; what is said of rows is said of all columns."""
        import numpy as np

        seen = np.zeros(len(self._of), bool)
        front = nodes
        while len(front):
            seen[front] = True
            found = np.unique(self._next.after(front))
            rows = found[self._base[self._of[found]] == found]
            spans = self._base[self._of[rows] + 1] - rows
            columns = np.repeat(rows, spans) + _counted(spans)
            found = np.union1d(found, columns)
            front = found[~seen[found]]
        touched = np.zeros(self._datasets, bool)
        touched[self._of[seen]] = True
        return touched

    def _doubtful(self) -> Any:
        """Nodes of made datasets that, as far as can be told at a glance, nothing puts out."""
        import numpy as np

        a = self._a
        maker = np.asarray(a["maker_derivation"]).astype(np.int64)
        made = _owners(a["maker"])
        derivations = len(a["derivation_mode"])
        mode = np.asarray(a["derivation_mode"])
        of_edge = np.asarray(a["edge_derivation"]).astype(np.int64)
        stands = np.zeros(derivations, bool)
        stands[maker] = True
        fills = np.isin(mode, self._fills)
        plain = stands & fills & (np.bincount(of_edge[self._own], minlength=derivations) == 0)
        says = plain | (stands & (mode == MODES.index("update")))
        is_made, is_plain = np.zeros(self._datasets, bool), np.zeros(self._datasets, bool)
        is_made[made[fills[maker]]] = True
        is_plain[made[plain[maker]]] = True
        sure = ~is_made[self._of]
        sure[np.asarray(a["output_node"]).astype(np.int64)[says[_owners(a["output"])]]] = True
        sure[np.asarray(a["edge_target"]).astype(np.int64)[says[of_edge]]] = True
        rows = self._base[:-1]
        sure[rows] = ~is_made | is_plain
        return np.flatnonzero(~sure)

    def _behind_loops(self) -> Any:
        """The datasets in loops and all that hang on them: what is left when sources are taken away again and again."""
        import numpy as np

        after = _Ways(self._from, self._to, self._datasets)
        waiting = np.bincount(self._to, minlength=self._datasets)
        left = np.ones(self._datasets, bool)
        front = np.flatnonzero(waiting == 0)
        while len(front):
            left[front] = False
            into = after.after(front)
            np.subtract.at(waiting, into, 1)
            into = np.unique(into)
            front = into[waiting[into] == 0]
        return left


class _Ways:
    """Pairs of numbers by their first."""

    def __init__(self, first: Any, second: Any, count: int) -> None:
        import numpy as np

        order = np.argsort(first, kind="stable")
        self._second = second[order]
        self._offsets = np.concatenate([[0], np.cumsum(np.bincount(first, minlength=count))])

    def after(self, numbers: Any) -> Any:
        """The second of all pairs that begin with these, as often as there are."""
        import numpy as np

        spans = self._offsets[numbers + 1] - self._offsets[numbers]
        return self._second[np.repeat(self._offsets[numbers], spans) + _counted(spans)]


def _owners(offsets: Any) -> Any:
    """For each item of the second of two arrays the number of its owner, by the offsets of the owners."""
    import numpy as np

    bounds: Any = np.asarray(offsets).astype(np.int64)
    return np.repeat(np.arange(len(bounds) - 1), bounds[1:] - bounds[:-1])


def _counted(spans: Any) -> Any:
    """0, 1 … for each span, one behind the other."""
    import numpy as np

    ends = np.cumsum(spans)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - spans, spans)

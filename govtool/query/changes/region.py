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

        from govtool.arrays.csr import Csr

        a = index.resident().arrays
        self._a = a
        self._base = np.asarray(a["dataset_base"]).astype(np.int64)
        self._of = np.asarray(a["node_dataset"]).astype(np.int64)
        self._datasets = len(self._base) - 1
        source, target = (np.asarray(a[f"edge_{end}"]).astype(np.int64) for end in ("source", "target"))
        self._own = self._of[source] == self._of[target]
        kind = np.asarray(a["edge_tag"]) & KIND_MASK
        used = ~self._own & ~np.isin(kind, [int(k) for k in not_needed])
        self._next = Csr.of_pairs(source[used], target[used], len(self._of))
        pairs = np.unique(self._of[source[used]] * self._datasets + self._of[target[used]])
        self._from, self._to = pairs // self._datasets, pairs % self._datasets
        self._fills = [MODES.index(mode) for mode in fills]

    def around(self, gone: Collection[int]) -> set[int]:
        """The datasets that decide what the deletion of these nodes takes."""
        import numpy as np

        from govtool.arrays.csr import Csr

        hit = self._touched(np.array(sorted(gone), np.int64))
        doubtful = self._touched(self._doubtful()) | self._behind_loops()
        region = hit.copy()
        before = Csr.of_pairs(self._to, self._from, self._datasets)
        front = np.flatnonzero(hit)
        while len(front):
            found = np.unique(before.after(front))
            front = found[doubtful[found] & ~region[found]]
            region[front] = True
        return set(np.flatnonzero(region).tolist())

    def _touched(self, nodes: Any) -> Any:
        """The datasets of nodes and of all their fields and rows; a statement about rows is one about all columns."""
        import numpy as np

        from govtool.arrays.csr import spread

        seen = np.zeros(len(self._of), bool)
        front = nodes
        while len(front):
            seen[front] = True
            found = np.unique(self._next.after(front))
            rows = found[self._base[self._of[found]] == found]
            found = np.union1d(found, spread(rows, self._base[self._of[rows] + 1])[0])
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
        defines = plain | (stands & (mode == MODES.index("update")))
        is_made, is_plain = np.zeros(self._datasets, bool), np.zeros(self._datasets, bool)
        is_made[made[fills[maker]]] = True
        is_plain[made[plain[maker]]] = True
        sure = ~is_made[self._of]
        sure[np.asarray(a["output_node"]).astype(np.int64)[defines[_owners(a["output"])]]] = True
        sure[np.asarray(a["edge_target"]).astype(np.int64)[defines[of_edge]]] = True
        rows = self._base[:-1]
        sure[rows] = ~is_made | is_plain
        return np.flatnonzero(~sure)

    def _behind_loops(self) -> Any:
        """The datasets in loops and all that hang on them."""
        from govtool.arrays.ranks import ranks

        return ranks(self._from, self._to, self._datasets) < 0


def _owners(offsets: Any) -> Any:
    """For each item of the second of two arrays the number of its owner, by the offsets of the owners."""
    import numpy as np

    bounds: Any = np.asarray(offsets).astype(np.int64)
    return np.repeat(np.arange(len(bounds) - 1), bounds[1:] - bounds[:-1])

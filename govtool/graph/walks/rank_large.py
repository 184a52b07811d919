"""The ranking of all that a large walk reached, the worst and nearest first. See ``govtool.graph.walks.walk``."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np  # noqa: TID253 - this module is imported only when a walk grows large

from govtool.arrays.sets import Array
from govtool.arrays.splice import Numpy
from govtool.graph.codes import ELIDED
from govtool.graph.index import Index
from govtool.graph.walks.rules import Ranking, Reached, Rules

_NONE = np.empty(0, np.int64)


class LargeRanking:
    """What a walk reached.

    Args:
        index: The graph.
        rules: Of the walk.
        keys: States and nodes that were reached, in order of discovery.
        level: The length of the shortest way to each.
    """

    def __init__(self, index: Index, rules: Rules, keys: Array, level: Array) -> None:
        self.index, self.rules, self.keys, self.level = index, rules, keys, level
        self.n = index.node_count
        self.a = Numpy(index.arrays)
        self.base = self.a["dataset_base"]
        self.dataset = self.a["node_dataset"]
        self.elided = (self.a["dataset_flags"] & ELIDED) != 0

    def ranking(self, subjects: Collection[int], limit: int | None = None) -> Ranking:
        """See ``Reach``: the nearest ``limit`` of all that was reached, but the subjects; None: all of it."""
        own = np.array(sorted(subjects), np.int64)
        rank = np.array(self.rules.rank, np.int64)
        states = range(self.rules.states)
        node_rank = np.full(self.n, 255, np.uint8)
        place = np.zeros(self.n, np.uint32)
        state_of = self.keys // self.n
        for state in sorted(states, key=lambda s: self.rules.rank[s]):
            at = np.flatnonzero(state_of == state)
            nodes = self.keys[at] - state * self.n
            free = node_rank[nodes] == 255
            node_rank[nodes[free]] = rank[state]
            place[nodes[free]] = at[free]
        best = np.flatnonzero(node_rank != 255)
        if self.elided.any():
            best = best[~self.elided[self.dataset[best]]]
        dataset = self.dataset[best].astype(np.int64)
        rows = self.base[dataset]
        is_rows = rows == best
        seed = np.isin(best, own)
        implies = np.array([self.rules.implies(state) for state in states])
        implying = implies[self.keys[place[rows].astype(np.int64)] // self.n]
        raised = (node_rank[rows] < node_rank[best]) & implying
        at = place[np.where(raised, rows, best)].astype(np.int64)
        final = rank[self.keys[at] // self.n]
        implied, affected = self._implied(best, dataset, is_rows & implying, seed, own)
        counts = ~(seed | np.isin(best, self.a["unknown"]))
        columns = np.bincount(final, weights=np.where(is_rows, implied, 1) * counts, minlength=int(rank.max()) + 1)
        whole = is_rows & implying & ~seed & (self.a["dataset_columns"][dataset] == 0)
        bare = np.bincount(final[whole], minlength=int(rank.max()) + 1)
        shown = np.flatnonzero(~seed)
        hops = self.level[at]
        order = (final << 56) | (hops << 32) | best
        folded = ~is_rows & (node_rank[rows] == final) & ~np.isin(rows, own) & self.rules.folds
        single = shown[~folded[shown]]
        lines = _nearest(single, order, limit)
        listed = np.isin(dataset, dataset[lines]) & folded & ~seed
        implied = np.where(is_rows, implied, 0)

        def reached(chosen: Array) -> list[Reached]:
            fields = (best, self.keys[at], final, hops, implied, folded)
            return [Reached(*values) for values in zip(*(each[chosen].tolist() for each in fields), strict=True)]

        touched = np.zeros(self.index.dataset_count, bool)
        touched[dataset[~seed]] = True
        return Ranking(
            shown=reached(_nearest(shown, order, limit)),
            total=len(shown),
            lines=reached(lines),
            folded=reached(_nearest(np.flatnonzero(listed), order, None)),
            line_total=len(single),
            columns=tuple(int(c) for c in columns),
            bare=tuple(bare.tolist()),
            datasets=int(np.count_nonzero(touched)),
            affected=affected,
        )

    def _implied(self, best: Array, dataset: Array, implying: Array, seed: Array, own: Array) -> tuple[Array, int]:
        """Per node: for a row set that implies columns, those not reached by themselves; and all columns affected."""
        total = self.a["dataset_columns"].astype(np.int64)
        nested = self.a["nested"]
        column = (self.base[dataset] != best) & ~np.isin(best, self.a["unknown"])
        deep = np.isin(best, nested) if len(nested) else np.zeros(len(best), bool)
        alone = np.bincount(dataset[column & ~deep], minlength=self.index.dataset_count)
        implied = np.where(implying, total[dataset] - alone[dataset], 0)
        mark = np.zeros(self.n, bool)
        mark[best[column & ~deep]] = True
        outer = own[(self.base[self.dataset[own]] != own) & ~np.isin(own, self.a["unknown"])]
        if len(nested):
            fields = [*best[deep & column].tolist(), *outer.tolist()]
            outer = np.array([(self.index.containers(node) or [node])[-1] for node in fields], np.int64)
        mark[outer] = True
        touched = np.add.reduceat(mark, self.base[:-1], dtype=np.int64)
        mark[own] = False
        counted = np.add.reduceat(mark, self.base[:-1], dtype=np.int64)
        covered = dataset[implying & ~seed]
        affected = int(counted[~self.elided].sum()) + int((total[covered] - touched[covered]).sum())
        return implied, affected


def _nearest(places: Array, order: Array, limit: int | None) -> Array:
    """Sort places by their order; with a limit, return the first."""
    keys = order[places]
    if limit is not None and limit < len(keys):
        first = np.argpartition(keys, limit)[:limit]
        return places[first[np.argsort(keys[first])]]
    return places[np.argsort(keys)]

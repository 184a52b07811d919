"""The fixpoint of up to 64 taints, one bit each, over numpy arrays: frontiers, and one sweep where they grow large."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from govtool.arrays.csr import spread
from govtool.arrays.numpy_threads import np
from govtool.arrays.sets import distinct, distinct_nodes
from govtool.arrays.threads import side_by_side
from govtool.graph.codes import KIND_MASK, TAGS
from govtool.graph.index import Index
from govtool.graph.order import Entering, Order, RankPart
from govtool.model.kinds import EdgeKind
from govtool.policy.classes.taints import ALL, Mode, Taint, becomes, mapping
from govtool.policy.classes.transfer import Transfers
from govtool.policy.files.policy_set import Lattice

Array = np.ndarray[Any, np.dtype[Any]]
Bits = list[Array | None]
"""Taints of some nodes by mode; None where the graph has none in that mode yet."""
SWEEP = 16
"""A sweep takes over once a frontier exceeds 1/16 of all nodes, or the frontiers have followed 1/16 of all edges."""
_PIECE = 1 << 16
_NONE = np.empty(0, np.int64)


class Steps:
    """The data shared by all taints: how tags turn modes, which nodes lie within each other, and their order.

    Args:
        index: The graph.
        words: Groups of 64 taints.
    """

    def __init__(self, index: Index, words: int = 1) -> None:
        self.index = index
        self.words = words
        used = _tags(index)
        self.turns = _turns(used, any_column=False)
        self.opens = _turns(used, any_column=True)
        child, above = np.asarray(index.nested, np.int64), np.asarray(index.arrays["nested_parent"], np.int64)
        pairs_from, pairs_to = [child], [above]
        of = above
        owner = child
        while len(child):
            at = np.minimum(np.searchsorted(child, of), len(child) - 1)
            more = child[at] == of
            if not more.any():
                break
            owner, of = owner[more], above[at[more]]
            pairs_from.append(owner)
            pairs_to.append(of)
        start = np.concatenate([*pairs_from, *pairs_to])
        end = np.concatenate([*pairs_to, *pairs_from])
        order = np.argsort(start, kind="stable")
        self.start, self.end = start[order], end[order]

    def related(self, nodes: Array) -> tuple[Array, Array]:
        """The columns that contain, or are fields of, some nodes; and for each the position of its node."""
        if not len(self.start):
            return _NONE, _NONE
        low, high = np.searchsorted(self.start, nodes), np.searchsorted(self.start, nodes, side="right")
        at, owner = spread(low, high)
        return self.end[at], owner

    @cached_property
    def order(self) -> Order:
        """The nodes of the graph in order."""
        return Order(self.index, keep=self.words > 1)

    @cached_property
    def around(self) -> Array:
        """Nodes whose data leaves by other edges than their own."""
        found = [self.start]
        if self.index.meta["opaque_rows"]:
            a = self.index.arrays
            base, open_ = (
                np.asarray(a["dataset_base"]).astype(np.int64),
                np.flatnonzero(np.asarray(a["dataset_opaque"])),
            )
            found.append(spread(base[open_] + 1, base[open_ + 1])[0])
        return distinct(np.concatenate(found))


def _tags(index: Index) -> list[int]:
    """The tags of all edges of the graph, and others of the same kinds."""
    found = 0
    tag = np.asarray(index.arrays["edge_tag"])
    for kinds in (range(8), range(8, 16)):
        table = bytes(1 << (code & 7) if code & KIND_MASK in kinds else 0 for code in range(256))
        for low in range(0, len(tag), _PIECE):
            piece = tag[low : low + _PIECE].tobytes().translate(table)
            found |= int(np.bitwise_or.reduce(np.frombuffer(piece, np.uint8))) << kinds.start
    return [code for code in range(TAGS) if found >> (code & KIND_MASK) & 1]


def _turns(tags: Sequence[int], *, any_column: bool) -> dict[tuple[Mode, Mode], Array]:
    """For a mode before and a mode after the edge uint64[tags]: all ones where a tag turns the one into the other."""
    found: dict[tuple[Mode, Mode], Array] = {}
    for tag in tags:
        if tag & KIND_MASK > EdgeKind.OPAQUE:
            continue
        for mode in Mode:
            behind = becomes(mode, EdgeKind(tag & KIND_MASK), any_column=any_column)
            if behind is not None:
                table = found.setdefault((mode, behind), np.zeros(TAGS, np.uint64))
                table[tag] = np.uint64(ALL)
    return found


class Word:
    """The fixpoint of up to 64 taints."""

    def __init__(
        self,
        index: Index,
        steps: Steps,
        taints: Sequence[Taint],
        transfers: Transfers,
        lattice: Lattice,
        blocked: Collection[int],
        stops: Mapping[int, frozenset[str]],
    ) -> None:
        self.steps = steps
        masks = {e: sum(1 << bit for bit, t in enumerate(taints) if t.stopped_by(names)) for e, names in stops.items()}
        self.stop_edge = np.array(sorted(e for e, mask in masks.items() if mask), np.int64)
        self.stop_keep = np.array([ALL ^ masks[e] for e in self.stop_edge.tolist()], np.uint64)
        self.blocked = np.fromiter(sorted(blocked), np.int64, len(blocked))
        a = index.arrays
        self.forward, self.tag = np.asarray(a["forward"]), np.asarray(a["edge_tag"])
        self.source, self.target = np.asarray(a["edge_source"]), np.asarray(a["edge_target"])
        self.followed = 0
        self.dataset, self.base = np.asarray(a["node_dataset"]), np.asarray(a["dataset_base"])
        self.open = np.asarray(a["dataset_opaque"]) if index.meta["opaque_rows"] else None
        self.n = index.node_count
        self.edge_transfer = transfers.edge
        self.maps = [mapping(taints, transfers, lattice, i) for i in range(len(transfers.kinds))]
        self.have = [np.zeros(self.n, np.uint64) for _ in Mode]
        self.fresh = [np.zeros(self.n, np.uint64) for _ in Mode]
        self.modes: set[Mode] = set()
        """Those in which there are taints anywhere."""

    def run(self, seeds: tuple[Array, Array], unknown: tuple[Array, Array]) -> list[Array]:
        """Run to the fixpoint from nodes and the bits of each, values and what is unknown."""
        for mode, (nodes, values) in ((Mode.VALUE, seeds), (Mode.UNKNOWN, unknown)):
            if mode is Mode.VALUE or len(nodes):
                self.have[mode][nodes] = values
                self.modes.add(mode)
        frontier = distinct(np.concatenate([seeds[0], unknown[0]])) if len(unknown[0]) else seeds[0]
        bits = self._here(self.have, frontier)
        swept = False
        while len(frontier):
            if not swept and self._much(frontier):
                frontier, swept = self._sweep(), True
            else:
                frontier = self._step(frontier, bits)
            bits = self._taken(frontier)
        return self.have

    def _much(self, frontier: Array) -> bool:
        """Return whether so much is reached that a sweep is faster."""
        if len(frontier) * SWEEP > self.n:
            return True
        ahead = int(self.forward[frontier + 1].sum(dtype=np.int64) - self.forward[frontier].sum(dtype=np.int64))
        return (self.followed + ahead) * SWEEP > len(self.target)

    def _step(self, frontier: Array, bits: Bits) -> Array:
        """Carry what is new at some nodes one step further; return the nodes that have something new by that."""
        touched = [self._along(frontier, bits)]
        around, owner = self.steps.related(frontier)
        if len(around):
            touched.append(self._along(around, _at(bits, owner)))
        touched.append(self._out_of_rows(frontier, bits))
        return distinct_nodes(touched, self.n)

    def _here(self, sets: Sequence[Array], nodes: Array) -> Bits:
        """Return the taints of some nodes."""
        return [sets[mode].take(nodes) if mode in self.modes else None for mode in Mode]

    def _taken(self, frontier: Array) -> Bits:
        """Return the new taints of some nodes, which they have from now on."""
        bits = self._here(self.fresh, frontier)
        for have, fresh, new in zip(self.have, self.fresh, bits, strict=True):
            if new is not None and new.any():
                have[frontier] |= new
                fresh[frontier] = 0
        return bits

    def _sweep(self) -> Array:
        """Go through the whole graph once in order; return the rest: circles, and columns with other ways.

        The parts of a level depend on earlier levels only, and each writes to its own nodes.
        """
        order = self.steps.order
        late = [_NONE]
        with side_by_side(max(map(len, order.levels), default=0)) as parallel:
            for level in order.levels:
                pulled = list((parallel if len(level) > 1 else map)(self._pull, level))
                late += [nodes for nodes, _ in pulled]
                self.modes.update(*(modes for _, modes in pulled))
        again = distinct(np.concatenate(late))
        for entering in order.into(again):
            for behind, brought in self._brought(entering):
                self.fresh[behind][entering.node] |= brought & ~self.have[behind][entering.node]
                self.modes.add(behind)
        around = self.steps.around
        for have, fresh in zip(self.have, self.fresh, strict=True):
            fresh[around] |= have[around]
        again = distinct(np.concatenate([again, around]))
        return again[np.logical_or.reduce([fresh[again] != 0 for fresh in self.fresh])]

    def _pull(self, part: RankPart) -> tuple[Array, set[Mode]]:
        """Give nodes what edges from earlier levels bring; return those that others enter, and the modes brought."""
        entering, late = self.steps.order.entering(part)
        modes = set()
        for behind, brought in self._brought(entering):
            self.have[behind][entering.node] |= brought
            modes.add(behind)
        return late, modes

    def _brought(self, entering: Entering) -> Iterator[tuple[Mode, Array]]:
        """Return what all edges into nodes bring them, by the mode after the edge."""
        if not len(entering.edge):
            return
        transfer = self.edge_transfer[entering.edge] if len(self.edge_transfer) else None
        stays = ~np.isin(entering.node, self.blocked) if len(self.blocked) else None
        bits = self._here(self.have, entering.source.astype(np.int64))
        for behind, carried in self._carried(bits, None, entering.edge, entering.tag, transfer, self.steps.turns):
            brought = entering.joined(carried)
            if stays is not None:
                brought[~stays] = 0
            yield behind, brought

    def _along(self, nodes: Array, bits: Bits) -> Array:
        """Follow the edges out of nodes."""
        start, stop = self.forward[nodes].astype(np.int64), self.forward[nodes + 1].astype(np.int64)
        return self._follow(start, stop, bits, self.steps.turns)

    def _out_of_rows(self, nodes: Array, bits: Bits) -> Array:
        """Follow the edges that stand for any column of the nodes' datasets."""
        if self.open is None:
            return _NONE
        dataset = self.dataset[nodes]
        rows = self.base[dataset].astype(np.int64)
        some = np.flatnonzero((self.open[dataset] > 0) & (rows != nodes))
        if not len(some):
            return _NONE
        start = self.forward[rows[some]].astype(np.int64)
        return self._follow(start, start + self.open[dataset[some]], _at(bits, some), self.steps.opens)

    def _follow(self, start: Array, stop: Array, bits: Bits, turns: Mapping[tuple[Mode, Mode], Array]) -> Array:
        """Carry bits over ranges of edges; return the nodes that have something new."""
        edge, owner = spread(start, stop)
        self.followed += len(edge)
        if not len(edge):
            return _NONE
        tag, target = self.tag[edge], self.target[edge]
        transfer = self.edge_transfer[edge] if len(self.edge_transfer) else None
        found = []
        for behind, carried in self._carried(bits, owner, edge, tag, transfer, turns):
            carried &= ~self.have[behind][target]
            if len(self.blocked):
                carried[np.isin(target, self.blocked)] = 0
            new = np.flatnonzero(carried)
            if len(new):
                nodes = target[new]
                np.bitwise_or.at(self.fresh[behind], nodes, carried[new])
                found.append(nodes.astype(np.int64))
                self.modes.add(behind)
        return np.concatenate(found) if found else _NONE

    def _carried(
        self,
        bits: Bits,
        owner: Array | None,
        edge: Array,
        tag: Array,
        transfer: Array | None,
        turns: Mapping[tuple[Mode, Mode], Array],
    ) -> Iterator[tuple[Mode, Array]]:
        """What each edge makes of the taints before it, by the mode after it; without owners the bits are of edges."""
        some = [b if b is not None and b.any() else None for b in bits]
        for behind in Mode:
            carried: Array | None = None
            for before in Mode:
                table, own = turns.get((before, behind)), some[before]
                if table is None or own is None:
                    continue
                moved = table.take(tag)
                moved &= own if owner is None else own.take(owner)
                if before is Mode.VALUE and behind is Mode.VALUE and transfer is not None:
                    moved = self._lowered(moved, transfer)
                if before is Mode.UNKNOWN and len(self.stop_edge):
                    at = np.minimum(np.searchsorted(self.stop_edge, edge), len(self.stop_edge) - 1)
                    some_ = np.flatnonzero(self.stop_edge[at] == edge)
                    moved[some_] &= self.stop_keep[at[some_]]
                carried = moved if carried is None else np.bitwise_or(carried, moved, out=carried)
            if carried is not None:
                yield behind, carried

    def _lowered(self, bits: Array, transfer: Array) -> Array:
        for number, (kept, moves) in enumerate(self.maps):
            if not number or (not moves and kept == ALL):
                continue
            some = np.flatnonzero(transfer == number)
            if not len(some):
                continue
            before = bits[some]
            after = before & np.uint64(kept)
            for bit, to in moves:
                after |= ((before >> np.uint64(bit)) & np.uint64(1)) << np.uint64(to)
            bits[some] = after
        return bits


def _at(bits: Bits, places: Array) -> Bits:
    return [None if b is None else b[places] for b in bits]

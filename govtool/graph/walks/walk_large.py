"""The walk in numpy: the same answers as ``SmallWalk`` for walks over millions of edges. See ``walk``."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from govtool.arrays.csr import spread
from govtool.arrays.numpy_threads import np
from govtool.arrays.sets import Array
from govtool.arrays.splice import Numpy
from govtool.graph.codes import DECLARE, DEFINING, ELIDED, PARTITION, REPLACE, ROW_MAKER, WHOLE
from govtool.graph.index import Index
from govtool.graph.walks.rank_large import LargeRanking
from govtool.graph.walks.reference_arrays import dataset_and_derivation, own_references, taken_by_position
from govtool.graph.walks.rules import (
    BY_POSITION,
    CHECK,
    MOVED,
    OTHERS,
    STATE,
    STATEMENT,
    Ranking,
    Rules,
    SourceRelation,
)

_Found = tuple[Array, Array, Array]
"""Keys, keys before them, edges between."""

_NONE = np.empty(0, np.int64)


class LargeWalk:
    """The walk in whole frontiers; also its own outcome."""

    def __init__(self, index: Index, rules: Rules, backward: bool) -> None:
        self.index = index
        self.rules = rules
        self.n = index.node_count
        self.backward = backward
        self.a = Numpy(index.arrays)
        self.base = self.a["dataset_base"]
        self.dataset = self.a["node_dataset"]
        self.elided = (self.a["dataset_flags"] & ELIDED) != 0
        # Position of each key in the order of discovery, 1-based; the pages of what is never reached stay untouched.
        self.position = np.zeros(rules.states * self.n, np.uint32)
        self.count = 0
        self.parts: list[tuple[Array, Array, Array, Array]] = []
        self.broken = np.zeros((rules.states, len(index.arrays["statement"])), bool)
        self.opened: set[tuple[int, int]] = set()
        self.related: dict[int, list[int]] = {}
        self.defined: Array | None = None
        self.by_position: Array | None = None
        self.inheriting: Array | None = None

    def run(self, seeds: list[int], depth: int | None) -> LargeWalk:
        """Walk to the end."""
        frontier = np.array(seeds, np.int64)
        nothing = np.full(len(frontier), -1, np.int64)
        frontier = self._take(frontier, nothing, nothing, 0)
        level = 0
        while len(frontier):
            following = []
            while len(frontier):
                passed = []
                for key, before, edge in self._expand(frontier):
                    through = self.elided[self.dataset[key % self.n]] if self.elided.any() else np.zeros(len(key), bool)
                    passed.append(self._take(key[through], before[through], edge[through], level))
                    if depth is None or level < depth:
                        on = ~through
                        following.append(self._take(key[on], before[on], edge[on], level + 1))
                frontier = np.sort(np.concatenate(passed)) if passed else _NONE
            level += 1
            frontier = np.sort(np.concatenate(following)) if following else _NONE
        self._join()
        return self

    def _take(self, key: Array, before: Array, edge: Array, hops: int) -> Array:
        """Record the keys that are new, the first of equal ones; return them."""
        new = self.position[key] == 0
        key, before, edge = key[new], before[new], edge[new]
        if not len(key):
            return key
        number = np.arange(self.count + 1, self.count + 1 + len(key), dtype=np.uint32)
        # Of equal indices numpy keeps the last assignment: write backwards so that the first discovery stands.
        self.position[key[::-1]] = number[::-1]
        first = self.position[key] == number
        if not first.all():
            key, before, edge = key[first], before[first], edge[first]
            self.position[key] = number[: len(key)]
        self.count += len(key)
        self.parts.append((key, before, edge, np.full(len(key), hops, np.int64)))
        return key

    def _join(self) -> None:
        keys, before, edges, hops = zip(*self.parts, strict=True) if self.parts else ((), (), (), ())
        self.keys = np.concatenate(keys) if keys else _NONE
        self.before = np.concatenate(before) if before else _NONE
        self.edges = np.concatenate(edges) if edges else _NONE
        self.level = np.concatenate(hops) if hops else _NONE

    def _expand(self, frontier: Array) -> Iterator[_Found]:
        if self.backward:
            yield self._sources(frontier)
            return
        for state in range(self.rules.states):
            low, high = np.searchsorted(frontier, [state * self.n, (state + 1) * self.n])
            if low == high:
                continue
            nodes = frontier[low:high] - state * self.n
            for relation in SourceRelation:
                yield from self._related(state, relation, nodes)
            if self.rules.references and self.index.reference_count:
                yield from self._referring(state, nodes)
            if self.rules.inherited and self.rules.inherited[state] >= 0:
                yield from self._inheriting(state, nodes)

    def _inheriting(self, state: int, nodes: Array) -> Iterator[_Found]:
        """Follow columns to those of the tables that inherit them; see ``SmallWalk._inheriting``."""
        inheriting = self._inheriting_targets()
        if not len(inheriting):
            return
        chosen = nodes[np.isin(self.dataset[nodes], inheriting)]
        found = [
            (self.rules.inherited[state] * self.n + source, state * self.n + node, edge)
            for node in chosen.tolist()
            for source, edge in self.index.inheritors(node)
        ]
        if found:
            key, before, edge = np.array(found, np.int64).T
            yield key, before, edge

    def _inheriting_targets(self) -> Array:
        """The targets of derivations that make rows of one table those of another; found when first needed."""
        if self.inheriting is None:
            kinds = np.asarray(self.index.arrays["derivation_kind"])
            parts = [number for number in np.unique(kinds).tolist() if self.index.string(number) == PARTITION]
            made = np.flatnonzero(np.isin(kinds, parts))
            self.inheriting = self.a["derivation_target"][made] if len(made) else _NONE
        return self.inheriting

    def _related(self, state: int, relation: SourceRelation, nodes: Array) -> Iterator[_Found]:
        start, stop, origin = self._ranges(state, relation, nodes)
        if not len(start):
            return
        edge, owner = spread(start, stop)
        table = np.frombuffer(self.rules.actions[state][relation], np.uint8)
        action = table[self.a["edge_tag"][edge]] if len(edge) else np.empty(0, np.uint8)
        some = np.flatnonzero(action)
        edge, action, before = edge[some], action[some], origin[owner[some]] + state * self.n
        check = self.rules.check
        if check is not None:
            for i in np.flatnonzero(action & CHECK).tolist():
                action[i] = check(int(edge[i]))
            if not action.all():
                some = np.flatnonzero(action)
                edge, action, before = edge[some], action[some], before[some]
        if not len(edge):
            return
        if self.rules.moved is not None and (action & MOVED).any():
            yield self._moved(edge, before, action)
        target = self.a["edge_target"][edge].astype(np.int64)
        reached = (action & STATE).astype(np.int64) - 1
        whole_statement = (action & STATEMENT) != 0
        others = (action & OTHERS) != 0
        if not whole_statement.any() and not others.any():
            yield reached * self.n + target, before, edge
            return
        rows = whole_statement & (self.base[self.dataset[target]] == target)
        derivation = self.a["edge_derivation"][edge]
        makes_all = self.a["derivation_whole"][derivation] == WHOLE
        goal = np.where(rows, self._rows_state(derivation), reached) * self.n + target
        keep = ~(rows & makes_all)
        yield goal[keep], before[keep], edge[keep]
        reached = np.where(others, self.rules.others_state, reached)
        every = (whole_statement & ~self._are_conditions(derivation)) | others
        yield self._outputs(reached[every], edge[every], before[every])

    def _moved(self, edge: Array, before: Array, action: Array) -> _Found:
        """The outputs that move because of an edge; see ``Rules.moved``."""
        assert self.rules.moved is not None
        keys: list[int] = []
        at: list[int] = []
        for i in np.flatnonzero(action & MOVED).tolist():
            for node, state in self.rules.moved(int(edge[i])):
                keys.append(state * self.n + node)
                at.append(i)
        positions = np.array(at, np.int64)
        return np.array(keys, np.int64), before[positions], edge[positions]

    def _referring(self, state: int, nodes: Array) -> Iterator[_Found]:
        """Follow references to columns; see ``SmallWalk._referring``."""
        for relation, action in enumerate(self.rules.references[state]):
            reference, origin = self._references(relation, nodes) if action else (_NONE, _NONE)
            kept = self._followed(reference, origin, state)
            reference, origin = reference[kept], origin[kept]
            if not len(reference):
                continue
            reached = (action & STATE) - 1
            before, edge = origin + state * self.n, reference + self.index.edge_count
            rows = self.a["reference_rows"][reference].astype(np.int64)
            if not action & STATEMENT:
                yield reached * self.n + rows, before, edge
                continue
            own = own_references(self.a, self.dataset, reference)
            referrer = self.a["reference_derivation"][reference]
            part = own | (self.a["derivation_whole"][referrer] != WHOLE)
            rows_state = np.where(own, self.rules.rows_only_state, self._rows_state(referrer))
            yield (rows_state * self.n + rows)[part], before[part], edge[part]
            fails = ~self._are_conditions(referrer)
            edge, before = edge[fails], before[fails]
            yield self._outputs(np.full(len(edge), reached, np.int64), edge, before)

    def _are_conditions(self, derivation: Array) -> Array:
        """See ``Index.is_condition``."""
        declares: Array = np.asarray(self.index.arrays["derivation_mode"])[derivation] == DECLARE
        return declares & self._no_outputs(derivation)

    def _no_outputs(self, derivation: Array) -> Array:
        none: Array = self.a["output"][derivation] == self.a["output"][derivation.astype(np.int64) + 1]
        return none

    def _rows_state(self, derivation: Array) -> Array:
        """See ``SmallWalk._rows_state``."""
        nothing = self._no_outputs(derivation)
        return np.where(nothing, self.rules.rows_only_state, self.rules.rows_state).astype(np.int64)

    def _followed(self, reference: Array, origin: Array, state: int) -> Array:
        """Return which references matter; see ``Index.is_referred`` and ``Index.takes_position``."""
        own = own_references(self.a, self.dataset, reference)
        kept: Array = ~own
        if self.rules.by_name:
            if self.by_position is None:
                self.by_position = taken_by_position(self.a, self.dataset, self.base)
            kept &= ~np.isin(dataset_and_derivation(self.a, self.dataset, reference), self.by_position)
        if own.any():
            seeds = self.parts[0][0] if self.parts else _NONE
            kept |= own & (np.isin(origin + state * self.n, seeds) | self._defined()[origin])
        return kept

    def _defined(self) -> Array:
        """By node, ``Index.is_defined``."""
        if self.defined is None:
            kinds = np.asarray(self.index.arrays["derivation_kind"])
            creates = [number for number in np.unique(kinds).tolist() if self.index.string(number) in DEFINING]
            makes = np.isin(kinds, creates) & (np.asarray(self.index.arrays["derivation_mode"]) == REPLACE)
            self.defined = np.zeros(self.n, bool)
            self.defined[self.a["edge_target"][makes[self.a["edge_derivation"]]]] = True
        return self.defined

    def _references(self, relation: int, nodes: Array) -> tuple[Array, Array]:
        """The references to nodes, to their fields, to what contains them or to their row sets, each with its node."""
        if relation == SourceRelation.SELF:
            origin = named = nodes
        elif relation == BY_POSITION:
            origin = nodes[self.base[self.dataset[nodes]] != nodes]
            named = self.base[self.dataset[origin]]
        else:
            origin, named = self._struct_pairs(SourceRelation(relation), nodes)
        low = np.searchsorted(self.a["reference"], named)
        reference, owner = spread(low, np.searchsorted(self.a["reference"], named, "right"))
        return reference, origin[owner] if len(reference) else _NONE

    def _derivations(self, edge: Array) -> Array:
        """The derivations behind edges and references."""
        edges = self.index.edge_count
        found = np.empty(len(edge), np.int64)
        plain = edge < edges
        found[plain] = self.a["edge_derivation"][edge[plain]]
        found[~plain] = self.a["reference_derivation"][edge[~plain] - edges]
        return found

    def _ranges(self, state: int, relation: SourceRelation, nodes: Array) -> tuple[Array, Array, Array]:
        """The ranges of edges to follow, and the node that each is followed from."""
        forward = self.a["forward"]
        if relation in (SourceRelation.PART, SourceRelation.WHOLE):
            return self._struct_ranges(relation, nodes)
        dataset = self.dataset[nodes]
        is_rows = self.base[dataset] == nodes
        if relation is SourceRelation.ANY_COLUMN:
            if not self.index.meta["opaque_rows"]:
                return _NONE, _NONE, _NONE
            columns, owners = nodes[~is_rows], dataset[~is_rows]
            _, first = np.unique(owners, return_index=True)
            fresh = [i for i in first.tolist() if (state, int(owners[i])) not in self.opened]
            fresh.sort()
            self.opened.update((state, int(owners[i])) for i in fresh)
            owners = owners[fresh]
            start = forward[self.base[owners]].astype(np.int64)
            return start, start + self.a["dataset_opaque"][owners], columns[fresh]
        chosen = nodes[is_rows if relation is SourceRelation.ROWS else ~is_rows]
        return forward[chosen].astype(np.int64), forward[chosen + 1].astype(np.int64), chosen

    def _struct_ranges(self, relation: SourceRelation, nodes: Array) -> tuple[Array, Array, Array]:
        """The edges of fields or containers."""
        origin, others = self._struct_pairs(relation, nodes)
        forward = self.a["forward"]
        return forward[others].astype(np.int64), forward[others + 1].astype(np.int64), origin

    def _struct_pairs(self, relation: SourceRelation, nodes: Array) -> tuple[Array, Array]:
        """Fields and containers are few: found one by one, from the nodes that have any."""
        own = self.a["container" if relation is SourceRelation.PART else "nested"]
        if not len(own):
            return _NONE, _NONE
        at = np.searchsorted(own, nodes)
        some = nodes[own[np.minimum(at, len(own) - 1)] == nodes]
        find = self.index.fields if relation is SourceRelation.PART else self.index.containers
        pairs = [(node, other) for node in some.tolist() for other in find(node)]
        origin = np.array([node for node, _ in pairs], np.int64)
        return origin, np.array([other for _, other in pairs], np.int64)

    def _outputs(self, state: Array, edge: Array, before: Array) -> _Found:
        """Every output of the statements of edges, once a statement and state, in the order of the edges."""
        a = self.a
        number = a["derivation_statement"][self._derivations(edge)].astype(np.int64)
        fresh = np.flatnonzero(~self.broken[state, number])
        width = self.broken.shape[1]
        first = np.sort(np.unique(state[fresh] * width + number[fresh], return_index=True)[1])
        fresh = fresh[first]
        state, number, edge, before = state[fresh], number[fresh], edge[fresh], before[fresh]
        self.broken[state, number] = True
        at, owner = spread(a["statement"][number].astype(np.int64), a["statement"][number + 1].astype(np.int64))
        derivation = a["statement_derivation"][at].astype(np.int64)
        kind = a["derivation_whole"][derivation]
        rows = self.base[a["derivation_target"][derivation]].astype(np.int64)
        parts = []
        # Two numbers order the outcome as the other walker finds it: the derivation, then the place among its outputs.
        for chosen, goal in (
            (kind == WHOLE, state[owner] * self.n + rows),
            (kind == ROW_MAKER, self.rules.rows_state * self.n + rows),
        ):
            i = np.flatnonzero(chosen)
            parts.append((i, np.zeros(len(i), np.int64), goal[i]))
        part = np.flatnonzero(kind != WHOLE)
        low = a["output"][derivation[part]].astype(np.int64)
        out, belongs = spread(low, a["output"][derivation[part] + 1].astype(np.int64))
        i = part[belongs]
        nodes = self.a["output_node"][out].astype(np.int64) if len(out) else _NONE
        parts.append((i, 1 + out - low[belongs], state[owner[i]] * self.n + nodes))
        place = np.concatenate([p[0] for p in parts])
        order = np.lexsort((np.concatenate([p[1] for p in parts]), place))
        place = owner[place[order]]
        return np.concatenate([p[2] for p in parts])[order], before[place], edge[place]

    def _sources(self, frontier: Array) -> _Found:
        """One step backwards."""
        a = self.a
        node = frontier % self.n
        backward = a["backward"]
        state = frontier // self.n
        last = np.where(state == self.rules.any_column, self.base[self.dataset[node] + 1], node + 1)
        start, stop = backward[node].astype(np.int64), backward[last].astype(np.int64)
        origin = np.arange(len(node))
        if len(self.a["nested"]):
            extra = [
                (i, other)
                for i, key in enumerate(frontier.tolist())
                if key // self.n != self.rules.any_column
                for other in (*self.index.containers(key % self.n), *self.index.fields(key % self.n))
            ]
            others = np.array([other for _, other in extra], np.int64)
            origin = np.concatenate([origin, np.array([i for i, _ in extra], np.int64)])
            order = np.argsort(origin, kind="stable")
            start = np.concatenate([start, backward[others]])[order].astype(np.int64)
            stop = np.concatenate([stop, backward[others + 1]])[order].astype(np.int64)
            origin = origin[order]
        at, owner = spread(start, stop)
        if not len(at):
            return _NONE, _NONE, _NONE
        edge = a["backward_edge"][at].astype(np.int64)
        tag = a["edge_tag"][edge]
        tables = np.array(
            [
                [np.frombuffer(by_relation[one], np.uint8) for one in (SourceRelation.SELF, SourceRelation.ANY_COLUMN)]
                for by_relation in self.rules.actions
            ]
        )
        source = a["edge_source"][edge].astype(np.int64)
        origin = origin[owner]
        out_of_rows = (self.base[self.dataset[source]] == source).astype(np.int64)
        action = tables[state[origin], out_of_rows, tag]
        keep = action != 0
        reached = (action[keep] & STATE).astype(np.int64) - 1
        return reached * self.n + source[keep], frontier[origin[keep]], edge[keep]

    def __contains__(self, key: int) -> bool:
        """Return whether a key was reached."""
        return bool(self.position[key])

    def __len__(self) -> int:
        """The number of keys reached."""
        return self.count

    def hops(self, key: int) -> int:
        """The length of the shortest way to a key."""
        return int(self.level[int(self.position[key]) - 1])

    def step(self, key: int) -> tuple[int, int] | None:
        """The key before it and the edge between."""
        at = int(self.position[key]) - 1
        before = int(self.before[at])
        return None if before < 0 else (before, int(self.edges[at]))

    def ranking(self, subjects: Collection[int], limit: int | None = None) -> Ranking:
        """See ``Reach``."""
        return LargeRanking(self.index, self.rules, self.keys, self.level).ranking(subjects, limit)

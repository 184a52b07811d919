"""Walks over the index: what is reached from some nodes, in which states, in how many hops and by which way.

A walk knows states, not verdicts: ``Rules`` say for every state, relation and edge tag in which state the edge's target
is reached. A node may be reached in several states; each (state, node) pair is a *key*, ``state * nodes + node``, and
is visited once, over a shortest way. A hop enters a dataset that answers show; temporary ones cost nothing.

Forwards, what is reached follows more than its edges (``SourceRelation``): a struct contains its fields, an edge out
of a row set that is not ``read`` stands for any of its columns. Backwards is the same relation turned round.

There are two walkers with the same answers: one in plain Python, which starts at once and serves nearly all questions,
and one in numpy, which takes over when a walk grows large.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from govtool.graph.codes import ELIDED, PARTITION, ROW_MAKER, WHOLE
from govtool.graph.index import Index
from govtool.graph.walks.rules import (
    BY_POSITION,
    CHECK,
    MOVED,
    OTHERS,
    STATE,
    STATEMENT,
    Ranking,
    Reach,
    Reached,
    Rules,
    SourceRelation,
)

SMALL = 15_000
"""Edges that the walk in plain Python looks at before numpy takes over: about the time that importing numpy takes."""


def walk(
    index: Index,
    seeds: Iterable[int],
    rules: Rules,
    *,
    backward: bool = False,
    depth: int | None = None,
    small: int = SMALL,
) -> Reach:
    """Walk from seeds.

    Args:
        index: The graph.
        seeds: Keys.
        rules: What edges do. Backwards, the relation of an edge out of a row set is ``ANY_COLUMN``, that of any other
            ``SELF``; see ``Rules.any_column``.
        backward: Against the edges.
        depth: Hops to take at most.
        small: Edges to look at before numpy takes over.
    """
    start = sorted(set(seeds))
    found = SmallWalk(index, rules, backward).run(start, depth, small)
    if found is not None:
        return found
    from govtool.graph.walks.walk_large import LargeWalk

    return LargeWalk(index.resident(), rules, backward).run(start, depth)


Candidate = tuple[int, int, int]
"""Key, key before it, edge between."""


class _TooLarge(Exception):
    pass


class SmallWalk:
    """The walk in plain Python; also its own outcome."""

    def __init__(self, index: Index, rules: Rules, backward: bool) -> None:
        self.index = index
        self.rules = rules
        self.n = index.node_count
        self.expand = self._backward if backward else self._forward
        self.seen: dict[int, tuple[int, int, int]] = {}
        """Key to hops, key before, edge; seeds have -1 for both."""
        self.broken: set[tuple[int, int]] = set()
        """States and statements of which all outputs were followed."""
        self.opened: set[tuple[int, int]] = set()
        """States and datasets of which all columns were followed."""
        self.has_partitions: dict[int, bool] = {}
        """By dataset whether some of its rows are those of a partition of it."""
        self.left = 0

    def run(self, seeds: list[int], depth: int | None, budget: int) -> SmallWalk | None:
        """Walk; ``None`` when more than ``budget`` edges were looked at."""
        self.left = budget
        self.seen = dict.fromkeys(seeds, (0, -1, -1))
        if len(seeds) > budget:
            return None
        flags, dataset = self.index.dataset_flags, self.index.node_dataset
        level, frontier = 0, seeds
        try:
            while frontier:
                following: list[int] = []
                while frontier:
                    passed: list[int] = []
                    for key, before, edge in self.expand(frontier):
                        if key in self.seen:
                            continue
                        if flags[dataset[key % self.n]] & ELIDED:
                            self.seen[key] = (level, before, edge)
                            passed.append(key)
                        elif depth is None or level < depth:
                            self.seen[key] = (level + 1, before, edge)
                            following.append(key)
                    frontier = sorted(passed)
                level, frontier = level + 1, sorted(following)
        except _TooLarge:
            return None
        return self

    def _spend(self, edges: int) -> None:
        self.left -= edges
        if self.left < 0:
            raise _TooLarge

    def _forward(self, frontier: list[int]) -> Iterator[Candidate]:
        for state in range(self.rules.states):
            nodes = [key - state * self.n for key in frontier if key // self.n == state]
            if nodes:
                for relation in SourceRelation:
                    yield from self._related(state, relation, nodes)
                if self.rules.references and self.index.reference_count:
                    yield from self._referring(state, nodes)
                if self.rules.inherited and self.rules.inherited[state] >= 0:
                    yield from self._inheriting(state, nodes)

    def _inheriting(self, state: int, nodes: list[int]) -> Iterator[Candidate]:
        """Follow columns to those of partitions and of tables that inherit them: they share their fate."""
        reached = self.rules.inherited[state]
        for node in nodes:
            if not self.index.is_rows(node) and self._has_parts(self.index.node_dataset[node]):
                for source, edge in self.index.inheritors(node):
                    yield reached * self.n + source, state * self.n + node, edge

    def _has_parts(self, dataset: int) -> bool:
        """Return whether rows of other tables are rows of this one."""
        known = self.has_partitions.get(dataset)
        if known is None:
            made = self.index.makers(dataset)
            known = self.has_partitions[dataset] = any(self.index.field(one, "kind") == PARTITION for one in made)
        return known

    def _related(self, state: int, relation: SourceRelation, nodes: list[int]) -> list[Candidate]:
        """Follow the edges of one relation from nodes in one state: first to their targets, then to outputs."""
        index, n = self.index, self.n
        actions, check = self.rules.actions[state][relation], self.rules.check
        tags, targets = index.edge_tag, index.edge_target
        direct: list[Candidate] = []
        indirect: list[Candidate] = []
        for node, edges in self._fetched(self._edges(state, relation, nodes)):
            self._spend(len(edges))
            before = state * n + node
            for edge in edges:
                action = actions[tags[edge]]
                if action & CHECK and check is not None:
                    action = check(edge)
                if not action:
                    continue
                goal, reached = targets[edge], (action & STATE) - 1
                if action & MOVED and self.rules.moved is not None:
                    direct += [(other * n + moved, before, edge) for moved, other in self.rules.moved(edge)]
                if not action & STATEMENT:
                    direct.append((reached * n + goal, before, edge))
                    if action & OTHERS:
                        indirect += ((key, before, edge) for key in self._outputs(self.rules.others_state, edge))
                    continue
                if not index.is_rows(goal):
                    direct.append((reached * n + goal, before, edge))
                elif index.whole(index.edge_derivation[edge]) != WHOLE:
                    direct.append((self._rows_state(index.edge_derivation[edge]) * n + goal, before, edge))
                if not index.is_condition(index.edge_derivation[edge]):
                    indirect += ((key, before, edge) for key in self._outputs(reached, edge))
        return direct + indirect

    def _fetched(self, related: Iterator[tuple[int, range]]) -> Iterable[tuple[int, range]]:
        """Fetch at once what edges lead to, as each page may be a request; unless there are too many to follow."""
        if not self.index.is_paged:
            return related
        known = list(related)
        if sum(len(edges) for _, edges in known) > self.left:
            raise _TooLarge
        self.index.prefetch(self.index.edge_target[edge] for _, edges in known for edge in edges)
        return known

    def _referring(self, state: int, nodes: list[int]) -> list[Candidate]:
        """Follow references to columns: to the row sets of what their statements make, then to the outputs."""
        index, n = self.index, self.n
        direct: list[Candidate] = []
        indirect: list[Candidate] = []
        for relation, action in enumerate(self.rules.references[state]):
            if not action:
                continue
            reached = (action & STATE) - 1
            for node, named in related_columns(index, relation, nodes):
                references = index.references(named)
                self._spend(len(references))
                before = state * n + node
                for reference in references:
                    if not index.is_referred(reference, node, seed=self.seen[before][1] < 0):
                        continue
                    if self.rules.by_name and index.takes_position(reference):
                        continue
                    edge, rows = index.edge_count + reference, index.referring_rows(reference)
                    if not action & STATEMENT:
                        direct.append((reached * n + rows, before, edge))
                        continue
                    referrer = index.referrer(reference)
                    if index.names_own(reference):
                        direct.append((self.rules.rows_only_state * n + rows, before, edge))
                    elif index.whole(referrer) != WHOLE:
                        direct.append((self._rows_state(referrer) * n + rows, before, edge))
                    if not index.is_condition(referrer):
                        indirect += ((key, before, edge) for key in self._outputs(reached, edge))
        return direct + indirect

    def _rows_state(self, derivation: int) -> int:
        """The state of the row set of what a broken statement makes: of a DELETE it is all that there is to tell."""
        return self.rules.rows_state if self.index.outputs(derivation) else self.rules.rows_only_state

    def _edges(self, state: int, relation: SourceRelation, nodes: list[int]) -> Iterator[tuple[int, range]]:
        index = self.index
        if relation in (SourceRelation.SELF, SourceRelation.ROWS):
            for node in nodes:
                if index.is_rows(node) == (relation is SourceRelation.ROWS):
                    yield node, index.out_edges(node)
        elif relation is SourceRelation.ANY_COLUMN:
            if not index.meta["opaque_rows"]:
                return
            for node in nodes:
                dataset = index.node_dataset[node]
                if (state, dataset) not in self.opened and not index.is_rows(node):
                    self.opened.add((state, dataset))
                    yield node, index.row_edges(dataset)
        elif len(index.nested):
            related = index.fields if relation is SourceRelation.PART else index.containers
            for node in nodes:
                for other in related(node):
                    yield node, index.out_edges(other)

    def _outputs(self, state: int, edge: int) -> Iterator[int]:
        """Keys of every output of an edge's statement, once a statement and state."""
        index, n = self.index, self.n
        derivation = index.derivation_of(edge)
        number = index.arrays["derivation_statement"][derivation]
        if (state, number) in self.broken:
            return
        self.broken.add((state, number))
        self._spend(2)
        for one in index.same_statement(derivation):
            whole, rows = index.whole(one), index.rows(index.target(one))
            if whole == WHOLE:
                yield state * n + rows
                continue
            if whole == ROW_MAKER:
                yield self.rules.rows_state * n + rows
            outputs = index.outputs(one)
            self._spend(len(outputs))
            yield from (state * n + node for node in outputs)

    def _backward(self, frontier: list[int]) -> Iterator[Candidate]:
        index, n = self.index, self.n
        actions, tags, sources = self.rules.actions, index.edge_tag, index.edge_source
        if index.is_paged:
            entering = [edge for key in frontier for edge in index.in_edges(key % n)]
            index.prefetch({sources[edge] for edge in entering if actions[0][SourceRelation.SELF][tags[edge]]})
        for key in frontier:
            state, node = divmod(key, n)
            follow, follow_rows = actions[state][SourceRelation.SELF], actions[state][SourceRelation.ANY_COLUMN]
            dataset = index.node_dataset[node]
            if state == self.rules.any_column:
                around: Sequence[int] = range(node, index.dataset_base[dataset + 1])
            elif len(index.nested):
                around = [node, *index.containers(node), *index.fields(node)]
            else:
                around = (node,)
            for other in around:
                edges = index.in_edges(other)
                self._spend(len(edges))
                for edge in edges:
                    tag = tags[edge]
                    if follow[tag]:
                        source = sources[edge]
                        action = follow_rows[tag] if index.is_rows(source) else follow[tag]
                        yield ((action & STATE) - 1) * n + source, key, edge

    def __contains__(self, key: int) -> bool:
        """Return whether a key was reached."""
        return key in self.seen

    def __len__(self) -> int:
        """The number of keys reached."""
        return len(self.seen)

    def hops(self, key: int) -> int:
        """The length of the shortest way to a key."""
        return self.seen[key][0]

    def step(self, key: int) -> tuple[int, int] | None:
        """The key before it and the edge between."""
        _, before, edge = self.seen[key]
        return None if before < 0 else (before, edge)

    def ranking(self, subjects: Collection[int], limit: int | None = None) -> Ranking:
        """See ``Reach``."""
        index, rank, seeds = self.index, self.rules.rank, frozenset(subjects)
        best = self._worst_states()
        found = list(self._reached_columns(best, seeds))
        columns = [0] * (max(rank) + 1)
        for item in found:
            columns[item.rank] += not index.is_unknown(item.node)
        named = [node for node in (*best, *seeds) if not index.is_rows(node) and not index.is_unknown(node)]
        top = {_outermost(index, node) for node in named}
        affected = len({c for c in top if not index.is_elided(index.node_dataset[c])} - seeds)
        rows = list(self._reached_rows(best, seeds))
        bare = [0] * len(columns)
        touched = Counter(index.node_dataset[c] for c in top)
        for item in rows:
            columns[item.rank] += item.implied
            if self.rules.implies(item.key // self.n):
                dataset = index.node_dataset[item.node]
                affected += index.column_count(dataset) - touched[dataset]
                bare[item.rank] += not index.column_count(dataset)
        found = sorted((*found, *rows), key=lambda r: (r.rank, r.hops, r.node))
        datasets = len({index.node_dataset[r.node] for r in found})
        lines = [one for one in found if not one.folded]
        listed = {index.node_dataset[one.node] for one in lines[:limit]}
        folded = [one for one in found if one.folded and index.node_dataset[one.node] in listed]
        return Ranking(
            shown=found[:limit],
            total=len(found),
            lines=lines[:limit],
            folded=folded,
            line_total=len(lines),
            columns=tuple(columns),
            bare=tuple(bare),
            datasets=datasets,
            affected=affected,
        )

    def _worst_states(self) -> dict[int, int]:
        """The key of each node in the worst of the states in which it was reached; elided datasets aside."""
        index, n, rank = self.index, self.n, self.rules.rank
        best: dict[int, int] = {}
        for key in sorted(self.seen, key=lambda k: (rank[k // n], k)):
            if not index.is_elided(index.node_dataset[key % n]):
                best.setdefault(key % n, key)
        return best

    def _reached_rows(self, best: Mapping[int, int], seeds: Collection[int]) -> Iterator[Reached]:
        """Row sets; they stand for the columns of their dataset that have no entry of their own."""
        index, n, rank = self.index, self.n, self.rules.rank
        alone = _own_entries(index, best)
        for node, key in best.items():
            if index.is_rows(node) and node not in seeds:
                dataset = index.node_dataset[node]
                implied = index.column_count(dataset) - alone[dataset] if self.rules.implies(key // n) else 0
                yield Reached(node, key, rank[key // n], self.hops(key), implied)

    def _reached_columns(self, best: Mapping[int, int], seeds: Collection[int]) -> Iterator[Reached]:
        """Columns with their most severe state: their own, or that of their row set where it decides about them all."""
        index, n, rank = self.index, self.n, self.rules.rank
        for node, key in best.items():
            if index.is_rows(node) or node in seeds:
                continue
            row_set = index.rows(index.node_dataset[node])
            rows = best.get(row_set, key)
            winner = rows if rank[rows // n] < rank[key // n] and self.rules.implies(rows // n) else key
            listed = self.rules.folds and row_set in best and row_set not in seeds
            folded = listed and rank[rows // n] == rank[winner // n]
            yield Reached(node, winner, rank[winner // n], self.hops(winner), folded=folded)


def _outermost(index: Index, node: int) -> int:
    """The top-level column that a field is part of; a column itself."""
    containers = index.containers(node)
    return containers[-1] if containers else node


def _own_entries(index: Index, nodes: Iterable[int]) -> Counter[int]:
    """Count the top-level columns of each dataset that are reached by themselves."""
    columns = (node for node in nodes if not index.is_rows(node) and not index.is_unknown(node))
    return Counter(index.node_dataset[node] for node in columns if index.container(node) is None)


def related_columns(index: Index, relation: int, nodes: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Nodes, each with itself, with the fields of it, with what contains it, or with the row set of its dataset."""
    if relation == SourceRelation.SELF:
        yield from ((node, node) for node in nodes)
    elif relation == BY_POSITION:
        yield from ((node, index.rows(index.node_dataset[node])) for node in nodes if not index.is_rows(node))
    elif len(index.nested):
        related = index.fields if relation == SourceRelation.PART else index.containers
        yield from ((node, other) for node in nodes for other in related(node))

"""Subjects of a question that lie downstream of other subjects of it, or upstream.

A walk from all subjects at once cannot tell: each is a seed of it. Two different numbers differ in a bit, so for each
bit of the subjects' numbers one walk starts from those that have it and one from those that lack it. Whatever any
subject reaches of the others is reached by one of these walks, which are twice the binary logarithm of the subjects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from govtool.graph.codes import PARTITION
from govtool.graph.index import Index
from govtool.graph.walks.rules import Ranking, Reach, Reached, Rules


class SubjectPart(NamedTuple):
    """A subject as a walk sees it."""

    text: str
    seeds: tuple[int, ...]
    """Keys that a walk starts from; none where nothing happens to it."""
    own: tuple[int, ...]
    """Its nodes."""
    is_dataset: bool


class ReachedSubject(NamedTuple):
    """A node of a subject that another subject reaches."""

    found: Reached
    reach: Reach
    """The walk that reached it."""
    text: str
    """The subject."""


def reached_subjects(
    index: Index, parts: Sequence[SubjectPart], rules: Rules, walk_from: Callable[[list[int]], Reach]
) -> list[ReachedSubject]:
    """Return the nodes of subjects that other subjects reach, each in its worst state, nearest first.

    Args:
        index: The graph.
        parts: The subjects.
        rules: Those of the walks.
        walk_from: Walks from some keys.
    """
    if not _is_derived(index, parts):
        return []
    best = _reached(index, parts, _halves(parts, range(len(parts))), rules, walk_from)
    return sorted(_with_implied(index, best, rules), key=lambda one: _order(one.found))


def read_subjects(
    index: Index, parts: Sequence[SubjectPart], rules: Rules, walk_from: Callable[[list[int]], Reach]
) -> list[ReachedSubject]:
    """Return the nodes of subjects from which other subjects are derived, nearest first; arguments as above.

    The rows of a column's relation are the column's own: what decides over them decides over it. Where subjects of
    another relation read them they are listed, under no subject.
    """
    if not _is_derived(index, parts):
        return []
    single = [part._replace(own=part.own if part.is_dataset else part.own[-1:]) for part in parts]
    best = _reached(index, single, _halves(single, range(len(parts))), rules, walk_from, implies=False)
    relations = [index.node_dataset[part.own[0]] for part in parts]
    numbers = {dataset: number for number, dataset in enumerate(dict.fromkeys(relations))}
    rows = [part._replace(text="", own=() if part.is_dataset else part.own[:1]) for part in parts]
    halves = _halves(rows, [numbers[dataset] for dataset in relations])
    best = {**_reached(index, rows, halves, rules, walk_from, implies=False), **best}
    return sorted(_with_implied(index, best, rules), key=lambda one: _order(one.found))


def _reached(
    index: Index,
    parts: Sequence[SubjectPart],
    halves: Iterable[tuple[list[SubjectPart], list[SubjectPart]]],
    rules: Rules,
    walk_from: Callable[[list[int]], Reach],
    *,
    implies: bool = True,
) -> dict[int, ReachedSubject]:
    """The nodes of the second half of each pair that the first reaches, in their worst states.

    The rows of its relation stand for a column, and for a field that is reached by itself if they decide about all.
    """
    own: dict[int, ReachedSubject] = {}
    implied: dict[int, ReachedSubject] = {}
    for chosen, others in halves:
        reach = walk_from([seed for part in chosen for seed in part.seeds])
        known = {node for part in chosen for node in part.own}
        for part in others:
            for node in part.own:
                if node not in known and not index.is_elided(index.node_dataset[node]):
                    _keep(own, _worst(index, reach, rules, node, node, range(len(rules.rank))), reach, part)
                    if implies and not part.is_dataset:
                        _keep(implied, _worst_implied(index, reach, rules, node, known), reach, part)
    columns = {node: one for node, one in implied.items() if node in own or index.container(node) is None}
    worse = {n: one for n, one in columns.items() if n not in own or one.found.rank < own[n].found.rank}
    return {**own, **worse}


def _worst_implied(index: Index, reach: Reach, rules: Rules, node: int, known: set[int]) -> Reached | None:
    """A column or field in the worst state that the rows of its relation imply; None if the rows are known."""
    rows = index.rows(index.node_dataset[node])
    if rows in known:
        return None
    every = range(len(rules.rank))
    deciding = every if index.container(node) is None else [state for state in every if rules.implies(state)]
    return _worst(index, reach, rules, node, rows, deciding)


def _keep(best: dict[int, ReachedSubject], found: Reached | None, reach: Reach, part: SubjectPart) -> None:
    """Keep a result for a node if it is worse, or nearer, than the known one."""
    if found is not None and (found.node not in best or _order(found) < _order(best[found.node].found)):
        best[found.node] = ReachedSubject(found, reach, part.text)


def _worst(index: Index, reach: Reach, rules: Rules, node: int, place: int, states: Iterable[int]) -> Reached | None:
    """A node in the worst of some states in which a walk reached a place that stands for it."""
    keys = (state * index.node_count + place for state in states)
    found = [(rules.rank[key // index.node_count], key) for key in keys if key in reach]
    if not found:
        return None
    rank, key = min(found)
    return Reached(node, key, rank, reach.hops(key))


def with_subjects(
    index: Index,
    reach: Reach,
    rules: Rules,
    parts: Sequence[SubjectPart],
    among: Sequence[ReachedSubject],
    limit: int | None,
) -> Ranking:
    """Return the ranking of a walk from all subjects, with the nodes of subjects that others reach.

    ``affected`` counts no subject.
    """
    own = frozenset(node for part in parts for node in part.own)
    ranking = reach.ranking(own, limit)
    if not among:
        return ranking
    found = _folded(index, reach, rules, own, [one.found for one in among])
    lines = sorted((*ranking.lines, *(one for one in found if not one.folded)), key=_order)[:limit]
    listed = {index.node_dataset[one.node] for one in lines}
    folded = [one for one in (*ranking.folded, *found) if one.folded and index.node_dataset[one.node] in listed]
    reached = {one.node for one in found}
    columns = list(ranking.columns)
    bare = list(ranking.bare)
    for one in found:
        is_rows = index.is_rows(one.node)
        columns[one.rank] += one.implied if is_rows else int(not index.is_unknown(one.node))
        bare[one.rank] += is_rows and not index.column_count(index.node_dataset[one.node])
    return Ranking(
        shown=sorted((*ranking.shown, *found), key=_order)[:limit],
        total=ranking.total + len(found),
        lines=lines,
        folded=sorted(folded, key=_order),
        line_total=ranking.line_total + sum(not one.folded for one in found),
        columns=tuple(columns),
        bare=tuple(bare),
        datasets=reach.ranking([node for node in own if node not in reached], 0).datasets,
        affected=ranking.affected,
    )


def _folded(index: Index, reach: Reach, rules: Rules, own: Collection[int], found: Sequence[Reached]) -> list[Reached]:
    """The same; a column says if its relation is listed with its rank: as a subject too, or reached by the walk."""
    if not rules.folds:
        return list(found)
    ranks = {one.node: one.rank for one in found if index.is_rows(one.node)}
    result = []
    for one in found:
        rows = index.rows(index.node_dataset[one.node])
        if rows not in ranks and rows not in own:
            worst = _worst(index, reach, rules, rows, rows, range(rules.states))
            ranks[rows] = -1 if worst is None else worst.rank
        result.append(replace(one, folded=one.node != rows and ranks.get(rows) == one.rank))
    return result


def _is_derived(index: Index, parts: Sequence[SubjectPart]) -> bool:
    """Return whether any of several subjects is made of something: else none can reach another."""
    datasets = {index.node_dataset[node] for part in parts for node in part.own} if len(parts) > 1 else ()
    makers = (maker for dataset in datasets for maker in index.makers(dataset))
    return any(index.mode(maker) != "declare" or index.field(maker, "kind") == PARTITION for maker in makers)


def _halves(
    parts: Sequence[SubjectPart], numbers: Sequence[int]
) -> Iterator[tuple[list[SubjectPart], list[SubjectPart]]]:
    """Yield the subjects in two groups, both ways round, such that any two whose numbers differ are in different groups
    at least once.
    """
    for bit in range(max(numbers).bit_length()):
        groups: tuple[list[SubjectPart], list[SubjectPart]] = ([], [])
        for number, part in zip(numbers, parts, strict=True):
            groups[number >> bit & 1].append(part)
        yield groups
        yield groups[1], groups[0]


def _with_implied(index: Index, best: dict[int, ReachedSubject], rules: Rules) -> Iterator[ReachedSubject]:
    """The same, row sets with the number of their columns that have no entry of their own."""
    alone: dict[int, int] = {}
    for node in best:
        if not index.is_rows(node) and index.container(node) is None and not index.is_unknown(node):
            alone[index.node_dataset[node]] = alone.get(index.node_dataset[node], 0) + 1
    for node, one in best.items():
        if not index.is_rows(node):
            yield one
            continue
        dataset = index.node_dataset[node]
        implied = 0
        if rules.implies(one.found.key // index.node_count):
            implied = index.column_count(dataset) - alone.get(dataset, 0)
        yield one._replace(found=Reached(node, one.found.key, one.found.rank, one.found.hops, implied))


def _order(found: Reached) -> tuple[int, int, int]:
    return found.rank, found.hops, found.node

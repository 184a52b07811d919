"""A layered drawing of a graph from left to right, computed ahead (Sugiyama, Tagawa and Toda 1981).

Three steps: edges that close a cycle are turned round; every node is put as far left as what it reads allows (longest
path), sources beside their nearest reader; the nodes of each layer are ordered by the barycentre of their neighbours,
in sweeps, and the order with the fewest crossings stays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

SWEEPS = 8
"""Passes over the layers at most, alternately to the right and to the left."""
MOST_BENDS = 60_000
"""Places at which long edges may bend, one in each layer that they cross; of a larger graph only ends count."""

Edges = Iterable[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Placement:
    """The place of each node: its layer, counted from the left, and its rank within the layer, from the top."""

    layers: tuple[int, ...]
    ranks: tuple[int, ...]
    crossings: int
    """Pairs of edges that cross between neighbouring layers."""


def place(count: int, edges: Edges) -> Placement:
    """Place nodes ``0 … count - 1``.

    Args:
        count: Number of nodes.
        edges: Pairs of nodes, from source to target; loops and repetitions do not matter.
    """
    forward = _acyclic(count, sorted({(a, b) for a, b in edges if a != b}))
    layers = _layers(count, forward)
    if sum(layers[b] - layers[a] - 1 for a, b in forward) > MOST_BENDS:
        pieces, total = [(a, b) for a, b in forward if layers[b] - layers[a] == 1], count
        heights = list(layers)
    else:
        pieces, heights = _with_bends(forward, layers)
        total = len(heights)
    order, crossings = _ordered(total, pieces, heights)
    ranks = [0] * count
    for row in order:
        for rank, node in enumerate(node for node in row if node < count):
            ranks[node] = rank
    return Placement(tuple(layers), tuple(ranks), crossings)


def _acyclic(count: int, edges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The edges, those that close a cycle of a depth-first search turned round."""
    following = _following(count, edges)
    state = [0] * count  # 0 not seen, 1 on the way, 2 done
    turned: list[tuple[int, int]] = []
    entered = {target for _, target in edges}
    for root in sorted(range(count), key=lambda node: node in entered):
        if state[root]:
            continue
        state[root] = 1
        stack = [(root, iter(following[root]))]
        while stack:
            node, rest = stack[-1]
            target = next(rest, None)
            if target is None:
                state[node] = 2
                stack.pop()
            elif state[target] == 1:
                turned.append((node, target))
            elif state[target] == 0:
                state[target] = 1
                stack.append((target, iter(following[target])))
    back = set(turned)
    return sorted({(b, a) if (a, b) in back else (a, b) for a, b in edges})


def _following(count: int, edges: Edges) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        found[source].append(target)
    return found


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The longest way to each node; nodes that nothing enters stand one layer before their nearest reader."""
    following = _following(count, edges)
    waiting = [0] * count
    for _, target in edges:
        waiting[target] += 1
    sources = [node for node in range(count) if not waiting[node]]
    layers, ready = [0] * count, list(sources)
    while ready:
        node = ready.pop()
        for target in following[node]:
            layers[target] = max(layers[target], layers[node] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    for node in sources:
        if following[node]:
            layers[node] = min(layers[target] for target in following[node]) - 1
    return layers


def _with_bends(edges: Sequence[tuple[int, int]], layers: Sequence[int]) -> tuple[list[tuple[int, int]], list[int]]:
    """Edges between neighbouring layers only, and the layers of all nodes, those of bends at the end."""
    heights, pieces = list(layers), []
    for source, target in edges:
        before = source
        for layer in range(layers[source] + 1, layers[target]):
            pieces.append((before, len(heights)))
            before = len(heights)
            heights.append(layer)
        pieces.append((before, target))
    return pieces, heights


def _ordered(count: int, edges: Sequence[tuple[int, int]], layers: Sequence[int]) -> tuple[list[list[int]], int]:
    """The nodes of each layer from the top, and the crossings that are left."""
    rows = _first_order(count, edges, layers)
    after, before = _following(count, edges), _following(count, [(b, a) for a, b in edges])
    best, fewest = [list(row) for row in rows], crossings(rows, after)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        to_right = sweep % 2 == 0
        _sweep(rows, before if to_right else after, to_right=to_right)
        found = crossings(rows, after)
        if found < fewest:
            best, fewest = [list(row) for row in rows], found
    return best, fewest


def _first_order(count: int, edges: Edges, layers: Sequence[int]) -> list[list[int]]:
    """Layers filled by a search along the edges, so that what hangs together lies together."""
    near: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        near[source].append(target)
        near[target].append(source)
    rows: list[list[int]] = [[] for _ in range(max(layers, default=-1) + 1)]
    seen = [False] * count
    for root in range(count):
        stack = [] if seen[root] else [root]
        while stack:
            node = stack.pop()
            if seen[node]:
                continue
            seen[node] = True
            rows[layers[node]].append(node)
            stack.extend(reversed(near[node]))
    return rows


def _sweep(rows: list[list[int]], near: Sequence[Sequence[int]], *, to_right: bool) -> None:
    """Sort each layer by the mean rank of its neighbours in the layer before; nodes without any stay in place."""
    order = range(1, len(rows)) if to_right else range(len(rows) - 2, -1, -1)
    rank: dict[int, int] = {}
    for row in rows:
        rank.update((node, position) for position, node in enumerate(row))
    for layer in order:
        means = {
            node: sum(rank[other] for other in near[node]) / len(near[node]) if near[node] else float(rank[node])
            for node in rows[layer]
        }
        rows[layer].sort(key=means.__getitem__)
        rank.update((node, position) for position, node in enumerate(rows[layer]))


def crossings(rows: Sequence[Sequence[int]], following: Sequence[Sequence[int]]) -> int:
    """Pairs of edges that cross between neighbouring layers, counted with a Fenwick tree (Barth, Jünger and Mutzel)."""
    return sum(
        _crossings_between(left, {node: rank for rank, node in enumerate(right)}, following)
        for left, right in pairwise(rows)
    )


def _crossings_between(left: Sequence[int], rank: Mapping[int, int], following: Sequence[Sequence[int]]) -> int:
    tree, found, inserted = [0] * (len(rank) + 1), 0, 0
    for node in left:
        ends = sorted(rank[target] for target in following[node] if target in rank)
        found += sum(inserted - _sum_to(tree, end) for end in ends)
        for end in ends:
            _add(tree, end)
        inserted += len(ends)
    return found


def _sum_to(tree: Sequence[int], rank: int) -> int:
    """The number of ends inserted at a rank or above it."""
    found, at = 0, rank + 1
    while at:
        found += tree[at]
        at &= at - 1
    return found


def _add(tree: list[int], rank: int) -> None:
    at = rank + 1
    while at < len(tree):
        tree[at] += 1
        at += at & -at


def contracted(edges: Edges, passed: Sequence[bool]) -> set[tuple[int, int]]:
    """The edges between nodes that are shown; a way through nodes that are passed is one edge.

    Args:
        edges: Pairs of nodes.
        passed: For each node, whether a picture leaves it out.
    """
    following: defaultdict[int, list[int]] = defaultdict(list)
    for source, target in edges:
        following[source].append(target)
    found: set[tuple[int, int]] = set()
    for source in list(following):
        if passed[source]:
            continue
        seen: set[int] = set()
        stack = list(following[source])
        while stack:
            node = stack.pop()
            if not passed[node]:
                found.add((source, node))
            elif node not in seen:
                seen.add(node)
                stack.extend(following[node])
    return found

"""Random graphs for tests of arrays, and slow definitions of what is asked of them."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from govtool.arrays.graph import ArrayGraph, graph_of


@dataclass(frozen=True)
class Sample:
    """Edges as they were drawn, and the graph made of them."""

    count: int
    pairs: list[tuple[int, int]]
    graph: ArrayGraph


@st.composite
def graphs(draw, most: int = 9) -> Sample:
    """Small graphs with circles, loops and parallel edges; as lists or as numpy arrays."""
    count = draw(st.integers(0, most))
    node = st.integers(0, count - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=3 * most)) if count else []
    graph, _ = graph_of([s for s, _ in pairs], [t for _, t in pairs], count, draw(st.sampled_from([-1, 10**6])))
    return Sample(count, pairs, graph)


@dataclass(frozen=True)
class Question:
    """A deletion on an and/or graph."""

    sample: Sample
    needs: list[int]
    idle: list[bool] | None
    within: list[bool] | None
    deleted: list[int]

    def inputs(self, node: int) -> list[int]:
        """The inputs that support a node, as often as there are edges."""
        graph = self.sample.graph
        return [
            int(graph.source[edge])
            for edge in range(graph.edges)
            if graph.target[edge] == node and not (self.idle and self.idle[edge])
        ]


@st.composite
def questions(draw) -> Question:
    """Deletions on and/or graphs with circles."""
    sample = draw(graphs())
    nodes = sample.count
    needs = draw(st.lists(st.integers(0, 3), min_size=nodes, max_size=nodes))
    flags = lambda size: st.none() | st.lists(st.booleans(), min_size=size, max_size=size)  # noqa: E731
    deleted = [v for v, gone in enumerate(draw(st.lists(st.booleans(), min_size=nodes, max_size=nodes))) if gone]
    return Question(sample, needs, draw(flags(len(sample.pairs))), draw(flags(nodes)), deleted)


def has_proof(question: Question, node: int, gone: frozenset[int], sure: frozenset[int] = frozenset()) -> bool:
    """The definition of support: a finite proof, and so one in which no branch comes back to what it is to prove."""
    return _proved(question, node, gone, sure, frozenset())


def _proved(question: Question, node: int, gone: frozenset[int], sure: frozenset[int], open_: frozenset[int]) -> bool:
    if node in sure:
        return True
    if node in gone or node in open_:
        return False
    known = {v: _proved(question, v, gone, sure, open_ | {node}) for v in set(question.inputs(node))}
    return sum(known[v] for v in question.inputs(node)) >= question.needs[node]

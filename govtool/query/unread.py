"""Statements that were not understood, and the questions to which they have nothing to say.

Of a statement that could not be read its words are still known. It can read or write a dataset only under its name, so
one that has none of the names of what a question reaches has nothing to do with the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

from govtool.graph.index import Index
from govtool.names import split_name

_WORD = re.compile(r"\w+")


def unrelated(
    index: Index, datasets: Iterable[int], statements: Sequence[frozenset[str]], *, backward: bool = False
) -> int:
    """Count the statements that name no dataset which a question reaches.

    Args:
        index: The graph.
        datasets: Numbers of the datasets that the question is about.
        statements: Of each statement of known reach its words, in lower case.
        backward: Whether the question goes upstream.
    """
    left = [(statement, _patterns(statement)) for statement in statements]
    for dataset in _reached(index, datasets, backward=backward):
        if not left:
            break
        last = split_name(index.dataset_name(dataset))[-1].lower()
        words = frozenset(_WORD.findall(last))
        left = [one for one in left if not (words <= one[0] or any(map(fits, one[1], repeat(last))))]
    return len(left)


def _patterns(statement: frozenset[str]) -> tuple[str, ...]:
    """The patterns of names among the words of a statement, of relations a part of whose name is not known."""
    return tuple([word for word in statement if "*" in word])


def fits(pattern: str, name: str) -> bool:
    """Return whether a name has the parts of a pattern between its asterisks, in their order."""
    first, *parts = pattern.split("*")
    name = name.strip('"')
    if not name.startswith(first) or len(name) < len(pattern) - len(parts) or not name.endswith(parts[-1]):
        return False
    at, end = len(first), len(name) - len(parts[-1])
    for part in parts[:-1]:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _reached(index: Index, datasets: Iterable[int], *, backward: bool) -> Iterator[int]:
    """Datasets that any way leads to, by edges of any kind; those of the question first."""
    seen = set(datasets)
    stack = sorted(seen)
    while stack:
        dataset = stack.pop()
        yield dataset
        for node in range(index.rows(dataset), index.dataset_base[dataset + 1]):
            for other in _beside(index, node, backward=backward):
                if other not in seen:
                    seen.add(other)
                    stack.append(other)


def _beside(index: Index, node: int, *, backward: bool) -> Iterator[int]:
    """The datasets of the other ends of a node's edges and references."""
    if backward:
        yield from (index.node_dataset[index.edge_source[edge]] for edge in index.in_edges(node))
        return
    yield from (index.node_dataset[index.edge_target[edge]] for edge in index.out_edges(node))
    yield from (index.node_dataset[index.referring_rows(one)] for one in index.references(node))

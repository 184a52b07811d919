"""The provenance graph: tuples, values, operators and module invocations as arrays.

Nodes are numbered from 0; an edge leads from what is read to what is made of it. The arrays are numpy arrays, views of
a mapped file where a graph is opened from a store. Source: Amsterdamer and others, "Putting Lipstick on Pig",
PVLDB 5(4), 2012, section 3.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np  # noqa: TID253 - graphs are arrays; only what reads them imports this

from govtool.arrays.graph import ArrayGraph
from govtool.arrays.sets import Array
from govtool.arrays.texts import Texts
from govtool.workflow import vocabulary as terms
from govtool.workflow.values import NodeValues

NodeId = int | str
"""The id of a node outside of the arrays."""


@dataclass(frozen=True, slots=True)
class NodeIds:
    """Ids of nodes where they are not the numbers themselves.

    Attributes:
        texts: One text a node.
        is_number: bool[n]: the text is that of an integer, which is the id; None: all ids are texts.
    """

    texts: Texts
    is_number: Array | None = None

    def take(self, nodes: Array) -> list[NodeId]:
        """The ids of some nodes."""
        texts = self.texts.take(nodes)
        if self.is_number is None:
            return list(texts)
        return [int(text) if number else text for text, number in zip(texts, self.is_number[nodes], strict=True)]


@dataclass(frozen=True)
class ProvenanceGraph:
    """A provenance graph of ``n`` nodes and ``m`` edges.

    Attributes:
        kind: uint8[n]: ``vocabulary.P`` or ``V``.
        type: uint8[n]: see ``vocabulary.TYPES``.
        label: int32[n]: numbers of ``labels``.
        module: int32[n]: numbers of ``modules``; -1: none.
        invocation: int32[n]: from 1 for each module; 0: none.
        black_box: bool[n]: a function whose inside is not known, or a comparison that reads a value.
        edges: The edges both ways, by source and target.
        side: uint8[m]: ``vocabulary.PLAIN``, ``LEFT`` or ``RIGHT``. Edges into ``⊖`` always have one of the latter.
        labels: Texts of labels. The label of a ``wi`` or ``st`` node is the id of its record.
        modules: Names of modules.
        values: NodeValues of some of the nodes.
        ids: Ids of nodes; None: their numbers.
    """

    kind: Array
    type: Array
    label: Array
    module: Array
    invocation: Array
    black_box: Array
    edges: ArrayGraph
    side: Array
    labels: Texts
    modules: tuple[str, ...]
    values: NodeValues
    ids: NodeIds | None = None

    @property
    def node_count(self) -> int:
        """The number of nodes."""
        return len(self.type)

    @property
    def edge_count(self) -> int:
        """The number of edges."""
        return self.edges.edges

    @cached_property
    def label_numbers(self) -> dict[str, int]:
        """Numbers of the labels that are words of the graph's language: operators, aggregates, cells."""
        words = [terms.TIMES, terms.PLUS, terms.DELTA, terms.MONUS, terms.TENSOR, terms.CONSTANT, terms.CELL]
        found = self.labels.find([*words, *terms.AGGREGATES])
        return {self.labels[number]: number for number in found.tolist()[::-1]}

    def labelled(self, *labels: str) -> Array:
        """Return per node whether its label is one of these words of the graph's language: bool[n]."""
        numbers = [self.label_numbers[label] for label in labels if label in self.label_numbers]
        found: Array = np.isin(self.label, numbers) if len(numbers) != 1 else self.label == numbers[0]
        return found

    def label_of(self, node: int) -> str:
        """The label of a node."""
        return self.labels[int(self.label[node])]

    def module_of(self, node: int) -> str | None:
        """The name of the module that a node belongs to."""
        number = int(self.module[node])
        return None if number < 0 else self.modules[number]

    def ids_of(self, nodes: Iterable[int] | Array) -> list[NodeId]:
        """The ids of some nodes, in their order."""
        numbers = nodes if isinstance(nodes, np.ndarray) else np.fromiter(nodes, np.int64)
        return numbers.tolist() if self.ids is None else self.ids.take(numbers)

    def id_of(self, node: int) -> NodeId:
        """The id of a node."""
        return self.ids_of([node])[0]

    def with_id(self, wanted: NodeId) -> int | None:
        """Return the node with an id; texts of integers find those, too."""
        if self.ids is None:
            return _number(wanted, self.node_count)
        found = self.ids.texts.find([str(wanted)])
        return int(found[0]) if len(found) else None

    def tokens(self) -> Array:
        """The nodes of source records, ``wi`` and ``st``: int64, ascending."""
        found: Array = np.flatnonzero((self.type == terms.INPUT) | (self.type == terms.STATE))
        return found

    def with_tokens(self, tokens: Iterable[str]) -> dict[str, Array]:
        """Return the nodes of records by token; tokens that the graph does not have are missing."""
        wanted = list(dict.fromkeys(tokens))
        numbers = self.labels.find(wanted)
        nodes = np.flatnonzero(np.isin(self.label, numbers) & (self.type <= terms.STATE))
        found: dict[str, list[int]] = {}
        for node, label in zip(nodes.tolist(), self.labels.take(self.label[nodes].astype(np.int64)), strict=True):
            found.setdefault(label, []).append(node)
        return {token: np.array(found[token], np.int64) for token in wanted if token in found}

    def value_of(self, node: int, default: Any = None) -> Any:
        """The value that a node has, or a default."""
        return self.values.of(np.array([node])).get(node, default)


def _number(wanted: NodeId, count: int) -> int | None:
    text = str(wanted)
    number = int(text) if text.isdecimal() and text.isascii() and len(text) < 20 else -1
    return number if 0 <= number < count else None

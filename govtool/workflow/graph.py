"""The provenance graph: tuples, values, operators and module invocations as arrays.

Nodes are numbered from 0; an edge leads from what is read to what is made of it. The arrays are numpy arrays, views of
a mapped file where a graph is opened from a store. Source: Amsterdamer and others, "Putting Lipstick on Pig",
PVLDB 5(4), 2012, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np  # noqa: TID253 - graphs are arrays; only what reads them imports this

from govtool.arrays.graph import ArrayGraph
from govtool.arrays.sets import Array
from govtool.arrays.texts import Texts
from govtool.workflow import vocabulary as terms
from govtool.workflow.values import NodeValues

if TYPE_CHECKING:
    from govtool.arrays.support_large import Support

_Derived = TypeVar("_Derived")
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


@dataclass(frozen=True, eq=False)
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
        side: uint8[m]: ``vocabulary.PLAIN``, ``LEFT`` or ``RIGHT``. Edges into ``⊖`` and into
            comparisons always have one of the latter.
        labels: Texts of labels. The label of a ``wi`` or ``st`` node is the id of its record.
        modules: Names of modules.
        values: Values of some of the nodes.
        ids: Ids of nodes; None: their numbers.
        words: Numbers of labels that are words of the graph's language, where a file has them.
        support: What deletions need of the graph, where a file has it; see ``govtool.workflow.rules``.
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
    words: Mapping[str, tuple[int, ...]] | None = None
    support: Support | None = None

    @property
    def node_count(self) -> int:
        """The number of nodes."""
        return len(self.type)

    @property
    def edge_count(self) -> int:
        """The number of edges."""
        return self.edges.edges

    @cached_property
    def word_numbers(self) -> Mapping[str, tuple[int, ...]]:
        """Numbers of the labels that are words of the graph's language: operators, aggregates, cells."""
        if self.words is not None:
            return self.words
        found: dict[str, tuple[int, ...]] = {}
        for number in self.labels.find(terms.WORDS).tolist():
            text = self.labels[number]
            found[text] = (*found.get(text, ()), number)
        return found

    @cached_property
    def is_opaque(self) -> Array:
        """Per node whether its result cannot be worked out again: black boxes, functions, comparisons: bool[n]."""
        known_p = self.labelled(terms.PLUS, terms.TIMES, terms.DELTA, terms.MONUS)
        known_v = self.labelled(terms.TENSOR, terms.CONSTANT, *terms.AGGREGATES)
        is_function = ((self.type == terms.OPERATOR) & ~known_p) | ((self.type == terms.VALUE) & ~known_v)
        found: Array = is_function | self.black_box
        return found

    @cached_property
    def _derived(self) -> dict[str, Any]:
        return {}

    def once(self, name: str, derive: Callable[[ProvenanceGraph], _Derived]) -> _Derived:
        """Return what a function derives from the graph; it is called once."""
        if name not in self._derived:
            self._derived[name] = derive(self)
        found: _Derived = self._derived[name]
        return found

    def labelled(self, *labels: str) -> Array:
        """Return per node whether its label is one of these words of the graph's language: bool[n].

        A record or a module may have such a name, too: those are not meant.
        """
        numbers = [number for label in labels for number in self.word_numbers.get(label, ())]
        found: Array = np.isin(self.label, numbers) if len(numbers) != 1 else self.label == numbers[0]
        found &= (self.type > terms.INVOCATION) & (self.type != terms.ZOOM)
        return found

    def label_of(self, node: int) -> str:
        """The label of a node."""
        number = int(self.label[node])
        return self._words_by_number.get(number) or self.labels[number]

    @cached_property
    def _words_by_number(self) -> Mapping[int, str]:
        return {number: word for word, numbers in self.word_numbers.items() for number in numbers}

    @cached_property
    def is_zoomed(self) -> bool:
        """True if modules are zoomed out in the graph itself."""
        return bool((self.type == terms.ZOOM).any())

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
        return self.values.get(node, default)


def _number(wanted: NodeId, count: int) -> int | None:
    text = str(wanted)
    number = int(text) if text.isdecimal() and text.isascii() and len(text) < 20 else -1
    return number if 0 <= number < count else None

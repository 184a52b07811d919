"""Provenance graphs built block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np  # noqa: TID253 - graphs are arrays; only what makes them imports this

from govtool.arrays.graph import check_nodes, graph_of
from govtool.arrays.sets import Array
from govtool.arrays.texts import Texts
from govtool.workflow import vocabulary as terms
from govtool.workflow.graph import NodeId, NodeIds, ProvenanceGraph
from govtool.workflow.values import Value, ValueColumns


@dataclass(slots=True)
class MixedNodes:
    """Nodes as columns of Python values, for readers of files.

    Attributes:
        types: Numbers of types.
        labels: Labels.
        modules: Names of modules; None: none.
        invocations: Numbers of invocations; 0: none.
        black_boxes: Whether what a node does is not known.
        values: Values; ``values.ABSENT`` for none.
        ids: Ids.
    """

    types: list[int] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    modules: list[str | None] = field(default_factory=list)
    invocations: list[int] = field(default_factory=list)
    black_boxes: list[bool] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    ids: list[NodeId] = field(default_factory=list)


class GraphBuilder:
    """Collects nodes and edges in blocks of arrays; nothing is done for a single node."""

    def __init__(self) -> None:
        self._count = 0
        self._columns: dict[str, list[Array]] = {name: [] for name in ("type", "kind", "label", "module", "inv", "bb")}
        self._labels = _Labels()
        self._modules: dict[str, int] = {}
        self._values = ValueColumns()
        self._ids: list[Sequence[NodeId] | Array] = []
        self._has_ids = False
        self._edges: list[tuple[Array, Array, Array]] = []

    @property
    def count(self) -> int:
        """Nodes so far."""
        return self._count

    def nodes(
        self,
        type: str,
        label: str | Sequence[str] | Any,
        n: int = 1,
        *,
        module: str | None = None,
        invocation: int | Array = 0,
        values: Sequence[Value] | Array | Any | None = None,
        black_box: bool | Array = False,
        ids: Sequence[NodeId] | None = None,
    ) -> Array:
        """Add nodes.

        Args:
            type: One of ``vocabulary.TYPES``.
            label: The label of all; for ``wi`` and ``st`` one a node, as strings or as an Arrow array of strings.
            n: How many.
            module: The module that they belong to.
            invocation: The number of its invocation, from 1; one for all or one a node.
            values: One a node (``values.ABSENT`` for none): a numpy array of numbers, an Arrow array or Python values.
            black_box: Whether what they do is not known; one for all or one a node.
            ids: Ids, where they are not the numbers of the nodes.

        Returns:
            The numbers of the nodes: int64[n].

        Raises:
            KeyError: There is no such type.
        """
        number = terms.TYPE_NUMBERS[type]
        start, self._count = self._count, self._count + n
        made = np.arange(start, self._count)
        kind = terms.kind_of(number, label) if isinstance(label, str) else terms.kind_of(number, "")
        self._block("type", number, n, np.uint8)
        self._block("kind", kind, n, np.uint8)
        self._block("label", self._labels.numbers(label), n, np.int32)
        self._block("module", self._module(module), n, np.int32)
        self._block("inv", invocation, n, np.int32)
        self._block("bb", black_box, n, np.bool_)
        if values is not None:
            self._values.add(made, values)
        self._has_ids |= ids is not None
        self._ids.append(made if ids is None else ids)
        return made

    def mixed(self, columns: MixedNodes) -> Array:
        """Add nodes of several types, labels and modules; return their numbers: int64[n]."""
        n = len(columns.types)
        start, self._count = self._count, self._count + n
        made = np.arange(start, self._count)
        kinds = [terms.kind_of(*pair) for pair in zip(columns.types, columns.labels, strict=True)]
        self._block("type", columns.types, n, np.uint8)
        self._block("kind", kinds, n, np.uint8)
        self._block("label", self._labels.each(columns.labels), n, np.int32)
        self._block("module", [self._module(name) for name in columns.modules], n, np.int32)
        self._block("inv", columns.invocations, n, np.int32)
        self._block("bb", columns.black_boxes, n, np.bool_)
        self._values.add(made, columns.values)
        self._has_ids = True
        self._ids.append(columns.ids)
        return made

    def edges(self, source: Array | int, target: Array | int, side: Array | int = terms.PLAIN) -> None:
        """Add edges from what is read to what is made of it; scalars are repeated.

        Args:
            source: Nodes.
            target: Nodes.
            side: ``vocabulary.LEFT`` or ``RIGHT`` where the target is a difference or a comparison.
        """
        sources, targets, sides = np.broadcast_arrays(np.atleast_1d(source), target, side)
        self._edges.append((sources.astype(np.int64), targets.astype(np.int64), sides.astype(np.uint8)))

    def build(self) -> ProvenanceGraph:
        """Return the graph.

        Raises:
            IndexError: An edge is of a node that there is not.
        """
        source, target, side = (_joined([edges[part] for edges in self._edges]) for part in range(3))
        columns = {name: _joined(parts) for name, parts in self._columns.items()}
        labels = self._labels.texts()
        check_nodes(target, self._count)
        side = with_sides(target, side.astype(np.uint8), _has_sides(columns, labels))
        edges, order = graph_of(source, target, self._count, 0)  # type: ignore[arg-type]
        return ProvenanceGraph(
            kind=columns["kind"].astype(np.uint8),
            type=columns["type"].astype(np.uint8),
            label=columns["label"].astype(np.int32),
            module=columns["module"].astype(np.int32),
            invocation=columns["inv"].astype(np.int32),
            black_box=columns["bb"].astype(np.bool_),
            edges=edges,
            side=side[np.asarray(order, np.int64)],
            labels=labels,
            modules=tuple(self._modules),
            values=self._values.build(),
            ids=self._node_ids(),
        )

    def _block(self, name: str, value: Any, n: int, dtype: Any) -> None:
        self._columns[name].append(np.broadcast_to(np.asarray(value, dtype), (n,)))

    def _module(self, name: str | None) -> int:
        return -1 if name is None else self._modules.setdefault(name, len(self._modules))

    def _node_ids(self) -> NodeIds | None:
        if not self._has_ids:
            return None
        given = [each for ids in self._ids for each in (ids.tolist() if isinstance(ids, np.ndarray) else ids)]
        numbers = np.array([isinstance(each, int) for each in given], bool)
        if numbers.all() and given == list(range(len(given))):
            return None
        return NodeIds(Texts.of(map(str, given)), numbers if numbers.any() else None)


class _Labels:
    """Texts of labels by number. Labels given for all nodes of a block are kept once; others as they come."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._parts: list[Texts] = []
        self._count = 0

    def numbers(self, label: str | Sequence[str] | Any) -> Any:
        """The number of a label, or of each label of a sequence."""
        if isinstance(label, str):
            if label not in self._known:
                self._known[label] = self._add(Texts.of([label]))
            return self._known[label]
        part = Texts.of(label)
        return np.arange(len(part)) + self._add(part)

    def each(self, labels: Sequence[str]) -> Array:
        """The number of each of several labels, many of which may be equal."""
        fresh = [label for label in dict.fromkeys(labels) if label not in self._known]
        if fresh:
            start = self._add(Texts.of(fresh))
            self._known.update((label, start + n) for n, label in enumerate(fresh))
        return np.fromiter((self._known[label] for label in labels), np.int64, len(labels))

    def _add(self, part: Texts) -> int:
        start, self._count = self._count, self._count + len(part)
        self._parts.append(part)
        return start

    def texts(self) -> Texts:
        """All labels."""
        return Texts.joined(self._parts)


def _joined(parts: list[Array]) -> Array:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _has_sides(columns: dict[str, Array], labels: Texts) -> Array:
    """Return whether nodes are differences or comparisons."""
    operators = columns["type"] == terms.OPERATOR
    used = np.unique(columns["label"][operators]).tolist()
    sided = [number for number in used if labels[number] == terms.MONUS or terms.is_guard(labels[number])]
    found: Array = operators & np.isin(columns["label"], sided)
    return found


def with_sides(target: Array, side: Array, has_sides: Array) -> Array:
    """Return the sides of edges with those into differences and comparisons completed.

    Without a mark the first edge into such a node is its left operand; all others are right ones.

    Args:
        target: int64[m], in the order of the file.
        side: uint8[m].
        has_sides: bool[n].
    """
    into = np.flatnonzero(has_sides[target])
    unmarked = into[side[into] == terms.PLAIN]
    if not len(unmarked):
        return side
    has_left = np.zeros(len(has_sides), bool)
    has_left[target[into[side[into] == terms.LEFT]]] = True
    done = side.copy()
    done[unmarked] = terms.RIGHT
    candidates = unmarked[~has_left[target[unmarked]]]
    order = np.argsort(target[candidates], kind="stable")
    first = np.ones(len(order), bool)
    first[1:] = target[candidates][order][1:] != target[candidates][order][:-1]
    done[candidates[order[first]]] = terms.LEFT
    return done

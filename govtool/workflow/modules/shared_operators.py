"""Operators that the relations of one invocation have in common: their nodes are drawn once.

A program hands one DataFrame to several relations, and the write of each has the whole plan of it. Subplans that are
equal, ids of columns included, are one operator. Each write is annotated by itself; a node of an operator that was
drawn before is found again by the operator and by what the node reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np  # noqa: TID253 - graphs are arrays; only what makes them imports this

from govtool.arrays.sets import Array
from govtool.records.plan.expressions import Attribute, Named
from govtool.records.plan.nodes import LocalRows, Range, Relation
from govtool.records.plan.tree import Node, Term, fold_nodes, rewrite
from govtool.workflow.annotate.circuit import Circuit

Place = tuple[int, int]
"""A block of a circuit: its operator, and its number among the blocks of the operator."""
Edges = tuple[Array, Array, int]
"""Edges into new nodes: graph nodes, the position among the new nodes of each, and the side of all."""
_SPARE = 1 << 62
"""Ids from here on stand for columns that are not of the program."""
_NO_KEYS = np.empty((0, 2), np.uint64)


@dataclass(frozen=True, slots=True)
class _Input(Node):
    """Stands for a subplan."""

    number: int


class SharedOperators:
    """The operators that several plans have, by number.

    Args:
        plans: The plans, and the first id of each that is not one of the program.
    """

    def __init__(self, plans: Sequence[tuple[Node, int]]) -> None:
        self._numbers: dict[Any, int] = {}
        found = [self._of_plan(root, first) for root, first in plans] if len(plans) > 1 else []
        often = Counter(number for known in found for number in set(known.values()))
        self._known = {node: number for known in found for node, number in known.items() if often[number] > 1}

    def number(self, node: Node) -> int | None:
        """The number of an operator; None: no other plan has it."""
        return self._known.get(id(node))

    def _of_plan(self, root: Node, first: int) -> dict[int, int]:
        """The number of each operator: one for equal subplans."""
        found: dict[int, int] = {}
        spare: dict[int, int] = {}

        def number(node: Node, inputs: tuple[int | None, ...]) -> int | None:
            known = [each for each in inputs if each is not None]
            if len(known) < len(inputs):
                return None
            own = _without_numbers(node).replaced(nodes=tuple(map(_Input, known)))
            named = 0

            def spared(term: Term) -> Term:
                nonlocal named
                if not isinstance(term, (Attribute, Named)) or term.id < first:
                    return term
                if term.id not in spare:
                    named += 1
                    spare[term.id] = _SPARE + self._intern((type(node), inputs, named))
                return replace(term, id=spare[term.id])

            try:
                key = self._intern(own.replaced(terms=tuple(rewrite(term, spared) for term in own.terms())))
            except TypeError:  # a value that has no hash: the operator is that of this plan alone
                return None
            found[id(node)] = key
            return key

        fold_nodes(root, number)
        return found

    def _intern(self, key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _without_numbers(node: Node) -> Node:
    """A leaf without its number, which counts through the whole plan."""
    return replace(node, leaf=0) if isinstance(node, (Relation, LocalRows, Range)) else node


class OperatorBlocks:
    """The blocks of one circuit that operators of several plans have made."""

    def __init__(self, operators: SharedOperators) -> None:
        self._operators = operators
        self._places: dict[int, Place | None] = {}
        self._counts: Counter[int] = Counter()

    def note(self, node: Node, circuit: Circuit, first: int) -> None:
        """Note what an operator has made: all blocks from one on but those of the operators below it."""
        number = self._operators.number(node)
        if number is None:
            return
        for at in range(first, len(circuit.blocks)):
            if at not in self._places:
                self._places[at] = (number, self._counts[number])
                self._counts[number] += 1

    def place(self, at: int) -> Place | None:
        """Whose block it is, by its position in the circuit; None: nothing is shared of it."""
        return self._places.get(at)


@dataclass(slots=True)
class _Drawn:
    """Nodes by what they read, sorted."""

    keys: Array = field(default_factory=lambda: _NO_KEYS)
    nodes: Array = field(default_factory=lambda: np.empty(0, np.int64))


class SharedNodes:
    """The graph nodes of shared operators that were drawn so far."""

    def __init__(self) -> None:
        self._drawn: dict[tuple[int, int, str, str], _Drawn] = {}

    def nodes(
        self,
        part: tuple[int, int, str, str],
        count: int,
        edges: Sequence[Edges],
        values: tuple[Any, Array] | None,
        draw: Callable[[Array], Array],
    ) -> tuple[Array, Array]:
        """The graph nodes of a block: those that are drawn already, and new ones.

        Two nodes of one block are never one, even if they read the same.

        Args:
            part: The block, and which of its nodes these are: their part and their label.
            count: How many.
            edges: What they read.
            values: What else tells them apart: values, and the position among the nodes of each; None: nothing.
            draw: Draws some of them, by position.

        Returns:
            The nodes, and the positions of the new ones.
        """
        keys = _distinct_keys(_keys(count, edges, values))
        known = self._drawn.setdefault(part, _Drawn())
        at = np.minimum(np.searchsorted(known.keys[:, 0], keys[:, 0]), max(len(known.nodes) - 1, 0))
        is_known = np.zeros(count, bool) if not len(known.nodes) else (known.keys[at] == keys).all(axis=1)
        nodes = np.empty(count, np.int64)
        nodes[is_known] = known.nodes[at[is_known]]
        fresh = np.flatnonzero(~is_known)
        nodes[fresh] = draw(fresh)
        if len(fresh):
            every, numbers = np.concatenate([known.keys, keys[fresh]]), np.concatenate([known.nodes, nodes[fresh]])
            order = np.argsort(every[:, 0], kind="stable")
            known.keys, known.nodes = every[order], numbers[order]
        return nodes, fresh


def _keys(count: int, edges: Sequence[Edges], values: tuple[Any, Array] | None) -> Array:
    """128 bits a node: of what it reads, in any order, and of its value."""
    found = np.zeros((count, 2), np.uint64)
    own = None if values is None else _value_keys(values[0])
    for half in (0, 1):
        for sources, owners, side in edges:
            np.add.at(found[:, half], owners, _mixed(sources.astype(np.uint64) * np.uint64(4) + np.uint64(side), half))
        if own is not None and values is not None:
            found[values[1], half] += _mixed(own, half + 2)
    return found


def _distinct_keys(keys: Array) -> Array:
    """Keys of which the second of two equal ones is another, and so on."""
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    ordered = keys[order]
    first = np.ones(len(keys), bool)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    if first.all():
        return keys
    counted = np.arange(len(keys)) - np.maximum.accumulate(np.where(first, np.arange(len(keys)), 0))
    distinct = keys.copy()
    for half in (0, 1):
        again = _mixed(ordered[:, half] + _mixed(counted.astype(np.uint64), half), half)
        distinct[order, half] = np.where(first, ordered[:, half], again)
    return distinct


def _value_keys(values: Any) -> Array:
    """64 bits a value."""
    if isinstance(values, np.ndarray):
        return values.astype(np.int64).view(np.uint64)
    if values.null_count == 0 and str(values.type).startswith("int"):
        return _value_keys(values.to_numpy(zero_copy_only=False))
    texts = [repr(value) for value in values.to_pylist()]
    known = {text: blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in set(texts)}
    return np.frombuffer(b"".join(known[text] for text in texts), np.uint64)


def _mixed(values: Array, salt: int) -> Array:
    """Numbers whose bits depend on all bits of others: splitmix64."""
    x = values + np.uint64((0x9E3779B97F4A7C15 * (salt + 1)) % (1 << 64))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = x ^ (x >> np.uint64(31))
    return mixed

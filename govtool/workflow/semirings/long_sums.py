"""Sums and aggregates of very many products of tokens in canonical form, by columns and piece by piece.

A product of tokens is a row of the ranks of its tokens in the order of code points: monomials sort as their rows do. A
text is joined by Arrow some hundred thousand terms at a time. What is anything else is left to ``polynomial``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.arrays.long_text import LongText
from govtool.arrays.sets import Array
from govtool.workflow.annotate.circuit import ONE, Circuit, Delta, Inputs, Product, Sources, Sum, Terms
from govtool.workflow.semirings.text_order import ranks, text_order
from govtool.workflow.semirings.texts import aggregate_name
from govtool.workflow.semirings.tokens import Tokens, concatenated, joined_pieces
from govtool.workflow.semirings.value_texts import value_texts

LONG = 1_000
"""Parts from which a sum is made by columns."""
_MOST_FACTORS = 8
_NO_FACTOR = -1


@dataclass(frozen=True, slots=True)
class Monomials:
    """Products of tokens, one a row.

    Attributes:
        factors: int64[n, k]: the ranks of the tokens, ascending; rows with fewer start with -1.
        times: int64[n]: coefficients; None: all are 1.
    """

    factors: Array
    times: Array | None = None

    def __len__(self) -> int:
        return len(self.factors)

    def summed(self) -> Monomials:
        """The same sum in canonical order, equal monomials being one with a coefficient."""
        is_single = self.factors.shape[1] == 1
        found = np.sort(self.factors, 0) if is_single else self.factors[np.lexsort(self.factors.T[::-1])]
        is_first = np.ones(len(found), bool)
        is_first[1:] = (found[1:] != found[:-1]).any(1)
        if is_first.all():
            return Monomials(found)
        firsts = np.flatnonzero(is_first)
        return Monomials(found[firsts], np.diff(np.append(firsts, len(found))))


class LongSums:
    """Texts of long sums over a circuit.

    Args:
        circuit: The annotations.
        tokens: Names of the sources.
        least: Parts from which a sum is made here.
    """

    def __init__(self, circuit: Circuit, tokens: Tokens, least: int = LONG) -> None:
        self._circuit = circuit
        self._tokens = tokens
        self._least = least
        self._known: dict[tuple[int, int], Monomials | None] = {}
        self._orders: list[tuple[Array, Array | None]] = []

    # ---- what can be made here -------------------------------------------------------------------------------------

    def sum_of(self, nodes: Array) -> LongText | None:
        """The sum of some p-nodes; None: it is not made here."""
        made = self._monomials(nodes)
        return None if made is None else self._text(made.summed())

    def of(self, node: int, *, erase_delta: bool = False) -> LongText | None:
        """The text of a sum, a ``δ`` or an aggregate; None: it is not made here."""
        block, at = self._circuit.place(node)
        if isinstance(block, Terms):
            return self._aggregate(block, at)
        if not isinstance(block, (Sum, Delta)):
            return None
        made = self._listed(block.inputs, at)
        if made is None:
            return None
        made = made.summed()
        if not isinstance(block, Delta) or erase_delta:
            return self._text(made)
        return self._text(made, "δ(", ")")

    def is_long(self, node: int) -> bool:
        """Return whether a ``δ`` or an aggregate is made here."""
        block, at = self._circuit.place(node)
        if (isinstance(block, Terms) and block.cells is not None) or not isinstance(block, (Delta, Terms)):
            return False
        return self._listed(block.inputs, at) is not None

    def long_nodes(self) -> Array:
        """The nodes of ``δ`` and aggregates that are made here."""
        found = []
        for start, block in self._circuit:
            if isinstance(block, (Delta, Terms)):
                found += [start + at for at in np.flatnonzero(np.diff(block.inputs.offsets) >= self._least).tolist()]
        return np.array([node for node in found if self.is_long(node)], np.int64)

    # ---- monomials -------------------------------------------------------------------------------------------------

    def _listed(self, inputs: Inputs, at: int) -> Monomials | None:
        """The monomials of a list, which several blocks may share."""
        key = (id(inputs), at)
        if key not in self._known:
            self._known[key] = self._monomials(inputs.nodes[inputs.offsets[at] : inputs.offsets[at + 1]])
        return self._known[key]

    def _monomials(self, nodes: Array) -> Monomials | None:
        if len(nodes) < self._least:
            return None
        factors = self._factors(nodes)
        if factors is None or (factors[:, -1] == _NO_FACTOR).any():
            return None
        return Monomials(factors)

    def _factors(self, nodes: Array) -> Array | None:
        """The ranks of the tokens of each node, ascending; None: one is no product of tokens."""
        if not len(nodes) or int(nodes.min()) < ONE:
            return None
        starts = np.array(self._circuit.starts, np.int64)
        blocks = np.searchsorted(starts, nodes, "right") - 1
        parts: list[tuple[Array, Array]] = []
        for number in np.unique(blocks).tolist():
            inside = np.flatnonzero(blocks == number)
            found = self._block_factors(number, nodes[inside] - starts[number])
            if found is None:
                return None
            parts.append((inside, found))
        width = max(found.shape[1] for _, found in parts)
        made = np.full((len(nodes), width), _NO_FACTOR)
        for inside, found in parts:
            made[inside, width - found.shape[1] :] = found
        return made

    def _block_factors(self, number: int, own: Array) -> Array | None:
        block = self._circuit.blocks[number]
        if number == ONE:
            return np.full((len(own), 1), _NO_FACTOR)
        if isinstance(block, Sources) and block.dataset in self._tokens.starts:
            return self._rank_of(own + self._circuit.starts[number])[:, None]
        if not isinstance(block, Product):
            return None
        left, right = self._factors(block.left[own]), self._factors(block.right[own])
        if left is None or right is None or left.shape[1] + right.shape[1] > _MOST_FACTORS:
            return None
        return np.sort(np.hstack([left, right]), 1)

    # ---- texts -----------------------------------------------------------------------------------------------------

    @cached_property
    def _labels(self) -> tuple[Array, Array, Any]:
        """First nodes of relations, their first places, and all tokens in one Arrow array."""
        import pyarrow as pa

        names = sorted(self._tokens.starts, key=lambda name: self._tokens.starts[name])
        labels = [self._tokens.labels[name] for name in names]
        chunks = [c for each in labels for c in (each.chunks if hasattr(each, "chunks") else [each])]
        whole = pa.chunked_array([c.cast(pa.large_string()) for c in chunks], pa.large_string()).combine_chunks()
        sizes = [len(each) for each in labels]
        firsts = np.array([self._tokens.starts[name] for name in names], np.int64)
        return firsts, np.cumsum([0, *sizes[:-1]]), whole

    @cached_property
    def _order(self) -> Array:
        return text_order(self._labels[2])

    @cached_property
    def _sorted_labels(self) -> Any:
        return self._labels[2].take(self._order)

    @cached_property
    def _ranks(self) -> Array:
        return ranks(self._order)

    @cached_property
    def _term_ranks(self) -> Array | None:
        """By rank of a token the rank of ``token⊗``; None: a token has the sign."""
        import pyarrow.compute as pc

        if pc.any(pc.match_substring(self._sorted_labels, "⊗")).as_py():
            return None
        return ranks(text_order(concatenated(self._sorted_labels, "⊗")))

    def _rank_of(self, nodes: Array) -> Array:
        firsts, places, _ = self._labels
        at = np.searchsorted(firsts, nodes, "right") - 1
        found: Array = self._ranks[nodes - firsts[at] + places[at]]
        return found

    def _texts(self, made: Monomials) -> Any:
        """The canonical string of each monomial, as an Arrow array."""
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = self._products(made.factors)
        if made.times is None:
            return texts
        numbers = pc.cast(pa.array(made.times), pa.large_string())
        return pc.if_else(pa.array(made.times > 1), concatenated(numbers, "*", texts), texts)

    def _products(self, factors: Array) -> Any:
        """Products without their coefficients; those with powers one by one."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if ((factors[:, 1:] == factors[:, :-1]) & (factors[:, 1:] != _NO_FACTOR)).any():
            return pa.array([self._with_powers(row) for row in factors.tolist()], pa.large_string())
        texts = self._sorted_labels.take(factors[:, -1])
        for at in range(factors.shape[1] - 2, -1, -1):
            has = factors[:, at] != _NO_FACTOR
            wider = concatenated(self._sorted_labels.take(np.maximum(factors[:, at], 0)), "*", texts)
            texts = wider if has.all() else pc.if_else(pa.array(has), wider, texts)
        return texts

    def _with_powers(self, row: list[int]) -> str:
        from itertools import groupby

        powers = [(rank, len(list(same))) for rank, same in groupby(each for each in row if each != _NO_FACTOR)]
        names = [(self._sorted_labels[rank].as_py(), k) for rank, k in powers]
        return "*".join(name if k == 1 else f"{name}^{k}" for name, k in names)

    def _text(self, made: Monomials, before: str = "", after: str = "") -> LongText:
        def piece(low: int, high: int) -> Any:
            times = None if made.times is None else made.times[low:high]
            return self._texts(Monomials(made.factors[low:high], times))

        return LongText(lambda: _joined(len(made), piece, before, after), self._tokens.is_plain)

    # ---- aggregates ------------------------------------------------------------------------------------------------

    def _aggregate(self, block: Terms, at: int) -> LongText | None:
        low, high = int(block.inputs.offsets[at]), int(block.inputs.offsets[at + 1])
        nodes = block.inputs.nodes[low:high]
        made = None if block.cells is not None else self._listed(block.inputs, at)
        if made is None:
            return None
        (values,) = (None,) if block.argument is None else block.table.read(block.argument)
        rows = block.rows[low:high]
        order = self._shared_order(nodes, made)
        if order is None:
            order = text_order(self._terms(made.factors, values, rows))

        def piece(first: int, last: int) -> Any:
            places = order[first:last]
            return self._terms(made.factors[places], values, rows[places])

        is_plain = self._tokens.is_plain and not _is_text(values)
        before = f"{aggregate_name(block.call)}("
        return LongText(lambda: _joined(len(made), piece, before, ")"), is_plain)

    def _terms(self, factors: Array, values: Any, rows: Array) -> Any:

        texts = self._texts(Monomials(factors))
        return concatenated(texts, "⊗", "1" if values is None else value_texts(values.take(rows)))

    def _shared_order(self, nodes: Array, made: Monomials) -> Array | None:
        """The order of terms whose tokens decide it, which aggregates over the same rows share; None: they do not."""
        for known, order in self._orders:
            if len(known) == len(nodes) and np.array_equal(known, nodes):
                return order
        found = self._order_of(made)
        self._orders.append((nodes, found))
        return found

    def _order_of(self, made: Monomials) -> Array | None:
        if made.factors.shape[1] > 1 or self._term_ranks is None:
            return None
        keys = self._term_ranks[made.factors[:, 0]]
        order = np.argsort(keys, kind="stable")
        placed = keys[order]
        return None if (placed[1:] == placed[:-1]).any() else order


def _is_text(values: Any) -> bool:
    import pyarrow as pa

    if values is None:
        return False
    kind = values.type
    return not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _joined(count: int, piece: Callable[[int, int], Any], before: str, after: str) -> Iterator[str]:
    """Parts with `` + `` between them, some at a time."""
    yield before
    yield from joined_pieces(count, piece, " + ")
    yield after

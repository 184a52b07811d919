"""Probability of a row, and the share of each token in it: Shapley, Banzhaf, responsibility.

Up to 20 tokens every world is evaluated; above, worlds are sampled and the error is stated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import factorial

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.arrays.sets import Array
from govtool.errors import UsageError
from govtool.workflow.annotate.circuit import ONE, Block, Circuit, Delta, Product, Sources, Sum
from govtool.workflow.semirings.worlds import Worlds

EXACT = 20
"""The most tokens for which every world is evaluated."""
MOST = 2000
"""The most tokens for which worlds are sampled."""
SAMPLES = 20_000
PERMUTATIONS = 200
_CHUNK = 1 << 14
_Z = 2.576
"""Errors are at a confidence of 99%."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number, or one a token, with the error of sampling; an error of 0 is exact."""

    value: float | dict[int, float]
    error: float = 0.0


def checked_size(name: str, tokens: int, exact: bool) -> None:
    """Refuse more tokens than can be evaluated.

    Raises:
        UsageError: There are (``usage.why-size``).
    """
    if exact and tokens > EXACT:
        raise UsageError(
            f"{name} of a row of {tokens:,} tokens is exact up to {EXACT} only",
            code="usage.why-size",
            hint="without --exact it is sampled, and the error is stated",
        )
    if tokens > MOST:
        raise UsageError(f"{name} of a row of {tokens:,} tokens: at most {MOST:,}", code="usage.why-size")


def all_worlds(worlds: Worlds) -> Array:
    """True if the row is there in each of the 2^n worlds: world ``i`` has token ``t`` if bit ``t`` of ``i`` is set."""
    count = len(worlds.tokens)
    bits = np.arange(count)[:, None]
    found = [
        worlds.present(((np.arange(low, min(low + _CHUNK, 1 << count)) >> bits) & 1).astype(bool))
        for low in range(0, 1 << count, _CHUNK)
    ]
    return np.concatenate(found)


# ---- probability ----------------------------------------------------------------------------------------------------


def probability(circuit: Circuit, roots: Array, chances: Array, *, exact: bool = False) -> Estimate:
    """The probability that one of the roots is there, tokens being independent.

    Args:
        circuit: The annotations.
        roots: p-nodes.
        chances: The probability of each token, by node.
        exact: Refuse to sample.

    Raises:
        UsageError: The annotation does not fit, or is too large.
    """
    once = _read_once(circuit, roots, chances)
    if once is not None:
        return Estimate(once)
    worlds = Worlds(circuit, roots)
    own = chances[worlds.tokens]
    if len(own) <= EXACT:
        weights = np.ones(1)
        for chance in own:
            weights = np.concatenate([weights * (1 - chance), weights * chance])
        return Estimate(float(weights[all_worlds(worlds)].sum()))
    checked_size("the probability", len(own), exact)
    rng = np.random.default_rng(7)
    hits = sum(int(worlds.present(rng.random((len(own), 2000)) < own[:, None]).sum()) for _ in range(SAMPLES // 2000))
    share = hits / SAMPLES
    return Estimate(share, _Z * float(np.sqrt(max(share * (1 - share), 1 / SAMPLES) / SAMPLES)))


def _read_once(circuit: Circuit, roots: Array, chances: Array) -> float | None:
    """The probability of an annotation of ``+ · δ`` in which every node is read once; None for any other."""
    seen: set[int] = set()
    known: dict[int, float] = {}
    order: list[tuple[int, Block, int]] = []
    waiting = roots.tolist()
    while waiting:
        node = waiting.pop()
        if node <= ONE:
            return None
        if node in seen:
            return None
        seen.add(node)
        block, at = circuit.place(node)
        order.append((node, block, at))
        below = _below(block, at)
        if below is None:
            return None
        waiting += below
    for node, block, at in reversed(order):
        below = _below(block, at) or []
        if isinstance(block, Sources):
            known[node] = float(chances[node])
        elif isinstance(block, Product):
            known[node] = known[below[0]] * known[below[1]]
        else:
            known[node] = 1 - float(np.prod([1 - known[each] for each in below]))
    return 1 - float(np.prod([1 - known[node] for node in roots.tolist()]))


def _below(block: Block, at: int) -> list[int] | None:
    if isinstance(block, Sources):
        return []
    if isinstance(block, Product):
        return [int(block.left[at]), int(block.right[at])]
    if isinstance(block, (Sum, Delta)):
        found: list[int] = block.inputs.nodes[block.inputs.offsets[at] : block.inputs.offsets[at + 1]].tolist()
        return found
    return None


# ---- shares ---------------------------------------------------------------------------------------------------------


def shapley(there: Array, tokens: int) -> Array:
    """Shapley values of the game whose value in each world is whether the row is there."""
    weights = np.array([factorial(k) * factorial(tokens - k - 1) / factorial(tokens) for k in range(tokens)])
    return _marginal(there, tokens, lambda sizes: weights[sizes])


def banzhaf(there: Array, tokens: int) -> Array:
    """Banzhaf values: the share of worlds in which a token decides."""
    return _marginal(there, tokens, lambda sizes: np.full(len(sizes), 0.5 ** (tokens - 1)))


def _marginal(there: Array, tokens: int, weight: Callable[[Array], Array]) -> Array:
    worlds = np.arange(1 << tokens)
    sizes = np.zeros(len(worlds), np.int64)
    for bit in range(tokens):
        sizes += (worlds >> bit) & 1
    found = np.zeros(tokens)
    for bit in range(tokens):
        without = worlds[((worlds >> bit) & 1) == 0]
        gain = there[without | (1 << bit)].astype(float) - there[without]
        found[bit] = float((gain * weight(sizes[without])).sum())
    return found


def responsibility(there: Array, tokens: int) -> Array:
    """``1 / (1 + |Γ|)``: ``Γ`` is the smallest set without which the row is there and the token decides; 0: none."""
    worlds = np.arange(1 << tokens)
    missing = np.full(len(worlds), tokens)
    for bit in range(tokens):
        missing -= (worlds >> bit) & 1
    found = np.zeros(tokens)
    for bit in range(tokens):
        having = worlds[((worlds >> bit) & 1) == 1]
        decides = having[there[having] & ~there[having & ~(1 << bit)]]
        if len(decides):
            found[bit] = 1 / (1 + int(missing[decides].min()))
    return found


_EXACT: dict[str, Callable[[Array, int], Array]] = {
    "shapley": shapley, "banzhaf": banzhaf, "responsibility": responsibility,
}  # fmt: skip


def shares(circuit: Circuit, roots: Array, names: Sequence[str], *, exact: bool = False) -> dict[str, Estimate]:
    """The shares of all tokens of a row, by kind.

    Args:
        circuit: The annotations.
        roots: The row's p-nodes.
        names: ``shapley``, ``banzhaf``, ``responsibility``.
        exact: Refuse to sample.

    Raises:
        UsageError: The annotation does not fit, or is too large.
    """
    worlds = Worlds(circuit, roots)
    tokens = worlds.tokens.tolist()
    if len(tokens) <= EXACT:
        there = all_worlds(worlds)
        return {
            name: Estimate(dict(zip(tokens, map(float, _EXACT[name](there, len(tokens))), strict=True)))
            for name in names
        }
    checked_size(" and ".join(names), len(tokens), exact)
    rng = np.random.default_rng(7)
    found = {}
    for name in names:
        made = _sampled_banzhaf(worlds, rng) if name == "banzhaf" else _by_removal(worlds, rng, name)
        found[name] = Estimate(dict(zip(tokens, map(float, made[0]), strict=True)), made[1])
    return found


def _by_removal(worlds: Worlds, rng: np.random.Generator, name: str) -> tuple[Array, float]:
    """Tokens removed in random orders: the marginal of each, and the least number removed before one that decided."""
    count = len(worlds.tokens)
    total, best, spread = np.zeros(count), np.zeros(count), 0.5
    for _ in range(PERMUTATIONS):
        order = rng.permutation(count)
        rank = np.empty(count, np.int64)
        rank[order] = np.arange(count)
        there = worlds.present(rank[:, None] >= np.arange(count + 1)[None, :])
        steps = there[:-1].astype(float) - there[1:]
        total[order] += steps
        spread = 1.0 if (steps < 0).any() else spread  # then a token counts from -1 to 1, not from 0
        decided = np.flatnonzero(there[:-1] & ~there[1:])
        best[order[decided]] = np.maximum(best[order[decided]], 1 / (1 + decided))
    if name == "responsibility":
        return best, 1.0
    return total / PERMUTATIONS, _Z * spread / float(np.sqrt(PERMUTATIONS))


def _sampled_banzhaf(worlds: Worlds, rng: np.random.Generator) -> tuple[Array, float]:
    count, samples = len(worlds.tokens), 1000
    base = rng.random((count, samples)) < 0.5
    found, spread = np.zeros(count), 0.5
    for at in range(count):
        with_, without = base.copy(), base.copy()
        with_[at], without[at] = True, False
        gain = worlds.present(with_).astype(float) - worlds.present(without)
        spread = 1.0 if (gain < 0).any() else spread
        found[at] = float(gain.mean())
    return found, _Z * spread / float(np.sqrt(samples))

"""What functions leave of a value: which of them a declassifier means, and how much gets through a way.

A declassifier lists functions by name, by glob, or by one of the sets ``@keyed``, ``@hash``, ``@mask``. Globs and sets
never mean a function that keeps a real value: whoever wants ``max`` to count must write ``max``,
and lint says what that means.
Hashing is pseudonymisation (GDPR Art. 4(5)); an unkeyed hash of few possible values is no more than a code.

A baseline, a waiver and a base accept so much of a value, and no more. The order, the weakest first: ``influence``,
``hidden`` (hashed, masked or encrypted in a way that the rule does not accept), ``aggregate``, ``part`` (``substr``,
``right`` …), ``whole``. Of a way the weakest step counts, of parallel edges of one step the strongest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

from govtool.functions.facts import (
    HASH,
    KEYED,
    MASK,
    MASKING,
    MEMBERS,
    PARTIAL,
    REAL,
    REVERSIBLE,
    UNDOES,
    key_of,
    unread_of,
)
from govtool.functions.names import is_same, spellings, squashed
from govtool.graph.index import Index
from govtool.model.kinds import VALUE_FLOW, EdgeKind

SETS = {"@keyed": KEYED, "@hash": HASH, "@mask": MASK}
_REAL = frozenset(map(squashed, REAL))
_MEMBERS = frozenset(map(squashed, MEMBERS))
_INVERSES = frozenset(map(squashed, UNDOES))
_IRREVERSIBLE = frozenset(map(squashed, MASKING - REVERSIBLE))
_ONE_WAY = frozenset({"@hash", "@mask"})
_INVERSE_WORDS = ("decrypt", "detokenize", "unmask")
"""A user's function whose name contains one of these counts as an inverse: a wrong guess hides nothing."""
_HASH = frozenset(map(squashed, HASH))
_SETS = {name: frozenset(map(squashed, members)) for name, members in SETS.items()}


def is_listed(listed: Iterable[str], function: str) -> bool:
    """Return whether a function, as an edge names it, is among those that a declassifier lists by their names."""
    return any(is_same(item, function) for item in listed)


def named(listed: Iterable[str], function: str) -> bool:
    """Return whether a declassifier lists a function, as an edge names it, by a name, a glob or a set.

    >>> named(["tokenize*"], "tokenize_v2"), named(["*"], "max"), named(["max"], "max"), named(["@hash"], "sha2")
    (True, False, True, True)
    """
    if key_of(function) is not None:
        return False
    unread = unread_of(function)
    if unread is not None:  # only whoever writes its name knows what it does
        return is_listed(listed, unread)
    names = spellings(function)
    spelled = {function.lower(), function.lower().rpartition(".")[2]}
    for item in listed:
        if is_same(item, function):
            return True
        text = item.lower()
        if names & _REAL:
            continue
        if names & _SETS.get(text, frozenset()) or any(fnmatchcase(name, text) for name in spelled):
            return True
    return False


def is_unkeyed(function: str) -> bool:
    """Return whether a function is a hash without a key."""
    return bool(spellings(function) & _HASH)


def is_hash(listed: str) -> bool:
    """Return whether what a declassifier lists is a hash without a key, or the set of these."""
    return listed.lower() == "@hash" or is_unkeyed(listed)


def keeps_a_value(function: str) -> bool:
    """Return whether an aggregate passes on a real value, so that it hides nobody."""
    return bool(spellings(function) & _MEMBERS)


def is_inverse(function: str) -> bool:
    """Return whether a function gives back a value that another one has hidden.

    >>> is_inverse("aes_decrypt"), is_inverse("etl.detokenize_email"), is_inverse("aes_encrypt")
    (True, True, False)
    """
    last = squashed(function).rpartition(".")[2]
    if spellings(function) & (_INVERSES | _IRREVERSIBLE):
        return bool(spellings(function) & _INVERSES)
    return any(word in last for word in _INVERSE_WORDS) or last.startswith("detok")


def may_be_undone(function: str) -> bool:
    """Return whether an inverse may show again what a function or a set hides: all but hashes, HMAC and masks.

    >>> may_be_undone("aes_encrypt"), may_be_undone("etl.our_own"), may_be_undone("hmac"), may_be_undone("@hash")
    (True, True, False, False)
    """
    return function.lower() not in _ONE_WAY and not spellings(function) & _IRREVERSIBLE


STRENGTHS: Final = ("influence", "hidden", "aggregate", "part", "whole")
"""The weakest first."""
_HIDDEN: Final = frozenset(map(squashed, KEYED | HASH | MASK))
_PARTS: Final = frozenset(map(squashed, PARTIAL))


def strength_of(index: Index, edges: Sequence[int]) -> str:
    """Return how much of a value gets through a way.

    Args:
        index: The graph.
        edges: The way; none is the column itself.
    """
    return min((_of_step(index, edge) for edge in edges), key=STRENGTHS.index, default="whole")


def is_worse(now: str, before: str | None) -> bool:
    """Return whether more gets through than before; False where either is not known.

    >>> is_worse("whole", "part"), is_worse("part", "whole"), is_worse("whole", None)
    (True, False, False)
    """
    return now in STRENGTHS and before in STRENGTHS and STRENGTHS.index(now) > STRENGTHS.index(before)


def _of_step(index: Index, edge: int) -> str:
    source, target = index.edge_source[edge], index.edge_target[edge]
    beside = (e for e in index.in_edges(target) if index.edge_source[e] == source)
    return max((_of_edge(index, e) for e in beside), key=STRENGTHS.index)


def _of_edge(index: Index, edge: int) -> str:
    if index.kind(edge) not in VALUE_FLOW:
        return "influence" if index.kind(edge) is not EdgeKind.OPAQUE else "whole"
    functions = index.functions(edge)
    hidden = False
    for function in functions:
        hidden = not is_inverse(function) and (hidden or bool(spellings(function) & _HIDDEN))
    if hidden:
        return "hidden"
    if index.kind(edge) is EdgeKind.AGGREGATION and not any(map(keeps_a_value, functions)):
        return "aggregate"
    return "part" if any(spellings(function) & _PARTS for function in functions) else "whole"

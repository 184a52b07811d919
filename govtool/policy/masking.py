"""Functions that a declassifier means: by name, by glob, by a set of the table of function facts.

A declassifier lists functions by name, by glob, or by one of the sets ``@keyed``, ``@hash``, ``@mask``. Globs and sets
never mean a function that keeps a real value: whoever wants ``max`` to count must write ``max``,
and lint says what that means.
Hashing is pseudonymisation (GDPR Art. 4(5)); an unkeyed hash of few possible values is no more than a code.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from govtool.functions.facts import HASH, KEYED, MASK, MASKING, MEMBERS, REAL, REVERSIBLE, UNDOES, key_of, unread_of
from govtool.functions.names import is_same, spellings, squashed

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
    """Return whether a function, as an edge names it, is among those that a declassifier lists, in whatever way.

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


def keeps_a_value(function: str) -> bool:
    """Return whether an aggregate hands on a real value, so that an aggregate over it hides nobody."""
    return bool(spellings(function) & _MEMBERS)


def is_inverse(function: str) -> bool:
    """Return whether a function gives back a value that another one has hidden.

    >>> is_inverse("aes_decrypt"), is_inverse("etl.detokenize_email"), is_inverse("aes_encrypt")
    (True, True, False)
    """
    last = squashed(function).rpartition(".")[2]
    return bool(spellings(function) & _INVERSES) or any(word in last for word in _INVERSE_WORDS)


def may_be_undone(function: str) -> bool:
    """Return whether an inverse may show again what a function or a set hides: all but hashes, HMAC and masks.

    >>> may_be_undone("aes_encrypt"), may_be_undone("etl.our_own"), may_be_undone("hmac"), may_be_undone("@hash")
    (True, True, False, False)
    """
    return function.lower() not in _ONE_WAY and not spellings(function) & _IRREVERSIBLE

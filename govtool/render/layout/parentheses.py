"""Annotations with parentheses where a reader needs them.

A canonical string has none around a sum within a difference, as ``+`` binds tighter there: ``(1 ⊖ a + b)``.
"""

from __future__ import annotations

from typing import NamedTuple

_MONUS, _PLUS = " ⊖ ", " + "
_PAIRS = {"(": ")", "[": "]"}


class _Level(NamedTuple):
    """What is between two brackets, up to some place."""

    bracket: str
    start: int
    """The first piece of its last operand."""
    is_difference: bool = False
    has_sum: bool = False
    """True if a ``+`` stands in its last operand, outside of all brackets."""


def parenthesised(text: str) -> str:
    """A canonical string with parentheses around the sums that are operands of a difference.

    Tokens whose own brackets do not pair leave the text as it is.
    """
    if _MONUS not in text or _PLUS not in text:
        return text
    pieces: list[str] = []
    levels = [_Level("", 0)]
    at = 0
    while at < len(text):
        level, character = levels[-1], text[at]
        if text.startswith(_MONUS, at):
            _close(pieces, level, is_operand=True)
            at += len(_MONUS)
            pieces.append(_MONUS)
            levels[-1] = level._replace(start=len(pieces), is_difference=True, has_sum=False)
            continue
        if character in _PAIRS:
            levels.append(_Level(character, len(pieces) + 1))
        elif character in _PAIRS.values():
            if _PAIRS.get(level.bracket) != character:
                return text
            _close(pieces, level, is_operand=level.is_difference)
            levels.pop()
        elif text.startswith(_PLUS, at):
            levels[-1] = level._replace(has_sum=True)
        pieces.append(character)
        at += 1
    _close(pieces, levels[-1], is_operand=levels[-1].is_difference)
    return text if len(levels) > 1 else "".join(pieces)


def _close(pieces: list[str], level: _Level, *, is_operand: bool) -> None:
    """End an operand: one of a difference is put in parentheses if it is a sum."""
    if is_operand and level.has_sum:
        pieces[level.start] = f"({pieces[level.start]}"
        pieces[-1] += ")"

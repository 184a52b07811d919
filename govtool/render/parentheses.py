"""Annotations with parentheses where a reader needs them.

A canonical string has none around a sum within a difference, as ``+`` binds tighter there: ``(1 ⊖ a + b)``.
"""

from __future__ import annotations

_MONUS, _PLUS = " ⊖ ", " + "
_PAIRS = {"(": ")", "[": "]"}


def parenthesised(text: str) -> str:
    """A canonical string with parentheses around the sums that are operands of a difference.

    Tokens whose own brackets do not pair leave the text as it is.
    """
    if _MONUS not in text or _PLUS not in text:
        return text
    open_brackets: list[str] = []
    levels: list[list[str]] = [[""]]
    at = 0
    while at < len(text):
        character = text[at]
        if text.startswith(_MONUS, at):
            levels[-1].append("")
            at += len(_MONUS)
            continue
        if character in _PAIRS:
            open_brackets.append(character)
            levels.append([""])
        elif character in _PAIRS.values():
            if not open_brackets or _PAIRS[open_brackets[-1]] != character:
                return text
            inner = _difference(levels.pop())
            levels[-1][-1] += f"{open_brackets.pop()}{inner}{character}"
        else:
            levels[-1][-1] += character
        at += 1
    return text if open_brackets else _difference(levels[0])


def _difference(operands: list[str]) -> str:
    if len(operands) == 1:
        return operands[0]
    return _MONUS.join(f"({operand})" if _is_sum(operand) else operand for operand in operands)


def _is_sum(operand: str) -> bool:
    """True if a ``+`` stands outside of all brackets."""
    depth = 0
    for at, character in enumerate(operand):
        depth += (character in _PAIRS) - (character in _PAIRS.values())
        if depth == 0 and operand.startswith(_PLUS, at):
            return True
    return False

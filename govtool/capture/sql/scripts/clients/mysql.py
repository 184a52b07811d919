"""MySQL: executable comments, and words of its statements that the parser takes for something else.

Source: MySQL Reference Manual, "Comments": ``/*!80000 code */`` is code for servers of at least that version. mysqldump
writes views, triggers and events in such comments.
"""

from __future__ import annotations

import re
from typing import Final

_CONDITIONAL: Final = re.compile(
    r"(?<!\\)'(?:[^'\\]|\\.|'')*+'|(?<!\\)\"(?:[^\"\\]|\\.|\"\")*+\"|`[^`]*`|--[ \t][^\n]*|\#[^\n]*"
    r"|/\*(?!M?!)(?:[^*]|\*(?!/))*+(?:\*/|\Z)"
    r"|(?P<opens>/\*M?!(?P<version>\d{5,6})?)|(?P<closes>\*/)",
    re.DOTALL,
)
_NEWEST: Final = 999_999
"""The version that no server has: what needs it is a comment for all."""
_MODIFIERS: Final = re.compile(
    r"(?P<verb>\bDELETE\s)(?P<words>\s*(?:(?:LOW_PRIORITY|QUICK|IGNORE)\s+)+)(?=FROM\b)", re.IGNORECASE
)


def with_conditional_code(text: str) -> str:
    """Return a script of the same length whose conditional comments are code."""
    parts: list[str] = []
    position = depth = 0
    for match in _CONDITIONAL.finditer(text):
        if match["opens"] is not None and not depth and int(match["version"] or 0) < _NEWEST:
            depth = 1
        elif match["closes"] is not None and depth:
            depth = 0
        else:
            continue
        parts.append(text[position : match.start()])
        parts.append(" " * len(match.group()))
        position = match.end()
    parts.append(text[position:])
    return "".join(parts)


def without_modifiers(text: str) -> str:
    """Return a script of the same length without ``QUICK`` and the like of DELETE: the parser takes them for tables."""
    return _MODIFIERS.sub(lambda m: m["verb"] + re.sub(r"\w", " ", m["words"]), text)

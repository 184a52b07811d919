"""The parameters of routines: names in a body that are not columns."""

from __future__ import annotations

import re

from govtool.names import fold

_HEAD = re.compile(
    r"\s*CREATE\s+(?:OR\s+(?:REPLACE|ALTER)\s+)?(?:TEMP(?:ORARY)?\s+|SECURE\s+|EDITIONABLE\s+)*(?:PROCEDURE|PROC|FUNCTION|MACRO)\s+"
    r"(?:IF\s+NOT\s+EXISTS\s+)?(?P<name>[^\s(]+)\s*(?P<open>\()?",
    re.IGNORECASE,
)
_MODES = frozenset({"in", "out", "inout", "variadic"})


def routine_of(text: str, dialect: str) -> tuple[str, frozenset[str]] | None:
    """Return the canonical name and the folded parameter names of a routine's head, or None if ``text`` is not one."""
    match = _HEAD.match(text)
    if match is None:
        return None
    name = ".".join(fold(part.strip('`"[]'), dialect=dialect, table=True) for part in match["name"].split("."))
    names: set[str] = set()
    for item in _items(text[match.end() :]) if match["open"] else ():
        words = re.findall(r'"[^"]+"|`[^`]+`|[^\s,()]+', item)
        while words and words[0].lower() in _MODES:
            words.pop(0)
        if words and not words[0].startswith(("@", "$")):
            quoted = words[0][0] in '"`'
            names.add(fold(words[0].strip('"`'), quoted=quoted, dialect=dialect))
    return name, frozenset(names)


def _items(text: str) -> list[str]:
    """Split a parameter list at its commas, leaving those inside brackets of types alone."""
    items: list[str] = []
    depth = 0
    start = 0
    for i, ch in enumerate(text):
        if ch in "(<[":
            depth += 1
        elif ch in ")>]":
            if ch == ")" and depth == 0:
                items.append(text[start:i])
                return items
            depth -= 1
        elif ch == "," and depth == 0:
            items.append(text[start:i])
            start = i + 1
    return items

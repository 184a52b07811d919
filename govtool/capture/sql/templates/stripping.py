"""Templates that are no valid Jinja, without their tags."""

from __future__ import annotations

import re
from collections.abc import Iterator

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_TAG_START = re.compile(r"\{[#%{]")
_TAG_ENDS = {"{#": "#}", "{%": "%}", "{{": "}}"}


def _tags(text: str) -> Iterator[tuple[int, int, str]]:
    """The tags of a template: start, end, and what opens each; one that is not closed is text.

    In linear time: an expression with ``.*?`` searches to the end of the text for every opening without a closing.
    """
    unclosed: set[str] = set()
    found = _TAG_START.search(text)
    while found is not None:
        start, opening = found.start(), found.group()
        end = -1 if opening in unclosed else text.find(_TAG_ENDS[opening], start + 2)
        if end < 0:
            unclosed.add(opening)
        else:
            yield start, end + 2, opening
        found = _TAG_START.search(text, start + 1 if end < 0 else end + 2)


def strip_tags(text: str) -> str:
    """A template that is no valid Jinja, without its tags: expressions become their first name. Lines stay."""
    parts = []
    last = 0
    for start, end, opening in _tags(text):
        breaks = "\n" * text.count("\n", start, end)
        parts += [text[last:start], _first_name(text[start + 2 : end - 2]) if opening == "{{" else " ", breaks]
        last = end
    return "".join((*parts, text[last:]))


def _first_name(expression: str) -> str:
    """The name that an expression stands for: that of what it refers to, else the first one in it."""
    quoted = re.search(r"['\"]([\w.]+)['\"]\s*+\)?\s*+$", expression.strip())
    if quoted and re.match(r"\s*(?:ref|source|var)\b", expression):
        return quoted.group(1)
    name = _IDENTIFIER.search(expression)
    return "" if name is None or name.group() in ("config", "log", "print", "return") else name.group()

"""Lists of plan text, ``[a#1, (b#2 + 1) AS c#3]``: split where elements end, though literals have no quotes."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MORE = re.compile(r"(?:, )?\.\.\. (\d+) more fields\Z")
_ID = re.compile(r"(.*)#(\d+)L?\Z", re.DOTALL)
_ENDS = re.compile(r"#\d+L?(?=, |\Z)")
_NAMED = re.compile(r"(?:\A| AS )[^()]*#\d+L?\Z", re.DOTALL)
_BRACKET = re.compile(r"[(\[{)\]}]")
_SPLITTING = re.compile(r"[(\[{)\]}]|, ")
_ALIASING = re.compile(r"[(\[{)\]}]| AS ")
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True, slots=True)
class ListItems:
    """The items of a list."""

    items: tuple[str, ...]
    more: int = 0
    """Elements that the text leaves out: ``... 15 more fields``."""
    certain: bool = True
    """False: there are not as many as the text says; literals with commas have hidden where they end."""


def split(text: str, count: int | None = None) -> ListItems:
    """Split ``[a, b]`` or ``a, b``.

    Args:
        text: With or without its brackets.
        count: How many elements there are said to be.
    """
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    more = _MORE.search(text)
    left_out = int(more[1]) if more is not None else 0
    if more is not None:
        text = text[: more.start()]
    if not text:
        return ListItems((), left_out)
    items = _by_depth(text)
    if count is None or len(items) + left_out == count:
        return ListItems(tuple(items), left_out)
    items = _by_ids(text)
    return ListItems(tuple(items), left_out, len(items) + left_out == count)


def _by_depth(text: str) -> list[str]:
    if not _BRACKET.search(text):
        return text.split(", ")
    items: list[str] = []
    depth = start = 0
    for found in _SPLITTING.finditer(text):
        token = found[0]
        if token in _OPEN:
            depth += 1
        elif token in _CLOSE:
            depth = max(0, depth - 1)
        elif not depth:
            items.append(text[start : found.start()])
            start = found.end()
    items.append(text[start:])
    return items


def _by_ids(text: str) -> list[str]:
    """Elements of which each ends in an expression id: columns, and expressions with the name of a column."""
    items: list[str] = []
    start = 0
    for end in _ENDS.finditer(text):
        element = text[start : end.end()]
        if _NAMED.search(element):
            items.append(element)
            start = end.end() + 2
    if start < len(text):
        items.append(text[start:])
    return items


def arguments(text: str) -> list[str]:
    """The elements of an ``Arguments`` line, which has no brackets."""
    return _by_depth(text.strip()) if text.strip() else []


def attribute(text: str) -> tuple[int, str] | None:
    """The id and the name of ``name#12L``; None if it is something else."""
    found = _ID.match(text.strip())
    return (int(found[2]), found[1]) if found is not None else None


def alias(text: str) -> tuple[str, int, str] | None:
    """``expression AS name#12`` as expression, id and name; None if it has no such name."""
    if " AS " not in text:
        return None
    named = _ID.match(text.strip())
    if named is None:
        return None
    body = named[1]
    at = _top_level_as(body)
    if at < 0:
        at = body.rfind(" AS ")
    if at < 0:
        return None
    return body[:at], int(named[2]), body[at + 4 :]


def _top_level_as(text: str) -> int:
    first = text.find(" AS ")
    if first < 0 or not _BRACKET.search(text, 0, first):
        return first
    depth = 0
    for found in _ALIASING.finditer(text):
        token = found[0]
        if token in _OPEN:
            depth += 1
        elif token in _CLOSE:
            depth -= 1
        elif not depth:
            return found.start()
    return -1


def conjuncts(text: str) -> list[str]:
    """The conditions that an AND joins."""
    parts: list[str] = []
    stack = [text.strip()]
    while stack:
        item = stack.pop()
        inner = item[1:-1] if _wrapped(item) else item
        at = _top_level(inner, " AND ")
        if at < 0 or (inner is item and not parts and not stack and at < 0):
            parts.append(item)
        else:
            stack.append(inner[at + 5 :])
            stack.append(inner[:at])
    return parts


def _wrapped(text: str) -> bool:
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for position, char in enumerate(text):
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth <= 0 and position < len(text) - 1:
                return False
    return True


def _top_level(text: str, wanted: str) -> int:
    depth = 0
    for position, char in enumerate(text):
        if char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
        elif depth == 0 and char == " " and text.startswith(wanted, position):
            return position
    return -1

"""The layout of JSON: one object on readable lines, or one value on one line.

Valid JSON, quick to write for half a million items, and readable and comparable line by line. Characters that could
steer a terminal are written as escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

_LINE = 120
_MANY = 200
"""Lists longer than this get one item a line, however long the item: measuring each would cost more than writing it."""
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def compact(value: object) -> str:
    """One value on one line."""
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "), allow_nan=False)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", text) if _UNSAFE.search(text) else text


def json_lines(value: Mapping[str, object]) -> Iterator[str]:
    """The lines of one JSON object: what fits stays on a line, what does not is opened up one level at a time."""
    return opened_lines(value, "", "")


def opened_lines(value: object, indent: str, suffix: str) -> Iterator[str]:
    """Lines of ``value``, the first without its indent, the last followed by ``suffix``."""
    if not isinstance(value, (dict, list, tuple)) or not value:
        yield compact(value) + suffix
        return
    if indent and len(value) <= _MANY:
        text = compact(value)
        if len(indent) + len(text) <= _LINE:
            yield text + suffix
            return
    inner = indent + "  "
    entries: list[tuple[str, object]]
    if isinstance(value, dict):
        start, end, entries = "{", "}", [(compact(str(key)) + ": ", item) for key, item in value.items()]
    else:
        start, end, entries = "[", "]", [("", item) for item in value]
    yield start
    last = len(entries) - 1
    for number, (key, item) in enumerate(entries):
        comma = "" if number == last else ","
        if len(entries) > _MANY:
            yield f"{inner}{key}{compact(item)}{comma}"
            continue
        opened = opened_lines(item, inner, comma)
        yield inner + key + next(opened)
        yield from opened
    yield indent + end + suffix

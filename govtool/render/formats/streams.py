"""JSON whose long texts and lists are written piece by piece, in the layout of ``envelope``."""

from __future__ import annotations

from collections.abc import Iterator

from govtool.arrays.long_text import LongList, LongText
from govtool.render.formats.envelope import compact, opened_lines


class TextFragment(str):
    """A piece of a line: no line ends behind it."""

    __slots__ = ()


def streamed_lines(value: object, indent: str = "", suffix: str = "") -> Iterator[str]:
    """The lines of a JSON value; those with long texts in pieces, the last of which ends the line.

    Args:
        value: As for ``json_lines``; it may hold ``LongText`` and ``LongList``.
        indent: That of the lines after the first.
        suffix: What follows the value.
    """
    if not _has_long(value):
        yield from opened_lines(value, indent, suffix)
    elif isinstance(value, (dict, list, tuple)):
        yield from _opened(value, indent, suffix)
    else:
        inner = f"\n{indent}  "
        yield from _fragments(value, f",{inner}", f"[{inner}", f"\n{indent}]")
        yield suffix


def _opened(value: dict[str, object] | list[object] | tuple[object, ...], indent: str, suffix: str) -> Iterator[str]:
    is_object = isinstance(value, dict)
    entries = [(f"{compact(str(k))}: ", v) for k, v in value.items()] if is_object else [("", v) for v in value]  # type: ignore[union-attr]
    yield "{" if is_object else "["
    for number, (key, item) in enumerate(entries):
        lines = streamed_lines(item, f"{indent}  ", "" if number == len(entries) - 1 else ",")
        first = next(lines)
        yield type(first)(f"{indent}  {key}{first}")
        yield from lines
    yield f"{indent}{'}' if is_object else ']'}{suffix}"


def streamed_line(value: object) -> Iterator[str]:
    """One value on one line, long texts and lists in pieces; the last piece ends the line."""
    yield from _fragments(value)
    yield ""


def _fragments(value: object, separator: str = ", ", before: str = "[", after: str = "]") -> Iterator[TextFragment]:
    if isinstance(value, LongText):
        yield TextFragment('"')
        for piece in value.pieces():
            yield TextFragment(piece if value.is_plain else compact(piece)[1:-1])
        yield TextFragment('"')
    elif isinstance(value, LongList):
        yield from _list(value, separator, before, after)
    elif isinstance(value, dict):
        for number, (key, item) in enumerate(value.items()):
            yield TextFragment(f"{', ' if number else '{'}{compact(str(key))}: ")
            yield from _fragments(item)
        yield TextFragment("}" if value else "{}")
    else:
        yield TextFragment(compact(value))


def _list(value: LongList, separator: str, before: str, after: str) -> Iterator[TextFragment]:
    if not value.is_plain:
        yield TextFragment(f"{before}{separator.join(map(compact, value.items()))}{after}")
        return
    yield TextFragment(f'{before}"')
    yield from map(TextFragment, value.parts(f'"{separator}"'))
    yield TextFragment(f'"{after}')


def _has_long(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_long, value.values()))
    return isinstance(value, (LongText, LongList)) or (isinstance(value, (list, tuple)) and any(map(_has_long, value)))

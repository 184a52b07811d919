"""Texts and lists too long to be kept: written piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class LongText:
    """A text of many parts, such as a polynomial of a million monomials.

    Attributes:
        pieces: Makes the pieces of the text, one after the other, from the start.
        is_plain: No piece has a character that JSON escapes.
    """

    pieces: Callable[[], Iterator[str]]
    is_plain: bool = False

    def __str__(self) -> str:
        return "".join(self.pieces())


@dataclass(frozen=True, slots=True, eq=False)
class LongList:
    """A list of many texts.

    Attributes:
        parts: Gives the texts, some at a time, joined by the separator that it is given.
        items: Gives all texts.
        is_plain: No text has a character that JSON escapes.
    """

    parts: Callable[[str], Iterator[str]]
    items: Callable[[], list[str]]
    is_plain: bool = False


def in_memory(value: Any) -> Any:
    """A value as ordinary strings, lists and dictionaries."""
    if isinstance(value, LongText):
        return str(value)
    if isinstance(value, LongList):
        return value.items()
    return {key: in_memory(item) for key, item in value.items()} if isinstance(value, dict) else value


class Annotations(Mapping[str, Any]):
    """The annotations of a row by name; long ones are made when they are read.

    Args:
        values: They may hold ``LongText`` and ``LongList``.
    """

    __slots__ = ("values_as_made",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values_as_made = dict(values)

    def __getitem__(self, key: str) -> Any:
        return in_memory(self.values_as_made[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_as_made)

    def __len__(self) -> int:
        return len(self.values_as_made)

    def __repr__(self) -> str:
        return f"<annotations: {', '.join(self)}>"

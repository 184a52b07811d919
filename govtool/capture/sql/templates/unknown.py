"""Values that a template needs and nobody gave."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

MAX_VALUE = 1_000_000
"""Characters or items of one value."""


class Limit(Exception):
    """A template that is not valid, or does more than is allowed."""

    def __init__(self, message: str, line: int | None = None) -> None:
        """Keep the line, 1-based, where it is known."""
        super().__init__(message)
        self.line = line


class Unknown:
    """A value that nobody gave. It renders to its name; whatever is done with it is unknown too.

    As a condition it is a *test*: the same test is decided the same way wherever it occurs in one rendering, and
    ``not``
    turns it around.
    """

    __slots__ = ("_call", "_equal", "_name", "_negated", "_test")

    def __init__(
        self, name: str, call: bool = False, test: str = "", negated: bool = False, equal: bool = False
    ) -> None:
        """Remember how it is written, whether it is the result of a call, and what it asks as a condition."""
        self._name = name[:200]
        self._call = call
        self._test = test or self._name
        self._negated = negated
        self._equal = equal

    def __str__(self) -> str:
        return f"\ue002{self._name}\ue003" if self._call else f"\ue002={self._name}\ue003"

    __repr__ = __str__

    def __html__(self) -> str:
        return str(self)

    def __getattr__(self, name: str) -> Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unknown(f"{self._name}_{name}", self._call)

    def __getitem__(self, key: object) -> Unknown:
        return Unknown(f"{self._name}_{plain(key)}", self._call)

    def __call__(self, *args: object, **kwargs: object) -> Unknown:
        """The result of a call: unknown too."""
        return Unknown(self._name, True)

    def __iter__(self) -> Iterator[Unknown]:
        return iter([Unknown(f"{self._name}_item", self._call)])

    def __len__(self) -> int:
        return 1

    def __bool__(self) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(self._name)

    def __eq__(self, other: object) -> Any:
        return self.condition(f"={plain(other)}", equal=True)

    def __ne__(self, other: object) -> Any:
        return self.condition(f"={plain(other)}", equal=True, negated=True)

    @property
    def is_call(self) -> bool:
        """Whether it is what a call made."""
        return self._call

    def condition(self, question: str, *, negated: bool = False, equal: bool = False) -> Unknown:
        """A condition on this value."""
        return Unknown(self._name, self._call, (self._test + question)[:300], negated, equal)

    def opposite(self) -> Unknown:
        """``not`` this."""
        return Unknown(self._name, self._call, self._test, not self._negated, self._equal)

    def __contains__(self, item: object) -> bool:
        return True

    def __int__(self) -> int:
        return 1

    def __float__(self) -> float:
        return 1.0

    __index__ = __int__

    def _same(self, *_: object) -> Unknown:
        return self

    def __lt__(self, other: object) -> Any:
        return self.condition(f"<{plain(other)}")

    def __ge__(self, other: object) -> Any:
        return self.condition(f"<{plain(other)}", negated=True)

    def __gt__(self, other: object) -> Any:
        return self.condition(f">{plain(other)}")

    def __le__(self, other: object) -> Any:
        return self.condition(f">{plain(other)}", negated=True)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _same
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = (
        __pos__
    ) = _same


def plain(value: object) -> str:
    """A value as an identifier."""
    return re.sub(r"\W+", "_", str(value)[:60]).strip("_") or "item"


_WRITTEN = re.compile(r"\{\{-?\s*([^\s{}]+)\s*-?\}\}")
"""What stands between braces, without filters."""


def as_written(message: str, line: str) -> str:
    """A message in which the names that unknown values render to are as a line of the template has them.

    >>> as_written("graph_nodes_values_item_alias has no value", "select {{ item.alias }} as x")
    'item.alias has no value'
    """
    for name, expression in _names_in(line):
        if name in message:
            message = re.sub(rf"\b(?:\w+_)?{name}\b", expression.replace("\\", "\\\\"), message)
    return message


@lru_cache(maxsize=4)
def _names_in(line: str) -> tuple[tuple[str, str], ...]:
    """What stands between braces in a line, by the names that it renders to; a line may have thousands of them."""
    found = [(plain(expression), expression) for expression in _WRITTEN.findall(line)]
    return tuple((name, expression) for name, expression in found if name != expression and "_" in name)


def plain_text(text: str) -> str:
    """A message without characters that marks are made of."""
    text = re.sub("\ue002[=!]?|\ue000\\d+\ue001|[\ue000-\ue004]", "", text)
    return " ".join(text.split())[:500]


def bounded_text(text: str) -> str:
    """The text, unless it is too long."""
    if len(text) > MAX_VALUE:
        raise Limit(f"a value of more than {MAX_VALUE} characters")
    return text

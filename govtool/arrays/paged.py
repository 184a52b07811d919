"""Arrays of which only some pages are loaded: reading an item loads its page.

They look like the arrays of a mapped file (``govtool.arrays.layout``) to those who read them. Where all arrays have
been brought here meanwhile, those answer. Who owns the pages decides when (``Pages``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from govtool.arrays.pages import unpack


class GraphPage:
    """A page: its arrays, and where it begins on each axis."""

    __slots__ = ("arrays", "first", "text")

    def __init__(self, data: bytes, first: dict[str, int]) -> None:
        self.arrays, self.text = unpack(data)
        self.first = first

    def item(self, name: str, place: int) -> int:
        """The item at a place of an array."""
        low, values = self.arrays[name]
        return low + int(values[place])

    def items(self, name: str, start: int = 0, stop: int | None = None) -> list[int]:
        """Items of an array."""
        low, values = self.arrays[name]
        return [low + value for value in values[start:stop].tolist()]


class Pages(Protocol):
    """The owner of the pages of some arrays. An *axis* is a numbering that several arrays share."""

    is_whole: bool
    """True if all arrays are here by now."""

    @property
    def arrays(self) -> Mapping[str, Any]:
        """The arrays by name."""

    def length(self, axis: str) -> int:
        """The number of items along an axis."""

    def page_of(self, axis: str, item: int) -> int:
        """The number of the page that has an item."""

    def has(self, number: int) -> bool:
        """Return whether a page is here."""

    def page(self, number: int) -> GraphPage | None:
        """A page, brought here if need be; ``None`` if all arrays are here (now)."""

    def bring(self) -> Mapping[str, Any]:
        """Bring all arrays here."""


class PagedArray:
    """An array of which pages have parts.

    Args:
        owner: The owner of the pages.
        name: The array's name.
        axis: What it is indexed with.
    """

    def __init__(self, owner: Pages, name: str, axis: str) -> None:
        self.owner = owner
        self.name = name
        self.axis = axis

    def __len__(self) -> int:
        return self.owner.length(self.axis)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return _List(self[i] for i in range(*at.indices(len(self))))
        if self.owner.is_whole:
            return self.owner.arrays[self.name][at]
        if at < 0:
            at += len(self)
        if not 0 <= at < len(self):
            raise IndexError(at)
        return self.item(at)

    def item(self, at: int) -> int:
        """The item at an index of the whole array."""
        page = self.owner.page(self.owner.page_of(self.axis, at))
        if page is None:
            return int(self.owner.arrays[self.name][at])
        return page.item(self.name, at - page.first[self.axis])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np

        return np.asarray(self.owner.bring()[self.name], dtype)


class PagedOffsets(PagedArray):
    """Offsets: a page has those of its items and the one after."""

    def __len__(self) -> int:
        return super().__len__() + 1

    def item(self, at: int) -> int:
        """The item at an index of the whole array."""
        owner, last = self.owner, super().__len__()
        number = owner.page_of(self.axis, at) if at < last else -1
        if at and (number < 0 or not owner.has(number)):
            # The page of the item before it will do, and is the one that is probably there.
            before = owner.page_of(self.axis, at - 1)
            if number < 0 or owner.has(before):
                number = before
        page = owner.page(number)
        if page is None:
            return int(owner.arrays[self.name][at])
        return page.item(self.name, at - page.first[self.axis])


class _List(list[int]):
    def tolist(self) -> list[int]:
        """A plain list, as a memoryview gives."""
        return list(self)

"""The arrays of an index of which only some pages are here: an item that is asked for brings its page.

They look like the arrays of ``Index`` to those who read them. Where the index is whole by now, its arrays answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from govtool.graph import pages

if TYPE_CHECKING:
    from govtool.graph.paged import PagedIndex


class GraphPage:
    """A graph page: its arrays, and where it begins on each axis."""

    __slots__ = ("arrays", "first", "text")

    def __init__(self, data: bytes, first: dict[str, int]) -> None:
        self.arrays, self.text = pages.unpack(data)
        self.first = first

    def item(self, name: str, place: int) -> int:
        """The item at a place of an array."""
        low, values = self.arrays[name]
        return low + int(values[place])

    def items(self, name: str, start: int = 0, stop: int | None = None) -> list[int]:
        """Items of an array."""
        low, values = self.arrays[name]
        return [low + value for value in values[start:stop].tolist()]


class PagedArray:
    """An array of the index of which pages have parts."""

    def __init__(self, index: PagedIndex, name: str, axis: str) -> None:
        self.index = index
        self.name = name
        self.axis = axis

    def __len__(self) -> int:
        return self.index.root.counts[self.axis]

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return _List(self[i] for i in range(*at.indices(len(self))))
        if self.index.is_whole:
            return self.index.arrays[self.name][at]
        if at < 0:
            at += len(self)
        if not 0 <= at < len(self):
            raise IndexError(at)
        return self.item(at)

    def item(self, at: int) -> int:
        """The item at an index of the whole array."""
        page = self.index.page(self.index.page_of(self.axis, at))
        if page is None:
            return int(self.index.arrays[self.name][at])
        return page.item(self.name, at - page.first[self.axis])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np

        return np.asarray(self.index.resident().arrays[self.name], dtype)


class PagedOffsets(PagedArray):
    """Offsets: a page has those of its items and the one after."""

    def __len__(self) -> int:
        return super().__len__() + 1

    def item(self, at: int) -> int:
        """The item at an index of the whole array."""
        index, last = self.index, super().__len__()
        number = index.page_of(self.axis, at) if at < last else -1
        if at and (number < 0 or not index.has(number)):
            # The page of the item before it will do, and is the one that is probably there.
            before = index.page_of(self.axis, at - 1)
            if number < 0 or index.has(before):
                number = before
        page = index.page(number)
        if page is None:
            return int(index.arrays[self.name][at])
        return page.item(self.name, at - page.first[self.axis])


class PagedEdges(PagedArray):
    """An array of edges: known from the page of either end."""

    def item(self, at: int) -> int:
        """The item at an index of the whole array."""
        place = self.index.entering.get(at)
        if place is None:
            value = super().item(at)
        else:
            value = place[0].item(f"back_{self.name}", place[1])
        if self.name == "edge_derivation" and not self.index.is_whole and value not in self.index.home:
            self.index.home[value] = (self.index.edge_target[at], None)
        return value


class PagedDerivations(PagedArray):
    """An array of derivations: with the dataset that they make."""

    def __init__(self, index: PagedIndex, name: str) -> None:
        super().__init__(index, name, "derivations")

    def __len__(self) -> int:
        return len(self.index.resident().arrays[self.name])

    def __getitem__(self, at: Any) -> Any:
        place = self.index.slot(at)
        if place is None:
            return self.index.arrays[self.name][at]
        return place[0].item(self.name, place[1])


class PagedLabels(PagedArray):
    """An array of labels: with the edges that bear them."""

    def __getitem__(self, at: Any) -> Any:
        found = self.index.labels.get(at)
        if found is None or self.index.is_whole:
            return self.index.resident().arrays[self.name][at]
        return found[self.name == "label_reason"]


class _List(list[int]):
    def tolist(self) -> list[int]:
        """A plain list, as a memoryview gives."""
        return list(self)


class PagedArrays(dict[str, Any]):
    """The arrays by name; one that pages do not have brings the whole index."""

    def __init__(self, index: PagedIndex) -> None:
        super().__init__()
        self._index = index

    def __missing__(self, name: str) -> Any:
        return self._index.resident().arrays[name]

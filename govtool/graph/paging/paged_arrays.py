"""The arrays of a column graph's index of which only some pages are here, on top of ``govtool.arrays.paged``.

An edge is in the pages of both of its ends; a derivation is in the page of the dataset that it makes; a label is with
the edges that bear it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from govtool.arrays.paged import GraphPage, PagedArray, Pages


class IndexPages(Pages, Protocol):
    """The index that owns the pages, as far as its arrays need it."""

    entering: dict[int, tuple[GraphPage, int]]
    """Edges that were met from their target: where the second copy of each is."""
    home: dict[int, tuple[int, int | None]]
    """Derivations that were met: a node of what each makes, or (-1, dataset)."""
    labels: dict[int, tuple[int, int]]
    """Labels that were met: functions and reason."""
    edge_target: Any

    def slot(self, derivation: int) -> tuple[GraphPage, int] | None:
        """Return the slot of a derivation in a page; ``None`` if all arrays are here (now)."""


class PagedEdges(PagedArray):
    """An array of edges: known from the page of either end."""

    def __init__(self, owner: IndexPages, name: str, axis: str) -> None:
        super().__init__(owner, name, axis)
        self._index = owner

    def item(self, at: int) -> int:
        """The item at an index of the whole array."""
        index = self._index
        place = index.entering.get(at)
        if place is None:
            value = super().item(at)
        else:
            value = place[0].item(f"back_{self.name}", place[1])
        if self.name == "edge_derivation" and not index.is_whole and value not in index.home:
            index.home[value] = (index.edge_target[at], None)
        return value


class PagedDerivations(PagedArray):
    """An array of derivations: with the dataset that they make."""

    def __init__(self, owner: IndexPages, name: str) -> None:
        super().__init__(owner, name, "derivations")
        self._index = owner

    def __len__(self) -> int:
        return len(self._index.bring()[self.name])

    def __getitem__(self, at: Any) -> Any:
        place = self._index.slot(at)
        if place is None:
            return self._index.arrays[self.name][at]
        return place[0].item(self.name, place[1])


class PagedLabels(PagedArray):
    """An array of labels: with the edges that bear them."""

    def __init__(self, owner: IndexPages, name: str, axis: str) -> None:
        super().__init__(owner, name, axis)
        self._index = owner

    def __getitem__(self, at: Any) -> Any:
        found = self._index.labels.get(at)
        if found is None or self._index.is_whole:
            return self._index.bring()[self.name][at]
        return found[self.name == "label_reason"]


class PagedArrays(dict[str, Any]):
    """The arrays by name; one that pages do not have brings the whole index."""

    def __init__(self, owner: Pages) -> None:
        super().__init__()
        self._owner = owner

    def __missing__(self, name: str) -> Any:
        arrays: Mapping[str, Any] = self._owner.bring()
        return arrays[name]

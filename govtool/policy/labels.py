"""Classes and owners of single columns and datasets, looked up in the propagated classes of a graph."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from govtool.policy.taints import Mode, Taint, possible_group

if TYPE_CHECKING:
    from govtool.policy.governed import Governed

_SOURCES = (0, possible_group(0))
"""Groups of taints that stand for any source; the others belong to single rules."""


class GovernedLabels:
    """Labels of a graph that has policies.

    A column has the classes of its values: those that ``govtool classes --direct`` and the selector ``class:`` give.
    Data that only decides over a column or over its rows gives it no class.

    Args:
        governed: The graph and its propagated classes.
    """

    def __init__(self, governed: Governed) -> None:
        self._spread, self._places = governed.spread, governed.places
        # Few combinations of taints occur, in however many columns.
        self._names = lru_cache(maxsize=4096)(self._names_of)

    def is_empty(self) -> bool:
        """Return whether no column has a class and no dataset an owner."""
        return not self._spread.taints and not any(about.owner for about in self._places.known.values())

    def classes(self, node: int) -> tuple[str, ...]:
        """The classes of the values in a column, sorted; none of a row set."""
        return () if self._spread.index.is_rows(node) else self._names(self._bits(node, Mode.VALUE))

    def possible_classes(self, node: int) -> tuple[str, ...]:
        """Classes that the column may have besides, as an opaque step or a hidden column lies on the way. Sorted."""
        if self._spread.index.is_rows(node):
            return ()
        certain = frozenset(self.classes(node))
        return tuple(name for name in self._names(self._bits(node, Mode.UNKNOWN)) if name not in certain)

    def owner(self, dataset: str) -> str | None:
        """The owner of a dataset: that of its metadata or zone, else the recorded one."""
        number = self._spread.index.find_dataset(dataset)
        return None if number is None else self._places.about(number).owner

    def _bits(self, node: int, mode: Mode) -> tuple[int, ...]:
        """The taints of a column as bits, word by word."""
        return tuple(int(word[mode][node]) for word in self._spread.sets)

    def _names_of(self, bits: tuple[int, ...]) -> tuple[str, ...]:
        found: set[str] = set()
        for taint in self._spread.taints:
            if self._among(taint, bits):
                found |= self._spread.lowered(taint)
        return tuple(sorted(found))

    def _among(self, taint: Taint, bits: tuple[int, ...]) -> bool:
        word, bit = self._spread.place[taint]
        return taint.group in _SOURCES and bool(bits[word] >> bit & 1)

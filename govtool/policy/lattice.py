"""Classes in their order: a class counts as every class above it by name, and as what those imply.

>>> order = Lattice({"personal": set(), "personal.contact": set(), "card": {"personal"}})
>>> sorted(order.counts_as("card")), sorted(order.below("personal"))
(['card', 'personal'], ['card', 'personal', 'personal.contact'])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache


class Lattice:
    """The classes that a policy defines; those above a dotted name are defined with it.

    Args:
        implied: What each class implies besides the classes above it.
        low_entropy: Classes (with those below them) whose values can be guessed.
    """

    def __init__(self, implied: Mapping[str, Iterable[str]], low_entropy: Iterable[str] = ()) -> None:
        self._implied = {name: frozenset(others) for name, others in implied.items()}
        self.names = frozenset(above for name in implied for above in _above(name))
        self._low = frozenset(low_entropy)
        self.counts_as = lru_cache(maxsize=None)(self._counts_as)

    def _counts_as(self, name: str) -> frozenset[str]:
        """The class itself, all above it, and all that these imply."""
        found: set[str] = set()
        stack = [name]
        while stack:
            for above in _above(stack.pop()):
                if above not in found:
                    found.add(above)
                    stack.extend(self._implied.get(above, ()))
        return frozenset(found)

    def is_a(self, name: str, others: Iterable[str]) -> bool:
        """Return whether data of a class is covered by a rule on any of the others."""
        return not self.counts_as(name).isdisjoint(others)

    def below(self, name: str) -> frozenset[str]:
        """All classes that count as this one."""
        return frozenset(other for other in self.names if name in self.counts_as(other))

    def is_low_entropy(self, name: str) -> bool:
        """Return whether the values of a class can be guessed."""
        return self.is_a(name, self._low)

    def cycle(self) -> list[str] | None:
        """Classes that imply each other in a circle, if there are any."""
        for start in sorted(self._implied):
            way = self._back_to(start)
            if way:
                return way
        return None

    def _back_to(self, start: str) -> list[str] | None:
        before: dict[str, str] = {}
        stack = [start]
        while stack:
            name = stack.pop()
            # Going up by name alone never leads round; what a class implies, or a class above it, may.
            for other in sorted(self._implied.get(name, frozenset()) | (set(_above(name)) - {name})):
                if other == start:
                    way = [name]
                    while way[-1] != start:
                        way.append(before[way[-1]])
                    return way[::-1]
                if other not in before:
                    before[other] = name
                    stack.append(other)
        return None


def _above(name: str) -> Iterator[str]:
    """A dotted name and the names above it: ``a.b.c``, ``a.b``, ``a``."""
    while name:
        yield name
        name = name.rpartition(".")[0]

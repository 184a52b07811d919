"""Sets of policies: their parts with places, and their classes in order.

A class counts as every class above it by name, and as what those imply.

>>> order = Lattice({"personal": set(), "personal.contact": set(), "card": {"personal"}})
>>> sorted(order.counts_as("card")), sorted(order.below("personal"))
(['card', 'personal'], ['card', 'personal', 'personal.contact'])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar

from govtool.policy.files.document import PolicyDocument
from govtool.policy.files.model import Policy, PolicyTest, Rule, Waiver
from govtool.policy.files.terms import Classify, Declassify, Metadata, Zone


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


T = TypeVar("T")
PACK = "pack:"
"""The prefix of the names of packs."""


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """One file as read."""

    document: PolicyDocument
    policy: Policy

    @property
    def is_pack(self) -> bool:
        """True if it is one of the packs that come with govtool."""
        return self.document.file.startswith(PACK)

    def place(self, *path: str | int) -> str:
        """``file:line`` of a part."""
        return self.document.place(path)


@dataclass(frozen=True, slots=True)
class PlacedPart(Generic[T]):
    """A part of a policy and where it is said."""

    value: T
    place: str
    file: str


@dataclass(frozen=True)
class PolicySet:
    """Policies that hold together: classes and zones of one file serve the rules of another."""

    files: tuple[PolicyFile, ...]

    def _all(self, name: str) -> Iterator[PlacedPart[Any]]:
        for file in self.files:
            for i, item in enumerate(getattr(file.policy, name)):
                yield PlacedPart(item, file.place(name, i), file.document.file)

    @cached_property
    def lattice(self) -> Lattice:
        """The classes in their order."""
        implied: dict[str, set[str]] = {}
        for file in self.files:
            for name, definition in file.policy.classes.items():
                implied.setdefault(name, set()).update(definition.implies)
        low = {n for f in self.files for n, d in f.policy.classes.items() if d.entropy == "low"}
        return Lattice(implied, low)

    @cached_property
    def rules(self) -> tuple[PlacedPart[Rule], ...]:
        """All rules, in order of file and line."""
        return tuple(self._all("rules"))

    @cached_property
    def classify(self) -> tuple[PlacedPart[Classify], ...]:
        """All classifications."""
        return tuple(self._all("classify"))

    @cached_property
    def declassify(self) -> tuple[PlacedPart[Declassify], ...]:
        """All declassifiers."""
        return tuple(self._all("declassify"))

    @cached_property
    def waivers(self) -> tuple[PlacedPart[Waiver], ...]:
        """All waivers."""
        return tuple(self._all("waivers"))

    @cached_property
    def metadata(self) -> tuple[PlacedPart[Metadata], ...]:
        """All facts about datasets and columns."""
        return tuple(self._all("metadata"))

    @cached_property
    def tests(self) -> tuple[PlacedPart[PolicyTest], ...]:
        """All tests."""
        return tuple(self._all("tests"))

    @cached_property
    def zones(self) -> dict[str, PlacedPart[Zone]]:
        """Zones by name; one that a pack defines too is not the pack's."""
        return {
            name: PlacedPart(zone, file.place("zones", name), file.document.file)
            for file in sorted(self.files, key=lambda file: not file.is_pack)
            for name, zone in file.policy.zones.items()
        }

    @cached_property
    def replaced_zones(self) -> dict[str, str]:
        """Zones of packs that another file defines as well, by name, with the pack's ``file:line``."""
        return {
            name: file.place("zones", name)
            for file in self.files
            if file.is_pack
            for name in file.policy.zones
            if self.zones[name].file != file.document.file
        }

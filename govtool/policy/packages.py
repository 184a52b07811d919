"""The rules in Python that installed packages offer: entry points of one group, known without importing them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

GROUP = "govtool.rules"
"""The group of the entry points."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A rule that a package offers."""

    point: EntryPoint

    @property
    def package(self) -> str:
        """The package and its version: ``acme-rules 1.2``."""
        dist = self.point.dist
        return "an unknown package" if dist is None else f"{dist.name} {dist.version}"

    def __str__(self) -> str:
        return f"{self.package} ({self.point.value})"


def offers() -> dict[str, tuple[Offer, ...]]:
    """The rules that can be named; several offers of one name are told apart by no one, and are a mistake."""
    found: dict[str, tuple[Offer, ...]] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda p: (p.name, p.value)):
        found[point.name] = (*found.get(point.name, ()), Offer(point))
    return found

"""Labels of an answer's entries: the classes of columns, the owners of datasets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class Labels(Protocol):
    """Looks up classes and owners. ``govtool.policy.classes.governed`` does so where there are policies."""

    def is_empty(self) -> bool:
        """Return whether no column has a class and no dataset an owner."""

    def classes(self, node: int) -> tuple[str, ...]:
        """The classes of the values in a column, sorted; none of a row set."""

    def possible_classes(self, node: int) -> tuple[str, ...]:
        """Classes that the column may have besides: whether it does could not be decided. Sorted."""

    def owner(self, dataset: str) -> str | None:
        """The owner of a dataset."""


@dataclass(frozen=True, slots=True)
class Owners:
    """Labels without policies: nothing has a class, and owners are those that dbt and other tools recorded."""

    owners: Mapping[str, str]
    """By dataset."""

    def is_empty(self) -> bool:
        """Return whether no dataset has an owner."""
        return not self.owners

    def classes(self, node: int) -> tuple[str, ...]:
        """None."""
        return ()

    def possible_classes(self, node: int) -> tuple[str, ...]:
        """None."""
        return ()

    def owner(self, dataset: str) -> str | None:
        """The recorded owner of a dataset."""
        return self.owners.get(dataset)

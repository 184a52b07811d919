"""The rows of datasets that a selection of rows reached: the part of ``impact`` that recorded runs answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

NOT_RECORDED = "not recorded"
"""No recorded run leads from the selected rows to the dataset."""
NO_RUN = "no recorded run"
UNKNOWN = "unknown"
"""Recorded runs do, and the rows cannot be found."""
_LOST = ("incomplete", UNKNOWN)


@dataclass(frozen=True, slots=True)
class AffectedDataset:
    """The affected rows of one dataset.

    Attributes:
        dataset: The dataset's id.
        count: Rows that are there now and whose lineage has a selected row; None where that is not known.
        total: Rows that the recorded runs left in the dataset; None where that is not known.
        exactness: ``exact``, ``superset``, ``incomplete``, ``unknown`` or ``not recorded``.
        why: Why it is not exact; empty if it is.
        runs: The recorded runs that left these rows.
        keeps_out: Whether selected rows may keep others out on the way, as in EXCEPT, anti and outer joins, HAVING and
            limits: what these others would change is not counted.
    """

    dataset: str
    count: int | None
    total: int | None
    exactness: str
    why: str = ""
    runs: tuple[str, ...] = ()
    keeps_out: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The rows in JSON's types."""
        return {
            "dataset": self.dataset,
            "count": self.count,
            "total": self.total,
            "exactness": self.exactness,
            "why": self.why,
            "runs": list(self.runs),
            "keeps_out": self.keeps_out,
        }


@dataclass(frozen=True, slots=True)
class AffectedRows:
    """The rows that a selection reached.

    Attributes:
        dataset: The dataset that rows were selected from.
        where: The condition.
        selected: How many rows meet it.
        datasets: What it reached, by name: one entry for each dataset of the impact.
    """

    dataset: str
    where: str
    selected: int
    datasets: tuple[AffectedDataset, ...]
    _by_name: Mapping[str, AffectedDataset] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the entries by name."""
        object.__setattr__(self, "_by_name", {each.dataset: each for each in self.datasets})

    @property
    def is_complete(self) -> bool:
        """True if nothing that recorded runs lead to was lost."""
        return not any(each.exactness in _LOST for each in self.datasets)

    def of(self, dataset: str) -> AffectedDataset:
        """The entry of a dataset."""
        return self._by_name.get(dataset) or AffectedDataset(dataset, None, None, NOT_RECORDED, NO_RUN)

    def doubts(self) -> Iterable[AffectedDataset]:
        """The entries that have something to be noted: a reason, or rows that are kept out."""
        return (each for each in self.datasets if (each.why and each.exactness != NOT_RECORDED) or each.keeps_out)

    def to_dict(self) -> dict[str, Any]:
        """The answer in JSON's types: the selection, and the rows of each dataset."""
        return {
            "selection": {"dataset": self.dataset, "where": self.where, "rows": self.selected},
            "affected_rows": [each.to_dict() for each in self.datasets],
        }

"""Measured groups: the smallest group of members behind a row of a recorded output, as evidence of an aggregate's k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from govtool.graph.index import Index
from govtool.model.kinds import VALUE_FLOW
from govtool.policy.classes.dataset_facts import Truth
from govtool.policy.files.terms import Declassify


@dataclass(frozen=True, slots=True)
class MeasuredGroup:
    """The smallest group of an output, or why it could not be measured.

    Attributes:
        dataset: The output.
        counted: What was counted: ``rows of crm.users``, ``crm.users.id``.
        at_least: Members of the smallest group, at the least; None: not measured.
        at_most: At the most: where the same dataset is read several times, members may be the same or others.
        run: The recorded run that left the group.
        date: When the run ended; empty if that is not recorded.
        why: Why it was not measured, or not exactly.
    """

    dataset: str
    counted: str
    at_least: int | None = None
    at_most: int | None = None
    run: str = ""
    date: str = ""
    why: str = ""

    def shows(self, k: int) -> Truth:
        """Return whether every group is shown to have at least k members."""
        if self.at_most is not None and self.at_most < k:
            return Truth.NO
        return Truth.YES if self.at_least is not None and self.at_least >= k else Truth.UNKNOWN

    def text(self, k: int) -> str:
        """The measurement in words: ``smallest measured group: 2 rows of crm.users, k = 5 (run a/0, 2026-11-20)``."""
        if self.at_most is None:
            return f"not measured: {self.why}"
        size = f"{self.at_most:,}" if self.at_least == self.at_most else f"{self.at_least or 0:,} to {self.at_most:,}"
        date = f", {self.date[:10]}" if self.date else ""
        doubt = f": {self.why}" if self.why else ""
        return f"smallest measured group: {size} {self.counted}, k = {k} (run {self.run}{date}){doubt}"

    def to_dict(self) -> dict[str, Any]:
        """The measurement in JSON's types."""
        return {
            "dataset": self.dataset,
            "counted": self.counted,
            "at_least": self.at_least,
            "at_most": self.at_most,
            "run": self.run or None,
            "date": self.date or None,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measured group beside what a declassifier demands of it."""

    declassifier: str
    k: int
    group: MeasuredGroup
    shown: Truth

    def to_dict(self) -> dict[str, Any]:
        """The measurement in JSON's types."""
        words = {Truth.YES: "shown", Truth.NO: "too small", Truth.UNKNOWN: "unknown"}
        return {"declassifier": self.declassifier, "k": self.k, "verdict": words[self.shown], **self.group.to_dict()}


class GroupMeter(Protocol):
    """Measures the groups of recorded outputs."""

    def measure(self, target: str, source: str, entity: Sequence[str], column: str = "") -> MeasuredGroup:
        """The smallest group of an output.

        Args:
            target: The output.
            source: The dataset whose rows are aggregated.
            entity: Columns that hold the members' identity, as ``dataset.column``; none: members are rows.
            column: The aggregated column of the source, as ``dataset.column``: rows without a value of it are no
                members, as aggregates skip them; empty: rows themselves are aggregated.
        """


class MeasuredEdges:
    """Measurements of the aggregates of a graph, each made once.

    Args:
        index: The graph.
        meter: Measures; None: nothing is measured.
    """

    def __init__(self, index: Index, meter: GroupMeter | None) -> None:
        self._index, self._meter = index, meter
        self.found: dict[tuple[int, int], Measurement] = {}
        """By edge and number of the declassifier."""

    def measure(self, edge: int, number: int, declassify: Declassify, entity: frozenset[int] | None) -> Truth | None:
        """Return whether an aggregate's groups are measured to be large enough; None: they are not to be measured.

        Args:
            edge: Into the aggregate.
            number: The number of the declassifier.
            declassify: The declassifier.
            entity: The columns that hold the members' identity; None: members are rows.
        """
        if self._meter is None or "measured" not in declassify.evidence:
            return None
        index, k = self._index, declassify.min_group_size or 0
        target = index.dataset_name(index.node_dataset[index.edge_target[edge]])
        source = index.dataset_name(index.node_dataset[index.edge_source[edge]])
        names = sorted(index.name(node) for node in entity or ())
        if declassify.entity and not names:
            group = MeasuredGroup(target, ", ".join(declassify.entity), why="no column of the graph is the entity")
        else:
            column = index.name(index.edge_source[edge]) if index.kind(edge) in VALUE_FLOW else ""
            group = self._meter.measure(target, source, names, column)
        shown = group.shows(k)
        self.found[edge, number] = Measurement(declassify.name, k, group, shown)
        return shown

"""Facts of the datasets of a graph for policies: their zones, regions, purposes, owners; and the tags of columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from govtool.graph.index import Index
from govtool.model.fact import MASKING_POLICY, WAIVER
from govtool.policy.policy_set import PolicySet
from govtool.policy.terms import Metadata, PlacePattern, is_duration
from govtool.query.patterns import ColumnPaths, Patterns


class Truth(IntEnum):
    """Yes, no, or not known (Kleene's logic)."""

    NO = 0
    UNKNOWN = 1
    YES = 2


class ToolFact(NamedTuple):
    """A fact that a tool such as dbt states of a dataset, or of a column of it."""

    dataset: str
    column: str | None
    name: str
    """``owner``, ``tag``, ``description``, ``masking_policy``, ``meta.<key>``."""
    value: str
    file: str = ""
    """Where it is stated; of a waiver with the line."""


@dataclass(slots=True)
class About:
    """The facts of a dataset."""

    zones: list[str] = field(default_factory=list)
    regions: set[str] = field(default_factory=set)
    purposes: set[str] = field(default_factory=set)
    owner: str | None = None
    retention: str | None = None
    description: str | None = None
    tags: set[str] = field(default_factory=set)


_NOTHING = About()


class DatasetFacts:
    """Facts about the datasets of one graph.

    Args:
        index: The graph.
        policies: Zones and metadata.
        more: Metadata from elsewhere.
        tool_facts: Facts that are in the graph; those of the policies come first.
    """

    def __init__(
        self, index: Index, policies: PolicySet, more: Sequence[Metadata] = (), tool_facts: Iterable[ToolFact] = ()
    ) -> None:
        self.index = index
        self.paths = ColumnPaths(index)
        self.known: dict[int, About] = {}
        self.column_tags: dict[int, set[str]] = {}
        self._unseen: dict[int, dict[str, set[str]]] = {}
        """Tags of columns that the graph does not show."""
        self.masking_policies: dict[int, set[str]] = {}
        """The masking policies of columns, as SQL declares them."""
        self.waivers: list[ToolFact] = []
        """The waivers that stand in SQL, of datasets that are there."""
        self.empty_zones: list[str] = []
        self.zones: dict[str, set[int]] = {}
        """The datasets of each zone."""
        for name, zone in policies.zones.items():
            members = self.zones[name] = Patterns(zone.value.datasets, index.paths_root).datasets(index)
            if not members and not zone.value.optional:
                self.empty_zones.append(name)
            for dataset in members:
                about = self.known.setdefault(dataset, About())
                about.zones.append(name)
                about.purposes.update(zone.value.purposes)
                about.owner = about.owner or zone.value.owner
                about.retention = about.retention or zone.value.retention
                if zone.value.region:
                    about.regions.add(zone.value.region)
        for item in (*(m.value for m in policies.metadata), *more):
            self._collect(item)
        for fact in tool_facts:
            self._add_tool_fact(fact)

    def _add_tool_fact(self, fact: ToolFact) -> None:
        """Facts of dbt and others: ``meta`` is a tag too, ``sensitivity:health`` or, where it is true, its key."""
        dataset = self.index.find_dataset(fact.dataset)
        if dataset is None:
            return
        if fact.name == WAIVER:
            self.waivers.append(fact)
            return
        about = self.known.setdefault(dataset, About())
        key = fact.name.removeprefix("meta.")
        tags = {fact.value} if fact.name == "tag" else set()
        if fact.name.startswith("meta."):
            tags = {f"{key}:{fact.value}", *([key] if fact.value.lower() == "true" else [])}
        if fact.column is not None:
            node = self.index.find_column(dataset, fact.column)
            if node is not None and fact.name == MASKING_POLICY:
                self.masking_policies.setdefault(node, set()).add(fact.value)
            elif node is not None and tags:
                self.column_tags.setdefault(node, set()).update(tags)
            elif tags:
                self._unseen.setdefault(dataset, {}).setdefault(fact.column, set()).update(tags)
            return
        about.tags.update(tags)
        if key == "owner":
            about.owner = about.owner or fact.value
        elif key == "retention" and is_duration(fact.value):
            about.retention = about.retention or fact.value
        elif key == "description":
            about.description = about.description or fact.value

    def _collect(self, item: Metadata) -> None:
        for dataset in Patterns(item.datasets, self.index.paths_root).datasets(self.index):
            about = self.known.setdefault(dataset, About())
            about.owner = item.owner or about.owner
            about.retention = item.retention or about.retention
            about.description = item.description or about.description
            about.tags.update(item.tags)
        for node in Patterns(item.columns, self.index.paths_root).columns(self.index, self.paths):
            self.column_tags.setdefault(node, set()).update(item.tags)

    def about(self, dataset: int) -> About:
        """Return the facts of a dataset; most have none."""
        return self.known.get(dataset, _NOTHING)

    def tagged(self, tags: Iterable[str]) -> set[int]:
        """Columns with any of some tags, by themselves or by their dataset."""
        wanted = set(tags)
        found = {node for node, own in self.column_tags.items() if own & wanted}
        for dataset, about in self.known.items():
            if about.tags & wanted:
                found.update(n for n in self.index.columns(dataset) if not self.index.is_unknown(n))
        return found

    def unseen(self, dataset: int, tags: Iterable[str]) -> list[str | None]:
        """The columns with any of some tags that the graph does not show; None: any, as the dataset has one."""
        wanted = set(tags)
        found: list[str | None] = [p for p, own in self._unseen.get(dataset, {}).items() if own & wanted]
        return [*found, None] if self.about(dataset).tags & wanted else found

    def where(self, place: PlacePattern) -> dict[int, Truth]:
        """Visible datasets that are, or may be, at a place; the others are not."""
        names = Patterns(place.datasets, self.index.paths_root)
        found: dict[int, Truth] = {}
        # Of a zone the members are known; anywhere else may be any dataset.
        within = place.zone is not None and not place.zone.startswith("!")
        for dataset in sorted(self.zones.get(place.zone or "", ())) if within else self.index.datasets():
            truth = self._at(place, dataset, names)
            if truth:
                found[dataset] = truth
        return found

    def _at(self, place: PlacePattern, dataset: int, names: Patterns) -> Truth:
        about = self.about(dataset)
        truth = Truth.YES
        if place.zone:
            wanted = place.zone.removeprefix("!")
            if (wanted in about.zones) == place.zone.startswith("!"):
                return Truth.NO
        if place.region:
            truth = _in_region(about.regions, place.region)
        if truth and names and not names.match(self.index.dataset_name(dataset)):
            return Truth.NO
        return truth


def _in_region(regions: set[str], wanted: str) -> Truth:
    if not regions:
        return Truth.UNKNOWN
    if wanted.startswith("!"):
        return Truth.YES if regions - {wanted[1:]} else Truth.NO
    return Truth.YES if wanted in regions else Truth.NO

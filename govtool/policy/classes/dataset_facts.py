"""Facts of the datasets of a graph for policies: their zones, regions, purposes, owners; and the tags of columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from govtool.graph.codes import HIDDEN
from govtool.graph.index import Index
from govtool.model.fact import MASKING_POLICY, WAIVER
from govtool.policy.files.policy_set import PolicySet
from govtool.policy.files.terms import Metadata, PlacePattern, is_duration
from govtool.query.selection.name_columns import NameColumns
from govtool.query.selection.patterns import ColumnPaths, Patterns


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
    """The one that answers show: of the policies, else the first that a tool recorded."""
    owners: set[str] = field(default_factory=set)
    """All that tools recorded."""
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
        self.names = NameColumns(index)
        self.paths = ColumnPaths(index, self.names)
        self.known: dict[int, About] = {}
        self._at_place: dict[PlacePattern, dict[int, Truth]] = {}
        self.column_tags: dict[int, set[str]] = {}
        self.column_owners: dict[int, set[str]] = {}
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
            members = self.zones[name] = self._matching(zone.value.datasets)
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
            self._add_column_fact(dataset, fact.column, fact, tags)
            return
        about.tags.update(tags)
        if key == "owner":
            about.owner = about.owner or fact.value
            about.owners.add(fact.value)
        elif key == "retention" and is_duration(fact.value):
            about.retention = about.retention or fact.value
        elif key == "description":
            about.description = about.description or fact.value

    def _add_column_fact(self, dataset: int, column: str, fact: ToolFact, tags: set[str]) -> None:
        node = self.index.find_column(dataset, column)
        if node is None:
            if tags:
                self._unseen.setdefault(dataset, {}).setdefault(column, set()).update(tags)
            return
        if fact.name == MASKING_POLICY:
            self.masking_policies.setdefault(node, set()).add(fact.value)
        elif fact.name in ("owner", "meta.owner"):
            self.column_owners.setdefault(node, set()).add(fact.value)
        if tags:
            self.column_tags.setdefault(node, set()).update(tags)

    def _matching(self, datasets: Sequence[str]) -> set[int]:
        """The visible datasets that any of some patterns matches."""
        return Patterns(datasets, self.index.paths_root).datasets(self.index, self.names)

    def _collect(self, item: Metadata) -> None:
        for dataset in self._matching(item.datasets):
            about = self.known.setdefault(dataset, About())
            about.owner = item.owner or about.owner
            about.retention = item.retention or about.retention
            about.description = item.description or about.description
            about.tags.update(item.tags)
        for node in Patterns(item.columns, self.index.paths_root).columns(self.index, self.paths):
            self.column_tags.setdefault(node, set()).update(item.tags)

    def owned(self) -> dict[str, set[int]]:
        """Return what anybody owns, by the owner: row sets of datasets, and columns by themselves."""
        found: dict[str, set[int]] = {}
        for dataset, about in self.known.items():
            for owner in about.owners | ({about.owner} if about.owner else set()):
                found.setdefault(owner, set()).add(self.index.rows(dataset))
        for node, owners in self.column_owners.items():
            for owner in owners:
                found.setdefault(owner, set()).add(node)
        return found

    def about(self, dataset: int) -> About:
        """Return the facts of a dataset; most have none."""
        return self.known.get(dataset, _NOTHING)

    def states(self, what: str) -> bool:
        """Return whether any dataset has a fact: ``regions``, ``purposes``, or another field of ``About``."""
        return any(getattr(about, what) for about in self.known.values())

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

    def where(self, place: PlacePattern) -> Mapping[int, Truth]:
        """Visible datasets that are, or may be, at a place; the others are not."""
        if place not in self._at_place:
            self._at_place[place] = self._found_at(place)
        return self._at_place[place]

    def _found_at(self, place: PlacePattern) -> dict[int, Truth]:
        # Of a zone the members are known; anywhere else may be any dataset.
        within = place.zone is not None and not place.zone.startswith("!")
        among: Collection[int] | None = self._matching(place.datasets) if place.datasets else None
        if within:
            members = self.zones.get(place.zone or "", set())
            among = members if among is None else members.intersection(among)
        # Most datasets have no facts, and are at a place, or are not, for one reason.
        usual = _at(place, _NOTHING)
        if among is None:
            among = self._visible() if usual else self.known.keys()
        found = dict.fromkeys(sorted(among), usual)
        for dataset in found.keys() & self.known.keys():
            found[dataset] = _at(place, self.known[dataset])
        return {dataset: truth for dataset, truth in found.items() if truth}

    def _visible(self) -> list[int]:
        import numpy as np

        shown: list[int] = np.flatnonzero((np.asarray(self.index.dataset_flags) & HIDDEN) == 0).tolist()
        return shown


def _at(place: PlacePattern, about: About) -> Truth:
    """Return whether a dataset with some facts is in the zone and in the region of a place."""
    if place.zone:
        wanted = place.zone.removeprefix("!")
        if (wanted in about.zones) == place.zone.startswith("!"):
            return Truth.NO
    return _in_region(about.regions, place.region) if place.region else Truth.YES


def _in_region(regions: set[str], wanted: str) -> Truth:
    if not regions:
        return Truth.UNKNOWN
    if wanted.startswith("!"):
        return Truth.YES if regions - {wanted[1:]} else Truth.NO
    return Truth.YES if wanted in regions else Truth.NO

"""A graph under its policies: classified columns, and classes along the edges."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from govtool.errors import UsageError
from govtool.graph.index import Index
from govtool.policy.dataset_facts import DatasetFacts, ToolFact, Truth
from govtool.policy.hidden import possible_classes
from govtool.policy.load import PolicySet
from govtool.policy.measured import GroupMeter
from govtool.policy.model import Metadata, PlacePattern
from govtool.policy.propagate import Propagation, propagate
from govtool.policy.seeds import Seeds
from govtool.policy.transfer import transfers
from govtool.query.patterns import ColumnPaths, Patterns


@dataclass(slots=True)
class Governed:
    """A graph under its policies."""

    policies: PolicySet
    places: DatasetFacts
    spread: Propagation
    seeds: tuple[Seeds, ...]
    """Classified columns: of any source, then for each ``from`` those for certain and those perhaps in it."""
    possible: tuple[Seeds, ...]
    """For each of ``seeds`` columns that are not known and may be of a class: the group ``perhaps_of`` it."""
    origins: tuple[PlacePattern, ...]
    """The distinct ``from`` of the rules; that of number ``i`` has the groups ``1 + 2 * i`` and ``2 + 2 * i``."""

    def groups(self, origin: PlacePattern | None) -> dict[int, Truth]:
        """The groups of sources at a place."""
        if origin is None:
            return {0: Truth.YES}
        at = 1 + 2 * self.origins.index(origin)
        return {at: Truth.YES, at + 1: Truth.UNKNOWN}


def govern(
    index: Index,
    policies: PolicySet,
    today: date,
    *,
    metadata: Sequence[Metadata] = (),
    tool_facts: Iterable[ToolFact] = (),
    without: Collection[int] = (),
    meter: GroupMeter | None = None,
) -> Governed:
    """Classify the columns of a graph and propagate the classes.

    Args:
        index: The graph.
        policies: The policies.
        today: For what expires.
        metadata: Facts besides those of the policies.
        tool_facts: Facts that are in the graph.
        without: Columns and rows to treat as if no data were in them.
        meter: Measures groups of recorded outputs; None: nothing is measured.
    """
    places = DatasetFacts(index, policies, metadata, tool_facts)
    gone = frozenset(without)
    seeds = classified(index, policies, places)
    maybe = possible_classes(index, (c.value for c in policies.classify), _metadata_of(policies, metadata), places)
    if gone:
        seeds = seeds.chosen(~np.isin(seeds.nodes, np.array(sorted(gone), np.int64)))
    origins: list[PlacePattern] = []
    for rule in policies.rules:
        origin = getattr(rule.value.body, "from_", None)
        if origin is not None and origin not in origins:
            origins.append(origin)
    every, open_ = [seeds], [maybe.seeds]
    dataset = np.asarray(index.node_dataset)
    for origin in origins:
        truth = np.zeros(index.dataset_count, np.int8)
        for number, value in places.where(origin).items():
            truth[number] = value
        anywhere = np.isin(np.arange(index.dataset_count), sorted(maybe.opaque)) & (truth != Truth.YES)
        for one in (Truth.YES, Truth.UNKNOWN):
            every.append(seeds.chosen(truth[dataset[seeds.nodes]] == one))
            at = truth == one
            open_.append(maybe.at(index, at | anywhere if one is Truth.UNKNOWN else at))
    chosen = (d.value for d in policies.declassify)
    moved = transfers(index, chosen, today, places.paths, meter, places.masking_policies)
    spread = propagate(
        index, policies.lattice, moved, seeds, every[1:], blocked=gone, possible=maybe, possible_groups=open_[1:]
    )
    return Governed(policies, places, spread, tuple(every), tuple(open_), tuple(origins))


def require_zones(places: DatasetFacts, policies: PolicySet) -> None:
    """Refuse policies with a zone that matches nothing: its rules would hold for a misspelled pattern.

    Raises:
        UsageError: ``policy.empty-zone``.
    """
    if places.empty_zones:
        name = places.empty_zones[0]
        raise UsageError(
            f"the zone {name} matches no dataset",
            code="policy.empty-zone",
            location=policies.zones[name].place,
            hint="correct its datasets, or write optional: true",
        )


def _metadata_of(policies: PolicySet, more: Sequence[Metadata]) -> tuple[Metadata, ...]:
    return (*(m.value for m in policies.metadata), *more)


def classified(index: Index, policies: PolicySet, places: DatasetFacts) -> Seeds:
    """The columns that ``classify`` names, and their classes."""
    paths: ColumnPaths = places.paths
    parts = []
    for item in policies.classify:
        one = item.value
        nodes = Patterns(one.columns, index.paths_root).columns(index, paths) | places.tagged(one.tags)
        nodes -= Patterns(one.except_, index.paths_root).columns(index, paths)
        parts.append((one.class_, np.fromiter(nodes, np.int64, len(nodes))))
    return Seeds.gathered(parts)

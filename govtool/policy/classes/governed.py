"""A graph under its policies: classified columns, classes along the edges, and the labels of single columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

import numpy as np

from govtool.errors import UsageError
from govtool.graph.index import Index
from govtool.policy.classes.dataset_facts import DatasetFacts, ToolFact, Truth
from govtool.policy.classes.measured import GroupMeter
from govtool.policy.classes.propagate import Propagation, propagate
from govtool.policy.classes.taints import Mode, Seeds, Taint, possible_group
from govtool.policy.classes.transfer import transfers
from govtool.policy.classes.unknown_columns import possible_classes
from govtool.policy.files.policy_set import PolicySet
from govtool.policy.files.terms import Metadata, PlacePattern
from govtool.query.selection.patterns import ColumnPaths, Patterns


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
        at_origin = places.where(origin)
        truth[np.fromiter(at_origin, np.int64, len(at_origin))] = list(at_origin.values())
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
    """Refuse policies with a zone that matches nothing: a misspelled pattern would switch its rules off.

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

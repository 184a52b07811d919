"""Effects of edges on classes: none for nearly all, and for some a declassifier or several."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from govtool.arrays.numpy_threads import np
from govtool.graph.codes import KIND_MASK, MASKING_BIT
from govtool.graph.index import Index
from govtool.model.columnar import split_functions
from govtool.model.kinds import EdgeKind
from govtool.policy.classes.dataset_facts import Truth
from govtool.policy.classes.masking import is_inverse, is_listed, is_unkeyed, keeps_a_value, may_be_undone, named
from govtool.policy.classes.measured import GroupMeter, MeasuredEdges, Measurement
from govtool.policy.classes.threshold import Thresholds
from govtool.policy.files.policy_set import Lattice
from govtool.policy.files.terms import NONE, Declassify
from govtool.query.selection.patterns import ColumnPaths, Patterns

Array = np.ndarray[Any, np.dtype[Any]]


class Applied(NamedTuple):
    """A declassifier at work on an edge."""

    declassifier: int
    unkeyed: bool
    """By an unkeyed hash only: hides nothing of a class of low entropy."""
    undone: bool = False
    """An inverse: what the declassifier hid before this edge is clear again."""
    unsure: bool = False
    """An aggregate of which it is not known whether its groups are large enough."""


Transfer = tuple[Applied, ...]


@dataclass(frozen=True, slots=True)
class Transfers:
    """The transfers of a graph's edges."""

    declassify: tuple[Declassify, ...]
    kinds: tuple[Transfer, ...]
    """Distinct transfers; the first does nothing."""
    edge: Array
    """uint16[edges]: which of them; empty if all are the first."""
    measured: Mapping[tuple[int, int], Measurement] = field(default_factory=dict)
    """Measured groups, by edge and number of the declassifier."""

    def of(self, edge: int) -> Transfer:
        """The transfer of an edge."""
        return self.kinds[int(self.edge[edge])] if len(self.edge) else ()

    def passed(self, lattice: Lattice, name: str, before: frozenset[str], transfer: Transfer) -> frozenset[str] | None:
        """The declassifiers that data of a class has passed behind an edge; None where nothing of it is left.

        Args:
            lattice: The classes.
            name: The class that the data had at its source.
            before: Names of the declassifiers that it had passed already.
            transfer: What the edge does.
        """
        after = before
        for applied in transfer:
            one = self.declassify[applied.declassifier]
            if applied.unsure:
                continue
            if applied.undone:
                after = after - {one.name}
                continue
            current = {name, *(d.to for d in self.declassify if d.name in after)}
            if not any(lattice.is_a(c, one.from_) for c in current):
                continue
            if applied.unkeyed and lattice.is_low_entropy(name) and not one.low_entropy:
                continue
            if one.to == NONE:
                return None
            after = after | {one.name}
        return after

    def unsure(self, lattice: Lattice, name: str, before: frozenset[str], transfer: Transfer) -> frozenset[str]:
        """The declassifiers that data of a class may or may not have passed behind an edge. Arguments as ``passed``."""
        if not any(applied.unsure for applied in transfer):
            return frozenset()
        current = {name, *(d.to for d in self.declassify if d.name in before)}
        chosen = (self.declassify[applied.declassifier] for applied in transfer if applied.unsure)
        return frozenset(one.name for one in chosen if any(lattice.is_a(c, one.from_) for c in current))


def transfers(
    index: Index,
    declassify: Iterable[Declassify],
    today: date,
    paths: ColumnPaths,
    meter: GroupMeter | None = None,
    masked: Mapping[int, Collection[str]] | None = None,
) -> Transfers:
    """Find out what the edges of a graph do.

    Args:
        index: The graph.
        declassify: The declassifiers of the policies.
        today: Declarations that have expired by then do not count.
        paths: The columns of the graph.
        meter: Measures groups of recorded outputs; None: nothing is measured.
        masked: The masking policies of columns, by node.
    """
    known = tuple(declassify)
    none = Transfers(known, ((),), np.empty(0, np.uint16))
    if not known or not index.edge_count:
        return none
    a = index.arrays
    functions = [split_functions(index.string(i)) for i in a["label_functions"]]
    masks = [_masks(known, f) for f in functions]
    aggregates = [_aggregates(known, f) for f in functions]
    declared = dict(_declared(index, known, functions, masked or {}))
    relevant = np.array([bool(m or g) for m, g in zip(masks, aggregates, strict=True)])
    if not relevant.any() and not declared:
        return none
    label = np.asarray(a["edge_label"])
    kind = np.asarray(a["edge_tag"]) & KIND_MASK
    hit = np.flatnonzero(relevant[label] & (kind <= EdgeKind.AGGREGATION))
    kinds: dict[Transfer, int] = {(): 0}
    edge = np.zeros(index.edge_count, np.uint16)
    of_label = np.array([kinds.setdefault(m, len(kinds)) for m in masks], np.uint16)
    edge[hit] = of_label[label[hit]]
    grouped = np.array([bool(g) for g in aggregates])
    open_ = hit[grouped[label[hit]] & (kind[hit] == EdgeKind.AGGREGATION)]
    measured = MeasuredEdges(index, meter)
    if len(open_):
        chosen = open_ if meter is not None else open_[_may_show(index, known, open_)]
        for number, shown in _shown(index, known, aggregates, chosen, today, paths, measured):
            edge[number] = kinds.setdefault((*masks[label[number]], *shown), len(kinds))
    numbered = list(kinds)
    for number, applied in declared.items():
        transfer = (*numbered[edge[number]], *applied)
        edge[number] = kinds.setdefault(transfer, len(kinds))
    return Transfers(known, tuple(kinds), edge, measured.found)


def _declared(
    index: Index,
    known: tuple[Declassify, ...],
    functions: Sequence[tuple[str, ...]],
    masked: Mapping[int, Collection[str]],
) -> Iterator[tuple[int, Transfer]]:
    """Edges whose values are masked by declaration, each with the declassifiers that accept it.

    What leaves a column with a masking policy is what the policy shows to whoever runs the statement. A tool's flag
    counts where no function is named: of a function the declassifier's list says what it hides.
    """
    policies: dict[int, list[int]] = {}
    for node, names in masked.items():
        fitting = [i for i, one in enumerate(known) if _names_any(one.masking_policies, names)]
        if fitting:
            for edge in (e for part in (node, *index.fields(node)) for e in index.out_edges(part)):
                policies.setdefault(edge, []).extend(fitting)
    flagging = [i for i, one in enumerate(known) if one.flagged]
    if flagging:
        flags = np.flatnonzero(np.asarray(index.arrays["edge_tag"]) & MASKING_BIT)
        for edge in flags.tolist():
            if not functions[index.arrays["edge_label"][edge]]:
                policies.setdefault(edge, []).extend(flagging)
    for edge, numbers in policies.items():
        if index.kind(edge) <= EdgeKind.AGGREGATION:
            yield edge, tuple(Applied(i, unkeyed=False) for i in dict.fromkeys(numbers))


def _names_any(globs: Iterable[str], names: Iterable[str]) -> bool:
    return any(fnmatchcase(name.lower(), glob.lower()) for glob in globs for name in names)


def _may_show(index: Index, known: tuple[Declassify, ...], edges: Array) -> Array:
    """Return the edges worth a closer look: most statements have no HAVING, and most declassifiers no declarations."""
    if any(d.declared for d in known):
        return np.ones(len(edges), bool)
    least = min((d.min_group_size or 2 for d in known if d.kind == "aggregate"), default=2)
    size = np.asarray(index.arrays["derivation_min_group"])
    enough: Array = size[np.asarray(index.arrays["edge_derivation"])[edges]] >= least
    return enough


def _shown(
    index: Index,
    known: tuple[Declassify, ...],
    aggregates: list[tuple[int, ...]],
    edges: Array,
    today: date,
    paths: ColumnPaths,
    measured: MeasuredEdges,
) -> Iterator[tuple[int, Transfer]]:
    """Edges with the aggregates whose k is shown, or may be. What is measured too small is never shown."""
    thresholds = {i: Thresholds(index, d, paths) for i, d in enumerate(known) if d.kind == "aggregate"}
    signed = {
        i: {
            node
            for one in known[i].declared
            if one.expires >= today and "declared" in known[i].evidence
            for node in Patterns(one.columns, index.paths_root).columns(index, paths)
        }
        for i in thresholds
    }
    for number in edges.tolist():
        target = index.edge_target[number]
        shown = []
        for i in aggregates[index.arrays["edge_label"][number]]:
            found = measured.measure(number, i, known[i], thresholds[i].entity)
            truth = Truth.YES if target in signed[i] else thresholds[i].shown(number, found)
            if found is Truth.NO:
                truth = Truth.NO
            if truth is not Truth.NO:
                shown.append(Applied(i, unkeyed=False, unsure=truth is Truth.UNKNOWN))
        if shown:
            yield number, tuple(shown)


def _masks(known: tuple[Declassify, ...], functions: tuple[str, ...]) -> Transfer:
    found: list[Applied] = []
    for i, one in enumerate(known):
        if one.kind == "mask":
            found += _masked(i, one, functions)
    return tuple(found)


def _masked(number: int, one: Declassify, functions: tuple[str, ...]) -> Iterable[Applied]:
    """Return the effect of functions, the innermost first, on a class by one declassifier.

    An inverse takes back what is hidden inside of it, and what earlier statements have hidden. It undoes any reversible
    function, as the names of users' functions do not show which belong together.
    """
    hits: list[str] = []
    undone = False
    for function in functions:
        if named(one.functions, function):
            hits.append(function)
        elif is_inverse(function):
            hits = [hit for hit in hits if not may_be_undone(hit)]
            undone = True
    if undone and any(may_be_undone(function) for function in one.functions):
        yield Applied(number, unkeyed=False, undone=True)
    if hits:
        yield Applied(number, all(is_unkeyed(hit) for hit in hits))


def _aggregates(known: tuple[Declassify, ...], functions: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(
        i
        for i, one in enumerate(known)
        if one.kind == "aggregate"
        and any(named(one.functions, f) for f in functions)
        and not any(keeps_a_value(f) and not is_listed(one.functions, f) for f in functions)
    )

"""Tests whether the groups of an aggregate are proven to be large enough, and whether they count the right entity.

``HAVING COUNT(*) >= k`` counts rows; where a declassifier names the ``entity`` columns, k must count distinct values of
one of them (BigQuery and Snowflake do the same in their aggregation thresholds). What a statement counts is said by its
derivation (``Statement.min_group_of``), by base column; which column of the graph that is, by the edges of the same
derivation: the entity itself or a plain copy of it. What is not known to be counted is not shown.

A group of twenty shows nothing where the aggregate takes in only one of them: ``sum(pay) filter (where id = 42)``,
``sum(case when … end)``, ``sum(pay * (id = 42)::int)``, ``sum(pay * active::int)``, or a join of the dataset with
itself (``narrowed``). Nor does a count of rows where every one of them is joined with others, of another table or made
in place. Where a join, a UNION of a table with itself, or arithmetic with other columns may do the same, and where the
entity is a guess, it is not known (``Truth.UNKNOWN``).
"""

from __future__ import annotations

from collections.abc import Collection

from govtool.functions.facts import NUMBERS
from govtool.graph.index import Index
from govtool.model.columnar import split_counted
from govtool.model.derivation import ColumnRef, Counted
from govtool.model.kinds import VALUE_FLOW, EdgeKind
from govtool.policy.classes.dataset_facts import Truth
from govtool.policy.classes.measured import MeasuredGroup
from govtool.policy.files.terms import Declassify
from govtool.query.changes.types import family
from govtool.query.selection.patterns import ColumnPaths, Patterns


class Thresholds:
    """Answers for one declassifier on one graph."""

    def __init__(self, index: Index, declassify: Declassify, paths: ColumnPaths) -> None:
        self.index = index
        self.declassify = declassify
        entity = Patterns(declassify.entity or (), index.paths_root)
        self.entity = copies(index, entity.columns(index, paths)) if entity else None
        self._known: dict[tuple[int, str], Truth] = {}

    def shown(self, edge: int, measured: Truth | None = None) -> Truth:
        """True if its statement shows that an aggregate is over groups of at least ``min_group_size`` members.

        Args:
            edge: Into the aggregate.
            measured: The same of the groups of a recorded output; None: not measured. A group may be large enough, and
                the aggregate of it not take in all: that is the statement's to show in either case.
        """
        key = self.index.edge_derivation[edge], self.index.ref(self.index.edge_source[edge]).dataset
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._shown(*key)
        if measured is Truth.YES and found is not Truth.YES:
            return self._whole(edge)
        if measured is Truth.UNKNOWN and found is Truth.NO:
            found = Truth.UNKNOWN
        if found is Truth.NO or narrowed(self.index, edge, self.declassify, self.entity or ()):
            return Truth.NO
        return Truth.UNKNOWN if doubtful(self.index, edge, self.declassify) else found

    def _whole(self, edge: int) -> Truth:
        """Return whether an aggregate takes in its whole group."""
        if narrowed(self.index, edge, self.declassify, self.entity or ()):
            return Truth.NO
        return Truth.UNKNOWN if _combined(self.index, edge) else Truth.YES

    def _shown(self, derivation: int, dataset: str) -> Truth:
        k = self.declassify.min_group_size or 0
        if "having" not in self.declassify.evidence or self.index.arrays["derivation_min_group"][derivation] < k:
            return Truth.NO
        bounds = [b for b in bounds_of(self.index, derivation) if b.at_least >= k]
        if self.entity is None:
            return Truth.YES if any(_counts_members(b, dataset) for b in bounds) else Truth.UNKNOWN
        distinct = [b for b in bounds if b.what == "distinct"]
        if any(b.columns and all(self._is_entity(derivation, ref) for ref in b.columns) for b in distinct):
            return Truth.YES
        return Truth.NO if self.declassify.entity_known else Truth.UNKNOWN

    def _is_entity(self, derivation: int, ref: ColumnRef) -> bool:
        """True if what a derivation's HAVING calls so is the entity. Of a script's table made twice, both must be."""
        index, rows = self.index, self.index.rows(self.index.target(derivation))
        found = {
            index.edge_source[edge]
            for edge in index.in_edges(rows)
            if index.edge_derivation[edge] == derivation and index.kind(edge) is EdgeKind.FILTER
        }
        named = {node for node in found if index.ref(node) == ref}
        return bool(named) and self.entity is not None and named <= self.entity


def bounds_of(index: Index, derivation: int) -> tuple[Counted, ...]:
    """Return the counted columns of a derivation's HAVING, and the smallest group that it lets through."""
    return split_counted(index.field(derivation, "min_group_of"))


def narrowed(index: Index, edge: int, declassify: Declassify, entity: Collection[int] = ()) -> str:
    """Return why an aggregate may be over less than its group; empty if nothing shows so.

    Args:
        index: The graph.
        edge: Into the aggregate.
        declassify: With ``entity``, what its value is made of and what is joined matter too.
        entity: The columns that are counted, besides those that the statement's HAVING names.
    """
    derivation, own = index.edge_derivation[edge], _beside(index, edge)
    chosen = _chosen(index, own) or _multiplied(index, own)
    if chosen:
        return chosen
    if not declassify.entity:
        return _crossed(index, derivation)
    counted = {ref for bound in bounds_of(index, derivation) for ref in bound.columns}
    for e in own:
        source = index.edge_source[e]
        if index.kind(e) not in VALUE_FLOW or all(f in NUMBERS for f in index.functions(e)):
            continue
        if index.ref(source) in counted or source in entity:
            return f"{index.name(source)}, which identifies members, is part of the aggregated values"
    rows = index.rows(index.target(derivation))
    joined = [e for e in index.in_edges(rows) if index.edge_derivation[e] == derivation]
    of = {index.node_dataset[index.edge_source[e]] for e in joined if index.kind(e) is EdgeKind.JOIN}
    if len(of) == 1:
        return (
            f"{index.dataset_name(of.pop())} is joined with itself or by a constant: the groups counted may be others"
        )
    return ""


def doubtful(index: Index, edge: int, declassify: Declassify) -> str:
    """Why an aggregate may or may not be over its whole group; empty if nothing says so.

    Args:
        index: The graph.
        edge: Into the aggregate.
        declassify: Without ``entity`` it matters, too, what a counted row is.
    """
    names = _combined(index, edge)
    if names:
        return f"its value is made of {names}: one of them may decide what of a group is taken in"
    if declassify.entity or _counts_itself(index, edge, declassify.min_group_size or 0):
        return ""
    return _multiplied_before(index, index.edge_derivation[edge])


def _counts_itself(index: Index, edge: int, k: int) -> bool:
    """Return whether HAVING counts distinct values of the column that is aggregated."""
    own = (index.ref(index.edge_source[edge]),)
    bounds = bounds_of(index, index.edge_derivation[edge])
    return any(b.what == "distinct" and b.columns == own and b.at_least >= k for b in bounds)


def _counts_members(bound: Counted, dataset: str) -> bool:
    """Return whether a bound counts each row of a dataset once."""
    if not bound.joined:
        return True
    return bound.what == "distinct" and bool(bound.columns) and all(ref.dataset == dataset for ref in bound.columns)


def _combined(index: Index, edge: int) -> str:
    """The columns that one aggregate computes with: ``sum(pay * power(0, abs(id - 42)))``, ``sum(price * quantity)``.

    Arithmetic can choose a member as CASE does. Which aggregate an edge belongs to is known by its function only.
    """
    last = index.functions(edge)[-1:]
    if not last or last[0] in NUMBERS:
        return ""
    beside = [e for e in _beside(index, edge) if index.kind(e) in VALUE_FLOW and index.arm(e) == index.arm(edge)]
    found = {index.name(index.edge_source[e]) for e in beside if index.functions(e)[-1:] == last}
    return " and ".join(sorted(found)) if len(found) > 1 else ""


def _multiplied_before(index: Index, derivation: int) -> str:
    """A dataset, among those whose rows are counted or their origins, whose rows come from a join."""
    stack, seen = _read_by(index, derivation), set[int]()
    while stack:
        dataset = stack.pop()
        if dataset in seen:
            continue
        seen.add(dataset)
        rows = index.rows(dataset)
        makers = {index.edge_derivation[e] for e in index.in_edges(rows)}
        if any(index.kind(e) is EdgeKind.JOIN for e in index.in_edges(rows)) or any(
            _crossed(index, maker) for maker in makers
        ):
            return f"{index.dataset_name(dataset)} is made by a join: one member may be several of its rows"
        for maker in makers:
            stack += _read_by(index, maker)
    return ""


def _read_by(index: Index, derivation: int) -> list[int]:
    rows = index.rows(index.target(derivation))
    mine = (e for e in index.in_edges(rows) if index.edge_derivation[e] == derivation)
    return [index.node_dataset[index.edge_source[e]] for e in mine if index.kind(e) is EdgeKind.READ]


def _beside(index: Index, edge: int) -> list[int]:
    """The edges of the same statement into the same column."""
    derivation = index.edge_derivation[edge]
    return [e for e in index.in_edges(index.edge_target[edge]) if index.edge_derivation[e] == derivation]


def _chosen(index: Index, edges: list[int]) -> str:
    """Return the choices over an aggregate: CASE, FILTER, OVER."""
    kinds = (EdgeKind.CONDITIONAL, EdgeKind.WINDOW)
    names = dict.fromkeys(index.name(index.edge_source[e]) for e in edges if index.kind(e) in kinds)
    return f"{', '.join(names)} decides what of a group is taken in" if names else ""


def _multiplied(index: Index, edges: list[int]) -> str:
    """Truth values among what is aggregated: ``sum(pay * active::int)``."""
    values = [e for e in edges if index.kind(e) in VALUE_FLOW]
    truths = {index.edge_source[e] for e in values if family(index.type(index.edge_source[e])) == "boolean"}
    if not truths or truths == {index.edge_source[e] for e in values}:
        return ""
    names = ", ".join(sorted(index.name(node) for node in truths))
    return f"{names}, true or false, is part of what is aggregated and may decide what is taken in"


def _crossed(index: Index, derivation: int) -> str:
    """Datasets that are joined by nothing: each of their rows counts every member again."""
    rows = index.rows(index.target(derivation))
    arms: dict[int, set[int]] = {}
    tied: set[tuple[int, int]] = set()
    for e in index.in_edges(rows):
        if index.edge_derivation[e] != derivation:
            continue
        dataset, arm, kind = index.node_dataset[index.edge_source[e]], index.arm(e), index.kind(e)
        if kind is EdgeKind.READ:
            arms.setdefault(arm, set()).add(dataset)
        elif kind in (EdgeKind.JOIN, EdgeKind.FILTER):
            tied.add((arm, dataset))
    for arm, datasets in sorted(arms.items()):
        loose = sorted(dataset for dataset in datasets if (arm, dataset) not in tied)
        if len(datasets) > 1 and loose:
            names = ", ".join(index.dataset_name(dataset) for dataset in loose)
            be = "is" if len(loose) == 1 else "are"
            return f"{names} {be} joined without a condition: its HAVING may count the same row again"
    return ""


def shortfall(index: Index, edge: int, declassify: Declassify) -> str:
    """Explain why a statement's counts do not show the groups that a declassifier needs; empty if it counts nothing.

    To be asked of aggregates that do not show it, or of which it is not known.
    """
    derivation = index.edge_derivation[edge]
    if not index.arrays["derivation_min_group"][derivation] or "having" not in declassify.evidence:
        return _chosen(index, _beside(index, edge))
    less = narrowed(index, edge, declassify)
    if less:
        return less
    who = ", ".join(declassify.entity) if declassify.entity_known else "a column that is known to identify people"
    who = who if declassify.entity else ""
    bounds = bounds_of(index, derivation)
    if not bounds:
        return f"it is not known what its HAVING counts{f', {who} or not' if who else ''}; ingest it again"
    words = [_falls_short(bound, who, declassify.min_group_size or 0) for bound in bounds]
    return " and ".join(dict.fromkeys([*words, *filter(None, [doubtful(index, edge, declassify)])]))


def measured_shortfall(index: Index, edge: int, declassify: Declassify, measured: MeasuredGroup) -> str:
    """Explain why an aggregate over measured groups does not show its k."""
    k = declassify.min_group_size or 0
    if measured.shows(k) is not Truth.YES:
        return measured.text(k)
    less = narrowed(index, edge, declassify)
    if less:
        return less
    names = _combined(index, edge)
    return f"its value is made of {names}: one of them may decide what of a group is taken in" if names else ""


def _falls_short(bound: Counted, who: str, k: int) -> str:
    """What one bound counts instead."""
    found = f"its HAVING counts {_counted(bound)}"
    if bound.at_least < k:
        return f"{found}, only {bound.at_least} of {k}"
    if who:
        return f"{found}, not {who}"
    return f"{found} of a join or a UNION: one member may be several of them" if bound.joined else found


def _counted(bound: Counted) -> str:
    """``rows``, ``distinct crm.users.id``, ``values of a column that is not known``."""
    if bound.what == "rows":
        return "rows"
    names = ", ".join(ref.text for ref in bound.columns) or "what is no plain column"
    return f"distinct {names}" if bound.what == "distinct" else f"rows with {names}"


def copies(index: Index, nodes: set[int]) -> frozenset[int]:
    """Columns that hold exactly the values of some columns: these, and plain copies of copies."""
    found = set(nodes)
    stack = list(nodes)
    while stack:
        for edge in index.out_edges(stack.pop()):
            target = index.edge_target[edge]
            if target in found or index.kind(edge) is not EdgeKind.IDENTITY or index.functions(edge):
                continue
            # Every value must come so: another source of the column may be of another kind.
            others = (e for e in index.in_edges(target) if index.kind(e) < EdgeKind.CONDITIONAL)
            if all(index.kind(e) is EdgeKind.IDENTITY and index.edge_source[e] in found for e in others):
                found.add(target)
                stack.append(target)
    return frozenset(found)

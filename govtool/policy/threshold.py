"""Whether the groups of an aggregate are shown to be large enough, and of whom.

``HAVING COUNT(*) >= k`` counts rows; where a declassifier names the ``entity`` columns, k must count distinct values of
one of them (BigQuery and Snowflake do the same in their aggregation thresholds). What a statement counts is said by its
derivation (``Statement.min_group_of``), by base column; which column of the graph that is, by the edges of the same
derivation: the entity itself or a plain copy of it. What is not known to be counted is not shown.
"""

from __future__ import annotations

from govtool.graph.index import Index
from govtool.model.columnar import split_counted
from govtool.model.derivation import ColumnRef, Counted
from govtool.model.kinds import EdgeKind
from govtool.policy.model import Declassify
from govtool.query.patterns import ColumnPaths, Patterns


class Thresholds:
    """Answers for one declassifier on one graph."""

    def __init__(self, index: Index, declassify: Declassify, paths: ColumnPaths) -> None:
        self.index = index
        self.declassify = declassify
        self.entity = copies(index, Patterns(declassify.entity).columns(index, paths)) if declassify.entity else None
        self._known: dict[int, bool] = {}

    def shown(self, derivation: int) -> bool:
        """Whether a statement shows that its groups have at least ``min_group_size`` members."""
        found = self._known.get(derivation)
        if found is None:
            found = self._known[derivation] = self._shown(derivation)
        return found

    def _shown(self, derivation: int) -> bool:
        k = self.declassify.min_group_size or 0
        if "having" not in self.declassify.evidence or self.index.arrays["derivation_min_group"][derivation] < k:
            return False
        if self.entity is None:
            return True
        bounds = [b for b in bounds_of(self.index, derivation) if b.at_least >= k and b.what == "distinct"]
        return any(b.columns and all(self._is_entity(derivation, ref) for ref in b.columns) for b in bounds)

    def _is_entity(self, derivation: int, ref: ColumnRef) -> bool:
        """Whether what a derivation's HAVING calls so is the entity. Of a script's table made twice, both must be."""
        index, rows = self.index, self.index.rows(self.index.target(derivation))
        found = {
            index.edge_source[edge]
            for edge in index.in_edges(rows)
            if index.edge_derivation[edge] == derivation and index.kind(edge) is EdgeKind.FILTER
        }
        named = {node for node in found if index.ref(node) == ref}
        return bool(named) and self.entity is not None and named <= self.entity


def bounds_of(index: Index, derivation: int) -> tuple[Counted, ...]:
    """What the HAVING of a derivation counts, and how many there are at least."""
    return split_counted(index.field(derivation, "min_group_of"))


def shortfall(index: Index, derivation: int, declassify: Declassify) -> str:
    """Why what a statement counts does not show the groups that a declassifier asks for; empty if it counts nothing.

    To be asked of statements that do not show it.
    """
    if not index.arrays["derivation_min_group"][derivation] or "having" not in declassify.evidence:
        return ""
    who, k = ", ".join(declassify.entity), declassify.min_group_size or 0
    bounds = bounds_of(index, derivation)
    if not bounds:
        return f"it is not known what its HAVING counts{f', {who} or not' if who else ''}; ingest it again"
    words = []
    for bound in bounds:
        what = _counted(bound)
        few = f"only {bound.at_least} of {k}" if bound.at_least < k else ""
        words.append(f"its HAVING counts {what}" + (f", not {who}" if who and not few else f", {few}" if few else ""))
    return " and ".join(dict.fromkeys(words))


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

"""Hops of a way through the graph, with the edges and statements that make them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from govtool.graph.index import Index
from govtool.model.derivation import ColumnRef
from govtool.model.kinds import EdgeKind
from govtool.model.places import EdgeEnds, Place, place_of, ranks

MAX_RANKS = 4096
"""Statements whose columns are kept while an answer is made."""
RUNTIME = frozenset({"plan", "plan-text", "openlineage", "prov"})
"""The kinds of evidence from runs; all others are of texts and people."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The place of an edge's evidence. ``kind`` is the statement's; see ``govtool.model.Statement`` for the rest."""

    kind: str
    file: str
    line: int
    fingerprint: str
    how: str = "sql"
    run: str | None = None
    first_seen: str | None = None
    last_seen: str | None = None
    count: int = 1
    principal: str | None = None
    expression: Place | None = None
    """The part of the statement that makes the edge; None where it is not known, or no edge is meant."""

    @property
    def position(self) -> str:
        """``file:line:column`` of the expression; the place of the statement where it is not known."""
        if self.expression is None or self.how in RUNTIME:
            return self.place
        column = f":{self.expression.column}" if self.expression.column else ""
        return f"{self.file}:{self.expression.line}{column}"

    @property
    def place(self) -> str:
        """``file:line``, or the file alone where no line is known; of what ran, the job and its run."""
        if self.how in RUNTIME:
            return f"{self.file} · {self.run}" if self.run and self.run != self.file else self.file
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class WayStep:
    """One edge of a way, from a column (or row set) to the next."""

    source: str
    target: str
    kind: EdgeKind | None
    """None where the statement only names the source, and hands nothing of it on."""
    functions: tuple[str, ...]
    star: bool
    masking: bool
    reason: str | None
    elided: bool
    """The target is temporary, dropped or an ended version: no hop, and not in the answer."""
    evidence: Evidence
    """The statement that makes it."""
    more: tuple[Evidence, ...] = ()
    """Further records of runs that made the same edge; of a step through temporary tables the statements before."""

    @property
    def place(self) -> str:
        """The position of the evidence, and how much more there is."""
        return f"{self.evidence.position} and {len(self.more)} more" if self.more else self.evidence.position

    @property
    def label(self) -> str:
        """A few words: ``copy``, ``lower()``, ``join key``, ``python udf``."""
        if self.evidence.kind == FOREIGN_KEY:
            return FOREIGN_KEY_LABEL
        return step_label(self.kind, self.functions, self.reason)


_LABELS = {
    EdgeKind.IDENTITY: "copy",
    EdgeKind.TRANSFORMATION: "expression",
    EdgeKind.AGGREGATION: "aggregate",
    EdgeKind.CONDITIONAL: "condition",
    EdgeKind.WINDOW: "window",
    EdgeKind.JOIN: "join key",
    EdgeKind.FILTER: "filter",
    EdgeKind.GROUP_BY: "group key",
    EdgeKind.SORT: "sort key",
    EdgeKind.DISTINCT: "distinct",
    EdgeKind.SET_OPERATION: "set operation",
    EdgeKind.UNION_ALL: "union all",
    EdgeKind.READ: "rows",
    EdgeKind.OPAQUE: "opaque",
}
REFERENCE = "reference"
"""The label of a step whose statement names a column and hands nothing of it on."""
FOREIGN_KEY, FOREIGN_KEY_LABEL = "foreign_key", "foreign key"
"""The kind of a derivation that declares one, and the label of its steps."""
_NAMED = frozenset({EdgeKind.IDENTITY, EdgeKind.TRANSFORMATION, EdgeKind.AGGREGATION})


def step_label(kind: EdgeKind | None, functions: tuple[str, ...], reason: str | None) -> str:
    """A few words for an edge, or (without a kind) for a reference."""
    if kind is None:
        return REFERENCE
    if kind is EdgeKind.OPAQUE and reason:
        return reason.partition(":")[0]
    if functions and kind in _NAMED:
        return " → ".join(f"{name}()" for name in functions)
    return _LABELS[kind]


def evidence(index: Index, derivation: int, expression: Place | None = None) -> Evidence:
    """The evidence of a derivation, perhaps with the expression that is meant."""
    return Evidence(
        kind=index.field(derivation, "kind") or "",
        file=index.field(derivation, "file") or "",
        line=index.arrays["derivation_line"][derivation],
        fingerprint=index.field(derivation, "fingerprint") or "",
        how=index.field(derivation, "how") or "",
        run=index.field(derivation, "run"),
        first_seen=index.field(derivation, "first_seen"),
        last_seen=index.field(derivation, "last_seen"),
        count=index.arrays["derivation_count"][derivation],
        principal=index.field(derivation, "principal"),
        expression=expression,
    )


def evidences(index: Index, edges: Iterable[int]) -> tuple[Evidence, ...]:
    """The distinct statements behind edges, by place, each with the expression that makes the first of its edges."""
    first: dict[int, Place | None] = {}
    for edge in sorted(set(edges)):
        derivation = index.derivation_of(edge)
        if first.get(derivation) is None:
            first[derivation] = None if index.is_reference(edge) else edge_place(index, edge)
    found = dict.fromkeys(evidence(index, derivation, place) for derivation, place in sorted(first.items()))
    return tuple(sorted(found, key=lambda e: (e.file, e.line, e.fingerprint, e.run or "", e.first_seen or "")))


def step(index: Index, edge: int, target: int | None = None) -> WayStep:
    """An edge as a step. ``target`` is the node it leads to: a broken statement leads to more than its edges do."""
    start, end = index.ends(edge)
    node = end if target is None else target
    named = index.is_reference(edge)
    return WayStep(
        source=index.name(start),
        target=index.name(node),
        kind=None if named else index.kind(edge),
        functions=() if named else index.functions(edge),
        star=not named and index.is_star(edge),
        masking=not named and index.is_masking(edge),
        reason=None if named else index.reason(edge),
        elided=index.is_elided(index.node_dataset[node]),
        evidence=evidence(index, index.derivation_of(edge), None if named else edge_place(index, edge)),
    )


def edge_place(index: Index, edge: int) -> Place | None:
    """Return the place of the expression that makes an edge; None where it is not known."""
    derivation = index.derivation_of(edge)
    places = index.field(derivation, "places")
    if not places:
        return None
    start, end = index.ends(edge)
    source = ColumnRef(index.dataset_name(index.node_dataset[start]), index.path(start))
    ends = EdgeEnds(source, index.path(end), index.kind(edge), index.arm(edge))
    return place_of(places, index.arrays["derivation_line"][derivation], _columns(index, derivation), ends)


_ranks: WeakKeyDictionary[Index, dict[int, dict[str, int]]] = WeakKeyDictionary()
"""By graph and derivation: an answer asks for the columns of a statement once an edge."""


def _columns(index: Index, derivation: int) -> dict[str, int]:
    of_index = _ranks.setdefault(index, {})
    found = of_index.get(derivation)
    if found is None:
        if len(of_index) >= MAX_RANKS:
            of_index.clear()
        found = of_index[derivation] = ranks(index.path(node) for node in index.outputs(derivation))
    return found


def parallel(index: Index, edge: int) -> list[int]:
    """All edges between the same two nodes and of the same kind, whichever statement said them; likewise references."""
    if index.is_reference(edge):
        start, end = index.ends(edge)
        same = (index.edge_count + reference for reference in index.references(start))
        return [other for other in same if index.ends(other)[1] == end]
    node, kind = index.edge_target[edge], index.kind(edge)
    # Edges of a source lie by target, ``read`` apart: those between the same nodes are neighbours.
    edges = index.out_edges(index.edge_source[edge])
    low = high = edge
    while low > edges.start and index.edge_target[low - 1] == node:
        low -= 1
    while high + 1 < edges.stop and index.edge_target[high + 1] == node:
        high += 1
    return [e for e in range(low, high + 1) if index.kind(e) is kind]

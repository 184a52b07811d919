"""The graph beside what a warehouse recorded itself: which edges both have, which only one, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from govtool.graph.index import Index
from govtool.model import STEERING, VALUE_FLOW, ColumnRef, EdgeKind
from govtool.names import split_name

AGREE, ONLY_GRAPH, ONLY_ORACLE = "agree", "only in graph", "only in oracle"

_FARTHEST = 12
"""Hops that are looked back for a source that the oracle names and no edge does."""


@dataclass(frozen=True, slots=True)
class ComparedEdge:
    """One edge."""

    outcome: str
    """``agree``, ``only in graph`` or ``only in oracle``."""
    source: str
    """Canonical, as the graph has it where it has it."""
    target: str
    reason: str = ""
    """The place of the difference."""
    evidence: str = ""
    """``file:line`` of the statement in the graph."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """All edges into the datasets that both know."""

    edges: tuple[ComparedEdge, ...]
    """Sorted by outcome, target and source."""
    datasets: int
    """Datasets that the oracle says were written and the graph knows."""
    unknown: tuple[str, ...]
    """Datasets that the oracle says were written and the graph does not know, sorted."""

    def count(self, outcome: str) -> int:
        """Return the number of edges with an outcome."""
        return sum(edge.outcome == outcome for edge in self.edges)

    @property
    def rate(self) -> float | None:
        """Agreeing edges among all, 0 to 1; None where there is nothing to compare."""
        return self.count(AGREE) / len(self.edges) if self.edges else None


def compare(
    index: Index, recorded: Iterable[tuple[ColumnRef, ColumnRef]], written: Mapping[str, set[str]]
) -> Agreement:
    """Compare value flow.

    What only steers a value (``conditional``, ``window``) agrees if the oracle has it, and is no difference if not:
    warehouses record it sometimes.

    Args:
        index: The graph.
        recorded: The oracle's edges, source and target.
        written: The columns that the oracle says were written, by dataset.
    """
    matcher = _Matcher(index)
    known = {name: number for name in written if (number := matcher.dataset(name)) is not None}
    by_target: dict[ColumnRef, set[ColumnRef]] = {}
    for source, target in recorded:
        if target.dataset in known:
            by_target.setdefault(target, set()).add(source)
    found: list[ComparedEdge] = []
    for name, dataset in known.items():
        mentioned = written[name]
        for target, sources in by_target.items():
            if target.dataset == name:
                found.extend(_of_column(index, matcher, dataset, target, sources))
        found.extend(_unmentioned(index, dataset, mentioned))
    return Agreement(
        tuple(sorted(found, key=lambda edge: (edge.outcome, edge.target, edge.source))),
        len(known),
        tuple(sorted(set(written) - set(known))),
    )


class _Matcher:
    """Finds the graph's dataset for a name of the warehouse, which has all of its parts and no namespace."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._found: dict[str, int | None] = {}
        self.several: set[str] = set()

    def dataset(self, name: str) -> int | None:
        """The dataset of that name, in whichever namespace; else one that is known by the end of the name."""
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    def _find(self, name: str) -> int | None:
        exact = self.index.find_dataset(name)
        if exact is not None:
            return exact
        parts = split_name(name)
        for cut in range(len(parts) - 1):
            ending = parts[cut:]
            candidates = [
                number
                for number in self.index.ending_datasets(ending, 100)
                if not self.index.is_hidden(number) and _bare(self.index.dataset_name(number)) == ending
            ]
            if len(candidates) == 1:
                return candidates[0]
            if candidates:
                self.several.add(name)
                return None
        return None

    def column(self, ref: ColumnRef) -> int | None:
        """The column of that name."""
        dataset = self.dataset(ref.dataset)
        return None if dataset is None else self.index.find_column(dataset, ref.path)


def _bare(name: str) -> list[str]:
    """The parts of a dataset's name without its namespace."""
    quoted = name.find('"')
    cut = name.rfind("/", 0, quoted if quoted >= 0 else len(name))
    return split_name(name[cut + 1 :])


def _of_column(
    index: Index, matcher: _Matcher, dataset: int, target: ColumnRef, sources: set[ColumnRef]
) -> Iterator[ComparedEdge]:
    """The edges into one column that the oracle has sources of."""
    node = index.find_column(dataset, target.path)
    shown = f"{index.dataset_name(dataset)}.{target.path}"
    ours = dict(_into(index, node)) if node is not None else {}
    theirs: set[int] = set()
    for source in sorted(sources):
        number = matcher.column(source)
        if number is not None:
            theirs.add(number)
        if number is not None and number in ours:
            yield ComparedEdge(AGREE, index.name(number), shown, "", _place(index, ours[number]))
        else:
            reason = _why_missing(index, matcher, node, source, number)
            yield ComparedEdge(ONLY_ORACLE, index.name(number) if number is not None else source.text, shown, reason)
    for number, edge in ours.items():
        if number not in theirs and index.kind(edge) in VALUE_FLOW:
            reason = "the export has other sources of the column"
            yield ComparedEdge(ONLY_GRAPH, index.name(number), shown, reason, _place(index, edge))


def _unmentioned(index: Index, dataset: int, mentioned: set[str]) -> Iterator[ComparedEdge]:
    """The edges into columns of a written dataset for which the oracle has no sources."""
    name = index.dataset_name(dataset)
    for node in index.columns(dataset):
        path = index.path(node)
        if index.container(node) is not None or index.is_unknown(node) or path in mentioned:
            continue
        for number, edge in _into(index, node):
            if index.kind(edge) in VALUE_FLOW:
                reason = "the export does not mention the column"
                yield ComparedEdge(ONLY_GRAPH, index.name(number), f"{name}.{path}", reason, _place(index, edge))


def _into(index: Index, node: int) -> Iterator[tuple[int, int]]:
    """Columns whose values make a column, or steer it, each with an edge; through temporary tables and fields."""
    seen = {node}
    waiting = [(inner, False) for inner in (node, *index.fields(node))]
    found: dict[int, int] = {}
    while waiting:
        current, conditional = waiting.pop()
        for edge in index.in_edges(current):
            kind = index.kind(edge)
            if kind not in VALUE_FLOW and kind not in STEERING:
                continue
            source = index.edge_source[edge]
            column = ([*index.containers(source)] or [source])[-1]
            if index.is_rows(column) or column in seen:
                continue
            if index.is_elided(index.node_dataset[column]):
                seen.add(column)
                waiting.append((source, conditional or kind in STEERING))
            elif column not in found or (kind in VALUE_FLOW and index.kind(found[column]) in STEERING):
                found[column] = edge
    yield from found.items()


def _why_missing(index: Index, matcher: _Matcher, target: int | None, source: ColumnRef, number: int | None) -> str:
    if source.dataset in matcher.several:
        return f"several datasets may be {source.dataset}"
    if matcher.dataset(source.dataset) is None:
        return f"the graph does not know {source.dataset}"
    if target is None:
        return "the graph does not know the column that is written"
    if number is None:
        return "the graph does not know the column that is read"
    dataset = index.node_dataset[target]
    for edge in (*index.in_edges(target), *index.in_edges(index.rows(dataset))):
        if index.kind(edge) is EdgeKind.OPAQUE:
            return f"not understood: {(index.reason(edge) or 'opaque').partition(':')[0]}"
    hops = _distance(index, number, target)
    if hops is not None:
        return f"the graph has it over {hops} hops"
    if any(index.edge_source[edge] == number for edge in index.in_edges(index.rows(dataset))):
        return "in the graph it decides the rows, not the value"
    return "no statement that was read has it"


def _distance(index: Index, source: int, target: int) -> int | None:
    """Edges of value between two columns, on the shortest way back."""
    seen = {target}
    level = [target]
    for hops in range(1, _FARTHEST + 1):
        further = []
        for node in level:
            for inner in (node, *index.fields(node)):
                for edge in index.in_edges(inner):
                    if index.kind(edge) in VALUE_FLOW or index.kind(edge) in STEERING:
                        found = index.edge_source[edge]
                        column = ([*index.containers(found)] or [found])[-1]
                        if column == source:
                            return hops
                        if column not in seen:
                            seen.add(column)
                            further.append(column)
        level = further
    return None


def _place(index: Index, edge: int) -> str:
    statement = index.statement(index.edge_derivation[edge])
    return f"{statement.file}:{statement.line}"

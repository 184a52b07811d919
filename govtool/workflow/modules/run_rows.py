"""Rows of a run's outputs after a deletion, from what it does to their nodes.

A node that falls takes its row with it; a candidate may come in its place, with the same plain values and another
computed one. So a row is called deleted only if no other row of its relation can come to its values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np  # noqa: TID253 - graphs are arrays; only what reads them imports this

from govtool.arrays.sets import Array
from govtool.records.cells import json_value
from govtool.workflow import vocabulary as terms
from govtool.workflow.deletion import Deletion
from govtool.workflow.evaluation import World
from govtool.workflow.graph import ProvenanceGraph
from govtool.workflow.modules.run_tuples import OutputTuples
from govtool.workflow.queries.statuses import RowStatus, Values, key_of, rest_of, stood_in


@dataclass(frozen=True, slots=True)
class OutputDeletion:
    """The rows of one output relation after a deletion.

    Attributes:
        columns: Names of its columns.
        rows: Each row before, with its execution.
        gains: Rows that appear.
        gains_possible: Rows may appear that are not among ``gains``.
        nodes: The node that wrote each of ``rows``.
        gained_by: Execution and node of each of ``gains``.
        computed: Columns whose values may be others after the deletion.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[int, RowStatus], ...] = ()
    gains: tuple[Values, ...] = ()
    gains_possible: bool = False
    nodes: tuple[str, ...] = ()
    gained_by: tuple[tuple[int, str], ...] = ()
    computed: frozenset[str] = frozenset()

    def joined(
        self,
        by: tuple[int, str],
        columns: Sequence[str],
        rows: Sequence[RowStatus],
        gains: Sequence[Values],
        computed: Iterable[str] = (),
    ) -> OutputDeletion:
        """These rows, and those that a node wrote in an execution, whose columns may be in another order."""
        execution, node = by
        if len(set(columns)) == len(columns) and set(columns) == set(self.columns):
            places = [columns.index(name) for name in self.columns]
            rows, gains = [_reordered(row, places) for row in rows], [_values(gain, places) for gain in gains]
        return OutputDeletion(
            self.columns,
            (*self.rows, *((execution, row) for row in rows)),
            (*self.gains, *gains),
            self.gains_possible,
            (*self.nodes, *([node] * len(rows))),
            (*self.gained_by, *([by] * len(gains))),
            self.computed.union(computed),
        )


def _reordered(row: RowStatus, places: Sequence[int]) -> RowStatus:
    return RowStatus(_values(row.before, places), row.status, None if row.after is None else _values(row.after, places))


def _values(values: Values, places: Sequence[int]) -> Values:
    return tuple(values[place] for place in places)


def output_deletions(
    graph: ProvenanceGraph, outputs: Sequence[OutputTuples], deletion: Deletion
) -> dict[str, OutputDeletion]:
    """What a deletion makes of the rows of outputs, by relation: those of all executions together."""
    judge = _OutputRows(graph, deletion)
    found: dict[str, OutputDeletion] = {}
    for output in outputs:
        rows, gains = judge.rows(output)
        known = found.get(output.relation, OutputDeletion(output.columns, gains_possible=deletion.gains_possible))
        found[output.relation] = known.joined(
            (output.execution, output.node), output.columns, rows, gains, output.cells
        )
    return found


class _OutputRows:
    def __init__(self, graph: ProvenanceGraph, deletion: Deletion) -> None:
        self._graph = graph
        self._removed = np.zeros(graph.node_count, bool)
        self._removed[deletion.removed] = True
        self._removed[list(deletion.hollow)] = False
        self._unknown = (frozenset(deletion.unknown) - deletion.absent) | deletion.hollow
        self._absent = deletion.absent
        self._values = deletion.recomputed
        self._gains_possible = deletion.gains_possible
        self._before, self._after = World(graph), World(graph, self._removed, deletion.recomputed)

    def rows(self, output: OutputTuples) -> tuple[list[RowStatus], list[Values]]:
        """The rows of one output of one execution, and its gains."""
        cells = {at: output.cells[name] for at, name in enumerate(output.columns) if name in output.cells}
        recounted = self._recounted(output)
        rows = [self._row(output, cells, at, recounted) for at in range(output.present)]
        gains, possible = self._candidates(output, cells)
        computed = [at for at, nodes in cells.items() if (nodes >= 0).any()]
        rows, gains = stood_in(rows, gains, computed)
        likely = {rest_of(values, computed) for values in possible}
        likely |= {rest_of(row.before, computed) for row in rows if row.status == "unknown"}
        is_open = output.coming in self._unknown  # rows of any values may come
        return [_doubted(row, computed, likely, is_open) for row in rows], gains

    def _row(self, output: OutputTuples, cells: Mapping[int, Array], at: int, recounted: frozenset[int]) -> RowStatus:
        node, before = int(output.nodes[at]), tuple(output.rows[at])
        if self._removed[node] or node in self._absent:
            return RowStatus(before, "deleted")
        if node in self._unknown or node in recounted or not self._is_known(cells, at):
            return RowStatus(before, "unknown")
        after = self._changed(before, cells, at)
        return RowStatus(before, "kept" if key_of(after) == key_of(before) else "recomputed", after)

    def _is_known(self, cells: Mapping[int, Array], at: int) -> bool:
        """Return whether the values of a row are; one whose aggregate is over nothing now has 0 or NULL there."""
        own = [int(nodes[at]) for nodes in cells.values() if nodes[at] >= 0]
        return not any(node in self._unknown or self._removed[node] for node in own)

    def _changed(self, before: Values, cells: Mapping[int, Array], at: int) -> Values:
        nodes = {place: int(column[at]) for place, column in cells.items()}
        new = {place: json_value(self._values[node]) for place, node in nodes.items() if node in self._values}
        return tuple(new.get(place, value) for place, value in enumerate(before))

    def _candidates(self, output: OutputTuples, cells: Mapping[int, Array]) -> tuple[list[Values], list[Values]]:
        """Candidates that are there afterwards, and those that may be."""
        gains: list[Values] = []
        possible: list[Values] = []
        if not self._gains_possible:
            return gains, possible
        for at in range(output.present, len(output.nodes)):
            node, values = int(output.nodes[at]), tuple(output.rows[at])
            times = 0 if self._removed[node] else self._after.times(node)
            # A candidate was not there: where the graph counts one, it does not hold all that the row hangs on.
            is_right = self._before.times(node) == 0
            if times and is_right and node not in self._unknown and self._is_known(cells, at):
                gains += [self._changed(values, cells, at)] * times
            elif times != 0 or node in self._unknown:
                possible.append(values)
        return gains, possible

    def _recounted(self, output: OutputTuples) -> frozenset[int]:
        """Nodes of rows that share what they are made of, where it is there another number of times."""
        nodes = output.nodes[: output.present].tolist()
        sources = {node: self._source(node) for node in nodes if not self._removed[node]}
        shared = {source for source, times in Counter(sources.values()).items() if source is not None and times > 1}
        moved = {each for each in shared if self._before.times(each) != self._after.times(each)}
        return frozenset(node for node, source in sources.items() if source in moved)

    def _source(self, node: int) -> int | None:
        """The tuple that an ``o`` node stands for."""
        edges, graph = self._before.edges, self._graph
        found = [int(edges.source[edge]) for edge in edges.in_edges(node)]
        return next((each for each in found if terms.TYPES[graph.type[each]] != "m"), None)


def _doubted(row: RowStatus, computed: Sequence[int], likely: set[Any], is_open: bool) -> RowStatus:
    if row.status == "deleted" and (is_open or rest_of(row.before, computed) in likely):
        return RowStatus(row.before, "unknown")
    return row

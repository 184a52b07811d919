"""What the graph of a workflow run is made of: rows of relations, nodes of their tuples, outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from govtool.arrays.sets import Array
from govtool.model.workflow_run import BoundaryRelation
from govtool.records.plan.nodes import Plan, Relation
from govtool.records.trace.normal import Ids
from govtool.workflow.annotate.tables import Executor
from govtool.workflow.graph import ProvenanceGraph


class RunFiles(Protocol):
    """What the graph of a run reads: plans and rows of relations."""

    def plan(self, path: str) -> Plan | None:
        """The plan of the write that made a relation; None: it was not recorded."""

    def reason(self, path: str) -> str:
        """Why there is no plan of the write that made a relation."""

    def rows(self, relation: BoundaryRelation) -> RelationRows:
        """The rows of a relation."""

    def leaf(self, relation: BoundaryRelation, ids: Ids) -> Relation:
        """The leaf that reads a relation's files, all of its columns under new ids.

        Raises:
            UsageError: They are not known (``usage.no-columns``).
        """

    def executors(self, plan: Plan) -> Iterator[Executor]:
        """New executors of a plan's session, the first choice first."""


@dataclass(frozen=True, slots=True)
class RelationRows:
    """The rows of a relation, in the order of its files.

    Attributes:
        columns: Names of its columns.
        values: One tuple a row.
        counts: The rows of each file.
        tokens: One a row: the id of the record.
    """

    columns: tuple[str, ...]
    values: Sequence[tuple[Any, ...]]
    counts: tuple[int, ...]
    tokens: Sequence[str]


@dataclass(frozen=True, slots=True)
class RelationTuples:
    """Nodes of the tuples of a relation, and of those that would be there without others: candidates.

    Attributes:
        relation: The relation.
        nodes: The p-node of each row, candidates last: int64[n].
        cells: The v-nodes of columns that have some, by name: int64[n], -1 for none.
        extra: The values of candidates, which no file has: Arrow arrays by column.
        coming: The p-node of rows that may come and are no candidates, as behind a limit; -1: there are none.
    """

    relation: BoundaryRelation
    nodes: Array
    cells: Mapping[str, Array] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    coming: int = -1

    @property
    def candidates(self) -> int:
        """Their number."""
        return next((len(values) for values in self.extra.values()), 0)


@dataclass(frozen=True, slots=True)
class OutputTuples:
    """An output of an execution, with the nodes of its rows.

    Attributes:
        execution: The execution.
        node: The node of the workflow.
        relation: The relation.
        columns: Names of its columns.
        rows: Its rows; after them the candidates.
        present: How many rows are there.
        nodes: The ``o`` node of each: int64[n].
        cells: Their ``o`` nodes of values, by column: int64[n], -1 for none.
        coming: The ``o`` node of rows that may come and are no candidates; -1: there are none.
        path: Its place.
    """

    execution: int
    node: str
    relation: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    present: int
    nodes: Array
    cells: Mapping[str, Array]
    coming: int = -1
    path: str = ""


@dataclass(frozen=True, slots=True)
class RunGraph:
    """A graph, the outputs of its executions, and what it does not show.

    Attributes:
        graph: The graph.
        outputs: The outputs.
        coarse: Relations of invocations whose rows depend on everything that the invocation read, with the reason.
        candidates: Rows that are not there and would be without others, by relation. They have nodes, too.
    """

    graph: ProvenanceGraph
    outputs: tuple[OutputTuples, ...]
    coarse: Mapping[str, str]
    candidates: Mapping[str, int]


@dataclass(slots=True)
class LazyState:
    """State tuples whose ``s`` nodes are made when something is made of them."""

    tuples: RelationTuples
    nodes: Array
    cells: dict[str, Array]
    coming: int = -1

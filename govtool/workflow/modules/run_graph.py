"""The provenance graph of a workflow run, from the plans of its writes: ``wi st m i s op val o`` nodes.

An invocation gets its ``m`` node, an ``i`` node for each tuple that it received, ``s`` nodes for state tuples that
something was made of, and ``o`` nodes for what it made; between them is the annotation of the plan that made it. A
state tuple is fed by the node that produced it, whichever invocation that was. Source: the specification of
fine-grained provenance, section 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np  # noqa: TID253 - graphs are arrays; only what makes them imports this

from govtool.arrays.sets import Array
from govtool.errors import UsageError
from govtool.model.workflow_run import BoundaryRelation, ModuleInvocation, WorkflowRun
from govtool.records.plan.expressions import Named
from govtool.records.plan.nodes import Plan, Project, Write, outputs
from govtool.records.plan.tree import Node
from govtool.records.sql.dialect import NotExact
from govtool.records.trace.normal import Ids, normalized, spare_ids
from govtool.redaction import clean_failure
from govtool.workflow import vocabulary as terms
from govtool.workflow.annotate.annotator import Annotator
from govtool.workflow.annotate.circuit import NONE
from govtool.workflow.annotate.drawn import DRAWN
from govtool.workflow.annotate.operators import RULES
from govtool.workflow.annotate.tables import Executor
from govtool.workflow.builder import GraphBuilder
from govtool.workflow.modules.circuit_graph import CircuitWriter
from govtool.workflow.modules.run_leaves import PlanLeaves
from govtool.workflow.modules.run_tuples import (
    LazyState,
    OutputTuples,
    RelationRows,
    RelationTuples,
    RunFiles,
    RunGraph,
)
from govtool.workflow.modules.shared_operators import OperatorBlocks, SharedNodes, SharedOperators
from govtool.workflow.modules.written_rows import matched, python_rows

StateNodes = Literal["read", "all"]
"""State tuples that get ``s`` nodes."""


def build_run_graph(
    run: WorkflowRun, files: RunFiles, state_nodes: StateNodes = "read", *, pig_nodes: bool = False
) -> RunGraph:
    """The graph of the whole executions of a run.

    Args:
        run: The run.
        files: Its plans and rows.
        state_nodes: ``read``: state tuples that something was made of have ``s`` nodes; ``all``: every state tuple of
            an invocation has one, as in the paper.
        pig_nodes: Operators have the nodes of the paper's figures; see ``annotate.drawn``.

    Raises:
        UsageError: A file is not there any more, or is not what was written.
    """
    builder = _RunBuilder(run, files, state_nodes, pig_nodes)
    for invocation in run.invocations:
        if invocation.execution <= run.whole:
            builder.add(invocation)
    return RunGraph(builder.graph.build(), tuple(builder.outputs), builder.coarse, builder.candidates)


class _RunBuilder:
    """The tuples that are known so far."""

    def __init__(self, run: WorkflowRun, files: RunFiles, state_nodes: StateNodes, pig_nodes: bool) -> None:
        self.graph = GraphBuilder()
        self.pig_nodes = pig_nodes
        self._state_nodes = state_nodes
        self.files = files
        self.relations = run.relations
        self.coarse: dict[str, str] = {}
        self.candidates: dict[str, int] = {}
        self.outputs: list[OutputTuples] = []
        self._sources: dict[str, RelationTuples] = {}
        self._made: dict[tuple[int, str, str], RelationTuples] = {}
        self._state: dict[str, RelationTuples] = {}
        self.received: dict[str, RelationTuples] = {}
        """What invocations received so far, by path."""

    def add(self, invocation: ModuleInvocation) -> None:
        """Add the nodes of an invocation."""
        own = _Invocation(self, invocation)
        for name, path, source in invocation.inputs:
            key = (invocation.execution, source, name)
            tuples = self._made[key] if source else self.source("wi", path)
            self.received[path] = tuples
            own.inputs[path] = own.boundary("i", tuples)
        for _, slot, path in invocation.state:
            known = self._state.get(slot)
            if known is None or known.relation.path != path:
                self._state[slot] = known = self.source("st", path)
            self.received[path] = known
            own.state[path] = state = own.lazy(known)
            if self._state_nodes == "all":
                own.state_nodes(state, "", np.arange(len(known.nodes) - known.candidates))
        own.read_plans([path for *_, path in (*invocation.outputs, *invocation.new_state)])
        for name, path in invocation.outputs:
            made = own.output(path)
            self._made[(invocation.execution, invocation.node, name)] = made
            if name in invocation.kept:
                self.outputs.append(self._output(invocation, name, made))
        changed = {slot: own.new_state(path) for _, slot, path in invocation.new_state}
        self._state.update(changed)

    def _output(self, invocation: ModuleInvocation, name: str, made: RelationTuples) -> OutputTuples:
        rows = self.files.rows(made.relation)
        extra = zip(*(made.extra[column].to_pylist() for column in rows.columns), strict=True) if made.extra else ()
        return OutputTuples(
            invocation.execution,
            invocation.node,
            name,
            rows.columns,
            [*rows.values, *extra],
            len(rows.values),
            made.nodes,
            made.cells,
            made.coming,
            made.relation.path,
        )

    def source(self, kind: str, path: str) -> RelationTuples:
        """The tokens of a relation that no invocation of the run made."""
        if path not in self._sources:
            relation = self.relations[path]
            tokens = self.files.rows(relation).tokens
            self._sources[path] = RelationTuples(relation, self.graph.nodes(kind, tokens, len(tokens)))
        return self._sources[path]


class _Invocation:
    """The nodes of one invocation."""

    def __init__(self, run: _RunBuilder, invocation: ModuleInvocation) -> None:
        self.run = run
        self.invocation = invocation
        self.own: dict[str, Any] = {"module": invocation.module, "invocation": invocation.number}
        self.inputs: dict[str, RelationTuples] = {}
        self.state: dict[str, LazyState] = {}
        self.node = int(run.graph.nodes("m", invocation.module, **self.own)[0])
        self._producers: dict[int, int] = {}
        self._plans: dict[str, _WritePlan] = {}
        self._reasons: dict[str, str] = {}
        self._operators = SharedOperators([])
        self._shared = SharedNodes()

    def rows(self, relation: BoundaryRelation) -> RelationRows:
        """The rows of a relation."""
        return self.run.files.rows(relation)

    def boundary(self, kind: str, tuples: RelationTuples, among: Array | None = None) -> RelationTuples:
        """Nodes of tuples that cross the border, and of their cells; of all, or of some."""
        graph = self.run.graph
        nodes = tuples.nodes if among is None else tuples.nodes[among]
        made = graph.nodes(kind, terms.TIMES, len(nodes), **self.own)
        there = nodes >= 0
        graph.edges(nodes[there], made[there])
        graph.edges(self.node, made)
        values = self._values(tuples) if tuples.cells else {}
        cells = {}
        for name, column in tuples.cells.items():
            own = column if among is None else column[among]
            rows = np.arange(len(column)) if among is None else among
            cells[name] = self._cells(kind, own, [values[name][row] for row in rows[own >= 0]])
        if among is not None:
            return RelationTuples(tuples.relation, made, cells)
        return RelationTuples(tuples.relation, made, cells, tuples.extra, self._coming(kind, tuples.coming))

    def _coming(self, kind: str, node: int) -> int:
        """The node at the border of rows that may come and are no candidates; ``NONE`` for none."""
        if node == NONE:
            return NONE
        made = self.run.graph.nodes(kind, terms.TIMES, black_box=True, **self.own)
        self.run.graph.edges(node, made)
        self.run.graph.edges(self.node, made)
        return int(made[0])

    def _cells(self, kind: str, column: Array, values: list[Any]) -> Array:
        found = np.full(len(column), NONE)
        there = column >= 0
        made = self.run.graph.nodes(kind, terms.CELL, int(there.sum()), values=values, **self.own)
        self.run.graph.edges(column[there], made)
        found[there] = made
        return found

    def _values(self, tuples: RelationTuples) -> dict[str, list[Any]]:
        rows = self.run.files.rows(tuples.relation)
        found = {name: [row[at] for row in rows.values] for at, name in enumerate(rows.columns)}
        return {name: found[name] + values.to_pylist() for name, values in tuples.extra.items()} or found

    def lazy(self, tuples: RelationTuples) -> LazyState:
        """State tuples without nodes as yet."""
        count = len(tuples.nodes)
        return LazyState(tuples, np.full(count, NONE), {name: np.full(count, NONE) for name in tuples.cells})

    def output(self, path: str) -> RelationTuples:
        """What the invocation made, with its ``o`` nodes."""
        return self.boundary("o", self.inner(path))

    def new_state(self, path: str) -> RelationTuples:
        """State that the invocation left: tuples are those nodes that produced them, never ``s`` nodes."""
        tuples = self.inner(path)
        known = self._producers
        nodes = [known.get(node, node) if node >= 0 else self.node for node in tuples.nodes.tolist()]
        cells = {
            name: np.array([known.get(node, node) for node in column.tolist()], np.int64)
            for name, column in tuples.cells.items()
        }
        coming = known.get(tuples.coming, tuples.coming)
        return replace(tuples, nodes=np.array(nodes, np.int64), cells=cells, coming=coming)

    def read_plans(self, paths: Sequence[str]) -> None:
        """Read the plans of the relations that the invocation made."""
        for path in paths:
            if path in self.inputs:
                continue
            plan = self.run.files.plan(path)
            if plan is None:
                self._reasons[path] = self.run.files.reason(path)
                continue
            try:
                self._plans[path] = _WritePlan.of(plan)
            except UsageError as error:
                self._reasons[path] = clean_failure(error)
        self._operators = SharedOperators([(each.rows, each.first_spare) for each in self._plans.values()])

    def inner(self, path: str) -> RelationTuples:
        """The tuples of a relation that the invocation made, as nodes within it."""
        if path in self.inputs:  # handed on as it came
            return self.inputs[path]
        relation = self.run.relations[path]
        written = self._plans.get(path)
        reason = self._reasons.get(path, "")
        for executor in self.run.files.executors(written.plan) if written is not None else ():
            assert written is not None
            try:
                return self._decided(self._annotated(relation, written, executor))
            except Exception as error:
                if not is_refusal(error):
                    raise
                reason = reason or clean_failure(error)  # that of the first choice
        return self._opaque(relation, reason)

    def _opaque(self, relation: BoundaryRelation, reason: str) -> RelationTuples:
        """Tuples of which nothing is known but what the invocation read; without any of it some may still be there."""
        self.run.coarse[self._title(relation)] = reason
        box = self._box()
        count = len(self.run.files.rows(relation).values)
        return RelationTuples(relation, np.repeat(box, count), coming=int(box[0]))

    def _decided(self, made: RelationTuples) -> RelationTuples:
        """Tuples of a function that jobs told of what it read: they are there, or not, by that too."""
        if not self.invocation.hangs_on_jobs:
            return made
        graph = self.run.graph
        self.run.coarse[self._title(made.relation)] = decided_reason(self.invocation)
        box = self._box(with_received=self.invocation.ran_jobs)
        nodes = graph.nodes("op", terms.TIMES, len(made.nodes), **self.own)
        there = made.nodes >= 0
        graph.edges(made.nodes[there], nodes[there])
        graph.edges(self.node, nodes[~there])
        graph.edges(box[0], nodes)
        coming = graph.nodes("op", terms.function_label(self.invocation.module), black_box=True, **self.own)
        graph.edges(np.array([each for each in (made.coming, int(box[0])) if each != NONE]), coming[0])
        return replace(made, nodes=nodes, coming=int(coming[0]))

    def _box(self, *, with_received: bool = True) -> Array:
        """The node of what the function made of all that it read: one that is uncertain without any of it.

        Args:
            with_received: Not only of what reached it beside relations.
        """
        graph = self.run.graph
        box = graph.nodes("op", terms.function_label(self.invocation.module), black_box=True, **self.own)
        graph.edges(self.node, box[0])
        indirect = [self.run.received[path] for path in self.invocation.indirect if path in self.run.received]
        for tuples in (*(self.inputs.values() if with_received else ()), *indirect):
            for read in (tuples.nodes, *tuples.cells.values(), np.array([tuples.coming])):
                graph.edges(read[read >= 0], box[0])
        for state in self.state.values() if with_received else ():
            every = np.arange(len(state.nodes))
            whole = [self.state_nodes(state, name, every) for name in ("", *state.cells)]
            for read in (*whole, np.array([self.coming_state(state)])):
                graph.edges(read[read >= 0], box[0])
        return box

    # ---- annotation -------------------------------------------------------------------------------------------------

    def _annotated(self, relation: BoundaryRelation, written: _WritePlan, executor: Executor) -> RelationTuples:
        root = written.write
        leaves = PlanLeaves(self)
        rules = DRAWN if self.run.pig_nodes else RULES
        blocks = OperatorBlocks(self._operators)
        annotator = Annotator(
            executor, written.ids, lambda leaf: leaves.rows(annotator, leaf), rules, noted=blocks.note
        )
        rows = annotator.rows(written.rows)
        rows, table = annotator.keep(rows)
        annotation, times = table.ids(rows.annotation, rows.times)
        cell_columns = {
            name: rows.cells[column.id]
            for name, column in zip(root.columns, rows.columns, strict=True)
            if column.id in rows.cells
        }
        cells = dict(zip(cell_columns, table.ids(*cell_columns.values()), strict=True)) if cell_columns else {}
        present = np.repeat(np.arange(len(times)), np.maximum(times, 0))
        values = python_rows(table.read(*rows.columns), present)
        order = matched(values, list(root.columns), self.run.files.rows(relation))
        absent = np.flatnonzero(times <= 0)
        chosen = np.concatenate([present[order], absent])
        # The gate has a node although no row reads it: what opens it may let rows appear.
        wanted = [annotation[chosen], *(column[chosen] for column in cells.values()), np.array([rows.gate])]
        writer = CircuitWriter(
            annotator.circuit,
            self.run.graph,
            self.invocation.module,
            self.invocation.number,
            self.node,
            leaves.resolve,
            self._shared,
            blocks,
            bags=not self.run.pig_nodes,
        )
        places = writer.write(np.concatenate(wanted))
        absent = absent[places[annotation[absent]] != NONE]  # what is 0 whatever goes is no candidate
        chosen = np.concatenate([present[order], absent])
        extra = {}
        if len(absent):
            self.run.candidates[self._title(relation)] = len(absent)
            columns = zip(root.columns, table.read(*rows.columns), strict=True)
            extra = {name: column.take(absent.tolist()) for name, column in columns}
        made = {name: _placed(places, column[chosen]) for name, column in cells.items()}
        coming = NONE if rows.gate == NONE else int(places[rows.gate])
        return RelationTuples(relation, _placed(places, annotation[chosen]), made, extra, coming)

    def _title(self, relation: BoundaryRelation) -> str:
        return f"{self.invocation.module}#{self.invocation.number}.{relation.path.rpartition('/')[2]}"

    def state_nodes(self, state: LazyState, column: str, rows: Array) -> Array:
        """``s`` nodes of state tuples, or of their cells; made where there are none yet."""
        fresh = np.unique(rows[state.nodes[rows] == NONE])
        if len(fresh):
            made = self.boundary("s", state.tuples, fresh)
            state.nodes[fresh] = made.nodes
            self._produced(made.nodes, state.tuples.nodes[fresh])
            for name, cells in made.cells.items():
                state.cells[name][fresh] = cells
                self._produced(cells, state.tuples.cells[name][fresh])
        return state.cells[column][rows] if column else state.nodes[rows]

    def coming_state(self, state: LazyState) -> int:
        """The ``s`` node of state that may come; made where there is none yet."""
        if state.coming == NONE and state.tuples.coming != NONE:
            state.coming = self._coming("s", state.tuples.coming)
            self._produced(np.array([state.coming]), np.array([state.tuples.coming]))
        return state.coming

    def _produced(self, nodes: Array, producers: Array) -> None:
        self._producers.update(zip(nodes.tolist(), producers.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class _WritePlan:
    """The plan of a write.

    Attributes:
        plan: The plan.
        write: Its root.
        rows: The rows of the write, in the form that annotating reads.
        ids: Ids that it does not use.
        first_spare: From here on ids are not those of the program.
    """

    plan: Plan
    write: Write
    rows: Node
    ids: Ids
    first_spare: int

    @classmethod
    def of(cls, plan: Plan) -> _WritePlan:
        """Read a plan.

        Raises:
            UsageError: It writes nothing, or has more operators than can be traced.
        """
        root = plan.root
        if not isinstance(root, Write):
            raise UsageError("the plan writes nothing")
        ids = spare_ids(root.child)
        first = next(ids.numbers)
        return cls(plan, root, normalized(titled(root, ids.named), ids), ids, first)


def decided_reason(invocation: ModuleInvocation) -> str:
    """Why rows depend on all that an invocation read although their plan says more."""
    if invocation.ran_jobs:
        return f"jobs ran while {invocation.module} was called, and may have decided what it made"
    return f"{invocation.module} can reach values outside of relations, which jobs of earlier calls may have decided"


def is_refusal(error: Exception) -> bool:
    """Return whether an executor, or the evaluator, cannot do a plan."""
    engines = ("pyspark", "py4j", "duckdb", "_duckdb")
    return isinstance(error, (NotExact, UsageError)) or type(error).__module__.startswith(engines)


def _placed(places: Array, nodes: Array) -> Array:
    return np.where(nodes >= 0, places[nodes], NONE)


def titled(root: Write, named: Callable[..., Named]) -> Node:
    """The rows of a write, each column once."""
    columns: list[Named] = []
    used: set[int] = set()
    for column, name in zip(outputs(root.child), root.columns, strict=True):
        columns.append(named(name, column) if column.id in used else Named(column, column.id, name))
        used.add(column.id)
    return Project(root.child, tuple(columns))

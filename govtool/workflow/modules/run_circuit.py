"""The provenance of relations of a workflow run as one circuit, from the records that went in to the rows wanted.

The graph of a run (``run_graph``) keeps nodes and labels; the circuit keeps expressions and the tables that they read,
in the engine that evaluates them. So conditions and functions are evaluated again after a deletion, across modules, and
every semiring of ``why`` applies. Only what the wanted relations are made of is annotated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np  # noqa: TID253 - circuits are arrays; only what makes them imports this

from govtool.arrays.sets import Array
from govtool.errors import UsageError
from govtool.model.workflow_run import BoundaryRelation, ModuleInvocation, WorkflowRun
from govtool.records.plan.nodes import Plan, Relation, Write
from govtool.records.plan.tree import walk_nodes
from govtool.records.sql.dialect import EvaluationFailed
from govtool.records.trace.normal import Ids, normalized, spare_ids
from govtool.redaction import clean_failure
from govtool.workflow.annotate.annotator import Annotator
from govtool.workflow.annotate.circuit import NONE, Circuit, Decided, Gate, Inputs, LimitGuard, Sources, Sum
from govtool.workflow.annotate.early_filters import filters_first
from govtool.workflow.annotate.operators import RULES
from govtool.workflow.annotate.origins import Origins
from govtool.workflow.annotate.query import AnnotatedQuery
from govtool.workflow.annotate.rows import Rows, copied
from govtool.workflow.annotate.tables import Executor, KeptTable, TableStore
from govtool.workflow.modules.circuit_leaves import (
    AnnotatedRelation,
    CircuitLeaves,
    CircuitRelation,
    CircuitSource,
    OpaqueRelation,
)
from govtool.workflow.modules.run_graph import decided_reason, is_refusal, titled
from govtool.workflow.modules.run_tuples import RelationRows, RunFiles
from govtool.workflow.modules.written_rows import matched, python_rows
from govtool.workflow.semirings.tokens import Tokens


@dataclass(frozen=True, slots=True)
class RunCircuit:
    """Relations of a run over one circuit.

    Attributes:
        circuit: The annotations.
        tables: The tables that they read.
        relations: What is known of each relation, by path.
        tokens: Names of the records that went in; relations are named by their paths.
        coarse: Relations whose rows depend on everything that their invocation read, by path, with the reason.
        inexact: Those of them that another engine may evaluate.
        origins: The origins of cells, where they were wanted.
        files: Plans and rows of the run.
    """

    circuit: Circuit
    tables: TableStore
    relations: Mapping[str, CircuitRelation]
    tokens: Tokens
    coarse: Mapping[str, str]
    inexact: frozenset[str]
    origins: Origins | None
    files: RunFiles

    def query(self, path: str) -> AnnotatedQuery:
        """A relation as the result of a query.

        Raises:
            UsageError: It has no columns that can be read again.
        """
        rows, table = self._rows(path)
        return AnnotatedQuery(
            self.circuit, rows, table, self.tokens.starts, table.node, self.tables.ids, self.origins
        )  # fmt: skip

    def coarse_notes(self) -> list[str]:
        """What is said of relations whose rows are not told apart."""
        any_row = "any row that it read may be behind each of its rows"
        return [f"{path.rpartition('/')[2]}: {any_row}: {why}" for path, why in self.coarse.items()]

    def gate(self, path: str) -> int:
        """The gate that opens where rows may come that no candidate stands for; ``NONE`` for none."""
        found = self.relations[path]
        if isinstance(found, AnnotatedRelation):
            return found.rows.gate
        return found.gate if isinstance(found, OpaqueRelation) else NONE

    def _rows(self, path: str) -> tuple[Rows, KeptTable]:
        found = self.relations[path]
        if isinstance(found, AnnotatedRelation):
            return found.rows, found.table
        leaves = CircuitLeaves(self.relations, {}, self.tokens, self.origins)
        annotator = Annotator(self.tables.executor, self.tables.ids, _no_leaf, RULES, self.circuit, self.origins)
        annotator.tables = self.tables
        return annotator.keep(leaves.read(annotator, self.files.leaf(found.relation, self.tables.ids), path))


def _no_leaf(leaf: Relation) -> Rows:
    raise UsageError(f"no relation is {leaf.dataset}")


def build_run_circuit(
    run: WorkflowRun, files: RunFiles, executor: Executor, wanted: Iterable[str], origins: Origins | None = None
) -> RunCircuit:
    """Annotate what relations of a run are made of.

    Args:
        run: The run.
        files: Its plans and rows.
        executor: Evaluates the plans of all invocations; its tables are the circuit's.
        wanted: The paths of the relations.
        origins: Where the origins of cells are put; None: they are not wanted.

    Raises:
        UsageError: A file is not there any more, or is not what was written.
    """
    builder = _Builder(run, files, executor, origins)
    return builder.build(wanted)


@dataclass(slots=True)
class _Builder:
    run: WorkflowRun
    files: RunFiles
    executor: Executor
    origins: Origins | None
    circuit: Circuit = field(default_factory=Circuit)
    relations: dict[str, CircuitRelation] = field(default_factory=dict)
    coarse: dict[str, str] = field(default_factory=dict)
    inexact: set[str] = field(default_factory=set)

    def build(self, wanted: Iterable[str]) -> RunCircuit:
        """The circuit of what the wanted relations are made of."""
        producers = produced_by(self.run)
        places = {file.uri: path for path, each in self.run.relations.items() for file in each.files}
        plans: dict[str, Plan | None] = {}
        for path in _needed(self, producers, plans, wanted, places):
            if path not in producers:
                self._source(self.run.relations[path])
        tokens = source_tokens(self.relations)
        tables = TableStore(self.executor, _spare(plans.values()))
        leaves = CircuitLeaves(self.relations, places, tokens, self.origins)
        for path in producers:  # in the order of the run
            if path in plans:
                self._made(path, producers[path], plans[path], tables, leaves)
        return RunCircuit(
            self.circuit,
            tables,
            self.relations,
            tokens,
            self.coarse,
            frozenset(self.inexact),
            self.origins,
            self.files,
        )

    def _source(self, relation: BoundaryRelation) -> None:
        rows = self.files.rows(relation)
        known = self._named_alike(rows.tokens)
        if known:
            self.relations[relation.path] = self._shared(relation, rows, known)
            return
        start = self.circuit.add(Sources(len(rows.tokens), relation.path))
        self.relations[relation.path] = CircuitSource(relation, rows, start)

    def _named_alike(self, tokens: Sequence[str]) -> dict[str, int]:
        """The nodes of records, by token, that other relations have of the same version of a dataset."""
        version = _version_of(tokens)
        found: dict[str, int] = {}
        for each in self.relations.values():
            if isinstance(each, CircuitSource) and version and _version_of(each.rows.tokens) == version:
                found.update((token, each.start + row) for row, token in enumerate(each.rows.tokens))
        return found

    def _shared(self, relation: BoundaryRelation, rows: RelationRows, known: Mapping[str, int]) -> CircuitSource:
        """Records of which some are those of another relation: a file that is read in two ways."""
        fresh = np.array([row for row, token in enumerate(rows.tokens) if token not in known], np.int64)
        own = self.circuit.add(Sources(len(fresh), relation.path))
        nodes = np.array([known.get(token, NONE) for token in rows.tokens], np.int64)
        nodes[fresh] = own + np.arange(len(fresh))
        start = self.circuit.add(Sum(Inputs(np.arange(len(nodes) + 1), nodes)))
        return CircuitSource(relation, rows, start, beside=(own, fresh))

    def _made(
        self, path: str, invocation: ModuleInvocation, plan: Plan | None, tables: TableStore, leaves: CircuitLeaves
    ) -> None:
        """Annotate a relation that an invocation made; where that cannot be, its rows hang on all that it read."""
        relation = self.run.relations[path]
        if plan is None:
            self._opaque(relation, invocation, self.files.reason(path))
            return
        try:
            try:
                self._annotated(relation, invocation, plan, tables, leaves, is_careful=False)
            except EvaluationFailed:
                self._annotated(relation, invocation, plan, tables, leaves, is_careful=True)
        except Exception as error:
            if not is_refusal(error):
                raise
            if not isinstance(error, UsageError):
                self.inexact.add(path)
            self._opaque(relation, invocation, clean_failure(error))

    def _annotated(
        self,
        relation: BoundaryRelation,
        invocation: ModuleInvocation,
        plan: Plan,
        tables: TableStore,
        leaves: CircuitLeaves,
        *,
        is_careful: bool,
    ) -> None:
        root = plan.root
        if not isinstance(root, Write):
            raise UsageError("the plan writes nothing")
        if plan.session != getattr(self.executor, "session", plan.session):
            raise UsageError("it ran in a session of other settings")
        ids = tables.ids
        annotator = Annotator(
            self.executor,
            ids,
            lambda leaf: leaves.rows(annotator, leaf),
            RULES,
            self.circuit,
            self.origins,
            is_careful=is_careful,
        )
        annotator.tables = tables
        node = normalized(titled(root, ids.named), ids)
        rows = annotator.whole(filters_first(node) if is_careful else node)
        ordered = frozenset(place for place, each in enumerate(rows.columns) if each.id in annotator.ordered)
        rows, table = annotator.keep(copied(rows, ids))
        (times,) = table.ids(rows.times)
        present = np.repeat(np.arange(len(times)), np.maximum(times, 0))
        values = python_rows(table.read(*rows.columns), present)
        matched(values, list(root.columns), self.files.rows(relation))  # refuses what the plan does not give again
        if invocation.hangs_on_jobs:
            rows, table = annotator.keep(self._decided(annotator, rows, table, invocation))
            self.coarse[relation.path] = decided_reason(invocation)
        self.relations[relation.path] = AnnotatedRelation(relation, rows, table, tuple(root.columns), ordered)

    def _decided(self, a: Annotator, rows: Rows, table: KeptTable, invocation: ModuleInvocation) -> Rows:
        """Rows of a function that jobs told of what was read: with a change of that, they may be others."""
        _, gate = self._read_gate(invocation.reads if invocation.ran_jobs else invocation.indirect)
        (annotation,) = table.ids(rows.annotation)
        start = a.add(Decided(Inputs(np.arange(len(annotation) + 1), annotation), gate))
        return replace(a.annotated(rows, table, start), gate=a.either(rows.gate, gate))

    def _opaque(self, relation: BoundaryRelation, invocation: ModuleInvocation, reason: str) -> None:
        """One node for all rows: uncertain as soon as anything that the invocation read changes."""
        self.coarse[relation.path] = reason
        nodes, gate = self._read_gate(invocation.reads)
        total = self.circuit.add(Sum(Inputs(np.array([0, len(nodes)]), nodes)))
        guard = self.circuit.add(LimitGuard(invocation.module, np.array([total]), gate, is_opaque=True))
        self.relations[relation.path] = OpaqueRelation(relation, guard, gate)

    def _read_gate(self, paths: Iterable[str]) -> tuple[Array, int]:
        """The nodes of all rows of some relations, and a gate that opens as soon as anything of them changes."""
        read = [self.relations[path] for path in paths if path in self.relations]
        nodes = np.unique(np.concatenate([np.empty(0, np.int64), *(each.nodes() for each in read)]))
        values = [nodes for each in read for nodes in each.cells()]
        gates = np.array([each.gate for each in read if each.gate != NONE], np.int64)
        moved = self.circuit.add(Gate(nodes, "moved"))
        return nodes, self.circuit.add(Gate(np.unique(np.concatenate([np.array([moved]), gates, *values])), "same"))


def source_tokens(relations: Mapping[str, CircuitRelation]) -> Tokens:
    """The names of the records of relations that went in."""
    import pyarrow as pa

    found = {path: each for path, each in relations.items() if isinstance(each, CircuitSource)}
    labels = {path: pa.array(each.rows.tokens, pa.string()) for path, each in found.items()}
    starts = {}
    for path, each in found.items():
        if each.beside is None:
            starts[path] = each.start
        else:
            own, fresh = each.beside
            starts[f"{path} (others)"], labels[f"{path} (others)"] = own, labels[path].take(pa.array(fresh))
    return Tokens(starts, labels)


def _version_of(tokens: Sequence[str]) -> str:
    """The dataset and version that records are of."""
    return tokens[0].rpartition(":")[0] if tokens else ""


def produced_by(run: WorkflowRun) -> dict[str, ModuleInvocation]:
    """The invocation that made each relation, in the order of the run; what came in and went on is left out."""
    found: dict[str, ModuleInvocation] = {}
    for each in run.invocations:
        if each.execution <= run.whole:
            received = {path for _, path, _ in each.inputs}
            made = [path for _, path in each.outputs] + [path for _, _, path in each.new_state]
            found.update((path, each) for path in made if path not in received)
    return found


def _needed(
    builder: _Builder,
    producers: Mapping[str, ModuleInvocation],
    plans: dict[str, Plan | None],
    wanted: Iterable[str],
    places: Mapping[str, str],
) -> Iterator[str]:
    """Every relation that the wanted ones are made of; the plans of those that the run made are put into ``plans``."""
    waiting, seen = list(wanted), set(wanted)
    while waiting:
        path = waiting.pop()
        yield path
        if path not in producers:
            continue
        plans[path] = builder.files.plan(path)
        # An invocation that cannot be annotated hangs on all that it read.
        below = {*producers[path].reads, *_leaves(plans[path], places)}
        waiting += [each for each in below if each not in seen]
        seen |= below


def _leaves(plan: Plan | None, places: Mapping[str, str]) -> Collection[str]:
    if plan is None:
        return ()
    leaves = (node for node in walk_nodes(plan.root) if isinstance(node, Relation))
    return {places[file.uri] for leaf in leaves for file in leaf.files if file.uri in places}


def _spare(plans: Iterable[Plan | None]) -> Ids:
    """Ids that no plan uses."""
    return Ids(count(max((next(spare_ids(plan.root).numbers) for plan in plans if plan is not None), default=1)))

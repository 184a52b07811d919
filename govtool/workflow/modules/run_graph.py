"""The provenance graph of a workflow run, from the plans of its writes: ``wi st m i s op val o`` nodes.

An invocation gets its ``m`` node, an ``i`` node for each tuple that it received, ``s`` nodes for state tuples that
something was made of, and ``o`` nodes for what it made; between them is the annotation of the plan that made it. A
state tuple is fed by the node that produced it, whichever invocation that was. Source: the specification of
fine-grained provenance, section 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np  # noqa: TID253 - graphs are arrays; only what makes them imports this

from govtool.arrays.sets import Array
from govtool.errors import UsageError
from govtool.model.token import ROW_BITS
from govtool.model.workflow_run import BoundaryRelation, ModuleInvocation, WorkflowRun
from govtool.records.plan.expressions import Attribute, Named, passed
from govtool.records.plan.nodes import Plan, Project, Relation, Union, Write, outputs
from govtool.records.plan.tree import Node
from govtool.records.plan.types import LONG, Struct
from govtool.records.sql.dialect import NotExact
from govtool.records.sql.statement import KEPT
from govtool.records.trace.carrier import RECORD
from govtool.records.trace.normal import normalized, spare_ids
from govtool.records.trace.segment import alike
from govtool.workflow import vocabulary as terms
from govtool.workflow.annotate.circuit import NONE, Circuit, Sources
from govtool.workflow.annotate.evaluate import Annotator
from govtool.workflow.annotate.rows import LONG_ONE, LONG_ZERO, Rows, joined
from govtool.workflow.annotate.tables import Executor
from govtool.workflow.builder import GraphBuilder
from govtool.workflow.graph import ProvenanceGraph
from govtool.workflow.modules.circuit_graph import CircuitWriter


class RunFiles(Protocol):
    """What the graph of a run reads: plans and rows of relations."""

    def plan(self, path: str) -> Plan | None:
        """The plan of the write that made a relation; None: it was not recorded."""

    def rows(self, relation: BoundaryRelation) -> RelationRows:
        """The rows of a relation."""

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
    """

    relation: BoundaryRelation
    nodes: Array
    cells: Mapping[str, Array] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def candidates(self) -> int:
        """How many there are."""
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
    """

    execution: int
    node: str
    relation: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    present: int
    nodes: Array
    cells: Mapping[str, Array]


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


def build_run_graph(run: WorkflowRun, files: RunFiles) -> RunGraph:
    """The graph of the whole executions of a run.

    Raises:
        UsageError: A file is not there any more, or is not what was written.
    """
    builder = _RunBuilder(run, files)
    for invocation in run.invocations:
        if invocation.execution <= run.whole:
            builder.add(invocation)
    return RunGraph(builder.graph.build(), tuple(builder.outputs), builder.coarse, builder.candidates)


class _RunBuilder:
    """The tuples that are known so far."""

    def __init__(self, run: WorkflowRun, files: RunFiles) -> None:
        self.graph = GraphBuilder()
        self.files = files
        self.relations = run.relations
        self.coarse: dict[str, str] = {}
        self.candidates: dict[str, int] = {}
        self.outputs: list[OutputTuples] = []
        self._sources: dict[str, RelationTuples] = {}
        self._made: dict[tuple[int, str, str], RelationTuples] = {}
        self._state: dict[str, RelationTuples] = {}

    def add(self, invocation: ModuleInvocation) -> None:
        """Add the nodes of an invocation."""
        own = _Invocation(self, invocation)
        for name, path, source in invocation.inputs:
            key = (invocation.execution, source, name)
            tuples = self._made[key] if source else self.source("wi", path)
            own.inputs[path] = own.boundary("i", tuples)
        for _, slot, path in invocation.state:
            known = self._state.get(slot)
            if known is None or known.relation.path != path:
                self._state[slot] = known = self.source("st", path)
            own.state[path] = own.lazy(known)
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
        )

    def source(self, kind: str, path: str) -> RelationTuples:
        """The tokens of a relation that no invocation of the run made."""
        if path not in self._sources:
            relation = self.relations[path]
            tokens = self.files.rows(relation).tokens
            self._sources[path] = RelationTuples(relation, self.graph.nodes(kind, tokens, len(tokens)))
        return self._sources[path]


@dataclass(slots=True)
class _LazyState:
    """State tuples whose ``s`` nodes are made when something is made of them."""

    tuples: RelationTuples
    nodes: Array
    cells: dict[str, Array]


class _Invocation:
    """The nodes of one invocation."""

    def __init__(self, run: _RunBuilder, invocation: ModuleInvocation) -> None:
        self.run = run
        self.invocation = invocation
        self.own: dict[str, Any] = {"module": invocation.module, "invocation": invocation.number}
        self.inputs: dict[str, RelationTuples] = {}
        self.state: dict[str, _LazyState] = {}
        self.node = int(run.graph.nodes("m", invocation.module, **self.own)[0])
        self._producers: dict[int, int] = {}

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
        return RelationTuples(tuples.relation, made, cells, tuples.extra if among is None else {})

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

    def lazy(self, tuples: RelationTuples) -> _LazyState:
        """State tuples without nodes as yet."""
        count = len(tuples.nodes)
        return _LazyState(tuples, np.full(count, NONE), {name: np.full(count, NONE) for name in tuples.cells})

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
        return replace(tuples, nodes=np.array(nodes, np.int64), cells=cells)

    def inner(self, path: str) -> RelationTuples:
        """The tuples of a relation that the invocation made, as nodes within it."""
        if path in self.inputs:  # handed on as it came
            return self.inputs[path]
        relation = self.run.relations[path]
        plan = self.run.files.plan(path)
        reason = "" if plan is not None else "its plan was not recorded"
        for executor in self.run.files.executors(plan) if plan is not None else ():
            assert plan is not None
            try:
                return self._annotated(relation, plan, executor)
            except (NotExact, UsageError) as error:
                reason = reason or str(error)  # that of the first choice
        return self._opaque(relation, reason)

    def _opaque(self, relation: BoundaryRelation, reason: str) -> RelationTuples:
        """Tuples of which nothing is known but what the invocation read."""
        graph = self.run.graph
        self.run.coarse[self._title(relation)] = reason
        box = graph.nodes("op", self.invocation.module, black_box=True, **self.own)
        for tuples in self.inputs.values():
            for read in (tuples.nodes, *tuples.cells.values()):
                graph.edges(read[read >= 0], box[0])
        for state in self.state.values():
            every = np.arange(len(state.nodes))
            for name in ("", *state.cells):
                read = self._resolved(state, name, every)
                graph.edges(read[read >= 0], box[0])
        count = len(self.run.files.rows(relation).values)
        return RelationTuples(relation, np.repeat(box, count))

    # ---- annotation -------------------------------------------------------------------------------------------------

    def _annotated(self, relation: BoundaryRelation, plan: Plan, executor: Executor) -> RelationTuples:
        root = plan.root
        if not isinstance(root, Write):
            raise UsageError("the plan writes nothing")
        ids = spare_ids(root.child)
        leaves = _Leaves(self)
        annotator = Annotator(executor, ids, lambda leaf: leaves.rows(annotator, leaf))
        rows = annotator.rows(normalized(_titled(root, ids.named), ids))
        rows, table = annotator.keep(rows)
        annotation, times = table.ids(rows.annotation, rows.times)
        cell_columns = {
            name: rows.cells[column.id]
            for name, column in zip(root.columns, rows.columns, strict=True)
            if column.id in rows.cells
        }
        cells = dict(zip(cell_columns, table.ids(*cell_columns.values()), strict=True)) if cell_columns else {}
        present = np.repeat(np.arange(len(times)), np.maximum(times, 0))
        values = _python_rows(table.read(*rows.columns), present)
        order = _matched(values, list(root.columns), self.run.files.rows(relation))
        absent = np.flatnonzero(times <= 0)
        chosen = np.concatenate([present[order], absent])
        wanted = [annotation[chosen], *(column[chosen] for column in cells.values())]
        writer = CircuitWriter(
            annotator.circuit, self.run.graph, self.invocation.module, self.invocation.number, leaves.resolve
        )
        places = writer.write(np.concatenate(wanted) if wanted else np.empty(0, np.int64))
        extra = {}
        if len(absent):
            self.run.candidates[self._title(relation)] = len(absent)
            columns = zip(root.columns, table.read(*rows.columns), strict=True)
            extra = {name: column.take(absent.tolist()) for name, column in columns}
        made = {name: _placed(places, column[chosen]) for name, column in cells.items()}
        return RelationTuples(relation, _placed(places, annotation[chosen]), made, extra)

    def _title(self, relation: BoundaryRelation) -> str:
        return f"{self.invocation.module}#{self.invocation.number}.{relation.path.rpartition('/')[2]}"

    def _resolved(self, state: _LazyState, column: str, rows: Array) -> Array:
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

    def _produced(self, nodes: Array, producers: Array) -> None:
        self._producers.update(zip(nodes.tolist(), producers.tolist(), strict=True))


def _placed(places: Array, nodes: Array) -> Array:
    return np.where(nodes >= 0, places[nodes], NONE)


def _titled(root: Write, named: Callable[..., Named]) -> Node:
    """The rows of a write, each column once."""
    columns: list[Named] = []
    used: set[int] = set()
    for column, name in zip(outputs(root.child), root.columns, strict=True):
        columns.append(named(name, column) if column.id in used else Named(column, column.id, name))
        used.add(column.id)
    return Project(root.child, tuple(columns))


class _Leaves:
    """Leaves of one plan: the tuples of the invocation's relations, as sources of a circuit."""

    def __init__(self, invocation: _Invocation) -> None:
        self._invocation = invocation
        self._blocks: dict[int, Callable[[Array], Array]] = {}
        self._known: dict[tuple[str, str], int] = {}
        self._tables = 0

    def resolve(self, start: int, places: Array) -> Array:
        """See ``circuit_graph.Resolve``."""
        return self._blocks[start](places)

    def rows(self, a: Annotator, leaf: Relation) -> Rows:
        """The annotated rows of a leaf.

        Raises:
            UsageError: It reads what the invocation did not receive.
        """
        path, tuples = self._path(leaf)
        nodes = {"": self._numbered(a.circuit, path, "", np.ones(len(tuples.nodes), bool))}
        nodes.update(
            (name, self._numbered(a.circuit, path, name, column >= 0)) for name, column in tuples.cells.items()
        )
        added = {name: a.ids.attribute(f"node {name}", LONG) for name in nodes}
        node = self._read(a, leaf, tuples, nodes, added)
        cells = {each.id: added[each.name] for each in leaf.columns if each.name in added and each.name}
        if not tuples.candidates:
            return Rows(node, leaf.columns, added[""], LONG_ONE, cells)
        times = a.ids.attribute("times", LONG)
        present = Project(node, (*_copies(a, (*leaf.columns, *added.values())), a.ids.named("times", LONG_ONE)))
        absent = self._loaded(a, leaf, tuples, nodes)
        both = Union((present, absent), (*leaf.columns, *added.values(), times))
        return Rows(both, leaf.columns, added[""], times, cells, candidates=True)

    def _read(
        self,
        a: Annotator,
        leaf: Relation,
        tuples: RelationTuples,
        nodes: Mapping[str, Array],
        added: Mapping[str, Attribute],
    ) -> Node:
        """The rows of the files, each with its nodes."""
        records = _records(leaf, tuples.relation, self._invocation.run.files.rows(tuples.relation))
        record, number = a.ids.attribute("record", LONG), a.ids.attribute("loaded", LONG)
        loaded = {added[name]: _nullable(values[: len(records)]) for name, values in nodes.items()}
        side = a.tables.load({number: records, **loaded})
        read = replace(leaf, columns=(*leaf.columns, record), metadata=(*leaf.metadata, (record.id, RECORD)))
        node = joined(read, side, alike(record, number))
        return Project(node, (*map(passed, leaf.columns), *map(passed, added.values())))

    def _loaded(self, a: Annotator, leaf: Relation, tuples: RelationTuples, nodes: Mapping[str, Array]) -> Node:
        """Candidates: their values and nodes, and that they are not there."""
        import pyarrow as pa

        first = len(tuples.nodes) - tuples.candidates
        columns = tuple(a.ids.attribute(each.name, each.type) for each in leaf.columns)
        own = {name: a.ids.attribute(f"node {name}", LONG) for name in nodes}
        arrays = {f"c{each.id}": tuples.extra[each.name] for each in columns}
        arrays.update({f"c{own[name].id}": _nullable(values[first:]) for name, values in nodes.items()})
        self._tables += 1
        kept = load_table(a.executor, f"kept_candidates_{self._tables}", pa.table(arrays), (*columns, *own.values()))
        return Project(kept, (*map(passed, (*columns, *own.values())), a.ids.named("times", LONG_ZERO)))

    def _path(self, leaf: Relation) -> tuple[str, RelationTuples]:
        wanted = {file.uri for file in leaf.files}
        for path, tuples in self._relations():
            if wanted <= {file.uri for file in tuples.relation.files}:
                return path, tuples
        raise UsageError(f"it reads {leaf.dataset}, which is no relation of the workflow")

    def _relations(self) -> Iterator[tuple[str, RelationTuples]]:
        own = self._invocation
        yield from own.inputs.items()
        yield from ((path, each.tuples) for path, each in own.state.items())

    def _numbered(self, circuit: Circuit, path: str, column: str, there: Array) -> Array:
        """The circuit nodes of tuples, or of their cells; ``NONE`` where there are none."""
        start = self._source(circuit, path, column, len(there))
        return np.where(there, start + np.arange(len(there)), NONE)

    def _source(self, circuit: Circuit, path: str, column: str, count: int) -> int:
        """The block of a relation's tuples or cells; one relation that is read twice has one."""
        key = (path, column)
        if key not in self._known:
            start = circuit.add(Sources(count, path))
            self._known[key] = start
            self._blocks[start] = self._finder(path, column)
        return self._known[key]

    def _finder(self, path: str, column: str) -> Callable[[Array], Array]:
        own = self._invocation
        if path in own.inputs:
            tuples = own.inputs[path]
            nodes = tuples.cells[column] if column else tuples.nodes
            return lambda places: nodes[places]
        return lambda places: own._resolved(own.state[path], column, places)


def _copies(a: Annotator, columns: Sequence[Attribute]) -> Iterator[Named]:
    return (a.ids.named(column.name, column) for column in columns)


def load_table(executor: Any, name: str, table: Any, columns: tuple[Attribute, ...]) -> Relation:
    """Bring a table of any types to an executor; its columns are ``c`` and the id of the attribute.

    Raises:
        NotExact: The executor has no such tables.
    """
    connection = getattr(executor, "connection", None)
    if connection is None:
        raise NotExact("rows that are in no file are read by DuckDB only")
    connection.register(f"{name}_view", table)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM {name}_view")
    connection.unregister(f"{name}_view")
    return Relation(0, name, KEPT, (), columns, Struct(()))


def _nullable(values: Array) -> Any:
    import pyarrow as pa

    return pa.array(values, pa.int64(), mask=values < 0)


def _records(leaf: Relation, relation: BoundaryRelation, rows: RelationRows) -> Array:
    """The packed ids of a relation's rows, as the leaf numbers its files; -1 for files that it does not read."""
    ordinals = {file.uri: file.ordinal for file in leaf.files}
    parts = [
        (ordinals[file.uri] << ROW_BITS) + np.arange(count) if file.uri in ordinals else np.full(count, NONE)
        for file, count in zip(relation.files, rows.counts, strict=True)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _python_rows(columns: Sequence[Any], chosen: Array) -> list[tuple[Any, ...]]:
    lists = [column.to_pylist() for column in columns]
    return [tuple(column[row] for column in lists) for row in chosen.tolist()]


def _matched(found: list[tuple[Any, ...]], names: list[str], written: RelationRows) -> Array:
    """For each written row the place of an equal one.

    Raises:
        UsageError: The rows are not the same: the plan does not give again what was written.
    """
    at = [names.index(name) for name in written.columns]
    own = [tuple(_canonical(row[place]) for place in at) for row in found]
    there = [tuple(map(_canonical, row)) for row in written.values]
    left, right = sorted(range(len(own)), key=own.__getitem__), sorted(range(len(there)), key=there.__getitem__)
    if [own[place] for place in left] != [there[place] for place in right]:
        raise UsageError("evaluated again, it gives other rows than were written")
    order = np.empty(len(there), np.int64)
    order[right] = left
    return order


def _canonical(value: Any) -> str:
    """A value as text: floats by nine digits, the order of a bag does not count."""
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, (list, tuple)):
        return f"[{sorted(map(_canonical, value))}]"
    if isinstance(value, dict):
        return f"{{{[(key, _canonical(each)) for key, each in value.items()]}}}"
    return repr(value)

"""Leaves of the plans of a workflow run: tuples of relations, candidates included, as sources of a circuit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np  # noqa: TID253 - graphs are arrays; only what makes them imports this

from govtool.arrays.sets import Array
from govtool.errors import UsageError
from govtool.model.token import ROW_BITS
from govtool.model.workflow_run import BoundaryRelation
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Named, passed
from govtool.records.plan.nodes import Project, Relation, Union
from govtool.records.plan.tree import Node
from govtool.records.plan.types import LONG
from govtool.records.sql.dialect import NotExact
from govtool.records.trace.carrier import RECORD
from govtool.records.trace.segment import alike
from govtool.workflow.annotate.annotator import Annotator
from govtool.workflow.annotate.circuit import NONE, Circuit, Gate, Sources
from govtool.workflow.annotate.rows import LONG_ONE, LONG_ZERO, Rows, joined
from govtool.workflow.annotate.tables import load_table
from govtool.workflow.modules.run_tuples import LazyState, RelationRows, RelationTuples

ARROW_TYPES = {
    t.BOOLEAN: "bool",
    t.BYTE: "int8",
    t.SHORT: "int16",
    t.INTEGER: "int32",
    t.LONG: "int64",
    t.FLOAT: "float32",
    t.DOUBLE: "float64",
    t.STRING: "string",
    t.DATE: "date32",
}
"""Types that files of text are read in."""
_COMING = "\0coming"
"""Stands for the rows that may come among the columns of a relation; no column is called so."""


class ReceivedTuples(Protocol):
    """What an invocation received."""

    inputs: dict[str, RelationTuples]
    """By path."""
    state: dict[str, LazyState]
    """By path."""

    def rows(self, relation: BoundaryRelation) -> RelationRows:
        """The rows of a relation."""

    def state_nodes(self, state: LazyState, column: str, rows: Array) -> Array:
        """The nodes of state tuples, or of the cells of a column."""

    def coming_state(self, state: LazyState) -> int:
        """The node of state that may come; -1 for none."""


class PlanLeaves:
    """Leaves of one plan: the tuples of the invocation's relations, as sources of a circuit."""

    def __init__(self, invocation: ReceivedTuples) -> None:
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
        gate = self._gate(a.circuit, path, tuples)
        if not tuples.candidates:
            return Rows(node, leaf.columns, added[""], LONG_ONE, cells, gate=gate)
        times = a.ids.attribute("times", LONG)
        present = Project(node, (*_copies(a, (*leaf.columns, *added.values())), a.ids.named("times", LONG_ONE)))
        absent = self._loaded(a, leaf, tuples, nodes)
        both = Union((present, absent), (*leaf.columns, *added.values(), times))
        return Rows(both, leaf.columns, added[""], times, cells, candidates=True, gate=gate)

    def _gate(self, circuit: Circuit, path: str, tuples: RelationTuples) -> int:
        """What opens where rows may come into a relation that are no candidates; ``NONE`` for none."""
        if tuples.coming == NONE:
            return NONE
        key = (path, _COMING)
        if key not in self._known:
            source = circuit.add(Sources(1, path))
            self._blocks[source] = lambda _: np.array([self._coming(path)])
            self._known[key] = circuit.add(Gate(np.array([source]), "same"))
        return self._known[key]

    def _coming(self, path: str) -> int:
        own = self._invocation
        return own.inputs[path].coming if path in own.inputs else own.coming_state(own.state[path])

    def _read(
        self,
        a: Annotator,
        leaf: Relation,
        tuples: RelationTuples,
        nodes: Mapping[str, Array],
        added: Mapping[str, Attribute],
    ) -> Node:
        """The rows of the files, each with its nodes."""
        if leaf.format != "parquet":
            return self._parsed(a, leaf, tuples, nodes, added)
        records = records_of(leaf, tuples.relation, self._invocation.rows(tuples.relation))
        record, number = a.ids.attribute("record", LONG), a.ids.attribute("loaded", LONG)
        loaded = {added[name]: _nullable(values[: len(records)]) for name, values in nodes.items()}
        side = a.tables.load({number: records, **loaded})
        read = replace(leaf, columns=(*leaf.columns, record), metadata=(*leaf.metadata, (record.id, RECORD)))
        node = joined(read, side, alike(record, number))
        return Project(node, (*map(passed, leaf.columns), *map(passed, added.values())))

    def _parsed(
        self,
        a: Annotator,
        leaf: Relation,
        tuples: RelationTuples,
        nodes: Mapping[str, Array],
        added: Mapping[str, Attribute],
    ) -> Node:
        """Rows of files of text."""
        rows = self._invocation.rows(tuples.relation)
        count = len(rows.values)
        return parsed_rows(a, leaf, rows, {added[name]: values[:count] for name, values in nodes.items()})

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
        return lambda places: own.state_nodes(own.state[path], column, places)


def parsed_rows(a: Annotator, leaf: Relation, rows: RelationRows, numbers: Mapping[Attribute, Array]) -> Relation:
    """Rows of files of text, which executors do not number; what was read is loaded in the types of the leaf.

    Args:
        a: The annotator.
        leaf: The leaf that reads them.
        rows: The rows.
        numbers: More columns, a number a row; below 0 for NULL.

    Raises:
        NotExact: A column is of a type that files of text are not read in here.
    """
    import pyarrow as pa

    arrays = {}
    for column in leaf.columns:
        kind = _arrow_type(column.type)
        if column.name not in rows.columns or kind is None:
            raise NotExact(f"the column {column.name} of a file of text is not read here")
        at = rows.columns.index(column.name)
        arrays[f"c{column.id}"] = pa.array([row[at] for row in rows.values], kind)
    arrays.update({f"c{column.id}": _nullable(values) for column, values in numbers.items()})
    name = f"kept_rows_{next(a.ids.numbers)}"
    return load_table(a.executor, name, pa.table(arrays), (*leaf.columns, *numbers))


def _arrow_type(kind: t.Type) -> Any:
    """The type of a column of a file of text as pyarrow's; None if it is not read here."""
    import pyarrow as pa

    if isinstance(kind, t.Decimal):
        return pa.decimal128(kind.precision, kind.scale)
    if kind in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return pa.timestamp("us")  # in UTC, as DuckDB has them; Spark is not given any
    return ARROW_TYPES.get(kind) if isinstance(kind, t.Scalar) else None


def _copies(a: Annotator, columns: Sequence[Attribute]) -> Iterator[Named]:
    return (a.ids.named(column.name, column) for column in columns)


def _nullable(values: Array) -> Any:
    import pyarrow as pa

    return pa.array(values, pa.int64(), mask=values < 0)


def records_of(leaf: Relation, relation: BoundaryRelation, rows: RelationRows) -> Array:
    """The packed ids of a relation's rows, as the leaf numbers its files; -1 for files that it does not read."""
    ordinals = {file.uri: file.ordinal for file in leaf.files}
    parts = [
        (ordinals[file.uri] << ROW_BITS) + np.arange(count) if file.uri in ordinals else np.full(count, NONE)
        for file, count in zip(relation.files, rows.counts, strict=True)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)

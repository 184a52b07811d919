"""``why 'REL[key]' --run``: rows that a workflow run wrote, with their annotations over the records that went in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.app.why.columns import ANNOTATIONS, Columns, Request
from govtool.app.why.rows import DEFAULT, MOST, checked_semirings
from govtool.app.workflow_runs.addresses import find_version, key_places, matches, parse_address, unknown_row
from govtool.app.workflow_runs.opened import engine_errors
from govtool.workflow.annotate.circuit import NONE
from govtool.workflow.annotate.origins import Origins
from govtool.workflow.why import QueryProvenance, ResultRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from govtool.answers.why import WhyAnswer
    from govtool.app.why.query import OpenedQuery
    from govtool.app.workflow_runs.addresses import AddressedRelation, RowAddress
    from govtool.app.workflow_runs.opened import OpenedRun
    from govtool.workflow.modules.run_circuit import RunCircuit


@dataclass
class RowProvenance(QueryProvenance):
    """The provenance of those rows of a relation that have a key.

    Attributes:
        chosen: Which rows count, by their values.
        gate: What opens where rows may come that are no candidates; ``NONE`` for nothing.
    """

    chosen: Callable[[Sequence[Any]], bool] = lambda values: True
    gate: int = NONE

    @cached_property
    def rows(self) -> list[ResultRow]:
        """The rows that count."""
        return [row for row in super().rows if self.chosen(row.values)]

    @property
    def gains_possible(self) -> bool:
        """True if a deletion may bring rows that are not among the candidates."""
        return self.gate != NONE


def why_in_run(
    opened: OpenedRun,
    text: str,
    semirings: Sequence[str] = DEFAULT,
    *,
    values: Mapping[str, Mapping[str, float]] | None = None,
    exact: bool = False,
    capped: bool = False,
) -> WhyAnswer:
    """Rows that a run wrote, with their annotations.

    Args:
        opened: The run.
        text: The rows: see ``addresses``.
        semirings: As for ``why``.
        values: For ``cost``, ``trust`` and ``prob`` the value of each token.
        exact: Refuse what can only be sampled.
        capped: Write out the first parts of long polynomials only.

    Raises:
        UsageError: A semiring does not fit, or has no values; a file has changed since the run.
        UnknownNameError: There is no such relation, execution, column or row.
        AmbiguousNameError: The address means several relations.
        EngineError: The engine fails.
    """
    names = checked_semirings(semirings, values or {})
    address = parse_address(text)
    version = find_version(opened.run, opened.files, address)
    with engine_errors():
        return _answer(opened, address, version, names, values or {}, exact, MOST if capped else None)


def _answer(
    opened: OpenedRun,
    address: RowAddress,
    version: AddressedRelation,
    names: Sequence[str],
    values: Mapping[str, Mapping[str, float]],
    exact: bool,
    most: int | None,
) -> WhyAnswer:
    from govtool.answers.why import WhyAnswer, WhyTuple

    origins = Origins(by_equality=False) if "where" in names else None
    circuit = opened.circuit([version.path], origins)
    found = _provenance(circuit, version, address)
    rows = _present(found.rows)
    titles = tuple(column.name for column in found.query.columns)
    if address.key and not rows:
        every = QueryProvenance(found.query, found.tokens).rows
        raise unknown_row(address, titles, [row.values for row in every])
    notes = [*opened.notes, *circuit.coarse_notes()]
    executor = circuit.tables.executor
    request = Request(found, rows, values, exact, cast("OpenedQuery", None), executor, notes, most)
    columns: Columns = []
    for name in names:
        columns += _where(opened, version, circuit, rows, found) if name == "where" else ANNOTATIONS[name](request)
    tuples = tuple(
        WhyTuple(row.values, row.multiplicity, {key: made[at] for key, made in columns if made[at] is not None})
        for at, row in enumerate(rows)
    )
    # A candidate whose annotation is 0 can never be there.
    tuples = tuple(each for each in tuples if each.multiplicity or each.annotations.get("polynomial") != "0")
    engine = "DuckDB" if hasattr(executor, "connection") else "Spark"
    source = {"run": opened.run.id, "relation": version.relation, "execution": version.execution, "node": version.node}
    return WhyAnswer(titles, tuples, found.gains_possible, engine, tuple(notes), source)


def _provenance(circuit: RunCircuit, version: AddressedRelation, address: RowAddress) -> RowProvenance:
    query = circuit.query(version.path)
    places = key_places([column.name for column in query.columns], address.key)
    gate = circuit.gate(version.path)
    return RowProvenance(query, circuit.tokens, chosen=lambda row: matches(row, places), gate=gate)


def _present(rows: list[ResultRow]) -> list[ResultRow]:
    """Rows that are there first, then candidates."""
    return sorted(rows, key=lambda row: row.multiplicity == 0)


def _where(
    opened: OpenedRun, version: AddressedRelation, circuit: RunCircuit, rows: list[ResultRow], found: QueryProvenance
) -> Columns:
    """Where each cell was copied from, over all modules: ``TOKEN.column``. Not known of rows of an opaque module."""
    equal = opened.circuit([version.path], Origins(by_equality=True))
    names = [column.name for column in circuit.query(version.path).columns]
    made: Columns = []
    for key, each in (("where", circuit), ("where_eq", equal)):
        cells = _cell_origins(each, version)
        known = [row.multiplicity and not found.is_opaque(row) for row in rows]
        made.append((key, [_by_column(names, cells, row) if known[at] else None for at, row in enumerate(rows)]))
    return made


_CellNames = Mapping[Any, Mapping[int, set[str]]]


def _by_column(names: Sequence[str], cells: _CellNames, row: ResultRow) -> dict[str, list[str]]:
    from govtool.workflow.why import hashable

    own = cells.get(hashable(row.values), {})
    return {name: sorted(own.get(at, ())) for at, name in enumerate(names)}


def _cell_origins(circuit: RunCircuit, version: AddressedRelation) -> _CellNames:
    """For rows that are there, by their values, the origins of each column's cell."""
    from govtool.workflow.why import hashable

    query = circuit.query(version.path)
    columns = [column.to_pylist() for column in query.table.read(*query.columns)]
    values = list(zip(*columns, strict=True)) if columns else [()] * query.table.count
    there = np.flatnonzero(query.times() > 0)
    found: dict[Any, dict[int, set[str]]] = {}
    for place, column in enumerate(query.columns):
        if circuit.origins is None or column.id not in query.rows.origins:
            continue
        (nodes,) = query.table.ids(query.rows.origins[column.id])
        for owners, cells, records in circuit.origins.resolved(there, nodes[there]):
            names = circuit.tokens.labels[cells.relation].take(records).to_pylist()
            for owner, name in zip(owners.tolist(), names, strict=True):
                own = found.setdefault(hashable(values[owner]), defaultdict(set))
                own[place].add(f"{name}.{cells.column}")
    return found

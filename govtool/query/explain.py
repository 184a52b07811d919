"""Sources and readers of a column or dataset, one step each way, with all the evidence.

A step through temporary tables is one step; only of such a table itself are the steps to its neighbours as they are.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from govtool.graph.index import Index
from govtool.model.derivation import OutputColumn, Statement
from govtool.model.diagnostic import Diagnostic
from govtool.model.kinds import EdgeKind
from govtool.query.evidence import RUNTIME, WayStep
from govtool.query.joined_steps import EVENTS, Executions, joined
from govtool.query.selection.select import Subject, select
from govtool.query.temporary_tables import Chain, chain_kind, chain_step, chains


@dataclass(frozen=True, slots=True)
class DatasetDefinition:
    """One statement that makes the dataset; several are alternatives."""

    statement: Statement
    mode: str
    status: str
    """``understood``, ``partial`` or ``opaque``."""
    complete: bool
    """False where a ``*`` could not be resolved."""
    names_column: bool
    """True if the column is among what it puts out (always, for a dataset)."""
    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer; every list is sorted."""

    subject: str
    subject_kind: str
    """``column`` or ``dataset``."""
    dataset: str
    dataset_kind: str
    type: str | None
    columns: tuple[OutputColumn, ...]
    """For a dataset: its columns; for a column: its fields."""
    definitions: tuple[DatasetDefinition, ...]
    incoming: tuple[WayStep, ...]
    """Edges into the column: what its value is made of. For a dataset: into all of its columns."""
    rows: tuple[WayStep, ...]
    """Edges into the row set other than ``read``: what decides which rows there are."""
    reads: tuple[str, ...]
    """The datasets that the dataset reads."""
    outgoing: tuple[WayStep, ...]
    """Edges out of the column, and out of structs that it is part of or that are part of it."""
    readers: tuple[str, ...]
    """The datasets that read its rows; of a column those whose statements name it, or take it with a ``*``."""
    opaque: tuple[WayStep, ...]
    """Edges in and out that could not be understood; those out of the row set may carry any column."""
    diagnostics: tuple[Diagnostic, ...]
    """Of its definitions, and of its readers where they name the column."""
    truncated: int
    """Edges that ``limit`` left off."""


_OPAQUE = (EdgeKind.OPAQUE,)


def explain(
    index: Index, subject: str | Subject, *, limit: int | None = None, executions: Executions = dict
) -> Explanation:
    """Gather what the graph knows of a column or dataset.

    Args:
        index: The graph.
        subject: By name or as selected.
        limit: Edges to tell in each list at most.
        executions: Gives the id of each run by the ids of its records; without it none are known to be of one run.

    Raises:
        UnknownNameError: No such column or dataset.
        AmbiguousNameError: Several.
    """
    about = subject if isinstance(subject, Subject) else select(index, subject)
    dataset, rows = about.dataset, index.rows(about.dataset)
    nodes = list(index.columns(dataset)) if about.node is None else [about.node]
    near = nodes
    if about.node is not None:
        near = [about.node, *index.fields(about.node), *index.containers(about.node)]
    into = [e for node in nodes for e in index.in_edges(node)]
    into_rows = index.in_edges(rows)
    out = [e for node in near for e in index.out_edges(node)]
    out_rows = list(index.out_edges(rows))
    writer = _StepWriter(index, limit, not index.is_elided(dataset), executions)
    definitions = _definitions(index, about, executions)
    diagnostics = [d for one in definitions for d in one.diagnostics]
    diagnostics += _readers_diagnostics(index, about, (*out, *out_rows))
    return Explanation(
        subject=about.text,
        subject_kind="column" if about.node is not None else "dataset",
        dataset=index.dataset_name(dataset),
        dataset_kind=index.dataset_kind(dataset),
        type=None if about.node is None else index.type(about.node),
        columns=_columns(index, about),
        definitions=definitions,
        incoming=writer.as_steps(writer.chains(into, backward=True), without=_OPAQUE),
        rows=writer.as_steps(made := list(writer.chains(into_rows, backward=True)), without=(EdgeKind.READ, *_OPAQUE)),
        reads=_datasets(index, (index.edge_source[c[0]] for c in made if chain_kind(index, c) is EdgeKind.READ)),
        outgoing=writer.as_steps(writer.chains(out), without=_OPAQUE),
        readers=_readers(index, about, near),
        opaque=writer.as_steps((e,) for e in (*into, *into_rows, *out, *out_rows) if index.kind(e) is EdgeKind.OPAQUE),
        diagnostics=tuple(sorted(dict.fromkeys(diagnostics), key=Diagnostic.sort_key)),
        truncated=writer.truncated,
    )


def _columns(index: Index, about: Subject) -> tuple[OutputColumn, ...]:
    """The columns of a dataset, the fields of a column; those that are only known to exist are left out."""
    nodes = index.columns(about.dataset) if about.node is None else index.fields(about.node)
    return tuple(OutputColumn(index.path(n), index.type(n)) for n in nodes if not index.is_unknown(n))


def _readers_diagnostics(index: Index, about: Subject, edges: Iterable[int]) -> Iterator[Diagnostic]:
    """The diagnostics of statements behind edges, where they name the subject; for a column, not its dataset."""
    names = {about.text, index.dataset_name(about.dataset)} if about.node is None else {about.text}
    for derivation in sorted({index.edge_derivation[e] for e in edges}):
        yield from (d for d in index.diagnostics(derivation) if names & {d.target or "", *d.candidates})


class _StepWriter:
    """Edges to steps, each list up to a limit."""

    def __init__(self, index: Index, limit: int | None, passing: bool, executions: Executions) -> None:
        self.index = index
        self.limit = limit
        self.passing = passing
        self.executions = executions
        self.truncated = 0

    def chains(self, edges: Iterable[int], *, backward: bool = False) -> Iterator[Chain]:
        """The edges, each carried on through temporary tables, unless the subject is one."""
        return chains(self.index, edges, backward=backward) if self.passing else ((edge,) for edge in edges)

    def as_steps(self, found: Iterable[Chain], without: Container[EdgeKind] = ()) -> tuple[WayStep, ...]:
        """Sorted steps of distinct chains of edges, without some kinds; steps over the limit are counted."""
        index = self.index
        shown = {c for c in found if chain_kind(index, c) not in without}
        ordered_chains = sorted(shown, key=lambda c: (index.edge_target[c[-1]], chain_kind(index, c), c))
        if self.limit is not None and len(ordered_chains) > self.limit:
            self.truncated += len(ordered_chains) - self.limit
            ordered_chains = ordered_chains[: self.limit]
        steps = dict.fromkeys(chain_step(index, chain) for chain in ordered_chains)
        ordered = sorted(steps, key=lambda s: (s.kind, s.target, s.source, s.evidence.file, s.evidence.line))
        return tuple(joined(ordered, self.executions))


def _definitions(index: Index, about: Subject, executions: Executions) -> tuple[DatasetDefinition, ...]:
    found = []
    for derivation in index.makers(about.dataset):
        outputs = set(index.outputs(derivation))
        found.append(
            DatasetDefinition(
                statement=index.statement(derivation),
                mode=index.mode(derivation),
                status=index.field(derivation, "status") or "",
                complete=bool(index.arrays["derivation_complete"][derivation]),
                names_column=about.node is None or about.node in outputs,
                diagnostics=index.diagnostics(derivation),
            )
        )
    ordered = sorted(found, key=lambda d: (d.statement.source, d.statement.file, d.statement.line, d.mode))
    writes: dict[object, DatasetDefinition] = {}
    for one in ordered:
        key = _write_of(one) or one
        if key not in writes or one.statement.how == "plan":  # of several records, the plan itself sees most
            writes[key] = one
    return _of_executions(tuple(writes.values()), executions)


def _of_executions(found: tuple[DatasetDefinition, ...], executions: Executions) -> tuple[DatasetDefinition, ...]:
    """Definitions without those of events whose execution another record shows; events tell modes another way."""
    sides = {one.statement.how == EVENTS for one in found if one.statement.how in RUNTIME and one.statement.run}
    if len(sides) < 2:
        return found
    ran = executions()
    known = {ran.get(one.statement.run or "") for one in found if one.statement.how in RUNTIME - {EVENTS}} - {None}
    return tuple(one for one in found if one.statement.how != EVENTS or ran.get(one.statement.run or "") not in known)


def _write_of(definition: DatasetDefinition) -> tuple[str, ...] | None:
    """The write or declaration of a run that a definition records, whoever recorded it; None where it is no run's."""
    statement = definition.statement
    if statement.how not in RUNTIME:
        return None
    return statement.run or statement.file, statement.kind, definition.mode, definition.status


def _readers(index: Index, about: Subject, near: Sequence[int]) -> tuple[str, ...]:
    """The datasets that read the rows of a dataset; those that read a column, a struct around it or a field of it.

    A temporary table stands for what is made of it.
    """
    if about.node is None:
        rows = index.out_edges(index.rows(about.dataset))
        targets = [index.edge_target[e] for e in rows if index.kind(e) is EdgeKind.READ]
    else:
        targets = [index.edge_target[e] for node in near for e in index.out_edges(node)]
        listed = [one for one in index.references(index.rows(about.dataset)) if not index.names_own(one)]
        named = [one for node in near for one in index.references(node)]
        targets += [index.referring_rows(one) for one in (*named, *listed)]
    return _datasets(index, _behind_temporary(index, targets))


def _behind_temporary(index: Index, nodes: Iterable[int]) -> Iterator[int]:
    """The nodes, with the rows of what reads a temporary table in place of those of the table."""
    seen: set[int] = set()
    stack = [index.rows(index.node_dataset[node]) for node in nodes]
    while stack:
        rows = stack.pop()
        if rows in seen:
            continue
        seen.add(rows)
        if not index.is_elided(index.node_dataset[rows]):
            yield rows
            continue
        stack += [index.edge_target[e] for e in index.out_edges(rows) if index.kind(e) is EdgeKind.READ]


def _datasets(index: Index, nodes: Iterable[int]) -> tuple[str, ...]:
    return tuple(sorted({index.dataset_name(index.node_dataset[node]) for node in nodes}))

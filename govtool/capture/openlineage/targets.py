"""Derivations of the outputs of one run, job or dataset event; their evidence still lacks times and counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from govtool.capture.openlineage.edges import EXTRA, FacetLineage, Resolver, column_lineage, explicit_lineage
from govtool.capture.openlineage.events import DATASET, RUN, EntityPart, Key
from govtool.capture.openlineage.identity import DatasetName, Fields, job_file, job_id, normalise
from govtool.capture.openlineage.merge import Registers, RegisterValue, parts
from govtool.capture.openlineage.sql import SqlText, sql_of
from govtool.model import (
    HIDDEN,
    ROWS,
    ColumnRef,
    Derivation,
    Diagnostic,
    Edge,
    EdgeKind,
    OutputColumn,
    Statement,
)
from govtool.model.copies import copied

NO_COLUMNS = "no-column-lineage"
"""The code and the reason where an event names inputs and outputs and no columns."""

_MODES = frozenset({"replace", "append", "update", "delete", "declare"})
_KINDS = {
    "VIEW": "view", "TABLE": "table", "FILE": "file", "TEMPORARY": "temporary", "QUERY": "query",
    "FUNCTION": "function", "MATERIALIZED_VIEW": "materialized_view",
}  # fmt: skip
_SUBTYPES = {"MATERIALIZED": "materialized_view", "TEMPORARY": "temporary"}

SqlReader = Callable[[SqlText, str, list[DatasetName], list[DatasetName]], list[Derivation] | None]
"""A reader of a job's SQL, given its file, inputs and outputs; None where its text is not at hand."""


@dataclass(slots=True)
class StateContext:
    """The data that all entities of a state share."""

    resolver: Resolver
    schemas: Mapping[str, Fields]
    kinds: Mapping[str, str]
    """``target_kind`` of datasets by id."""
    sql: SqlReader


def load(facets: Mapping[str, RegisterValue], name: str) -> Any:
    """The JSON value of a facet, or None."""
    value = facets.get(name)
    return json.loads(value.text) if value is not None else None


def target_kind(name: DatasetName, facet: object) -> str | None:
    """The kind that a ``datasetType`` facet gives a dataset, if it is one of ours."""
    if not isinstance(facet, Mapping):
        return None
    kind, sub = facet.get("datasetType"), facet.get("subType")
    if isinstance(sub, str) and sub.upper() in _SUBTYPES:
        return _SUBTYPES[sub.upper()]
    return _KINDS.get(kind.upper()) if isinstance(kind, str) else None


def derivations_of(key: Key, registers: Registers, context: StateContext) -> list[Derivation]:
    """The derivations of one entity."""
    if key.kind == DATASET:
        return _dataset(key, registers, context)
    return _Job(key, registers, context).derivations()


def _dataset(key: Key, registers: Registers, context: StateContext) -> list[Derivation]:
    """A dataset's own event: a definition, where it tells lineage."""
    name = DatasetName(key.namespace, key.name)
    facets = parts(registers, "self").get(EntityPart("self"), {})
    base = _blank("dataset", job_file(key.namespace, key.name), None)
    change = _lifecycle(name, facets, base, context)
    if change is not None:
        return [change]
    lineage = _lineage(name, facets, [], context, (key.namespace, key.name))
    if not lineage.known and lineage.reads is None:
        return []
    reads = (lineage.reads or set()) | lineage.named
    return [_made(name, facets, lineage, reads, base, "replace", context)]


class _Job:
    """A run, or a job as declared."""

    def __init__(self, key: Key, registers: Registers, context: StateContext) -> None:
        self.key = key
        self.context = context
        self.own = (key.namespace, key.name)
        self.facets = parts(registers, "job").get(EntityPart("job"), {})
        self.inputs = [part.dataset for part in parts(registers, "in")]
        self.outputs = {part.dataset: facets for part, facets in parts(registers, "out").items()}
        self.sql = sql_of(load(self.facets, "sql"))
        kind = "run" if key.kind == RUN else "job"
        self.base = _blank(kind, job_file(*self.own), self.sql)

    def derivations(self) -> list[Derivation]:
        """One for each output and each further target of explicit lineage."""
        entries, jobs = self._entries()
        for name in entries:
            self.outputs.setdefault(name, {})
        changes = {name: _lifecycle(name, facets, self.base, self.context) for name, facets in self.outputs.items()}
        lineages = {
            name: _lineage(name, self.outputs[name], entries.get(name, []), self.context, self.own)
            for name, change in changes.items()
            if change is None or (change.mode != "drop" and load(self.outputs[name], "columnLineage") is not None)
        }
        # SQL is read only for outputs of which no facet tells what they are made of.
        open_ = [n for n, lineage in lineages.items() if not lineage.known and lineage.reads is None]
        by_sql = self._from_sql(open_) if (open_ or not self.outputs) and not jobs else []
        covered = {d.target for d in by_sql}
        stated = {name: each for name, each in lineages.items() if name not in open_ or name.id not in covered}
        made = self._from_facets(stated, self._unnamed(lineages.values()))
        return [*(change for change in changes.values() if change is not None), *jobs, *by_sql, *made]

    def _from_facets(self, lineages: Mapping[DatasetName, FacetLineage], unnamed: set[str]) -> list[Derivation]:
        return [
            _made(name, self.outputs[name], lineage, self._reads(lineage, unnamed), self.base, "append", self.context)
            for name, lineage in lineages.items()
        ]

    def _unnamed(self, lineages: Collection[FacetLineage]) -> set[str]:
        """The inputs that no facet of an output names; if there is one output, all of them."""
        named = {dataset for lineage in lineages for dataset in lineage.named} if len(lineages) > 1 else set()
        return {name.id for name in self.inputs} - named

    def _reads(self, lineage: FacetLineage, unnamed: set[str]) -> set[str]:
        """The datasets that an output reads.

        Args:
            lineage: What its facets state.
            unnamed: Inputs that no facet of an output names; of the only output, all inputs.
        """
        if lineage.reads is not None:
            return lineage.reads | lineage.named
        return lineage.named | (unnamed if lineage.known else {name.id for name in self.inputs})

    def _entries(self) -> tuple[dict[DatasetName, list[Any]], list[Derivation]]:
        """The job's explicit lineage: entries by target dataset, and derivations of target jobs."""
        facet = load(self.facets, "lineage")
        listed = facet.get("entries") if isinstance(facet, Mapping) else None
        datasets: dict[DatasetName, list[Any]] = {}
        jobs: list[Derivation] = []
        for entry in listed if isinstance(listed, list) else ():
            if not isinstance(entry, Mapping):
                continue
            namespace, name = entry.get("namespace"), entry.get("name")
            if entry.get("type") != "JOB":
                if isinstance(namespace, str) and isinstance(name, str) and name.strip():
                    datasets.setdefault(normalise(namespace, name), []).append(entry)
                continue
            job = (namespace, name) if isinstance(namespace, str) and isinstance(name, str) else self.own
            lineage = FacetLineage()
            # What a job reads is no dataset with columns: everything leads to its rows.
            explicit_lineage(
                {"inputs": entry.get("inputs")}, DatasetName("default", ""), self.context.resolver, lineage, self.own
            )
            edges = _with_reads(lineage.edges, lineage.reads or set())
            jobs.append(Derivation(job_id(*job), "job", "append", self.base, edges=tuple(edges)))
        return datasets, jobs

    def _from_sql(self, wanted: list[DatasetName]) -> list[Derivation]:
        if self.sql is None:
            return []
        found = self.context.sql(self.sql, self.base.file, self.inputs, list(self.outputs)) or []
        known = {name.id for name in self.outputs if name not in wanted}
        return [d for d in found if d.target not in known]


def _blank(kind: str, file: str, sql: SqlText | None) -> Statement:
    """A statement without times: its fingerprint is that of the SQL, else of the job itself."""
    from hashlib import blake2b

    own = blake2b(file.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return Statement(
        fingerprint=sql.fingerprint if sql else own,
        kind=kind,
        dialect=sql.dialect if sql else "",
        file=file,
        how="openlineage",
        text=sql.text if sql else "",
    )


def _lineage(
    name: DatasetName,
    facets: Mapping[str, RegisterValue],
    entries: list[Any],
    context: StateContext,
    own: tuple[str, str],
) -> FacetLineage:
    lineage = FacetLineage()
    column_lineage(load(facets, "columnLineage"), name, context.resolver, lineage)
    for facet in (load(facets, "lineage"), *entries):
        explicit_lineage(facet, name, context.resolver, lineage, own)
    return lineage


def _lifecycle(
    name: DatasetName, facets: Mapping[str, RegisterValue], base: Statement, context: StateContext
) -> Derivation | None:
    """A dataset dropped, emptied or renamed."""
    facet = load(facets, "lifecycleStateChange")
    change = facet.get("lifecycleStateChange") if isinstance(facet, Mapping) else None
    kind = context.kinds.get(name.id, "table")
    if change == "DROP":
        return Derivation(name.id, kind, "drop", base._replace(kind="drop"), namespace=name.namespace)
    if change == "TRUNCATE":
        return Derivation(name.id, kind, "delete", base._replace(kind="truncate"), namespace=name.namespace)
    if change != "RENAME" or not isinstance(facet, Mapping):
        return None
    previous = facet.get("previousIdentifier")
    old = previous if isinstance(previous, Mapping) else {}
    if not isinstance(old.get("name"), str) or not isinstance(old.get("namespace"), str):
        return None
    before = normalise(old["namespace"], old["name"])
    if before == name:
        return None
    context.resolver.names[before.id] = before
    schema = load(facets, "schema")
    fields = Fields(schema.get("fields") if isinstance(schema, Mapping) else None)
    columns = [path for path, _ in fields.columns]
    return Derivation(
        name.id,
        kind,
        "rename",
        base._replace(kind="rename"),
        tuple(OutputColumn(*column) for column in fields.columns),
        bool(columns),
        copied(before.id, columns, complete=bool(columns)),
        "understood" if columns else "partial",
        namespace=name.namespace,
    )


def _made(
    name: DatasetName,
    facets: Mapping[str, RegisterValue],
    lineage: FacetLineage,
    reads: set[str],
    base: Statement,
    mode: str,
    context: StateContext,
) -> Derivation:
    """The derivation of an output by the lineage that is known of it."""
    kind = context.kinds.get(name.id, "file" if name.is_path else "table")
    schema = load(facets, "schema")
    fields = Fields(schema.get("fields") if isinstance(schema, Mapping) else None)
    columns = tuple(OutputColumn(*column) for column in fields.columns)
    if not columns:
        columns = tuple(OutputColumn(path) for path in dict.fromkeys(lineage.columns) if path not in (ROWS, HIDDEN))
    # That its own columns are read says that its rows are.
    edges = _with_reads(lineage.edges, reads - ({name.id} & lineage.named))
    notes: tuple[Diagnostic, ...] = ()
    unknown = not lineage.known and lineage.reads is None and bool(reads)
    if unknown:
        edges += [Edge(ColumnRef(d, ROWS), ROWS, EdgeKind.OPAQUE, reason=NO_COLUMNS) for d in sorted(reads)]
        message = "the event names inputs and outputs and no columns"
        notes = (Diagnostic(NO_COLUMNS, "warning", message, base.file, 1, target=name.id),)
    return Derivation(
        name.id,
        kind,
        _mode(facets, kind, mode),
        base,
        columns,
        bool(fields.columns),
        tuple(edges),
        "partial" if unknown or lineage.partial else "understood",
        notes,
        name.namespace,
    )


def _mode(facets: Mapping[str, RegisterValue], kind: str, default: str) -> str:
    facet = load(facets, "columnLineage")
    extra = facet.get(EXTRA) if isinstance(facet, Mapping) else None
    mode = extra.get("mode") if isinstance(extra, Mapping) else None
    if mode in _MODES:
        return str(mode)
    change = load(facets, "lifecycleStateChange")
    state = change.get("lifecycleStateChange") if isinstance(change, Mapping) else None
    if state in ("CREATE", "OVERWRITE") or kind in ("view", "materialized_view"):
        return "replace"
    return default


def _with_reads(edges: list[Edge], reads: set[str]) -> list[Edge]:
    """Edges without repetition, each dataset's rows read once, in a fixed order."""
    read = [Edge(ColumnRef(dataset, ROWS), ROWS, EdgeKind.READ) for dataset in reads]
    return sorted(dict.fromkeys((*edges, *read)), key=lambda e: (e.target_path, *e.source, int(e.kind), repr(e)))

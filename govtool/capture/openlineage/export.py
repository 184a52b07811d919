"""Derivations as OpenLineage events: a DatasetEvent for each dataset, then JobEvents and RunEvents of what makes them.

A statement without a run is a job, ``file:line`` in the namespace of its source; a run is a START and an end. Column
lineage is in the ``columnLineage`` facet. What that facet has no place for (edges out of whole datasets, and which of
several outputs reads what) is in the ``lineage`` facet beside it. Reading the events back gives the same events.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from govtool.capture.openlineage.derive import ALIAS
from govtool.capture.openlineage.edges import EXTRA
from govtool.capture.openlineage.event_parts import (
    PRODUCER,
    exact_path,
    lineage_facet,
    reference,
    schema_facet,
    transformations,
)
from govtool.capture.openlineage.events import stamp
from govtool.capture.openlineage.facets import SPEC, Kept, facet
from govtool.capture.openlineage.identity import JOBS, DatasetName, field_name, parse_id
from govtool.model import HIDDEN, ROWS, Derivation, Edge, EdgeKind
from govtool.names import absolute_id

_CORE = f"{SPEC}/2-0-2/OpenLineage.json#/$defs"
_TYPES = {
    "view": ("VIEW", None), "materialized_view": ("VIEW", "MATERIALIZED"), "file": ("FILE", None),
    "temporary": ("TABLE", "TEMPORARY"), "query": ("QUERY", None), "function": ("FUNCTION", None),
}  # fmt: skip
_IMPLIED = {"view": "replace", "materialized_view": "replace"}
_RUNS = uuid.UUID("6f1c54f2-58a1-5f0c-9d0c-0d9f4f1d4c55")
"""The name space of run ids that are no UUIDs."""

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Exported:
    """Events, and what has no place among them."""

    events: list[Event]
    queries: int = 0
    """Bare queries that were left out."""
    datasets: int = 0
    """Datasets that were left out, as no run reads or writes them."""


def export(
    derivations: Iterable[Derivation], *, time: str, kept: Kept | None = None, queries: bool = False, root: str = ""
) -> Exported:
    """Events of derivations.

    Args:
        derivations: All of a commit.
        time: ISO 8601: the time of events of what has none itself.
        kept: Facets that came with earlier events.
        queries: Whether to export bare queries as well; nothing depends on them.
        root: The folder to which names of local files are relative; exported ones are absolute.
    """
    found = list(derivations)
    wanted = [d for d in found if queries or d.target_kind != "query"]
    writer = _Writer(wanted, time, kept, root)
    return Exported(writer.events(), len({d.target for d in found}) - len({d.target for d in wanted}))


@dataclass(slots=True)
class _Group:
    """One event to be: a job or a run, its derivations by target."""

    job: tuple[str, str]
    file: str
    run: str | None
    first: str
    last: str
    derivations: dict[str, list[Derivation]] = field(default_factory=dict)


class _Described:
    """What derivations state about datasets: columns with types, kinds, and symlinks by the dataset they lead to."""

    def __init__(self, derivations: Iterable[Derivation]) -> None:
        self.columns: dict[str, dict[str, str | None]] = {}
        self.kinds: dict[str, str] = {}
        self.links: dict[str, list[tuple[str, str]]] = {}
        for derivation in derivations:
            if not derivation.target.startswith(JOBS):
                self._add(derivation)

    def _add(self, derivation: Derivation) -> None:
        target = derivation.target
        for edge in derivation.edges:
            if not edge.source.dataset.startswith(JOBS):
                self.columns.setdefault(edge.source.dataset, {})
        known = self.columns.setdefault(target, {})
        if derivation.statement.kind == ALIAS:
            self._add_link(derivation)
            return
        self.kinds[target] = max(self.kinds.get(target, ""), derivation.target_kind if _stays(derivation) else "")
        if derivation.mode == "declare":
            for column in derivation.columns:
                known[column.path] = column.type or known.get(column.path)

    def _add_link(self, derivation: Derivation) -> None:
        text = derivation.statement.text
        if text.startswith("symlink"):
            (source,) = {edge.source.dataset for edge in derivation.edges}
            self.links.setdefault(source, []).append((derivation.target, text.partition(" ")[2]))


class _Writer:
    def __init__(self, derivations: list[Derivation], time: str, kept: Kept | None, root: str) -> None:
        self.derivations = derivations
        self.time = _stamp(time) or time
        self.kept, self._root = kept, root
        self._namespaces = {d.namespace for d in derivations}
        self._names: dict[str, DatasetName] = {}

    def events(self) -> list[Event]:
        return [*self._datasets(), *(event for group in self._groups() for event in self._group(group))]

    def name(self, identity: str) -> DatasetName:
        found = self._names.get(identity)
        if found is None:
            found = self._names[identity] = parse_id(
                absolute_id(identity, self._root) if self._root else identity, self._namespaces
            )
        return found

    # Datasets.

    def _datasets(self) -> Iterator[Event]:
        described = _Described(self.derivations)
        for identity in sorted(described.columns):
            name = self.name(identity)
            facets = self.kept.dataset(identity, PRODUCER) if self.kept else {}
            if columns := described.columns[identity]:
                facets["schema"] = schema_facet(columns)
            kind = _TYPES.get(described.kinds.get(identity, ""))
            if kind is not None and not (kind[0] == "FILE" and name.is_path):
                body = {"datasetType": kind[0]} | ({"subType": kind[1]} if kind[1] else {})
                facets["datasetType"] = facet(PRODUCER, "1-0-1/DatasetTypeDatasetFacet", body)
            if links := described.links.get(identity):
                listed = [{**reference(self.name(other)), "type": relation} for other, relation in sorted(links)]
                facets["symlinks"] = facet(PRODUCER, "1-0-1/SymlinksDatasetFacet", {"identifiers": listed})
            yield {
                "eventTime": self.time,
                "producer": PRODUCER,
                "schemaURL": f"{_CORE}/DatasetEvent",
                "dataset": {**reference(name), "facets": facets},
            }

    # Jobs and runs.

    def _groups(self) -> list[_Group]:
        found: dict[tuple[Any, ...], _Group] = {}
        names: dict[tuple[str, str], tuple[Any, ...]] = {}
        for derivation in self.derivations:
            s = derivation.statement
            if (derivation.mode == "declare" and not derivation.edges) or s.kind == ALIAS:
                continue
            job = self._job(derivation)
            if s.run is not None:
                key: tuple[Any, ...] = (job, s.run)
            else:
                # Statements on one line of one file are told apart by their fingerprints.
                key = (job, s.fingerprint, s.session, s.first_seen)
                if names.setdefault(job, key) != key:
                    job = (job[0], f"{job[1]}#{s.fingerprint[:8]}")
                    key = (job, *key[1:])
            last = _stamp(s.last_seen) or _stamp(s.first_seen) or self.time
            first = _stamp(s.first_seen) or last
            group = found.setdefault(key, _Group(job, s.file, s.run, first, last))
            group.first, group.last = min(group.first, first), max(group.last, last)
            group.derivations.setdefault(derivation.target, []).append(derivation)
        return sorted(found.values(), key=lambda g: (g.job, g.first, g.run or ""))

    def _job(self, derivation: Derivation) -> tuple[str, str]:
        statement = derivation.statement
        if statement.how == "openlineage" or (statement.how == "sql" and statement.run is not None):
            known = self.kept.jobs.get(statement.file) if self.kept else None
            if known is not None:
                return known
            if statement.kind == "dataset":
                return "govtool", statement.file
            namespace, _, name = statement.file.partition("/")
            return (namespace, name) if name else ("govtool", namespace)
        return statement.source or "govtool", f"{statement.file}:{statement.line}"

    def _group(self, group: _Group) -> Iterator[Event]:
        several = len(group.derivations) > 1
        outputs = []
        entries: list[dict[str, Any]] = []
        reads: set[str] = set()
        for target, derivations in sorted(group.derivations.items(), key=lambda item: self.name(item[0])):
            edges = list(dict.fromkeys(e for d in derivations for e in d.edges))
            if target.startswith(JOBS):
                entries.append(self._job_entry(target, edges))
                continue
            output = self._output(target, derivations, edges, explicit=several)
            outputs.append({**output, **self._in_run(group, "out", target)})
            if derivations[0].mode != "rename":
                reads |= {e.source.dataset for e in edges if not e.source.dataset.startswith(JOBS)}
        namespace, name = group.job
        event: Event = {
            "eventTime": group.last,
            "producer": PRODUCER,
            "schemaURL": f"{_CORE}/{'RunEvent' if group.run else 'JobEvent'}",
            "job": {"namespace": namespace, "name": name, "facets": self._job_facets(group, entries)},
            "inputs": [
                {**reference(self.name(dataset)), **self._in_run(group, "in", dataset)}
                for dataset in sorted(reads, key=self.name)
            ],
            "outputs": outputs,
        }
        if group.run is None:
            yield event
        else:
            yield from self._of_run(group, group.run, event)

    def _job_facets(self, group: _Group, entries: list[dict[str, Any]]) -> dict[str, Any]:
        """The facets of a job: its kept ones, its SQL, and the entries of further jobs that it leads to."""
        facets = self.kept.job(group.file, PRODUCER) if self.kept else {}
        statement = next(iter(group.derivations.values()))[0].statement
        if statement.text:
            body = {"query": statement.text} | ({"dialect": statement.dialect} if statement.dialect else {})
            facets["sql"] = facet(PRODUCER, "1-1-0/SQLJobFacet", body)
        if entries:
            facets["lineage"] = lineage_facet({"entries": entries}, "LineageJobFacet")
        return facets

    def _of_run(self, group: _Group, run_id: str, event: Event) -> Iterator[Event]:
        """The start of a run and, where it is known, its end; lineage is in the last of them."""
        run = {"runId": _uuid(run_id)}
        body = self.kept.run(group.file, run_id, PRODUCER) if self.kept else {}
        states = self.kept.runs.get((group.file, run_id), {"START", "COMPLETE"}) if self.kept else {"COMPLETE"}
        end = next((s for s in ("COMPLETE", "FAIL", "ABORT", "RUNNING", "OTHER") if s in states), None)
        namespace, name = group.job
        bare = {**event, "job": {"namespace": namespace, "name": name}, "inputs": [], "outputs": []}
        yield {**(bare if end else event), "eventType": "START", "eventTime": group.first, "run": run}
        if end:
            yield {**event, "eventType": end, "run": {**run, "facets": body}}

    def _in_run(self, group: _Group, role: str, dataset: str) -> dict[str, Any]:
        """The facets that a dataset has in one run only; nothing, where it has none."""
        if self.kept is None or group.run is None:
            return {}
        facets = self.kept.role(group.file, group.run, role, dataset, PRODUCER)
        return {f"{role}putFacets": facets} if facets else {}

    def _output(self, target: str, derivations: list[Derivation], edges: list[Edge], *, explicit: bool) -> Event:
        name = self.name(target)
        columns = {c.path: c.type for d in derivations for c in d.columns}
        last = derivations[-1]
        if last.statement.kind in ("drop", "rename", "truncate") and last.mode in ("drop", "rename", "delete"):
            facets = {"lifecycleStateChange": self._change(last, edges)}
            if last.mode == "rename" and columns:
                facets["schema"] = schema_facet(columns)
            return {**reference(name), "facets": facets}
        facets = {}
        if columns and any(d.columns_complete for d in derivations):
            facets["schema"] = schema_facet(columns)
        if last.mode == "replace" and last.target_kind not in _IMPLIED:
            change = facet(PRODUCER, "1-0-1/LifecycleStateChangeDatasetFacet", {"lifecycleStateChange": "OVERWRITE"})
            facets["lifecycleStateChange"] = change
        facets |= self._lineage_facets(edges, columns, last, explicit=explicit)
        return {**reference(name), "facets": facets}

    def _lineage_facets(
        self, edges: list[Edge], columns: Mapping[str, str | None], last: Derivation, *, explicit: bool
    ) -> dict[str, Any]:
        """``columnLineage``, and ``lineage`` for what that facet cannot hold."""
        facets: dict[str, Any] = {}
        by_row = [e for e in edges if e.source.path in (ROWS, HIDDEN) or e.target_path == HIDDEN]
        extra = [e for e in by_row if e.kind is not EdgeKind.READ]
        stated = [e for e in extra if not _is_silence(e)]
        all_stated = len(stated) == len(extra)
        if all_stated or stated or len(edges) > len(by_row):
            facets["columnLineage"] = self._column_lineage(edges, columns, last.mode, last)
        if stated or (explicit and all_stated):
            facets["lineage"] = self._lineage(edges, stated)
        return facets

    def _change(self, derivation: Derivation, edges: list[Edge]) -> dict[str, Any]:
        body: dict[str, Any] = {"lifecycleStateChange": "TRUNCATE" if derivation.mode == "delete" else "DROP"}
        if derivation.mode == "rename":
            old = next((e.source.dataset for e in edges if e.kind is EdgeKind.READ), derivation.target)
            body = {"lifecycleStateChange": "RENAME", "previousIdentifier": reference(self.name(old))}
        return facet(PRODUCER, "1-0-1/LifecycleStateChangeDatasetFacet", body)

    def _column_lineage(
        self, edges: list[Edge], columns: Mapping[str, str | None], mode: str, derivation: Derivation
    ) -> dict[str, Any]:
        fields: dict[str, dict[tuple[str, str], list[Edge]]] = {}
        rows: dict[tuple[str, str], list[Edge]] = {}
        for edge in edges:
            if edge.source.path in (ROWS, HIDDEN) or edge.target_path == HIDDEN:
                continue
            place = rows if edge.target_path == ROWS else fields.setdefault(edge.target_path, {})
            place.setdefault((edge.source.dataset, edge.source.path), []).append(edge)
        named = {
            field_name(path): {"inputFields": self._inputs(inputs), **exact_path(path)}
            for path, inputs in sorted(fields.items())
        }
        body: dict[str, Any] = {"fields": named}
        if not derivation.columns_complete:
            body["fields"] |= {field_name(path): {"inputFields": []} for path in columns if path not in fields}
        if rows:
            body["dataset"] = self._inputs(rows)
        default = "replace" if derivation.target_kind in _IMPLIED else "append"
        if mode not in (default, "replace") or (mode == "append" and default == "replace"):
            body[EXTRA] = {"mode": mode}
        return facet(PRODUCER, "1-2-0/ColumnLineageDatasetFacet", body)

    def _inputs(self, inputs: Mapping[tuple[str, str], list[Edge]]) -> list[dict[str, Any]]:
        return [
            {
                **reference(self.name(dataset)),
                "field": field_name(path),
                **exact_path(path),
                "transformations": transformations(inputs[dataset, path]),
            }
            for dataset, path in sorted(inputs, key=lambda ref: (self.name(ref[0]), ref[1]))
        ]

    def _lineage(self, edges: list[Edge], extra: list[Edge]) -> dict[str, Any]:
        """All that is read, and the edges that ``columnLineage`` cannot hold."""
        inputs: list[dict[str, Any]] = [
            self._entity(d) for d in sorted({e.source.dataset for e in edges}, key=self.name)
        ]
        fields: dict[str, list[dict[str, Any]]] = {}
        groups: dict[tuple[str, str, str], list[Edge]] = {}
        for edge in extra:
            groups.setdefault((edge.target_path, *edge.source), []).append(edge)
        for (path, dataset, source), listed in sorted(
            groups.items(), key=lambda g: (g[0][0], self.name(g[0][1]), g[0][2])
        ):
            item = self._entity(dataset) | {"transformations": transformations(listed)}
            marks: dict[str, Any] = {}
            if source == HIDDEN:
                marks["field"] = HIDDEN
            elif source != ROWS:
                item["field"] = field_name(source)
                marks |= exact_path(source).get(EXTRA, {})
            if path == HIDDEN:
                marks["target"] = HIDDEN
            if marks:
                item[EXTRA] = marks
            if path in (ROWS, HIDDEN):
                inputs.append(item)
            else:
                fields.setdefault(path, []).append(item)
        body: dict[str, Any] = {"inputs": inputs}
        if fields:
            body["fields"] = {field_name(path): {"inputs": items, **exact_path(path)} for path, items in fields.items()}
        return lineage_facet(body, "LineageDatasetFacet")

    def _entity(self, dataset: str) -> dict[str, Any]:
        if dataset.startswith(JOBS):
            namespace, name = self._job_of(dataset)
            return {"namespace": namespace, "name": name, "type": "JOB"}
        return {**reference(self.name(dataset)), "type": "DATASET"}

    def _job_of(self, identity: str) -> tuple[str, str]:
        file = identity.removeprefix(JOBS)
        known = self.kept.jobs.get(file) if self.kept else None
        if known is not None:
            return known
        scheme, separator, rest = file.partition("://")
        namespace, _, name = (rest if separator else file).partition("/")
        return (f"{scheme}://{namespace}" if separator else namespace), name

    def _job_entry(self, target: str, edges: list[Edge]) -> dict[str, Any]:
        namespace, name = self._job_of(target)
        by_source: dict[tuple[str, str], list[Edge]] = {}
        for edge in edges:
            by_source.setdefault((edge.source.dataset, edge.source.path), []).append(edge)
        inputs = []
        for (dataset, path), group in sorted(by_source.items()):
            item = self._entity(dataset)
            others = [e for e in group if e.kind is not EdgeKind.READ]
            if path != ROWS:
                item["field"] = field_name(path)
            if others:
                item["transformations"] = transformations(others)
            inputs.append(item)
        return {"namespace": namespace, "name": name, "type": "JOB", "inputs": inputs}


def _stamp(time: str | None) -> str:
    """A time in the one form of events; empty if there is none."""
    try:
        return stamp(datetime.fromisoformat(time)) if time else ""
    except ValueError:
        return ""


def _stays(derivation: Derivation) -> bool:
    return derivation.mode not in ("drop",)


def _is_silence(edge: Edge) -> bool:
    """Return whether an edge only says that an event named no columns: leaving them out says it again."""
    return edge.kind is EdgeKind.OPAQUE and edge.reason == "no-column-lineage" and edge.target_path == ROWS


def _uuid(run: str) -> str:
    try:
        return str(uuid.UUID(run))
    except ValueError:
        return str(uuid.uuid5(_RUNS, run))

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
from itertools import zip_longest
from typing import Any

from govtool.capture.openlineage.derive import ALIAS
from govtool.capture.openlineage.event_parts import (
    PRODUCER,
    lineage_facet,
    reference,
    schema_facet,
)
from govtool.capture.openlineage.events import STATES, VERSION, stamp
from govtool.capture.openlineage.export_facets import LineageFacets
from govtool.capture.openlineage.facets import SPEC, Kept, facet
from govtool.capture.openlineage.identity import JOBS
from govtool.capture.sql.syntax.redact import redact
from govtool.model import Derivation

_CORE = f"{SPEC}/2-0-2/OpenLineage.json#/$defs"
_TYPES = {
    "view": ("VIEW", None), "materialized_view": ("VIEW", "MATERIALIZED"), "file": ("FILE", None),
    "temporary": ("TABLE", "TEMPORARY"), "query": ("QUERY", None), "function": ("FUNCTION", None),
}  # fmt: skip
_PLANS = frozenset({"plan", "plan-text"})
"""Kinds of evidence whose text is a plan of Spark, on several lines: a reader of events keeps it as it keeps SQL."""
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
    wanted = [d for d in found if d.target_kind != "query" or (queries and not _names_only(d))]
    writer = _Writer(wanted, time, kept, root)
    return Exported(writer.events(), len({d.target for d in found}) - len({d.target for d in wanted}))


def _names_only(derivation: Derivation) -> bool:
    """Return whether a statement counts for the columns that it names alone; events have no place for these."""
    return bool(derivation.references) and not (derivation.edges or derivation.columns)


@dataclass(slots=True)
class _Group:
    """One event to be: a job or a run, its derivations by target."""

    job: tuple[str, str]
    file: str
    run: str | None
    first: str
    last: str
    derivations: dict[str, list[Derivation]] = field(default_factory=dict)

    @property
    def is_repeated(self) -> bool:
        """Whether several runs had the same lineage."""
        return any(d.statement.count > 1 for each in self.derivations.values() for d in each)


class _Described:
    """What derivations state about datasets: columns with types, kinds, and the other names that each has."""

    def __init__(self, derivations: Iterable[Derivation]) -> None:
        self.columns: dict[str, dict[str, str | None]] = {}
        self.kinds: dict[str, str] = {}
        self._links: dict[tuple[str, str], set[str]] = {}
        for derivation in derivations:
            if not derivation.target.startswith(JOBS) and not _names_only(derivation):
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
        """Keep what makes the target another name of its source: the types of symlinks, nothing for the way back."""
        word, _, relation = derivation.statement.text.partition(" ")
        for source in {edge.source.dataset for edge in derivation.edges}:
            types = self._links.setdefault((source, derivation.target), set())
            if word:  # of what came as no symlink, the types that OpenLineage's own integrations give
                is_place = derivation.target_kind == "file"
                types.add(relation if word == "symlink" else "LOCATION" if is_place else "TABLE")

    def links(self) -> dict[str, list[tuple[str, str]]]:
        """The other names of datasets with the types of their symlinks, each pair by the name that states it."""
        found: dict[str, list[tuple[str, str]]] = {}
        for (source, target), types in self._links.items():
            if not types and not self._links.get((target, source)) and source < target:
                types = {"LOCATION" if self.kinds.get(target) == "file" else "TABLE"}
            found.setdefault(source, []).extend((target, relation) for relation in types)
        return found


class _Writer:
    def __init__(self, derivations: list[Derivation], time: str, kept: Kept | None, root: str) -> None:
        self.derivations = derivations
        self.time = _stamp(time) or time
        self.kept = kept
        self.facets = LineageFacets({d.namespace for d in derivations}, kept, root)
        self.name = self.facets.name

    def events(self) -> list[Event]:
        return [*self._datasets(), *(event for group in self._groups() for event in self._group(group))]

    # Datasets.

    def _datasets(self) -> Iterator[Event]:
        described = _Described(self.derivations)
        known_links = described.links()
        for identity in sorted(described.columns):
            name = self.name(identity)
            facets = self.kept.dataset(identity, PRODUCER) if self.kept else {}
            if columns := described.columns[identity]:
                facets["schema"] = schema_facet(columns)
            kind = _TYPES.get(described.kinds.get(identity, ""))
            if kind is not None and not (kind[0] == "FILE" and name.is_path):
                body = {"datasetType": kind[0]} | ({"subType": kind[1]} if kind[1] else {})
                facets["datasetType"] = facet(PRODUCER, "1-0-1/DatasetTypeDatasetFacet", body)
            if links := known_links.get(identity):
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
                entries.append(self.facets.job_entry(target, edges))
                continue
            output = self.facets.output(target, derivations, edges, explicit=several)
            outputs += self._in_run(group, "out", target, output)
            if derivations[0].mode != "rename":
                reads |= {e.source.dataset for e in edges if not e.source.dataset.startswith(JOBS)}
        namespace, name = group.job
        event: Event = {
            "eventTime": group.last,
            "producer": PRODUCER,
            "schemaURL": f"{_CORE}/{'RunEvent' if group.run else 'JobEvent'}",
            "job": {"namespace": namespace, "name": name, "facets": self._job_facets(group, entries)},
            "inputs": [
                each
                for dataset in sorted(reads, key=self.name)
                for each in self._in_run(group, "in", dataset, reference(self.name(dataset)))
            ],
            "outputs": outputs,
        }
        if group.run is None:
            yield event
        else:
            yield from self._of_run(group, group.run, event)

    def _job_facets(self, group: _Group, entries: list[dict[str, Any]]) -> dict[str, Any]:
        """The facets of a job: its kept ones, its SQL or plan, and the entries of further jobs that it leads to."""
        facets = self.kept.job(group.file, PRODUCER) if self.kept else {}
        statement = next(iter(group.derivations.values()))[0].statement
        if statement.text:
            text = redact(statement.text, statement.dialect) if statement.how in _PLANS else statement.text
            body = {"query": text} | ({"dialect": statement.dialect} if statement.dialect else {})
            facets["sql"] = facet(PRODUCER, "1-1-0/SQLJobFacet", body)
        if entries:
            facets["lineage"] = lineage_facet({"entries": entries}, "LineageJobFacet")
        return facets

    def _of_run(self, group: _Group, run_id: str, event: Event) -> Iterator[Event]:
        """The start of a run and, where it is known, its end; lineage is in the last of them."""
        run = {"runId": _uuid(run_id)}
        body = self.kept.run(group.file, run_id, PRODUCER) if self.kept else {}
        times = self.kept.runs.get((group.file, run_id), {}) if self.kept else {}
        states = times or {"COMPLETE": group.last}
        end = next((s for s in ("COMPLETE", "FAIL", "ABORT", "RUNNING", "OTHER") if s in states), None)
        namespace, name = group.job
        bare = {**event, "job": {"namespace": namespace, "name": name}, "inputs": [], "outputs": []}
        yield {**(bare if end else event), "eventType": "START", "eventTime": self._start(group, times), "run": run}
        if end:
            yield {**event, "eventType": end, "run": {**run, "facets": body}}

    @staticmethod
    def _start(group: _Group, times: Mapping[str, str]) -> str:
        """When a run started; of lineage that several runs had, the first time is that of another run."""
        reported = [_stamp(time) for state, time in times.items() if state in STATES]
        return min(filter(None, reported), default=group.last if group.is_repeated else group.first)

    def _in_run(self, group: _Group, role: str, dataset: str, entry: dict[str, Any]) -> list[dict[str, Any]]:
        """An input or output with the facets that it has in one run only; of several versions, an entry for each."""
        if self.kept is None or group.run is None:
            return [entry]
        facets = self.kept.role(group.file, group.run, role, dataset, PRODUCER)
        whole = {**entry, **({f"{role}putFacets": facets} if facets else {})}
        versions = self.kept.versions(group.file, group.run, role, dataset, PRODUCER)
        name = {key: entry[key] for key in ("namespace", "name")}
        entries = [whole, *[name] * (len(versions) - 1)]
        return [
            {**each, "facets": {**each.get("facets", {}), VERSION: version}} if version else each
            for each, version in zip_longest(entries, versions)
        ]


def _stamp(time: str | None) -> str:
    """A time in the one form of events; empty if there is none."""
    try:
        return stamp(datetime.fromisoformat(time)) if time else ""
    except ValueError:
        return ""


def _stays(derivation: Derivation) -> bool:
    return derivation.mode not in ("drop",)


def _uuid(run: str) -> str:
    try:
        return str(uuid.UUID(run))
    except ValueError:
        return str(uuid.uuid5(_RUNS, run))

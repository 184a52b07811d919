"""Facets of exported events: the lineage of one output, column by column, and jobs that lead to others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from govtool.capture.openlineage.edges import EXTRA
from govtool.capture.openlineage.event_parts import (
    PRODUCER,
    exact_path,
    lineage_facet,
    reference,
    schema_facet,
    transformations,
)
from govtool.capture.openlineage.facets import Kept, facet
from govtool.capture.openlineage.identity import JOBS, DatasetName, field_name, parse_id
from govtool.model import HIDDEN, ROWS, Derivation, Edge, EdgeKind
from govtool.names import absolute_id

_IMPLIED = {"view": "replace", "materialized_view": "replace"}
"""What a statement does to a dataset of a kind, where it does not say."""


class LineageFacets:
    """Writes lineage with the names that datasets have in events."""

    def __init__(self, namespaces: Collection[str], kept: Kept | None, root: str) -> None:
        """Write for the namespaces of derivations, with the facets that were kept; paths begin at ``root``."""
        self._namespaces = frozenset(namespaces)
        self._kept, self._root = kept, root
        self._names: dict[str, DatasetName] = {}

    def name(self, identity: str) -> DatasetName:
        """The name of a dataset among the namespaces of the derivations; local paths are absolute."""
        found = self._names.get(identity)
        if found is None:
            found = self._names[identity] = parse_id(
                absolute_id(identity, self._root) if self._root else identity, self._namespaces
            )
        return found

    def output(
        self, target: str, derivations: list[Derivation], edges: list[Edge], *, explicit: bool
    ) -> dict[str, Any]:
        """One output of an event: its name, schema and lineage.

        Args:
            target: The dataset.
            derivations: All that one job or run does to it, in order.
            edges: Theirs, each once.
            explicit: List what it reads, as the event has several outputs, which need not all read the same.
        """
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
        known = self._kept.jobs.get(file) if self._kept else None
        if known is not None:
            return known
        scheme, separator, rest = file.partition("://")
        namespace, _, name = (rest if separator else file).partition("/")
        return (f"{scheme}://{namespace}" if separator else namespace), name

    def job_entry(self, target: str, edges: list[Edge]) -> dict[str, Any]:
        """A job to which another leads, and what it takes from it."""
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


def _is_silence(edge: Edge) -> bool:
    """Return whether an edge only says that an event named no columns: leaving them out says it again."""
    return edge.kind is EdgeKind.OPAQUE and edge.reason == "no-column-lineage" and edge.target_path == ROWS

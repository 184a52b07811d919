"""Facets that say nothing of lineage and are kept as they came: owners, tags, versions, quality, engines, parents."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from govtool.capture.openlineage.events import DATASET, FIELDWISE, JOB, RUN, VERSION, EntityPart
from govtool.capture.openlineage.identity import DatasetName, job_file
from govtool.capture.openlineage.merge import MergedEvents, RegisterValue, parts

SPEC = "https://openlineage.io/spec"

_DATASET = {
    "ownership": "1-0-1/OwnershipDatasetFacet", "tags": "1-0-0/TagsDatasetFacet",
    "version": "1-0-1/DatasetVersionDatasetFacet",
    "documentation": "1-1-0/DocumentationDatasetFacet", "dataSource": "1-0-1/DatasourceDatasetFacet",
    "storage": "1-0-1/StorageDatasetFacet", "dataQualityMetrics": "1-0-1/DataQualityMetricsDatasetFacet",
    "hierarchy": "1-0-0/HierarchyDatasetFacet", "catalog": "1-1-0/CatalogDatasetFacet",
}  # fmt: skip
_RUN = {
    "parent": "1-2-0/ParentRunFacet", "processing_engine": "1-1-1/ProcessingEngineRunFacet",
    "nominalTime": "1-0-1/NominalTimeRunFacet", "tags": "1-0-0/TagsRunFacet",
    "externalQuery": "1-0-2/ExternalQueryRunFacet", "errorMessage": "1-0-1/ErrorMessageRunFacet",
}  # fmt: skip
_JOB = {
    "ownership": "1-0-1/OwnershipJobFacet", "tags": "1-0-0/TagsJobFacet", "jobType": "2-0-4/JobTypeJobFacet",
    "documentation": "1-1-0/DocumentationJobFacet", "sourceCodeLocation": "1-1-0/SourceCodeLocationJobFacet",
}  # fmt: skip

_INPUT = {
    "inputStatistics": "1-0-0/InputStatisticsInputDatasetFacet",
    "dataQualityAssertions": "1-1-0/DataQualityAssertionsDatasetFacet",
}
_OUTPUT = {"outputStatistics": "1-0-2/OutputStatisticsOutputDatasetFacet"}
_OF_ROLE = {"in": _INPUT, "out": _OUTPUT}
"""Facets of a dataset in one run, by its role there."""


def schema_url(path: str) -> str:
    """The address of a facet's definition, ``1-0-1/OwnershipDatasetFacet`` in short."""
    name = path.rpartition("/")[2]
    return f"{SPEC}/facets/{path}.json#/$defs/{name}"


def facet(producer: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """A facet with the keys that every facet has."""
    return {"_producer": producer, "_schemaURL": schema_url(path), **body}


class Kept:
    """The kept facets of a state, to be written again: of datasets by id, of runs and jobs by file and run."""

    def __init__(self, state: MergedEvents) -> None:
        self.jobs: dict[str, tuple[str, str]] = {}
        """Namespace and name of jobs, by what evidence calls their file."""
        self._datasets: dict[str, dict[str, RegisterValue]] = {}
        self._runs: dict[tuple[str, str], dict[str, RegisterValue]] = {}
        self._jobs: dict[str, dict[str, RegisterValue]] = {}
        self._roles: dict[tuple[str, str, str, str], dict[str, RegisterValue]] = {}
        self.runs: dict[tuple[str, str], dict[str, str]] = {}
        """The states that were heard of a run, each with its time, by file and run."""
        for key, registers in sorted(state.entities.items()):
            if key.kind == DATASET:
                known = self._datasets.setdefault(DatasetName(key.namespace, key.name).id, {})
                keep_newest(known, parts(registers, "self").get(EntityPart("self"), {}))
            elif key.kind in (RUN, JOB):
                file = job_file(key.namespace, key.name)
                self.jobs[file] = (key.namespace, key.name)
                keep_newest(self._jobs.setdefault(file, {}), parts(registers, "job").get(EntityPart("job"), {}))
                if key.kind == RUN:
                    self._runs[file, key.run] = parts(registers, "run").get(EntityPart("run"), {})
                    self.runs[file, key.run] = {
                        f: value.time for (part, f), value in registers.items() if part.role == "event"
                    }
                for role in ("in", "out"):
                    for part, facets in parts(registers, role).items():
                        keep_newest(self._datasets.setdefault(part.dataset.id, {}), facets)
                        keep_newest(self._roles.setdefault((file, key.run, role, part.dataset.id), {}), facets)

    def dataset(self, identity: str, producer: str) -> dict[str, Any]:
        """The kept facets of a dataset."""
        return _written(self._datasets.get(identity, {}), _DATASET, producer)

    def role(self, file: str, run: str, role: str, identity: str, producer: str) -> dict[str, Any]:
        """The kept facets of a dataset that a run read (``in``) or wrote (``out``): figures and assertions."""
        return _written(self._roles.get((file, run, role, identity), {}), _OF_ROLE[role], producer)

    def versions(self, file: str, run: str, role: str, identity: str, producer: str) -> list[dict[str, Any]]:
        """The facets with the versions of a dataset that a run read (``in``) or wrote (``out``)."""
        found = self._roles.get((file, run, role, identity), {})
        stated = {value.text: value for name, value in found.items() if name.partition("/")[0] == VERSION}
        written = (_written({VERSION: stated[text]}, _DATASET, producer) for text in sorted(stated))
        return [facets[VERSION] for facets in written if facets]

    def run(self, file: str, run: str, producer: str) -> dict[str, Any]:
        """The kept facets of a run."""
        return _written(self._runs.get((file, run), {}), _RUN, producer)

    def job(self, file: str, producer: str) -> dict[str, Any]:
        """The kept facets of a job."""
        return _written(self._jobs.get(file, {}), _JOB, producer)


def keep_newest(known: dict[str, RegisterValue], facets: Mapping[str, RegisterValue]) -> None:
    """Take in facets that are newer than those that are known."""
    for name, value in facets.items():
        known[name] = max(known.get(name, value), value)


def _written(facets: Mapping[str, RegisterValue], wanted: Mapping[str, str], producer: str) -> dict[str, Any]:
    found: dict[str, dict[str, Any]] = {}
    for name, value in sorted(facets.items()):
        stem, _, figure = name.partition("/")
        body = json.loads(value.text)
        if stem in FIELDWISE and figure and stem in wanted:
            found.setdefault(stem, {})[figure] = body
        elif name in wanted and isinstance(body, Mapping) and "omitted" not in body:
            found[name] = dict(body)
    return {name: facet(producer, wanted[name], body) for name, body in found.items() if _fits(body, _SHAPES[name])}


_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", re.IGNORECASE)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)\Z")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+\Z")
_TAG = {"key": str, "value": str, "source?": str, "field?": str}
_REFERENCE = {"run": {"runId": _UUID}, "job": {"namespace": str, "name": str}}
_FIGURES = {
    "nullCount?": int, "distinctCount?": int, "sum?": float, "count?": float, "min?": float, "max?": float,
    "quantiles?": {"*": float},
}  # fmt: skip
_STATISTICS = {"rowCount?": int, "size?": int, "fileCount?": int}

_SHAPES: Mapping[str, Any] = {
    "ownership": {"owners?": [{"name": str, "type?": str}]},
    "tags": {"tags?": [_TAG]},
    "version": {"datasetVersion": str},
    "documentation": {"description": str, "contentType?": str},
    "dataSource": {"name?": str, "uri?": _URI},
    "storage": {"storageLayer": str, "fileFormat?": str},
    "dataQualityMetrics": {
        "rowCount?": int, "bytes?": int, "fileCount?": int, "lastUpdated?": _TIME, "columnMetrics": {"*": _FIGURES},
    },
    "inputStatistics": _STATISTICS,
    "outputStatistics": _STATISTICS,
    "dataQualityAssertions": {"assertions": [{"assertion": str, "success": bool, "column?": str}]},
    "hierarchy": {"hierarchy": [{"type": str, "name": str}]},
    "catalog": {
        "framework": str, "type": str, "name": str, "metadataUri?": str, "warehouseUri?": str, "source?": str,
        "catalogProperties?": {"*": str},
    },
    "parent": {**_REFERENCE, "root?": _REFERENCE},
    "processing_engine": {"version": str, "name?": str, "openlineageAdapterVersion?": str},
    "nominalTime": {"nominalStartTime": _TIME, "nominalEndTime?": _TIME},
    "externalQuery": {"externalQueryId": str, "source": str},
    "errorMessage": {"message": str, "programmingLanguage": str, "stackTrace?": str},
    "jobType": {"processingType": str, "integration": str, "jobType?": str},
    "sourceCodeLocation": {
        "type": str, "url": _URI, "repoUrl?": str, "path?": str, "version?": str, "tag?": str, "branch?": str,
    },
}  # fmt: skip
"""The required shape of each facet: ``?`` marks what may be missing, ``*`` stands for any name."""


def _fits(value: object, shape: Any) -> bool:
    """Return whether a facet conforms to the spec; others are kept here, and not passed on."""
    if isinstance(shape, re.Pattern):
        return isinstance(value, str) and shape.match(value) is not None
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(item, shape[0]) for item in value)
    if isinstance(shape, dict):
        if not isinstance(value, Mapping):
            return False
        if "*" in shape:
            return all(_fits(item, shape["*"]) for item in value.values())
        present = {name.rstrip("?") for name in shape} & value.keys()
        needed = {name for name in shape if not name.endswith("?")}
        return needed <= present and all(_fits(value[name], shape.get(name, shape.get(f"{name}?"))) for name in present)
    # Python's True is an int; JSON's is no number.
    if shape in (int, float):
        return isinstance(value, (int, shape)) and not isinstance(value, bool)
    return isinstance(value, shape)

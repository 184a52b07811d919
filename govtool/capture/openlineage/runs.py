"""The runs that events tell of: software, settings, figures and versions, out of OpenLineage's standard facets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from govtool.capture.openlineage.events import FIELDWISE, RUN, VERSION, EntityPart, Key
from govtool.capture.openlineage.identity import Fields, job_file
from govtool.capture.openlineage.merge import MergedEvents, Registers, RegisterValue, parts, run_state, span
from govtool.capture.openlineage.sql import sql_of
from govtool.model.run import Run, RunInput, RunOutput, Software
from govtool.model.version import ContentIdentity

_STATUS = {"COMPLETE": "complete", "FAIL": "failed", "ABORT": "aborted", "RUNNING": "running", "START": "running"}
_MODES = {
    "OVERWRITE": "overwrite",
    "TRUNCATE": "truncate",
    "CREATE": "create",
    "DROP": "drop",
    "ALTER": "alter",
    "RENAME": "rename",
}
_FINISHED = frozenset({"complete", "failed", "aborted"})


def runs_of(state: MergedEvents, source: str) -> list[Run]:
    """All runs of a state, by start."""
    found = [_run(key, registers, source) for key, registers in state.entities.items() if key.kind == RUN]
    applications = {key.run: name for key, name in _spark_applications(state)}
    named = (
        replace(run, application=applications.get(run.id) or applications.get(run.application, run.application))
        for run in found
    )
    return sorted(named, key=lambda run: (run.started or "", run.id, run.job))


def _spark_applications(state: MergedEvents) -> Iterator[tuple[Key, str]]:
    """Runs with Spark's id of the application that they are or were part of; older integrations state it once."""
    for key, registers in state.entities.items():
        if key.kind == RUN:
            name = _text(_loaded(parts(registers, "run")), "spark_applicationDetails", "applicationId")
            if name:
                yield key, name


def _run(key: Key, registers: Registers, source: str) -> Run:
    run = _loaded(parts(registers, "run"))
    job = _loaded(parts(registers, "job"))
    status = _STATUS.get(run_state(registers), "unknown")
    first, last = span(registers)
    sql = sql_of(job.get("sql"))
    return Run(
        id=key.run,
        job=job_file(key.namespace, key.name),
        status=status,
        how="openlineage",
        source=source,
        application=_text(run, "parent", "root", "run", "runId") or _text(run, "parent", "run", "runId"),
        user=_text(run, "spark_applicationDetails", "userName") or _text(run, "user", "name"),
        started=first or None,
        ended=(last or None) if status in _FINISHED else None,
        error=_text(run, "errorMessage", "message").partition("\n")[0][:500],
        software=tuple(sorted(set(_software(run, job)))),
        config=_config(run),
        inputs=tuple(sorted(_inputs(registers), key=lambda read: read.dataset)),
        outputs=tuple(sorted(_outputs(registers), key=lambda written: written.dataset)),
        plan=sql.text if sql is not None else "",
    )


def _loaded(found: Mapping[EntityPart, Mapping[str, RegisterValue]]) -> dict[str, Any]:
    return {name: value.load() for facets in found.values() for name, value in facets.items()}


def _software(run: Mapping[str, Any], job: Mapping[str, Any]) -> Iterator[Software]:
    """The engine, the integration that sent the events, and the code: a commit, or a digest of its text."""
    engine, version = _text(run, "processing_engine", "name"), _text(run, "processing_engine", "version")
    if engine and version:
        yield Software(engine.lower(), version)
    adapter = _text(run, "processing_engine", "openlineageAdapterVersion")
    if adapter:
        yield Software("openlineage-adapter", adapter)
    commit = _text(job, "sourceCodeLocation", "version")
    if commit:
        yield Software(_text(job, "sourceCodeLocation", "type").lower() or "git", commit)
    code = _text(job, "sourceCode", "sourceCode")
    if code:
        digest = hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
        yield Software(f"script:{_text(job, 'sourceCode', 'language').lower() or 'source'}", digest)
    sql = sql_of(job.get("sql"))
    if sql is not None:
        yield Software("script:sql", sql.digest)


def _config(run: Mapping[str, Any]) -> dict[str, str]:
    properties = _get(run, "spark_properties", "properties")
    if not isinstance(properties, Mapping):
        return {}
    return {str(name): _plain(properties[name]) for name in sorted(properties, key=str)}


def _inputs(registers: Registers) -> Iterator[RunInput]:
    for part, values in parts(registers, "in").items():
        for facets, identity in _versions(values):
            yield RunInput(
                part.dataset.id,
                rows=_figure(facets, "inputStatistics/rowCount", "dataQualityMetrics/rowCount"),
                bytes=_figure(facets, "inputStatistics/size", "dataQualityMetrics/bytes"),
                files=_figure(facets, "inputStatistics/fileCount", "dataQualityMetrics/fileCount"),
                identity=identity,
                fields=_fields(facets),
            )


def _outputs(registers: Registers) -> Iterator[RunOutput]:
    for part, values in parts(registers, "out").items():
        for facets, identity in _versions(values):
            yield RunOutput(
                part.dataset.id,
                mode=_MODES.get(_text(facets, "lifecycleStateChange", "lifecycleStateChange").upper(), ""),
                rows=_figure(facets, "outputStatistics/rowCount"),
                bytes=_figure(facets, "outputStatistics/size"),
                files=_figure(facets, "outputStatistics/fileCount"),
                identity=identity,
                fields=_fields(facets),
            )


def _versions(
    values: Mapping[str, RegisterValue],
) -> Iterator[tuple[dict[str, Any], ContentIdentity | None]]:
    """The facets of a dataset, once for each version that a run read or wrote.

    Of several, it is not known which one the figures are about: they are left out.
    """
    facets = {name: value.load() for name, value in values.items()}
    stated = {_text(facet, "datasetVersion") for name, facet in facets.items() if name.partition("/")[0] == VERSION}
    versions = sorted(stated - {""})
    if len(versions) > 1:
        facets = {name: facet for name, facet in facets.items() if name.partition("/")[0] not in FIELDWISE}
    for version in versions or [""]:
        yield facets, _identity(version) if version else None


def _identity(version: str) -> ContentIdentity:
    """A version as the event states it: its number, where it is one, and its text for the digest."""
    return ContentIdentity("stated", int(version) if version.isdecimal() and len(version) < 19 else None, version, 0, 0)


def _fields(facets: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((path, kind or "") for path, kind in Fields(_get(facets, "schema", "fields")).columns)


def _figure(facets: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = facets.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _get(value: Any, *keys: str) -> Any:
    for key in keys:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def _text(value: Any, *keys: str) -> str:
    found = _get(value, *keys)
    return found.strip() if isinstance(found, str) else ""


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)

"""Reads a dbt project into the graph: compiled SQL as lineage, everything else that is said as facts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from govtool.answers.coverage import Coverage
from govtool.answers.ingest import IngestResult
from govtool.app.ingest.payload import CommitKeywords, IngestKey, IngestPayload, fact_fragments, ingest_once
from govtool.app.ingest.reader_digest import BatchDigest
from govtool.app.ingest.sql_options import Progress, SourceText, check_dialect
from govtool.app.project.sources import SourceOrigin, place_of
from govtool.model import HIDDEN, ROWS, ColumnRef, Derivation, Diagnostic, Edge, EdgeKind, OutputColumn, Statement
from govtool.model.fact import Fact
from govtool.names import DEFAULT_NAMESPACE, dataset_id

if TYPE_CHECKING:
    from govtool.capture.dbt.artifacts import DbtArtifacts, DbtNode
    from govtool.capture.sql.extract import Extraction, Options, Shortfall
    from govtool.capture.sql.resolve.logged import LoggedScript
    from govtool.store import Store

_KINDS = {
    "view": ("view", "create_view"),
    "materialized_view": ("materialized_view", "create_view"),
    "materializedview": ("materialized_view", "create_view"),
}
"""Kinds of relations and statements by materialization; any other makes a table."""

_EPHEMERAL = "ephemeral"
_NO_SQL = {
    "python": "a model in Python: what it computes is not read",
    "sql": "it was not compiled (dbt compile)",
}


@dataclass(frozen=True, slots=True)
class DbtRequest:
    """A dbt project, and how to read it."""

    target: str
    """Its ``target`` folder."""
    dialect: str = ""
    """Empty: that of the project's adapter."""
    source: str | None = None
    """Default: the project's name."""
    namespace: str | None = None
    keep_literals: bool = False
    replace: bool = False
    """True: a source that was read elsewhere may be replaced."""


def ingest_dbt(
    store: Store,
    request: DbtRequest,
    *,
    progress: Progress | None = None,
    **commit: Unpack[CommitKeywords],
) -> IngestResult:
    """Read dbt's artifacts, and commit their lineage and facts to the store.

    Raises:
        RefusedIngestError: less was understood than ``demand`` asks for; nothing was committed.
        UsageError: there is no manifest, or an unknown dialect.
        StoreError: the commit could not be written; the store is as it was.
    """
    from govtool.capture.dbt.artifacts import read_project

    target = Path(request.target)
    project = read_project(target, check_dialect(request.dialect))
    root = project_folder(target)
    text = SourceText(root)
    former = project.name or target.absolute().parent.name or "dbt"
    source = request.source or f"dbt:{former}"
    origin = SourceOrigin(
        "dbt", place_of([str(root)], store), former="" if request.source else former, replace=request.replace
    )
    settings = _options(project, request, source)
    files = len({node.file for node in project.nodes.values()})

    def extract() -> IngestPayload:
        extraction = _extract(project, settings, progress)
        unread = list(_without_sql(project, settings))
        missing, shortfalls = _counted_as_opaque(unread)
        derivations = [_as_of(project, settings, d) for d in extraction.derivations]
        derivations += [*_declared(project, settings), *unread, *_exposures(project, settings)]
        return IngestPayload(
            source,
            project.dialect,
            files,
            Coverage.of(extraction) + missing,
            derivations,
            (*project.diagnostics, *extraction.diagnostics, *(s.diagnostic for s in shortfalls)),
            (*extraction.shortfalls, *shortfalls),
            {"nodes": len(project.nodes)},
            more=fact_fragments(source, _facts(project, settings)),
        )

    key = IngestKey("ingest dbt", source, _batch(project, settings), files, text, origin)
    return ingest_once(store, key, extract, **commit)


def project_folder(target: Path) -> Path:
    """The folder of a dbt project, by its ``target``, a file in that, or the folder itself."""
    folder = target.parent if target.is_file() else target
    return folder.parent if folder.name == "target" else folder


def _options(project: DbtArtifacts, request: DbtRequest, source: str) -> Options:
    """The extractor's options; the schema is the catalog's, of what the project makes too."""
    from govtool.capture.sql.extract import Options
    from govtool.capture.sql.schemas.supplied import Schema

    tables = {
        node.relation: {column.name: column.type for column in node.columns}
        for node in project.nodes.values()
        if node.known and node.columns
    }
    return Options(
        dialect=project.dialect,
        schema=Schema(tables) if tables else None,
        source=source,
        namespace=request.namespace or DEFAULT_NAMESPACE,
        keep_literals=request.keep_literals,
    )


def _batch(project: DbtArtifacts, settings: Options) -> str:
    batch = BatchDigest("dbt", settings.source, settings.dialect, settings.namespace, settings.keep_literals)
    for node_id, node in sorted(project.nodes.items()):
        batch.add_data((node_id, node, project.runs.get(node_id)))
    batch.add_data(project.diagnostics)
    return str(batch)


def _extract(project: DbtArtifacts, settings: Options, progress: Progress | None) -> Extraction:
    from govtool.capture.sql.extract import extract_in_turn

    return next(extract_in_turn([list(_scripts(project))], settings, progress))


def _scripts(project: DbtArtifacts) -> Iterator[LoggedScript]:
    """A script for each compiled node that makes a relation; its session is the node's id."""
    from govtool.capture.sql.resolve.logged import LoggedScript, LoggedStatement

    for node in project.nodes.values():
        if node.sql is not None and node.materialized != _EPHEMERAL:
            run = project.runs.get(node.id)
            statement = LoggedStatement(
                node.sql,
                node.file,
                1,
                spans=True,
                catalog=node.catalog,
                schema=node.schema,
                first_seen=run.completed_at if run is not None else None,
                last_seen=run.completed_at if run is not None else None,
                relation=node.relation,
            )
            yield LoggedScript(node.id, (statement,), project.dialect)


def _as_of(project: DbtArtifacts, settings: Options, derivation: Derivation) -> Derivation:
    """A derivation with what the project knows of its node: the kind of its relation, and the run."""
    node = project.nodes.get(derivation.statement.session or "")
    if node is None or derivation.target != dataset_id(node.relation, settings.namespace):
        return derivation
    run = project.runs.get(node.id)
    kind, statement = _KINDS.get(node.materialized, ("table", "create_table_as"))
    evidence = derivation.statement._replace(kind=statement, run=run.invocation if run is not None else None)
    return derivation._replace(target_kind=kind, statement=evidence)


def _declared(project: DbtArtifacts, settings: Options) -> Iterator[Derivation]:
    """Sources and seeds, whose columns come from elsewhere."""
    for node in project.nodes.values():
        if node.kind in ("source", "seed") and node.columns:
            yield Derivation(
                dataset_id(node.relation, settings.namespace),
                "table",
                "declare",
                _evidence(node, project, settings, "create_table"),
                tuple(OutputColumn(column.name, column.type) for column in node.columns),
                columns_complete=node.known,
                namespace=settings.namespace,
            )


def _without_sql(project: DbtArtifacts, settings: Options) -> Iterator[Derivation]:
    """Models without compiled SQL: their inputs are known, their columns' lineage is not."""
    for node in project.nodes.values():
        if node.kind not in ("model", "snapshot") or node.sql is not None or node.materialized == _EPHEMERAL:
            continue
        reason = _NO_SQL["python" if node.language == "python" else "sql"]
        note = Diagnostic("opaque", "warning", reason, node.file, 1, target=node.relation)
        edges = []
        for relation in _inputs_of(node, project):
            ref = ColumnRef(dataset_id(relation, settings.namespace), ROWS)
            edges.append(Edge(ref, ROWS, EdgeKind.READ))
            edges.append(Edge(ref, ROWS, EdgeKind.OPAQUE, reason=reason))
            edges.append(Edge(ref, HIDDEN, EdgeKind.OPAQUE, reason=reason))
            edges.extend(Edge(ref, column.name, EdgeKind.OPAQUE, reason=reason) for column in node.columns)
        yield Derivation(
            dataset_id(node.relation, settings.namespace),
            "table",
            "replace",
            _evidence(node, project, settings, "other"),
            tuple(OutputColumn(column.name, column.type) for column in node.columns),
            columns_complete=False,
            edges=tuple(edges),
            status="opaque",
            diagnostics=(note,),
            namespace=settings.namespace,
        )


def _counted_as_opaque(derivations: Sequence[Derivation]) -> tuple[Coverage, tuple[Shortfall, ...]]:
    """The coverage of models without compiled SQL, and a shortfall for each."""
    from govtool.capture.sql.extract import Shortfall

    count = len(derivations)
    shortfalls = (
        Shortfall("opaque", note, 1, "", each.statement.dialect) for each in derivations for note in each.diagnostics
    )
    return Coverage(statements=count, opaque=count, runs_opaque=count), tuple(shortfalls)


def _exposures(project: DbtArtifacts, settings: Options) -> Iterator[Derivation]:
    """Dashboards and other exposures: the relations they read are declared."""
    for node in project.nodes.values():
        if node.kind != "exposure":
            continue
        edges: list[Edge] = []
        for relation in _inputs_of(node, project):
            ref = ColumnRef(dataset_id(relation, settings.namespace), ROWS)
            edges.append(Edge(ref, ROWS, EdgeKind.READ))
            edges.append(Edge(ref, ROWS, EdgeKind.OPAQUE, reason="exposure: its columns are not declared"))
        yield Derivation(
            node.relation,
            "exposure",
            "replace",
            _evidence(node, project, settings, "exposure"),
            edges=tuple(edges),
            columns_complete=False,
            namespace=settings.namespace,
        )


def _inputs_of(node: DbtNode, project: DbtArtifacts) -> list[str]:
    """Relations that a node depends on, through ephemeral models."""
    found: dict[str, None] = {}
    pending = list(reversed(node.depends_on))
    seen = set(pending)
    while pending:
        other = project.nodes.get(pending.pop())
        if other is None:
            continue
        if other.materialized == _EPHEMERAL:
            fresh = [name for name in other.depends_on if name not in seen]
            seen.update(fresh)
            pending.extend(reversed(fresh))
        else:
            found[other.relation] = None
    return list(found)


def _evidence(node: DbtNode, project: DbtArtifacts, settings: Options, kind: str) -> Statement:
    run = project.runs.get(node.id)
    return Statement(
        fingerprint=hashlib.blake2b(node.id.encode("utf-8", "replace"), digest_size=16).hexdigest(),
        kind=kind,
        dialect=project.dialect,
        file=node.file,
        source=settings.source,
        how="declared",
        session=node.id,
        run=run.invocation if run is not None else None,
    )


def _facts(project: DbtArtifacts, settings: Options) -> Iterator[Fact]:
    from govtool.capture.dbt.artifacts import fact_text
    from govtool.capture.sql.properties.waiver_comments import waivers_of

    for node in project.nodes.values():
        if node.materialized == _EPHEMERAL:
            continue
        dataset = node.relation if node.kind == "exposure" else dataset_id(node.relation, settings.namespace)

        def fact(column: str | None, name: str, value: str, dataset: str = dataset, file: str = node.file) -> Fact:
            return Fact(dataset, column, name, value, "dbt", file, settings.source)

        yield fact(None, "dbt.id", node.id)
        yield from waivers_of(node.sql or "", settings.dialect, node.file, (dataset,), settings.source)
        for name, value in node.facts:
            yield fact(None, name, value)
        run = project.runs.get(node.id)
        if run is not None and run.status:
            yield fact(None, "run.status", run.status)
        for column in node.columns:
            if column.description:
                yield fact(column.name, "description", column.description)
            for tag in column.tags:
                yield fact(column.name, "tag", tag)
            for key, content in column.meta.items():
                yield fact(column.name, "owner" if key == "owner" else f"meta.{key}", fact_text(content))

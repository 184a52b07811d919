"""Ingests: read SQL, logs, dbt and catalogs into the graph, and commit.

Every ingest replaces everything that its source had put into the graph before; a source that was read from another
place is replaced only where ``replace`` is set. The same input again makes no commit. A result has the commit, its
coverage, and what was not understood; nothing is printed. Options that all ingests share are in
``govtool.api.ingest_options``, ingests of events in ``govtool.api.ingest_events``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import IO, TYPE_CHECKING, Unpack

from govtool.api.arguments import checked
from govtool.api.ingest_options import IngestOptions, ingest_with

if TYPE_CHECKING:
    from govtool.answers.ingest import IngestResult
    from govtool.api.arguments import Paths, Texts
    from govtool.app.ingest.logs.request import Status
    from govtool.app.ingest.sql_options import Progress
    from govtool.app.project.requests import PathArgument, SchemaArgument


@checked
def ingest_sql(
    paths: Paths,
    *,
    dialect: str | None = None,
    schema: SchemaArgument | None = None,
    catalog: str | None = None,
    explain: bool = False,
    default_catalog: str | None = None,
    default_schema: str | None = None,
    relation_from: str | None = None,
    var: Mapping[str, object] | Iterable[str] | None = None,
    namespace: str | None = None,
    drop_unreadable: bool = False,
    follow_links: bool = False,
    workers: int | None = None,
    stdin: IO[bytes] | None = None,
    progress: Progress | None = None,
    report: Callable[[Status], None] | None = None,
    **options: Unpack[IngestOptions],
) -> IngestResult:
    """Read SQL files into the graph and commit.

    Options that are not given are those of ``[sql]`` in govtool.toml.

    Args:
        paths: Files and folders; ``-`` reads ``stdin``.
        dialect: The SQL dialect: ``postgres``, ``snowflake`` …; by default generic SQL.
        schema: Files of DDL or JSON, or columns by table: ``{"users": ["id", "name"]}``.
        catalog: The address of a database that takes the place of a schema: ``postgresql://reader@dw/shop``.
        explain: Ask that database, a PostgreSQL, about what the text leaves open. Nothing is run.
        default_catalog: The catalog of names without one.
        default_schema: The schema of names without one.
        relation_from: The relation that a file of one SELECT makes: ``{schema}/{table}.sql``.
        var: Values for templates, by name.
        namespace: The namespace of datasets, to tell two databases apart.
        drop_unreadable: Forget what files said before that are there and cannot be read or understood now.
        follow_links: Follow symbolic links in folders also where they lead out of these.
        workers: Processes; by default one, which is fastest on up to two cores.
        stdin: A binary stream, for the path ``-``.
        progress: Called as ``progress(done, total)``.
        report: Called instead with a status: its ``stage``, ``done`` and ``total``, ``rate``, ``distinct``, ``failed``.
        **options: Those of every ingest: see `IngestOptions`.

    Raises:
        UsageError: nothing to read, an unknown dialect or branch, a schema that cannot be read.
        RefusedIngestError: nothing was understood, or less than demanded; nothing was committed.
        SourceError: the catalog cannot be read.
        StoreError: there is no store, or the commit could not be written; then the store is as it was.
    """
    from govtool.app.ingest.sql import ingest_sql as ingest
    from govtool.app.project.requests import sql_request

    request = sql_request(
        paths,
        dialect=dialect,
        schema=schema,
        catalog=catalog,
        explain=explain,
        default_catalog=default_catalog,
        default_schema=default_schema,
        relation_from=relation_from,
        var=var,
        namespace=namespace,
        source=options.get("source"),
        follow_links=follow_links,
        workers=workers,
    )
    more = {
        "stdin": stdin,
        "progress": progress,
        "report": report,
        "drop_unreadable": drop_unreadable,
        "replace_source": options.get("replace", False),
    }
    return ingest_with(ingest, request, more=more, **options)


@checked
def ingest_log(
    paths: Paths,
    *,
    log_format: str = "auto",
    map: Mapping[str, str] | Iterable[str] | None = None,
    dialect: str | None = None,
    schema: SchemaArgument | None = None,
    default_catalog: str | None = None,
    default_schema: str | None = None,
    keep_literals: bool = False,
    engine: str = "local",
    workers: int | None = None,
    master: str | None = None,
    max_errors: int | None = None,
    namespace: str | None = None,
    stdin: IO[bytes] | None = None,
    progress: Callable[[Status], None] | None = None,
    **options: Unpack[IngestOptions],
) -> IngestResult:
    """Read query logs into the graph and commit. Literals are redacted before anything is stored.

    Args:
        paths: Files, also compressed, and folders; ``-`` reads ``stdin``.
        log_format: ``auto``, ``jsonl``, ``csv``, ``postgres-csv``, ``snowflake``, ``bigquery`` …; see docs/logs.md.
        map: The names of a log's columns by field: ``{"text": "query", "started_at": "ts"}``.
        dialect: The dialect of statements whose log names none.
        schema: Files of DDL or JSON, or columns by table: ``{"users": ["id", "name"]}``.
        default_catalog: The catalog of names without one.
        default_schema: The schema of names without one.
        keep_literals: Store literals as they are.
        engine: ``local``, or ``spark`` for logs larger than a machine.
        workers: Processes of the local engine; by default one a core.
        master: The URL of Spark's master.
        max_errors: Give up after this many records that cannot be read.
        namespace: The namespace of datasets, to tell two databases apart.
        stdin: A binary stream, for the path ``-``.
        progress: Called with a status: its ``stage``, ``done`` and ``total``, ``rate`` …
        **options: Those of every ingest: see `IngestOptions`.

    Raises:
        RefusedIngestError: nothing was understood, or less than demanded; nothing was committed.
        UsageError: nothing to read, an unknown format, dialect or branch.
        EvidenceError: more than ``max_errors`` records cannot be read (``evidence.max-errors``).
        EngineError: a worker process died, or Spark failed.
        StoreError: there is no store, or the commit could not be written; then the store is as it was.
    """
    from govtool.app.ingest.logs.ingest import ingest_log as ingest
    from govtool.app.ingest.logs.request import LogRequest
    from govtool.app.project.requests import field_map, sql_request
    from govtool.errors import UsageError

    if options.get("dry_run") and engine == "spark":  # its executors write to the store themselves
        raise UsageError("no dry run with the Spark engine", code="usage.arguments", hint="--engine local")

    sql = sql_request(
        paths,
        dialect=dialect,
        schema=schema,
        default_catalog=default_catalog,
        default_schema=default_schema,
        namespace=namespace,
        source=options.get("source"),
    )
    request = LogRequest(
        sql,
        format=log_format,
        map=field_map(map),
        keep_literals=keep_literals,
        max_errors=max_errors,
        engine=engine,
        workers=workers,
        master=master,
        replace=options.get("replace", False),
    )
    return ingest_with(ingest, request, errors=False, more={"stdin": stdin, "progress": progress}, **options)


@checked
def ingest_dbt(
    target: PathArgument,
    *,
    dialect: str | None = None,
    namespace: str | None = None,
    keep_literals: bool = False,
    progress: Progress | None = None,
    **options: Unpack[IngestOptions],
) -> IngestResult:
    """Read a dbt project's artifacts into the graph and commit.

    Args:
        target: dbt's target folder, with manifest.json.
        dialect: The SQL dialect; by default that of the project's adapter.
        namespace: The namespace of datasets, to tell two databases apart.
        keep_literals: Store literals as they are.
        progress: Called as ``progress(done, total)``.
        **options: Those of every ingest: see `IngestOptions`.

    Raises:
        RefusedIngestError: nothing was understood, or less than demanded; nothing was committed.
        UsageError: there are no artifacts, or they cannot be read; an unknown dialect or branch.
        StoreError: there is no store, or the commit could not be written; then the store is as it was.
    """
    from govtool.app.ingest.dbt import DbtRequest
    from govtool.app.ingest.dbt import ingest_dbt as ingest
    from govtool.app.project.requests import default_namespace

    request = DbtRequest(
        os.fspath(target),
        dialect or "",
        options.get("source"),
        default_namespace(namespace),
        keep_literals,
        options.get("replace", False),
    )
    return ingest_with(ingest, request, errors=False, more={"progress": progress}, **options)


@checked
def ingest_catalog(
    url: str,
    *,
    sql: Paths | None = None,
    only: Texts | None = None,
    explain: bool = False,
    dialect: str | None = None,
    namespace: str | None = None,
    keep_literals: bool = False,
    progress: Progress | None = None,
    **options: Unpack[IngestOptions],
) -> IngestResult:
    """Read the catalog of a database into the graph and commit. Nothing is written to the database.

    Args:
        url: The address: ``postgresql://reader@dw:5432/shop``, ``duckdb:///file`` …; see docs/catalog.md.
        sql: Files and folders of SQL that is read with it, the catalog as its schema.
        only: Patterns of schemas to read: ``mart_*``.
        explain: Ask PostgreSQL about statements of ``sql`` that the text leaves open. Nothing is run.
        dialect: The SQL dialect; by default that of the database.
        namespace: The namespace of datasets; by default the server's, as OpenLineage names it.
        keep_literals: Store literals as they are.
        progress: Called as ``progress(done, total)``.
        **options: Those of every ingest: see `IngestOptions`.

    Raises:
        RefusedIngestError: nothing was understood, or less than demanded; nothing was committed.
        UsageError: the address is none, an unknown dialect or branch.
        SourceError: the database cannot be reached or read.
        StoreError: there is no store, or the commit could not be written; then the store is as it was.
    """
    from govtool.app.ingest.catalog import CatalogRequest
    from govtool.app.ingest.catalog import ingest_catalog as ingest
    from govtool.app.project.requests import default_namespace, texts

    request = CatalogRequest(
        url,
        texts(only),
        texts(sql),
        explain,
        dialect or "",
        options.get("source"),
        default_namespace(namespace),
        keep_literals=keep_literals,
        replace=options.get("replace", False),
    )
    return ingest_with(ingest, request, errors=False, more={"progress": progress}, **options)

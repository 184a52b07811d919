"""Ingests: read SQL, logs, dbt, catalogs, OpenLineage, PROV and Spark into the graph, and commit.

Every ingest replaces everything that its source had put into the graph before; a source that was read from another
place is replaced only where ``replace`` is set. The same input again makes no commit. A result has the commit, its
coverage, and what was not understood; nothing is printed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import IO, TYPE_CHECKING

from govtool.api.arguments import Ref, checked

if TYPE_CHECKING:
    from govtool.answers.ingest import IngestResult
    from govtool.api.arguments import Paths, Texts
    from govtool.app.logs.request import Status
    from govtool.app.requests import PathArgument, SchemaArgument
    from govtool.app.sql import Progress
    from govtool.store import Commit, CommitResult, Store


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
    source: str | None = None,
    replace: bool = False,
    namespace: str | None = None,
    drop_unreadable: bool = False,
    follow_links: bool = False,
    explain_failures: bool = False,
    dry_run: bool = False,
    policy: Texts | None = None,
    strict: bool = False,
    min_coverage: float | None = None,
    message: str | None = None,
    author: str | None = None,
    branch: str | None = None,
    store: PathArgument | None = None,
    stdin: IO[bytes] | None = None,
    progress: Progress | None = None,
) -> IngestResult:
    """Read SQL files into the graph and commit.

    Options that are not given are those of ``[sql]`` in govtool.toml.

    Args:
        paths: Files and folders; ``-`` reads ``stdin``.
        dialect: The SQL dialect: ``postgres``, ``snowflake`` …; by default a common denominator.
        schema: Files of DDL or JSON, or columns by table: ``{"users": ["id", "name"]}``.
        catalog: The address of a database that takes the place of a schema: ``postgresql://reader@dw/shop``.
        explain: Ask that database, a PostgreSQL, about what the text leaves open. Nothing is run.
        default_catalog: The catalog of names without one.
        default_schema: The schema of names without one.
        relation_from: The relation that a file of one SELECT makes: ``{schema}/{table}.sql``.
        var: Values for templates, by name.
        source: The name of what this ingest replaces; by default its kind and path.
        replace: Replace the source also where it was read from another place or by another kind of ingest.
        namespace: The namespace of datasets, to tell two databases apart.
        drop_unreadable: Forget what files said before that are there and cannot be read or understood now.
        follow_links: Follow symbolic links in folders also where they lead out of these.
        explain_failures: Return ``shortfalls`` also where nothing is new: all is read again.
        dry_run: Change nothing: the result's ``plan`` has what would change.
        policy: Of a dry run, the policies whose classes and findings it compares; by default those in ``policies``.
        strict: Commit only if everything was understood.
        min_coverage: Commit only if this share of the statements was understood, in percent.
        message: The commit's message.
        author: The commit's author; by default the user's name.
        branch: The branch to commit to; by default ``main``.
        store: A path or URI; by default that of the settings.
        stdin: A binary stream, for the path ``-``.
        progress: Called as ``progress(done, total)``.

    Raises:
        UsageError: nothing to read, an unknown dialect or branch, a schema that cannot be read.
        RefusedIngestError: nothing was understood, or less than demanded; nothing was committed.
        SourceError: the catalog cannot be read.
        StoreError: there is no store, or the commit could not be written; then the store is as it was.
    """
    from govtool.answers.ingest import CoverageDemand
    from govtool.app import ingest
    from govtool.app.dry_run import ingest_or_plan
    from govtool.app.project import existing_branch
    from govtool.app.requests import sql_request, texts

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
        source=source,
        follow_links=follow_links,
    )
    opened = _opened(store)
    on = existing_branch(opened, branch)

    def run(target: Store) -> IngestResult:
        return ingest.ingest_sql(
            target,
            request,
            message=message,
            author=author,
            branch=on,
            stdin=stdin,
            progress=progress,
            drop_unreadable=drop_unreadable,
            replace_source=replace,
            demand=CoverageDemand(strict, min_coverage, shortfalls=explain_failures),
        )

    return ingest_or_plan(opened, run, dry_run=dry_run, policy=texts(policy) or None)


@checked
def ingest_log(
    paths: Paths,
    *,
    format: str = "auto",
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
    explain_failures: bool = False,
    strict: bool = False,
    min_coverage: float | None = None,
    source: str | None = None,
    replace: bool = False,
    namespace: str | None = None,
    message: str | None = None,
    author: str | None = None,
    branch: str | None = None,
    store: PathArgument | None = None,
    stdin: IO[bytes] | None = None,
    progress: Callable[[Status], None] | None = None,
) -> IngestResult:
    """Read query logs into the graph and commit. Literals are redacted before anything is stored.

    Args:
        paths: Files, also compressed, and folders; ``-`` reads ``stdin``.
        format: ``auto``, ``jsonl``, ``csv``, ``postgres-csv``, ``snowflake``, ``bigquery`` …; see docs/logs.md.
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
        explain_failures: Return ``shortfalls`` also where nothing is new: the log is read again.
        strict: Commit only if everything was understood.
        min_coverage: Commit only if this share of the statements and of their runs was understood, in percent.
        source: The name of what this ingest replaces; by default its kind and path.
        replace: Replace the source also where it was read from another place or by another kind of ingest.
        namespace: The namespace of datasets, to tell two databases apart.
        message: The commit's message.
        author: The commit's author; by default the user's name.
        branch: The branch to commit to; by default ``main``.
        store: A path or URI; by default that of the settings.
        stdin: A binary stream, for the path ``-``.
        progress: Called with a status: its ``stage``, ``done`` and ``total``, ``rate`` …

    Raises:
        RefusedIngestError: nothing was understood, or less than demanded; nothing was committed.
        UsageError: nothing to read, an unknown format, dialect or branch, more than ``max_errors`` errors.
        EngineError: a worker process died, or Spark failed.
        StoreError: there is no store, or the commit could not be written; then the store is as it was.
    """
    from govtool.answers.ingest import CoverageDemand
    from govtool.app.dry_run import published_ingest
    from govtool.app.logs import ingest
    from govtool.app.logs.request import LogRequest
    from govtool.app.project import existing_branch
    from govtool.app.requests import field_map, sql_request

    sql = sql_request(
        paths,
        dialect=dialect,
        schema=schema,
        default_catalog=default_catalog,
        default_schema=default_schema,
        namespace=namespace,
        source=source,
    )
    request = LogRequest(
        sql,
        format=format,
        map=field_map(map),
        keep_literals=keep_literals,
        max_errors=max_errors,
        engine=engine,
        workers=workers,
        master=master,
        replace=replace,
    )
    opened = _opened(store)
    result = ingest.ingest_log(
        opened,
        request,
        message=message,
        author=author,
        branch=existing_branch(opened, branch),
        stdin=stdin,
        progress=progress,
        demand=CoverageDemand(strict, min_coverage, errors=False, shortfalls=explain_failures),
    )
    return published_ingest(opened, result)


@checked
def ingest_dbt(
    target: PathArgument,
    *,
    dialect: str | None = None,
    source: str | None = None,
    replace: bool = False,
    namespace: str | None = None,
    keep_literals: bool = False,
    explain_failures: bool = False,
    dry_run: bool = False,
    policy: Texts | None = None,
    strict: bool = False,
    min_coverage: float | None = None,
    message: str | None = None,
    author: str | None = None,
    branch: str | None = None,
    store: PathArgument | None = None,
    progress: Progress | None = None,
) -> IngestResult:
    """Read a dbt project's artifacts into the graph and commit.

    Args:
        target: dbt's target folder, with manifest.json.
        dialect: The SQL dialect; by default that of the project's adapter.
        source: The name of what this ingest replaces; by default its kind and the project's name.
        replace: Replace the source also where it was read from another place or by another kind of ingest.
        namespace: The namespace of datasets, to tell two databases apart.
        keep_literals: Store literals as they are.
        explain_failures: Return ``shortfalls`` also where nothing is new: all is read again.
        dry_run: Change nothing: the result's ``plan`` has what would change.
        policy: Of a dry run, the policies whose classes and findings it compares; by default those in ``policies``.
        strict: Commit only if everything was understood.
        min_coverage: Commit only if this share of the statements was understood, in percent.
        message: The commit's message.
        author: The commit's author; by default the user's name.
        branch: The branch to commit to; by default ``main``.
        store: A path or URI; by default that of the settings.
        progress: Called as ``progress(done, total)``.

    Raises:
        RefusedIngestError: nothing was understood, or less than demanded; nothing was committed.
        UsageError: there are no artifacts, or they cannot be read; an unknown dialect or branch.
        StoreError: there is no store, or the commit could not be written; then the store is as it was.
    """
    from govtool.answers.ingest import CoverageDemand
    from govtool.app import ingest_dbt as dbt
    from govtool.app.dry_run import ingest_or_plan
    from govtool.app.project import existing_branch
    from govtool.app.requests import default_namespace, texts

    request = dbt.DbtRequest(
        os.fspath(target), dialect or "", source, default_namespace(namespace), keep_literals, replace
    )
    opened = _opened(store)
    on = existing_branch(opened, branch)

    def run(target: Store) -> IngestResult:
        return dbt.ingest_dbt(
            target,
            request,
            message=message,
            author=author,
            branch=on,
            progress=progress,
            demand=CoverageDemand(strict, min_coverage, errors=False, shortfalls=explain_failures),
        )

    return ingest_or_plan(opened, run, dry_run=dry_run, policy=texts(policy) or None)


@checked
def ingest_catalog(
    url: str,
    *,
    sql: Paths | None = None,
    only: Texts | None = None,
    explain: bool = False,
    dialect: str | None = None,
    source: str | None = None,
    replace: bool = False,
    namespace: str | None = None,
    keep_literals: bool = False,
    explain_failures: bool = False,
    dry_run: bool = False,
    policy: Texts | None = None,
    strict: bool = False,
    min_coverage: float | None = None,
    message: str | None = None,
    author: str | None = None,
    branch: str | None = None,
    store: PathArgument | None = None,
    progress: Progress | None = None,
) -> IngestResult:
    """Read the catalog of a database into the graph and commit. Nothing is written to the database.

    Args:
        url: The address: ``postgresql://reader@dw:5432/shop``, ``duckdb:///file`` …; see docs/catalog.md.
        sql: Files and folders of SQL that is read with it, the catalog as its schema.
        only: Patterns of schemas to read: ``mart_*``.
        explain: Ask PostgreSQL about statements of ``sql`` that the text leaves open. Nothing is run.
        dialect: The SQL dialect; by default that of the database.
        source: The name of what this ingest replaces; by default its kind and the database's name.
        replace: Replace the source also where it was read from another place or by another kind of ingest.
        namespace: The namespace of datasets; by default the server's, as OpenLineage names it.
        keep_literals: Store literals as they are.
        explain_failures: Return ``shortfalls`` also where nothing is new: all is read again.
        dry_run: Change nothing: the result's ``plan`` has what would change.
        policy: Of a dry run, the policies whose classes and findings it compares; by default those in ``policies``.
        strict: Commit only if everything was understood.
        min_coverage: Commit only if this share of the statements was understood, in percent.
        message: The commit's message.
        author: The commit's author; by default the user's name.
        branch: The branch to commit to; by default ``main``.
        store: A path or URI; by default that of the settings.
        progress: Called as ``progress(done, total)``.

    Raises:
        RefusedIngestError: nothing was understood, or less than demanded; nothing was committed.
        UsageError: the address is none, an unknown dialect or branch.
        SourceError: the database cannot be reached or read.
        StoreError: there is no store, or the commit could not be written; then the store is as it was.
    """
    from govtool.answers.ingest import CoverageDemand
    from govtool.app import ingest_catalog as catalogs
    from govtool.app.dry_run import ingest_or_plan
    from govtool.app.project import existing_branch
    from govtool.app.requests import default_namespace, texts

    request = catalogs.CatalogRequest(
        url,
        texts(only),
        texts(sql),
        explain,
        dialect or "",
        source,
        default_namespace(namespace),
        keep_literals=keep_literals,
        replace=replace,
    )
    opened = _opened(store)
    on = existing_branch(opened, branch)

    def run(target: Store) -> IngestResult:
        return catalogs.ingest_catalog(
            target,
            request,
            message=message,
            author=author,
            branch=on,
            progress=progress,
            demand=CoverageDemand(strict, min_coverage, errors=False, shortfalls=explain_failures),
        )

    return ingest_or_plan(opened, run, dry_run=dry_run, policy=texts(policy) or None)


@checked
def ingest_openlineage(
    paths: Paths,
    *,
    source: str | None = None,
    replace: bool = False,
    append: bool = False,
    dialect: str | None = None,
    dry_run: bool = False,
    policy: Texts | None = None,
    strict: bool = False,
    min_coverage: float | None = None,
    message: str | None = None,
    author: str | None = None,
    branch: str | None = None,
    store: PathArgument | None = None,
    stdin: IO[bytes] | None = None,
    progress: Progress | None = None,
) -> IngestResult:
    """Read OpenLineage events into the graph and commit.

    Args:
        paths: Files and folders of JSON or JSON lines, also compressed; ``-`` reads ``stdin``.
        source: The name of what this ingest replaces; by default its kind and path.
        replace: Replace the source also where it was read from another place or by another kind of ingest.
        append: Merge with what the source had put into the graph before, instead of replacing it.
        dialect: The dialect of SQL whose event names none.
        dry_run: Change nothing: the result's ``plan`` has what would change.
        policy: Of a dry run, the policies whose classes and findings it compares; by default those in ``policies``.
        strict: Commit only if everything was understood.
        min_coverage: Commit only if this share of the statements was understood, in percent.
        message: The commit's message.
        author: The commit's author; by default the user's name.
        branch: The branch to commit to; by default ``main``.
        store: A path or URI; by default that of the settings.
        stdin: A binary stream, for the path ``-``.
        progress: Called as ``progress(done, total)``.

    Raises:
        RefusedIngestError: nothing was understood, or less than demanded; nothing was committed.
        UsageError: nothing to read, an unknown dialect or branch.
        StoreError: there is no store, or the commit could not be written; then the store is as it was.
    """
    from govtool.answers.ingest import CoverageDemand
    from govtool.app import openlineage
    from govtool.app.dry_run import ingest_or_plan
    from govtool.app.project import existing_branch
    from govtool.app.requests import texts

    opened = _opened(store)
    on = existing_branch(opened, branch)

    def run(target: Store) -> IngestResult:
        return openlineage.ingest_openlineage(
            target,
            openlineage.OpenLineageRequest(texts(paths), source, dialect or "", append, replace),
            message=message,
            author=author,
            branch=on,
            stdin=stdin,
            progress=progress,
            demand=CoverageDemand(strict, min_coverage),
        )

    return ingest_or_plan(opened, run, dry_run=dry_run, policy=texts(policy) or None)


@checked
def ingest_prov(
    paths: Paths,
    *,
    source: str | None = None,
    replace: bool = False,
    dry_run: bool = False,
    policy: Texts | None = None,
    strict: bool = False,
    min_coverage: float | None = None,
    message: str | None = None,
    author: str | None = None,
    branch: str | None = None,
    store: PathArgument | None = None,
    stdin: IO[bytes] | None = None,
    progress: Progress | None = None,
) -> IngestResult:
    """Read W3C PROV documents into the graph and commit.

    Args:
        paths: Files and folders of PROV-JSON, PROV-N or PROV-JSONLD; ``-`` reads ``stdin``.
        source: The name of what this ingest replaces; by default its kind and path.
        replace: Replace the source also where it was read from another place or by another kind of ingest.
        dry_run: Change nothing: the result's ``plan`` has what would change.
        policy: Of a dry run, the policies whose classes and findings it compares; by default those in ``policies``.
        strict: Commit only if everything was understood.
        min_coverage: Commit only if this share of the statements was understood, in percent.
        message: The commit's message.
        author: The commit's author; by default the user's name.
        branch: The branch to commit to; by default ``main``.
        store: A path or URI; by default that of the settings.
        stdin: A binary stream, for the path ``-``.
        progress: Called as ``progress(done, total)``.

    Raises:
        RefusedIngestError: nothing was understood, or less than demanded; nothing was committed.
        UsageError: nothing to read, an unknown branch.
        StoreError: there is no store, or the commit could not be written; then the store is as it was.
    """
    from govtool.answers.ingest import CoverageDemand
    from govtool.app import ingest_prov as prov
    from govtool.app.dry_run import ingest_or_plan
    from govtool.app.project import existing_branch
    from govtool.app.requests import texts

    opened = _opened(store)
    on = existing_branch(opened, branch)

    def run(target: Store) -> IngestResult:
        return prov.ingest_prov(
            target,
            prov.ProvRequest(texts(paths), source, replace),
            message=message,
            author=author,
            branch=on,
            stdin=stdin,
            progress=progress,
            demand=CoverageDemand(strict, min_coverage),
        )

    return ingest_or_plan(opened, run, dry_run=dry_run, policy=texts(policy) or None)


@checked
def ingest_spark(
    logs: Paths,
    *,
    source: str | None = None,
    replace: bool = False,
    default_schema: str = "default",
    namespace: str = "default",
    dry_run: bool = False,
    policy: Texts | None = None,
    strict: bool = False,
    min_coverage: float | None = None,
    message: str | None = None,
    author: str | None = None,
    branch: str | None = None,
    store: PathArgument | None = None,
    progress: Progress | None = None,
) -> IngestResult:
    """Read event logs of Spark applications into the graph and commit.

    Args:
        logs: Event logs, rolling directories, or folders of either; also compressed.
        source: The name of what this ingest replaces; by default its kind and path.
        replace: Replace the source also where it was read from another place or by another kind of ingest.
        default_schema: The database of tables that are named without one.
        namespace: The namespace of tables, to tell two metastores apart.
        dry_run: Change nothing: the result's ``plan`` has what would change.
        policy: Of a dry run, the policies whose classes and findings it compares; by default those in ``policies``.
        strict: Commit only if everything was understood.
        min_coverage: Commit only if this share of the statements was understood, in percent.
        message: The commit's message.
        author: The commit's author; by default the user's name.
        branch: The branch to commit to; by default ``main``.
        store: A path or URI; by default that of the settings.
        progress: Called as ``progress(done, total)``.

    Raises:
        RefusedIngestError: nothing was understood, or less than demanded; nothing was committed.
        UsageError: nothing to read, an unknown branch.
        StoreError: there is no store, or the commit could not be written; then the store is as it was.
    """
    from govtool.answers.ingest import CoverageDemand
    from govtool.app import ingest_spark as spark
    from govtool.app.dry_run import ingest_or_plan
    from govtool.app.project import existing_branch
    from govtool.app.requests import texts

    opened = _opened(store)
    on = existing_branch(opened, branch)

    def run(target: Store) -> IngestResult:
        return spark.ingest_spark(
            target,
            spark.SparkRequest(texts(logs), source, default_schema, namespace, replace),
            message=message,
            author=author,
            branch=on,
            progress=progress,
            demand=CoverageDemand(strict, min_coverage),
        )

    return ingest_or_plan(opened, run, dry_run=dry_run, policy=texts(policy) or None)


@checked
def drop_source(
    name: str,
    *,
    message: str | None = None,
    author: str | None = None,
    branch: str | None = None,
    store: PathArgument | None = None,
) -> Commit:
    """Retract everything that a source put into the graph, and return the commit. Earlier versions keep it.

    Args:
        name: The source.
        message: The commit's message.
        author: The commit's author; by default the user's name.
        branch: The branch to commit to; by default ``main``.
        store: A path or URI; by default that of the settings.

    Raises:
        UnknownNameError: there is no such source at the head of the branch (``usage.unknown-source``).
        StoreError: there is no store, or the commit could not be written; then the store is as it was.
    """
    from govtool.app import sources
    from govtool.app.ingest import user_name
    from govtool.app.project import existing_branch

    opened = _opened(store)
    branch = existing_branch(opened, branch)
    return sources.drop_source(opened, name, message=message, author=author or user_name(), branch=branch).commit


@checked
def revert_commit(
    ref: Ref,
    *,
    message: str | None = None,
    author: str | None = None,
    branch: str | None = None,
    store: PathArgument | None = None,
) -> CommitResult:
    """Undo a commit: its sources get what they had before it, in a new commit.

    Args:
        ref: The commit to undo: ``HEAD``, a number, an id, a tag.
        message: The commit's message.
        author: The commit's author; by default the user's name.
        branch: The branch to commit to; by default ``main``.
        store: A path or URI; by default that of the settings.

    Returns:
        The commit; ``created`` is false where nothing of ``ref`` is left.

    Raises:
        ConflictError: sources were changed again since (``store.conflict``).
        UnknownNameError: there is no such commit or branch.
        StoreError: there is no store, or the commit could not be written; then the store is as it was.
    """
    from govtool.app.ingest import user_name
    from govtool.app.project import commit_at, existing_branch
    from govtool.store.revert import revert_commit as revert

    opened = _opened(store)
    branch = existing_branch(opened, branch)
    undone = commit_at(opened, str(ref), branch)
    return revert(opened, undone, branch, author=author or user_name(), message=message)


def _opened(store: PathArgument | None) -> Store:
    from govtool.app.project import open_store

    return open_store(None if store is None else os.fspath(store))

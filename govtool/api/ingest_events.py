"""Ingests of events: OpenLineage, W3C PROV and event logs of Spark."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Unpack

from govtool.api.arguments import checked
from govtool.api.ingest_options import IngestOptions, ingest_with

if TYPE_CHECKING:
    from govtool.answers.ingest import IngestResult
    from govtool.api.arguments import Paths
    from govtool.app.ingest.sql_options import Progress


@checked
def ingest_openlineage(
    paths: Paths,
    *,
    append: bool = False,
    dialect: str | None = None,
    stdin: IO[bytes] | None = None,
    progress: Progress | None = None,
    **options: Unpack[IngestOptions],
) -> IngestResult:
    """Read OpenLineage events into the graph and commit.

    Args:
        paths: Files and folders of JSON or JSON lines, also compressed; ``-`` reads ``stdin``.
        append: Merge with what the source had put into the graph before, instead of replacing it.
        dialect: The dialect of SQL whose event names none.
        stdin: A binary stream, for the path ``-``.
        progress: Called as ``progress(done, total)``.
        **options: Those of every ingest: see `IngestOptions`.

    Raises:
        RefusedIngestError: nothing was understood, or less than demanded; nothing was committed.
        UsageError: nothing to read, an unknown dialect or branch.
        StoreError: there is no store, or the commit could not be written; then the store is as it was.
    """
    from govtool.app.ingest.openlineage import OpenLineageRequest
    from govtool.app.ingest.openlineage import ingest_openlineage as ingest
    from govtool.app.project.requests import texts

    replace = options.get("replace", False)
    request = OpenLineageRequest(texts(paths), options.get("source"), dialect or "", append, replace)
    return ingest_with(ingest, request, more={"stdin": stdin, "progress": progress}, **options)


@checked
def ingest_prov(
    paths: Paths,
    *,
    stdin: IO[bytes] | None = None,
    progress: Progress | None = None,
    **options: Unpack[IngestOptions],
) -> IngestResult:
    """Read W3C PROV documents into the graph and commit.

    Args:
        paths: Files and folders of PROV-JSON, PROV-N or PROV-JSONLD; ``-`` reads ``stdin``.
        stdin: A binary stream, for the path ``-``.
        progress: Called as ``progress(done, total)``.
        **options: Those of every ingest: see `IngestOptions`.

    Raises:
        RefusedIngestError: nothing was understood, or less than demanded; nothing was committed.
        UsageError: nothing to read, an unknown branch.
        StoreError: there is no store, or the commit could not be written; then the store is as it was.
    """
    from govtool.app.ingest.prov import ProvRequest
    from govtool.app.ingest.prov import ingest_prov as ingest
    from govtool.app.project.requests import texts

    request = ProvRequest(texts(paths), options.get("source"), options.get("replace", False))
    return ingest_with(ingest, request, more={"stdin": stdin, "progress": progress}, **options)


@checked
def ingest_spark(
    logs: Paths,
    *,
    default_schema: str = "default",
    namespace: str = "default",
    progress: Progress | None = None,
    **options: Unpack[IngestOptions],
) -> IngestResult:
    """Read event logs of Spark applications into the graph and commit.

    Args:
        logs: Event logs, rolling directories, or folders of either; also compressed.
        default_schema: The database of tables that are named without one.
        namespace: The namespace of tables, to tell two metastores apart.
        progress: Called as ``progress(done, total)``.
        **options: Those of every ingest: see `IngestOptions`.

    Raises:
        RefusedIngestError: nothing was understood, or less than demanded; nothing was committed.
        UsageError: nothing to read, an unknown branch.
        StoreError: there is no store, or the commit could not be written; then the store is as it was.
    """
    from govtool.app.ingest.spark import SparkRequest
    from govtool.app.ingest.spark import ingest_spark as ingest
    from govtool.app.project.requests import texts

    replace = options.get("replace", False)
    request = SparkRequest(texts(logs), options.get("source"), default_schema, namespace, replace)
    return ingest_with(ingest, request, more={"progress": progress}, **options)

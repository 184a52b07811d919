"""``govtool ingest openlineage``, ``prov`` and ``spark``: what others recorded of runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.shared.ingests import run_ingest
from govtool.cli.shared.options import (
    DialectOption,
    IngestBundle,
    PathsArgument,
)
from govtool.cli.shared.ui import Progress, Ui

if TYPE_CHECKING:
    from govtool.answers.ingest import IngestResult

_DEFAULT = IngestBundle()


def ingest_openlineage(
    ui: Ui,
    paths: PathsArgument,
    append: Annotated[
        bool, typer.Option("--append", help="Merge with the earlier events of the source instead of replacing them.")
    ] = False,
    dialect: DialectOption = None,
    options: IngestBundle = _DEFAULT,
) -> None:
    """Read OpenLineage events into the graph and commit.

      govtool ingest openlineage events.jsonl
      kcat -C -t openlineage -e | govtool ingest openlineage - --source kafka --append

    JSON or JSON lines, plain, gzip or zstd; run, job and dataset events in any order. The same events again make no
    commit. SQL of events without column lineage is read; --dialect is for events that do not name their dialect.
    """
    from govtool.api.ingest_events import ingest_openlineage as ingest

    def read(progress: Progress) -> IngestResult:
        return ingest(
            paths,
            append=append,
            dialect=dialect,
            stdin=sys.stdin.buffer,
            progress=progress,
            **options.keywords(),
        )

    run_ingest(ui, options, "reading events", read)


def ingest_prov(
    ui: Ui,
    paths: PathsArgument,
    options: IngestBundle = _DEFAULT,
) -> None:
    """Read W3C PROV documents into the graph and commit.

      govtool ingest prov provenance/
      govtool impact 'software:blast==2.2'

    PROV-JSON, PROV-N (.provn) and PROV-JSONLD (.jsonld), as workflow engines and system-level recorders write them.
    Entities are versions of datasets, activities are runs, agents are users and software. PROV has no columns:
    lineage is between whole datasets, and columns behind it are unknown.
    """
    from govtool.api.ingest_events import ingest_prov as ingest

    def read(progress: Progress) -> IngestResult:
        return ingest(
            paths,
            stdin=sys.stdin.buffer,
            progress=progress,
            **options.keywords(),
        )

    run_ingest(ui, options, "reading documents", read)


def ingest_spark(
    ui: Ui,
    logs: Annotated[list[str], typer.Argument(metavar="LOG…", help="Event logs, rolling directories, or folders.")],
    default_schema: Annotated[
        str, typer.Option("--default-schema", metavar="NAME", help="Database of tables that are named without one.")
    ] = "default",
    namespace: Annotated[
        str,
        typer.Option("--namespace", metavar="NAME", help="Namespace of tables, to keep two metastores apart."),
    ] = "default",
    options: IngestBundle = _DEFAULT,
) -> None:
    """Read event logs of Spark applications into the graph and commit.

      govtool ingest spark /var/log/spark-events
      govtool ingest spark eventlog_v2_application_17_0042 --source nightly

    Plain or compressed (gzip, zstd, lz4, snappy), single files or rolling directories, of finished, running or killed
    applications. Lineage is read from the plans of executions, together with runs, rows and bytes.
    """
    from govtool.api.ingest_events import ingest_spark as ingest
    from govtool.render.spark import spark_summary

    def read(progress: Progress) -> IngestResult:
        return ingest(
            logs,
            default_schema=default_schema,
            namespace=namespace,
            progress=progress,
            **options.keywords(),
        )

    run_ingest(ui, options, "reading event logs", read, summary=spark_summary)

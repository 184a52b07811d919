"""``govtool ingest spark``: read event logs of Spark applications into the graph and commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.bundles import IngestBundle
from govtool.cli.dry_run import run_ingest
from govtool.cli.ui import Progress, Ui

if TYPE_CHECKING:
    from govtool.answers.ingest import IngestResult

_DEFAULT = IngestBundle()


def ingest_spark(
    ui: Ui,
    logs: Annotated[list[str], typer.Argument(metavar="LOG…", help="Event logs, rolling directories, or folders.")],
    database: Annotated[
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
    applications. What executions did is read from their plans; runs, rows and bytes are kept with them.
    """
    from govtool.api.ingest_events import ingest_spark as ingest
    from govtool.render.spark import spark_summary

    def read(progress: Progress) -> IngestResult:
        return ingest(
            logs,
            default_schema=database,
            namespace=namespace,
            progress=progress,
            **options.keywords(),
        )

    run_ingest(ui, options, "reading event logs", read, summary=spark_summary)

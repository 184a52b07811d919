"""``govtool ingest spark``: read event logs of Spark applications into the graph and commit."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.dry_run import plan_outputs, show_plan
from govtool.cli.options import (
    AuthorOption,
    BranchOption,
    DryRunOption,
    FormatOption,
    MessageOption,
    MinCoverageOption,
    OutputOption,
    ReplaceOption,
    SourceOption,
    StoreOption,
    StrictOption,
)
from govtool.cli.policyargs import PolicyOption
from govtool.cli.sqlargs import refusal_shown, show_diagnostics, show_reasons
from govtool.cli.ui import Ui
from govtool.render.table import Table


def ingest_spark(
    ui: Ui,
    logs: Annotated[list[str], typer.Argument(metavar="LOG…", help="Event logs, rolling directories, or folders.")],
    source: SourceOption = None,
    replace: ReplaceOption = False,
    database: Annotated[
        str, typer.Option("--default-schema", metavar="NAME", help="Database of tables that are named without one.")
    ] = "default",
    namespace: Annotated[
        str,
        typer.Option("--namespace", metavar="NAME", help="Namespace of tables, to keep two metastores apart."),
    ] = "default",
    message: MessageOption = None,
    author: AuthorOption = None,
    dry_run: DryRunOption = False,
    policy: PolicyOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    strict: StrictOption = False,
    min_coverage: MinCoverageOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Read event logs of Spark applications into the graph and commit.

      govtool ingest spark /var/log/spark-events
      govtool ingest spark eventlog_v2_application_17_0042 --source nightly

    Plain or compressed (gzip, zstd, lz4, snappy), single files or rolling directories, of finished, running or killed
    applications. What executions did is read from their plans; runs, rows and bytes are kept with them.
    """
    from govtool.api.ingest import ingest_spark as ingest
    from govtool.render.spark import spark_summary

    ui.mark("start")
    outputs = plan_outputs(dry_run, format, output)
    with refusal_shown(ui), ui.progressing("reading event logs") as progress:
        result = ingest(
            logs,
            source=source,
            replace=replace,
            default_schema=database,
            namespace=namespace,
            dry_run=dry_run,
            policy=policy,
            strict=strict,
            min_coverage=min_coverage,
            message=message,
            author=author,
            branch=branch,
            store=store,
            progress=progress,
        )
    ui.mark("read and commit")
    show_diagnostics(ui, result.diagnostics, result.text)
    if result.plan is not None:
        show_plan(ui, result.plan, outputs)
    else:
        show_reasons(ui, result)
        ui.table(Table(columns=(), rows=(), summary=spark_summary(result)))
    result.check_coverage(strict=strict, min_coverage=min_coverage)

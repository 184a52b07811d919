"""``govtool ingest openlineage``: read OpenLineage events into the graph and commit."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from govtool.cli.dry_run import plan_outputs, show_outcome
from govtool.cli.options import (
    AuthorOption,
    BranchOption,
    DialectOption,
    DryRunOption,
    FormatOption,
    MessageOption,
    MinCoverageOption,
    OutputOption,
    PathsArgument,
    ReplaceOption,
    SourceOption,
    StoreOption,
    StrictOption,
)
from govtool.cli.policyargs import PolicyOption
from govtool.cli.sqlargs import refusal_shown, show_diagnostics
from govtool.cli.ui import Ui


def ingest_openlineage(
    ui: Ui,
    paths: PathsArgument,
    source: SourceOption = None,
    replace: ReplaceOption = False,
    append: Annotated[
        bool, typer.Option("--append", help="Merge with the earlier events of the source instead of replacing them.")
    ] = False,
    dialect: DialectOption = None,
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
    """Read OpenLineage events into the graph and commit.

      govtool ingest openlineage events.jsonl
      kcat -C -t openlineage -e | govtool ingest openlineage - --source kafka --append

    JSON or JSON lines, plain, gzip or zstd; run, job and dataset events in any order. The same events again make no
    commit. SQL without column lineage is read as SQL; --dialect is for SQL whose event does not tell.
    """
    from govtool.api.ingest import ingest_openlineage as ingest

    outputs = plan_outputs(dry_run, format, output)
    ui.mark("start")
    with refusal_shown(ui), ui.progressing("reading events") as progress:
        result = ingest(
            paths,
            source=source,
            replace=replace,
            append=append,
            dialect=dialect,
            dry_run=dry_run,
            policy=policy,
            strict=strict,
            min_coverage=min_coverage,
            message=message,
            author=author,
            branch=branch,
            store=store,
            stdin=sys.stdin.buffer,
            progress=progress,
        )
    ui.mark("read, merge and commit")
    show_diagnostics(ui, result.diagnostics, result.text)
    show_outcome(ui, result, outputs)
    result.check_coverage(strict=strict, min_coverage=min_coverage)

"""``govtool ingest openlineage``: read OpenLineage events into the graph and commit."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from govtool.cli.options import (
    AuthorOption,
    BranchOption,
    DialectOption,
    MessageOption,
    MinCoverageOption,
    PathsArgument,
    ReplaceOption,
    SourceOption,
    StoreOption,
    StrictOption,
)
from govtool.cli.sqlargs import refusal_shown, show_diagnostics, show_ingest
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

    ui.mark("start")
    with refusal_shown(ui), ui.progressing("reading events") as progress:
        result = ingest(
            paths,
            source=source,
            replace=replace,
            append=append,
            dialect=dialect,
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
    show_ingest(ui, result)
    result.check_coverage(strict=strict, min_coverage=min_coverage)

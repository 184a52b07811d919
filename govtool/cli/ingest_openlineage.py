"""``govtool ingest openlineage``: read OpenLineage events into the graph and commit."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.bundles import IngestBundle
from govtool.cli.dry_run import run_ingest
from govtool.cli.options import (
    DialectOption,
    PathsArgument,
)
from govtool.cli.ui import Progress, Ui

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
    commit. SQL without column lineage is read as SQL; --dialect is for SQL whose event does not tell.
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

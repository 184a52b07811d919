"""``govtool ingest log``: read query logs into the graph and commit."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.app.ingest.logs.request import log_formats
from govtool.cli.shared.complete import complete_engine, complete_log_format
from govtool.cli.shared.ingests import run_ingest
from govtool.cli.shared.options import (
    DefaultCatalogOption,
    DefaultSchemaOption,
    DialectOption,
    IngestBundle,
    KeepLiteralsOption,
    MasterOption,
    NamespaceOption,
    SchemaOption,
)
from govtool.cli.shared.ui import Progress, Ui

if TYPE_CHECKING:
    from govtool.answers.ingest import IngestResult

_DEFAULT = IngestBundle()


def ingest_log(
    ui: Ui,
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="Files (also .gz, .zst), folders, or -.")],
    log_format: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="FORMAT",
            autocompletion=complete_log_format,
            help=f"Format of the log: {', '.join(log_formats())}.",
        ),
    ] = "auto",
    map: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="FIELD=NAME,…", help="Map fields of the log: text=query,started_at=ts."),
    ] = None,
    dialect: DialectOption = None,
    schema: SchemaOption = None,
    default_catalog: DefaultCatalogOption = None,
    default_schema: DefaultSchemaOption = None,
    keep_literals: KeepLiteralsOption = False,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="local|spark",
            autocompletion=complete_engine,
            help="local, or spark for logs larger than a machine.",
        ),
    ] = "local",
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", min=1, help="Processes of the local engine. Default: one per core."),
    ] = None,
    master: MasterOption = None,
    max_errors: Annotated[
        int | None,
        typer.Option("--max-errors", metavar="N", min=0, help="Give up after N records that cannot be read."),
    ] = None,
    namespace: NamespaceOption = None,
    options: IngestBundle = _DEFAULT,
) -> None:
    """Read query logs into the graph and commit.

      govtool ingest log history.csv.gz
      govtool ingest log queries.jsonl --map text=body.sql,started_at=ts --dialect trino

    Each distinct statement is parsed once, with how often, when and by whom it was run. Failed statements and what was
    rolled back are counted and not used. Literals are redacted. A killed ingest, run again, goes on where it was.
    """
    from govtool.api.ingest import ingest_log as ingest
    from govtool.render.progress import log_label, log_left

    def read(progress: Progress) -> IngestResult:
        return ingest(
            paths,
            log_format=log_format,
            map=map,
            dialect=dialect,
            schema=schema,
            default_catalog=default_catalog,
            default_schema=default_schema,
            keep_literals=keep_literals,
            engine=engine,
            workers=workers,
            master=master,
            max_errors=max_errors,
            namespace=namespace,
            stdin=sys.stdin.buffer,
            progress=lambda status: progress(status.done, status.total, log_label(status), log_left(status)),
            **options.keywords(),
        )

    run_ingest(ui, options, "reading the log", read, lines=False, errors=False, keep_literals=keep_literals)

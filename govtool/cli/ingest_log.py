"""``govtool ingest log``: read query logs into the graph and commit."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from govtool.cli.complete import complete_engine, complete_log_format
from govtool.cli.options import (
    AuthorOption,
    BranchOption,
    DefaultCatalogOption,
    DefaultSchemaOption,
    DialectOption,
    ExplainFailuresOption,
    KeepLiteralsOption,
    MessageOption,
    MinCoverageOption,
    NamespaceOption,
    ReplaceOption,
    SchemaOption,
    SourceOption,
    StoreOption,
    StrictOption,
)
from govtool.cli.sqlargs import refusal_shown, show_diagnostics, show_ingest
from govtool.cli.ui import Ui


def ingest_log(
    ui: Ui,
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="Files (also .gz, .zst), folders, or -.")],
    format: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            autocompletion=complete_log_format,
            help="auto, jsonl, csv, postgres-csv, postgres-json, snowflake, bigquery, databricks, redshift, "
            "redshift-text, trino, mysql, thrift, sql.",
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
            metavar="NAME",
            autocompletion=complete_engine,
            help="local, or spark for logs larger than a machine.",
        ),
    ] = "local",
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", min=1, help="Processes of the local engine. Default: one a core."),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option("--master", metavar="URL", help="Spark's master: local[4], spark://host:7077 …"),
    ] = None,
    max_errors: Annotated[
        int | None,
        typer.Option("--max-errors", metavar="N", min=0, help="Give up after N records that cannot be read."),
    ] = None,
    source: SourceOption = None,
    replace: ReplaceOption = False,
    namespace: NamespaceOption = None,
    message: MessageOption = None,
    author: AuthorOption = None,
    explain_failures: ExplainFailuresOption = False,
    strict: StrictOption = False,
    min_coverage: MinCoverageOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Read query logs into the graph and commit.

      govtool ingest log history.csv.gz
      govtool ingest log queries.jsonl --map text=body.sql,started_at=ts --dialect trino

    Each distinct statement is parsed once, with how often, when and by whom it was run. Failed statements and what was
    rolled back are counted and not used. Literals are redacted before anything is stored. The graph does not depend on
    the engine or its workers; an ingest that was killed goes on where it was when it is run again.
    """
    from govtool.api.ingest import ingest_log as ingest
    from govtool.render.progress import log_label

    ui.mark("start")
    with refusal_shown(ui, explain_failures=explain_failures), ui.progressing("reading the log") as progress:
        result = ingest(
            paths,
            format=format,
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
            explain_failures=explain_failures,
            strict=strict,
            min_coverage=min_coverage,
            source=source,
            replace=replace,
            namespace=namespace,
            message=message,
            author=author,
            branch=branch,
            store=store,
            stdin=sys.stdin.buffer,
            progress=lambda status: progress(status.done, status.total, log_label(status)),
        )
    ui.mark("read, extract and commit")
    show_diagnostics(ui, result.diagnostics, None)
    show_ingest(ui, result, explain_failures=explain_failures, keep_literals=keep_literals)
    result.check_coverage(strict=strict, min_coverage=min_coverage, errors=False)

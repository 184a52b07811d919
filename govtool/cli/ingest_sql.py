"""``govtool ingest sql``: read SQL files into the graph and commit."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from govtool.cli.evidence import check_coverage
from govtool.cli.options import (
    BranchOption,
    CatalogOption,
    DefaultCatalogOption,
    DefaultSchemaOption,
    DialectOption,
    ExplainFailuresOption,
    ExplainOption,
    MinCoverageOption,
    RelationFromOption,
    SchemaOption,
    StoreOption,
    VariableOption,
)
from govtool.cli.sqlargs import build_request, show_diagnostics, show_ingest
from govtool.cli.ui import Ui


def ingest_sql(
    ui: Ui,
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="Files, folders, or - for stdin.")],
    dialect: DialectOption = None,
    schema: SchemaOption = None,
    catalog: CatalogOption = None,
    explain: ExplainOption = False,
    default_catalog: DefaultCatalogOption = None,
    default_schema: DefaultSchemaOption = None,
    relation_from: RelationFromOption = None,
    var: VariableOption = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source", metavar="NAME", help="What this ingest replaces. Default: the folder's or file's name."
        ),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace", metavar="URI", help="OpenLineage namespace: postgres://host:5432. Default: default."
        ),
    ] = None,
    message: Annotated[str | None, typer.Option("--message", "-m", metavar="TEXT", help="What the log says.")] = None,
    author: Annotated[str | None, typer.Option("--author", metavar="NAME", help="Default: the user's name.")] = None,
    explain_failures: ExplainFailuresOption = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 3 unless everything was understood.")] = False,
    min_coverage: MinCoverageOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Read SQL files into the graph and commit.

      govtool ingest sql warehouse/ --dialect postgres --schema ddl.sql
      govtool ingest sql models/ --dialect bigquery --source dbt --var target=prod

    A source is replaced as a whole; the same input again makes no commit. What cannot be understood is reported and
    counted; the rest is ingested.
    """
    from govtool.app.ingest import ingest_sql as ingest
    from govtool.app.project import existing_branch, open_store

    request = build_request(
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
    )
    opened = open_store(store)
    ui.mark("start")
    with ui.progressing("reading SQL") as progress:
        result = ingest(
            opened,
            request,
            message=message,
            author=author,
            branch=existing_branch(opened, branch),
            stdin=sys.stdin.buffer,
            progress=progress,
        )
    ui.mark("read, extract and commit")
    show_diagnostics(ui, result.diagnostics, result.text)
    show_ingest(ui, result, explain_failures=explain_failures)
    check_coverage(result.coverage, strict=strict, min_coverage=min_coverage, diagnostics=result.diagnostics)

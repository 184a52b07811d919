"""``govtool ingest catalog``: read the catalog of a database into the graph and commit."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.dry_run import plan_outputs, show_outcome
from govtool.cli.options import (
    AuthorOption,
    BranchOption,
    DialectOption,
    DryRunOption,
    ExplainFailuresOption,
    FormatOption,
    KeepLiteralsOption,
    MessageOption,
    MinCoverageOption,
    OutputOption,
    ReplaceOption,
    StoreOption,
    StrictOption,
)
from govtool.cli.policyargs import PolicyOption
from govtool.cli.sqlargs import refusal_shown, show_diagnostics
from govtool.cli.ui import Ui


def ingest_catalog(
    ui: Ui,
    url: Annotated[str, typer.Argument(metavar="URL", help="postgresql://user@host:5432/db, duckdb:///file …")],
    sql: Annotated[
        list[str] | None,
        typer.Option("--sql", metavar="PATH", help="SQL that is read with it, the catalog as its schema. Repeatable."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="PATTERN", help="Read only schemas that match, such as 'mart_*'. Repeatable."),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="PostgreSQL: ask it about statements of --sql that the text leaves open. Nothing is run or kept.",
        ),
    ] = False,
    dialect: DialectOption = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="NAME",
            help="Name of the source, whose earlier lineage this ingest replaces. Default: catalog:DATABASE.",
        ),
    ] = None,
    replace: ReplaceOption = False,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", metavar="URI", help="Default: the server's, as OpenLineage names it."),
    ] = None,
    keep_literals: KeepLiteralsOption = False,
    message: MessageOption = None,
    author: AuthorOption = None,
    explain_failures: ExplainFailuresOption = False,
    dry_run: DryRunOption = False,
    policy: PolicyOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    strict: StrictOption = False,
    min_coverage: MinCoverageOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Read the catalog of a database into the graph and commit.

      govtool ingest catalog postgresql://reader@dw:5432/shop
      govtool ingest catalog postgresql://reader@dw/shop --sql etl/ --explain

    Tables, columns, types, definitions of views, owners, comments, grants. Nothing is written to the database. Also
    duckdb:///FILE, sqlite:///FILE, spark:///WAREHOUSE, sc://HOST:15002 (Spark Connect), and what SQLAlchemy has a
    dialect for. Keep passwords out of the address: PGPASSWORD, ~/.pgpass. SQL alone, with a catalog as its schema:
    govtool ingest sql PATH --catalog URL.
    """
    from govtool.api.ingest import ingest_catalog as ingest

    outputs = plan_outputs(dry_run, format, output)
    ui.mark("start")
    with refusal_shown(ui, explain_failures=explain_failures), ui.progressing("reading the catalog") as progress:
        result = ingest(
            url,
            sql=sql,
            only=only,
            explain=explain,
            dialect=dialect,
            source=source,
            replace=replace,
            namespace=namespace,
            keep_literals=keep_literals,
            explain_failures=explain_failures,
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
    ui.mark("read, extract and commit")
    show_diagnostics(ui, result.diagnostics, result.text)
    show_outcome(ui, result, outputs, explain_failures=explain_failures, keep_literals=keep_literals)
    result.check_coverage(strict=strict, min_coverage=min_coverage, errors=False)

"""``govtool ingest catalog``: read the catalog of a database into the graph and commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.bundles import IngestBundle
from govtool.cli.dry_run import run_ingest
from govtool.cli.options import (
    DialectOption,
    KeepLiteralsOption,
)
from govtool.cli.ui import Progress, Ui

if TYPE_CHECKING:
    from govtool.answers.ingest import IngestResult

_DEFAULT = IngestBundle()


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
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", metavar="URI", help="Default: the server's, as OpenLineage names it."),
    ] = None,
    keep_literals: KeepLiteralsOption = False,
    options: IngestBundle = _DEFAULT,
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

    def read(progress: Progress) -> IngestResult:
        return ingest(
            url,
            sql=sql,
            only=only,
            explain=explain,
            dialect=dialect,
            namespace=namespace,
            keep_literals=keep_literals,
            progress=progress,
            **options.keywords(),
        )

    run_ingest(ui, options, "reading the catalog", read, errors=False, keep_literals=keep_literals)

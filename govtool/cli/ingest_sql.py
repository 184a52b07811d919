"""``govtool ingest sql``, ``dbt`` and ``catalog``: what is written down of tables and views."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.shared.ingests import run_ingest
from govtool.cli.shared.options import (
    CatalogOption,
    DefaultCatalogOption,
    DefaultSchemaOption,
    DialectOption,
    ExplainOption,
    FollowLinksOption,
    IngestBundle,
    KeepLiteralsOption,
    NamespaceOption,
    PathsArgument,
    RelationFromOption,
    SchemaOption,
    VariableOption,
)
from govtool.cli.shared.ui import Progress, Ui

if TYPE_CHECKING:
    from govtool.answers.ingest import IngestResult

_DEFAULT = IngestBundle()


def ingest_sql(
    ui: Ui,
    paths: PathsArgument,
    dialect: DialectOption = None,
    schema: SchemaOption = None,
    catalog: CatalogOption = None,
    explain: ExplainOption = False,
    default_catalog: DefaultCatalogOption = None,
    default_schema: DefaultSchemaOption = None,
    relation_from: RelationFromOption = None,
    var: VariableOption = None,
    namespace: NamespaceOption = None,
    drop_unreadable: Annotated[
        bool,
        typer.Option("--drop-unreadable", help="Drop lineage of files that can no longer be read."),
    ] = False,
    follow_links: FollowLinksOption = False,
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", min=1, help="Worker processes. Default: 1, best on two cores."),
    ] = None,
    options: IngestBundle = _DEFAULT,
) -> None:
    """Read SQL files into the graph and commit.

      govtool ingest sql warehouse/ --dialect postgres --schema ddl.sql
      govtool ingest sql models/ --dialect bigquery --source dbt --var target=prod

    A source is replaced as a whole; the same input again makes no commit. Statements that are not understood are
    reported and counted; the rest is ingested. A file that can no longer be read keeps its earlier lineage, until it
    is deleted. With exit code 3 nothing is committed.
    """
    from govtool.api.ingest import ingest_sql as ingest
    from govtool.render.progress import log_label, log_left

    def read(progress: Progress) -> IngestResult:
        return ingest(
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
            drop_unreadable=drop_unreadable,
            follow_links=follow_links,
            workers=workers,
            stdin=sys.stdin.buffer,
            report=lambda status: progress(status.done, status.total, log_label(status), log_left(status)),
            **options.keywords(),
        )

    run_ingest(ui, options, "reading SQL", read)


def ingest_dbt(
    ui: Ui,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="dbt's target folder, with manifest.json.")],
    dialect: DialectOption = None,
    namespace: NamespaceOption = None,
    keep_literals: KeepLiteralsOption = False,
    options: IngestBundle = _DEFAULT,
) -> None:
    """Read a dbt project's artifacts into the graph and commit.

      govtool ingest dbt target/
      govtool ingest dbt target/ --source warehouse --min-coverage 95

    manifest.json gives names, compiled SQL, owners, tags, meta and exposures, catalog.json the columns,
    run_results.json the last run, sources.json the freshness. Models in Python or not compiled are opaque.
    """
    from govtool.api.ingest import ingest_dbt as ingest

    def read(progress: Progress) -> IngestResult:
        return ingest(
            target,
            dialect=dialect,
            namespace=namespace,
            keep_literals=keep_literals,
            progress=progress,
            **options.keywords(),
        )

    run_ingest(ui, options, "reading the project", read, lines=False, errors=False, keep_literals=keep_literals)


def ingest_catalog(
    ui: Ui,
    url: Annotated[str, typer.Argument(metavar="URL", help="postgresql://user@host:5432/db, duckdb:///file …")],
    sql: Annotated[
        list[str] | None,
        typer.Option("--sql", metavar="PATH", help="SQL to read with the catalog as its schema. Repeatable."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="PATTERN", help="Read only schemas that match, such as 'mart_*'. Repeatable."),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Ask PostgreSQL to EXPLAIN unclear statements of --sql.",
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

    Reads tables, columns, types, definitions of views, owners, comments and grants, and writes nothing to the
    database. Also duckdb:///FILE, sqlite:///FILE, spark:///WAREHOUSE, sc://HOST:15002 (Spark Connect), and databases
    with a SQLAlchemy dialect. Keep passwords out of the address: use PGPASSWORD or ~/.pgpass. For SQL alone, with a
    catalog as its schema: govtool ingest sql PATH --catalog URL.
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

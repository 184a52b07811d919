"""``govtool ingest sql``: read SQL files into the graph and commit."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.bundles import IngestBundle
from govtool.cli.dry_run import run_ingest
from govtool.cli.options import (
    CatalogOption,
    DefaultCatalogOption,
    DefaultSchemaOption,
    DialectOption,
    ExplainOption,
    FollowLinksOption,
    NamespaceOption,
    PathsArgument,
    RelationFromOption,
    SchemaOption,
    VariableOption,
)
from govtool.cli.ui import Progress, Ui

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
        typer.Option(
            "--drop-unreadable", help="Drop the earlier lineage of files that cannot be read or understood any more."
        ),
    ] = False,
    follow_links: FollowLinksOption = False,
    options: IngestBundle = _DEFAULT,
) -> None:
    """Read SQL files into the graph and commit.

      govtool ingest sql warehouse/ --dialect postgres --schema ddl.sql
      govtool ingest sql models/ --dialect bigquery --source dbt --var target=prod

    A source is replaced as a whole; the same input again makes no commit. What cannot be understood is reported and
    counted; the rest is ingested. A file that cannot be read or understood any more keeps what it said before, until
    it is gone or --drop-unreadable is given. Exit code 3 commits nothing.
    """
    from govtool.api.ingest import ingest_sql as ingest
    from govtool.render.progress import log_label

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
            stdin=sys.stdin.buffer,
            report=lambda status: progress(status.done, status.total, log_label(status)),
            **options.keywords(),
        )

    run_ingest(ui, options, "reading SQL", read)

"""``govtool ingest sql``: read SQL files into the graph and commit."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from govtool.cli.dry_run import plan_outputs, show_outcome
from govtool.cli.options import (
    AuthorOption,
    BranchOption,
    CatalogOption,
    DefaultCatalogOption,
    DefaultSchemaOption,
    DialectOption,
    DryRunOption,
    ExplainFailuresOption,
    ExplainOption,
    FollowLinksOption,
    FormatOption,
    MessageOption,
    MinCoverageOption,
    NamespaceOption,
    OutputOption,
    PathsArgument,
    RelationFromOption,
    ReplaceOption,
    SchemaOption,
    SourceOption,
    StoreOption,
    StrictOption,
    VariableOption,
)
from govtool.cli.policyargs import PolicyOption
from govtool.cli.sqlargs import refusal_shown, show_diagnostics
from govtool.cli.ui import Ui


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
    source: SourceOption = None,
    replace: ReplaceOption = False,
    namespace: NamespaceOption = None,
    drop_unreadable: Annotated[
        bool,
        typer.Option(
            "--drop-unreadable", help="Drop the earlier lineage of files that cannot be read or understood any more."
        ),
    ] = False,
    follow_links: FollowLinksOption = False,
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
    """Read SQL files into the graph and commit.

      govtool ingest sql warehouse/ --dialect postgres --schema ddl.sql
      govtool ingest sql models/ --dialect bigquery --source dbt --var target=prod

    A source is replaced as a whole; the same input again makes no commit. What cannot be understood is reported and
    counted; the rest is ingested. A file that cannot be read or understood any more keeps what it said before, until
    it is gone or --drop-unreadable is given. Exit code 3 commits nothing.
    """
    from govtool.api.ingest import ingest_sql as ingest

    outputs = plan_outputs(dry_run, format, output)
    ui.mark("start")
    with refusal_shown(ui, explain_failures=explain_failures), ui.progressing("reading SQL") as progress:
        result = ingest(
            paths,
            dialect=dialect,
            schema=schema,
            catalog=catalog,
            explain=explain,
            default_catalog=default_catalog,
            default_schema=default_schema,
            relation_from=relation_from,
            var=var,
            source=source,
            replace=replace,
            namespace=namespace,
            drop_unreadable=drop_unreadable,
            follow_links=follow_links,
            explain_failures=explain_failures,
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
    ui.mark("read, extract and commit")
    show_diagnostics(ui, result.diagnostics, result.text)
    show_outcome(ui, result, outputs, explain_failures=explain_failures)
    result.check_coverage(strict=strict, min_coverage=min_coverage)

"""``govtool ingest dbt``: read a dbt project's artifacts into the graph and commit."""

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
    NamespaceOption,
    OutputOption,
    ReplaceOption,
    StoreOption,
    StrictOption,
)
from govtool.cli.policyargs import PolicyOption
from govtool.cli.sqlargs import refusal_shown, show_diagnostics
from govtool.cli.ui import Ui


def ingest_dbt(
    ui: Ui,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="dbt's target folder, with manifest.json.")],
    dialect: DialectOption = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="NAME",
            help="Name of the source, whose earlier lineage this ingest replaces. Default: dbt:PROJECT.",
        ),
    ] = None,
    replace: ReplaceOption = False,
    namespace: NamespaceOption = None,
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
    """Read a dbt project's artifacts into the graph and commit.

      govtool ingest dbt target/
      govtool ingest dbt target/ --source warehouse --min-coverage 95

    manifest.json gives names, compiled SQL, owners, tags, meta and exposures, catalog.json the columns,
    run_results.json the last run, sources.json the freshness. Models in Python or not compiled are opaque.
    """
    from govtool.api.ingest import ingest_dbt as ingest

    outputs = plan_outputs(dry_run, format, output)
    ui.mark("start")
    with refusal_shown(ui, explain_failures=explain_failures), ui.progressing("reading the project") as progress:
        result = ingest(
            target,
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
    show_diagnostics(ui, result.diagnostics, None)
    show_outcome(ui, result, outputs, explain_failures=explain_failures, keep_literals=keep_literals)
    result.check_coverage(strict=strict, min_coverage=min_coverage, errors=False)

"""``govtool ingest dbt``: read a dbt project's artifacts into the graph and commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.bundles import IngestBundle
from govtool.cli.dry_run import run_ingest
from govtool.cli.options import (
    DialectOption,
    KeepLiteralsOption,
    NamespaceOption,
)
from govtool.cli.ui import Progress, Ui

if TYPE_CHECKING:
    from govtool.answers.ingest import IngestResult

_DEFAULT = IngestBundle()


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

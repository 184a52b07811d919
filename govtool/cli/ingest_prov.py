"""``govtool ingest prov``: read W3C PROV documents into the graph and commit."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from govtool.cli.bundles import IngestBundle
from govtool.cli.dry_run import run_ingest
from govtool.cli.options import (
    PathsArgument,
)
from govtool.cli.ui import Progress, Ui

if TYPE_CHECKING:
    from govtool.answers.ingest import IngestResult

_DEFAULT = IngestBundle()


def ingest_prov(
    ui: Ui,
    paths: PathsArgument,
    options: IngestBundle = _DEFAULT,
) -> None:
    """Read W3C PROV documents into the graph and commit.

      govtool ingest prov provenance/
      govtool impact 'software:blast==2.2'

    PROV-JSON, PROV-N (.provn) and PROV-JSONLD (.jsonld), as workflow engines and system-level recorders write them.
    Entities are versions of datasets, activities are runs, agents are users and software. PROV does not tell of
    columns: lineage is of whole datasets, and what goes through it is unknown.
    """
    from govtool.api.ingest_events import ingest_prov as ingest

    def read(progress: Progress) -> IngestResult:
        return ingest(
            paths,
            stdin=sys.stdin.buffer,
            progress=progress,
            **options.keywords(),
        )

    run_ingest(ui, options, "reading documents", read)

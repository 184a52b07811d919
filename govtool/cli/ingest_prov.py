"""``govtool ingest prov``: read W3C PROV documents into the graph and commit."""

from __future__ import annotations

import sys

from govtool.cli.options import (
    AuthorOption,
    BranchOption,
    MessageOption,
    MinCoverageOption,
    PathsArgument,
    ReplaceOption,
    SourceOption,
    StoreOption,
    StrictOption,
)
from govtool.cli.sqlargs import refusal_shown, show_diagnostics, show_ingest
from govtool.cli.ui import Ui


def ingest_prov(
    ui: Ui,
    paths: PathsArgument,
    source: SourceOption = None,
    replace: ReplaceOption = False,
    message: MessageOption = None,
    author: AuthorOption = None,
    strict: StrictOption = False,
    min_coverage: MinCoverageOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Read W3C PROV documents into the graph and commit.

      govtool ingest prov provenance/
      govtool impact 'software:blast==2.2'

    PROV-JSON, PROV-N (.provn) and PROV-JSONLD (.jsonld), as workflow engines and system-level recorders write them.
    Entities are versions of datasets, activities are runs, agents are users and software. PROV does not tell of
    columns: lineage is of whole datasets, and what goes through it is unknown.
    """
    from govtool.api.ingest import ingest_prov as ingest

    ui.mark("start")
    with refusal_shown(ui), ui.progressing("reading documents") as progress:
        result = ingest(
            paths,
            source=source,
            replace=replace,
            strict=strict,
            min_coverage=min_coverage,
            message=message,
            author=author,
            branch=branch,
            store=store,
            stdin=sys.stdin.buffer,
            progress=progress,
        )
    ui.mark("ingest")
    show_diagnostics(ui, result.diagnostics, result.text)
    show_ingest(ui, result)
    result.check_coverage(strict=strict, min_coverage=min_coverage)

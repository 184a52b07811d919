"""``govtool ingest prov``: read W3C PROV documents into the graph and commit."""

from __future__ import annotations

import sys

from govtool.cli.dry_run import plan_outputs, show_outcome
from govtool.cli.options import (
    AuthorOption,
    BranchOption,
    DryRunOption,
    FormatOption,
    MessageOption,
    MinCoverageOption,
    OutputOption,
    PathsArgument,
    ReplaceOption,
    SourceOption,
    StoreOption,
    StrictOption,
)
from govtool.cli.policyargs import PolicyOption
from govtool.cli.sqlargs import refusal_shown, show_diagnostics
from govtool.cli.ui import Ui


def ingest_prov(
    ui: Ui,
    paths: PathsArgument,
    source: SourceOption = None,
    replace: ReplaceOption = False,
    message: MessageOption = None,
    author: AuthorOption = None,
    dry_run: DryRunOption = False,
    policy: PolicyOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
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

    outputs = plan_outputs(dry_run, format, output)
    ui.mark("start")
    with refusal_shown(ui), ui.progressing("reading documents") as progress:
        result = ingest(
            paths,
            source=source,
            replace=replace,
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
    ui.mark("ingest")
    show_diagnostics(ui, result.diagnostics, result.text)
    show_outcome(ui, result, outputs)
    result.check_coverage(strict=strict, min_coverage=min_coverage)

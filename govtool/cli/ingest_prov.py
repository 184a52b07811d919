"""``govtool ingest prov``: read W3C PROV documents into the graph and commit."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from govtool.cli.evidence import check_coverage
from govtool.cli.options import AuthorOption, BranchOption, MinCoverageOption, StoreOption
from govtool.cli.sqlargs import show_diagnostics
from govtool.cli.ui import Ui
from govtool.render.table import Table


def ingest_prov(
    ui: Ui,
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="Files, folders, or - for stdin.")],
    source: Annotated[
        str | None,
        typer.Option(
            "--source", metavar="NAME", help="What this ingest replaces. Default: the folder's or file's name."
        ),
    ] = None,
    message: Annotated[str | None, typer.Option("--message", "-m", metavar="TEXT", help="What the log says.")] = None,
    author: AuthorOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 3 unless everything was understood.")] = False,
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
    from govtool.app.ingest_prov import ProvRequest
    from govtool.app.ingest_prov import ingest_prov as ingest
    from govtool.app.project import existing_branch, open_store
    from govtool.render.commits import ingest_summary

    opened = open_store(store)
    ui.mark("start")
    with ui.progressing("reading documents") as progress:
        result = ingest(
            opened,
            ProvRequest(tuple(paths), source),
            message=message,
            author=author,
            branch=existing_branch(opened, branch),
            stdin=sys.stdin.buffer,
            progress=progress,
        )
    ui.mark("ingest")
    show_diagnostics(ui, result.diagnostics, result.text)
    ui.table(Table(columns=(), rows=(), summary=ingest_summary(result)))
    check_coverage(result.coverage, strict=strict, min_coverage=min_coverage, diagnostics=result.diagnostics)

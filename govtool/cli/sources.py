"""``govtool sources``: list the sources of the graph, or retract one."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.ingest_all import note_unlisted
from govtool.cli.shared.formats import chosen
from govtool.cli.shared.options import AtOption, BranchOption, CommitBundle, FormatOption, OutputOption, StoreOption
from govtool.cli.shared.ui import Ui


def sources_list(
    ui: Ui,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """List the sources of the graph: their kind, place, last commit and coverage.

      govtool sources
      govtool sources list --format json

    An ingest replaces everything that its source contributed before, and nothing of other sources.
    """
    from govtool.api.opening import open as open_version
    from govtool.render.sources import FORMATS, render_sources

    outputs = chosen(format, output, FORMATS)
    answer = open_version(store, ref=at, branch=branch).sources()
    for form, file in outputs:
        ui.show(render_sources(form, answer), file)
    if at is None and branch is None:
        note_unlisted(ui, answer.unlisted)


_DEFAULT = CommitBundle()


def sources_drop(
    ui: Ui,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The source, as govtool sources names it.")],
    options: CommitBundle = _DEFAULT,
) -> None:
    """Retract everything that a source put into the graph. Earlier versions keep it.

    govtool sources drop sql:legacy/etl
    govtool sources drop log:2024.jsonl --message "retired"
    """
    from govtool.api.sources import drop_source

    commit = drop_source(name, **options.keywords())
    ui.note(f"{name} is retracted: commit {commit.seq} ({commit.short})")

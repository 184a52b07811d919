"""``govtool sources drop``: retract a source."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.bundles import CommitBundle
from govtool.cli.ui import Ui

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

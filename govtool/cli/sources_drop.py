"""``govtool sources drop``: retract a source."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.options import AuthorOption, BranchOption, MessageOption, StoreOption
from govtool.cli.ui import Ui


def sources_drop(
    ui: Ui,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The source, as govtool sources names it.")],
    message: MessageOption = None,
    author: AuthorOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Retract everything that a source put into the graph. Earlier versions keep it.

    govtool sources drop sql:legacy/etl
    govtool sources drop log:2024.jsonl --message "retired"
    """
    from govtool.api.ingest import drop_source

    commit = drop_source(name, message=message, author=author, branch=branch, store=store)
    ui.note(f"{name} is retracted: commit {commit.seq} ({commit.short})")

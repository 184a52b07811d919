"""``govtool branch create``: start a branch."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.options import AuthorOption, StoreOption
from govtool.cli.ui import Ui
from govtool.render.text import short


def branch_create(
    ui: Ui,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new branch.")],
    ref: Annotated[
        str | None, typer.Argument(metavar="[REF]", help="The commit it starts from. Default: HEAD of main.")
    ] = None,
    author: AuthorOption = None,
    store: StoreOption = None,
) -> None:
    """Start a branch at a commit.

    govtool branch create redesign
    govtool branch create hotfix v1.2
    """
    from govtool.app.project.project import open_store
    from govtool.app.versions.branches import create_branch

    commit = create_branch(open_store(store), name, ref, author)
    ui.note(f"branch {name} starts at commit {commit.seq} ({short(commit.id)})")
    ui.hint(f"govtool ingest sql FOLDER --branch {name}")

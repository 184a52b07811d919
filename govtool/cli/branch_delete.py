"""``govtool branch delete``: end a branch."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.options import AuthorOption, StoreOption
from govtool.cli.ui import Ui


def branch_delete(
    ui: Ui,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The branch to delete.")],
    author: AuthorOption = None,
    store: StoreOption = None,
) -> None:
    """End a branch; its commits stay where tags and merges name them.

    govtool branch delete redesign
    govtool branch delete hotfix --author ada
    """
    from govtool.app.project.project import open_store
    from govtool.app.versions.branches import delete_branch

    commit = delete_branch(open_store(store), name, author)
    ui.note(f"branch {name} ended with commit {commit.seq}")

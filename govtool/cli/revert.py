"""``govtool revert``: undo a commit by another one."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.options import AuthorOption, BranchOption, MessageOption, StoreOption
from govtool.cli.ui import Ui
from govtool.render.text import count


def revert(
    ui: Ui,
    ref: Annotated[str, typer.Argument(metavar="REF", help="The commit to undo: HEAD, HEAD~2, a number, an id.")],
    message: MessageOption = None,
    author: AuthorOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Undo a commit: its sources get what they had before it, in a new commit.

      govtool revert HEAD
      govtool revert 41 --message "wrong dialect"

    Sources that were changed again since are a conflict. Nothing is lost: both commits stay in the log.
    """
    from govtool.api.ingest import revert_commit

    result = revert_commit(ref, message=message, author=author, branch=branch, store=store)
    commit = result.commit
    if not result.created:
        ui.note(f"nothing of {ref} is left at commit {commit.seq} ({commit.short}): nothing to undo")
        return
    ui.note(f"commit {commit.seq} ({commit.short}) undoes {ref} in {count(len(commit.sources), 'source')}")

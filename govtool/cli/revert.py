"""``govtool revert``: undo a commit by another one."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.bundles import CommitBundle
from govtool.cli.ui import Ui
from govtool.render.text import count

_DEFAULT = CommitBundle()


def revert(
    ui: Ui,
    ref: Annotated[str, typer.Argument(metavar="REF", help="The commit to undo: HEAD, HEAD~2, a number, an id.")],
    options: CommitBundle = _DEFAULT,
) -> None:
    """Undo a commit: its sources get what they had before it, in a new commit.

      govtool revert HEAD
      govtool revert 41 --message "wrong dialect"

    Sources that were changed again since are a conflict. Nothing is lost: both commits stay in the log.
    """
    from govtool.api.sources import revert_commit

    result = revert_commit(ref, **options.keywords())
    commit, undone = result.commit, f"commit {result.undone.seq}"
    if not result.created:
        ui.note(f"nothing of {undone} is left at commit {commit.seq} ({commit.short}): nothing to undo")
        return
    ui.note(f"commit {commit.seq} ({commit.short}) undoes {undone} in {count(len(commit.sources), 'source')}")

"""``govtool branch merge``: take over what another branch changed."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from govtool.cli.options import AuthorOption, StoreOption
from govtool.cli.ui import Ui
from govtool.errors import UnknownNameError
from govtool.render.text import count, short

_SIDES = ("source", "target")


def branch_merge(
    ui: Ui,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The branch with the changes.")],
    into: Annotated[str, typer.Option("--into", metavar="BRANCH", help="The branch to change.")] = "main",
    prefer: Annotated[
        str | None,
        typer.Option("--prefer", metavar="source|target", help="The side that wins where both changed a source."),
    ] = None,
    author: AuthorOption = None,
    store: StoreOption = None,
) -> None:
    """Take over what a branch changed, ingest source by ingest source.

      govtool branch merge redesign
      govtool branch merge hotfix --into release --prefer source

    What only one side changed is taken. What both changed differently is a conflict unless --prefer says who is right.
    """
    from govtool.app.project.project import open_store
    from govtool.app.versions.branches import merge_branch

    if prefer not in (None, "source", "target"):
        raise UnknownNameError(
            f"no side {prefer}", code="usage.unknown-side", nearest=_SIDES, hint="--prefer source|target"
        )
    side: Literal["source", "target"] | None = "source" if prefer == "source" else "target" if prefer else None
    result = merge_branch(open_store(store), name, into, side, author)
    commit = result.commit
    if not result.created:
        ui.note(f"{into}: nothing new in {name}, still at commit {commit.seq} ({short(commit.id)})")
        return
    taken = count(len(commit.sources), "source")
    ui.note(f"{into}: commit {commit.seq} ({short(commit.id)}) takes {taken} from {name}")

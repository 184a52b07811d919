"""``govtool branch``: lines of versions beside main."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from govtool.cli.formats import chosen
from govtool.cli.options import AuthorOption, FormatOption, OutputOption, StoreOption
from govtool.cli.ui import Ui
from govtool.errors import UnknownNameError
from govtool.render.text import count, short


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


def branch_list(ui: Ui, format: FormatOption = None, output: OutputOption = None, store: StoreOption = None) -> None:
    """The branches of the store and where they stand.

    govtool branch list
    govtool branch list --format json
    """
    from govtool.app.project.project import open_store
    from govtool.app.versions.branches import list_branches
    from govtool.render.branches import FORMATS, render

    outputs = chosen(format, output, FORMATS)
    opened = open_store(store)
    found = list_branches(opened)
    for form, file in outputs:
        ui.show(render(form, "branch", found, opened.uri), file)


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

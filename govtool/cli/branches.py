"""``govtool branch`` and ``govtool tag``: lines of versions beside main, and names for commits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from govtool.cli.shared.formats import chosen
from govtool.cli.shared.options import AuthorOption, FormatOption, OutputOption, StoreOption
from govtool.cli.shared.ui import Ui
from govtool.errors import UnknownNameError
from govtool.render.layout.text import count, short

if TYPE_CHECKING:
    from govtool.store import Commit, Store


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
    """List the branches of the store and their heads.

    govtool branch list
    govtool branch list --format json
    """
    from govtool.app.versions.branches import list_branches

    _show(ui, "branch", list_branches, format, output, store)


def branch_delete(
    ui: Ui,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The branch to delete.")],
    author: AuthorOption = None,
    store: StoreOption = None,
) -> None:
    """Delete a branch. Commits that tags and merges name stay.

    govtool branch delete redesign
    govtool branch delete hotfix --author ada
    """
    from govtool.app.project.project import open_store
    from govtool.app.versions.branches import delete_branch

    commit = delete_branch(open_store(store), name, author)
    ui.note(f"branch {name} ended with commit {commit.seq}")


def branch_merge(
    ui: Ui,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The branch that has the changes.")],
    into: Annotated[str, typer.Option("--into", metavar="BRANCH", help="The branch to change.")] = "main",
    prefer: Annotated[
        str | None,
        typer.Option("--prefer", metavar="source|target", help="The side that wins if both changed a source."),
    ] = None,
    author: AuthorOption = None,
    store: StoreOption = None,
) -> None:
    """Take over the changes of a branch, source by source.

      govtool branch merge redesign
      govtool branch merge hotfix --into release --prefer source

    A source that only one side changed is taken. A source that both changed differently is a conflict, unless
    --prefer names the side that wins.
    """
    from govtool.app.project.project import open_store
    from govtool.app.versions.branches import merge_branch

    if prefer not in (None, "source", "target"):
        raise UnknownNameError(
            f"no side {prefer}", code="usage.unknown-side", nearest=("source", "target"), hint="--prefer source|target"
        )
    side = cast('Literal["source", "target"] | None', prefer)
    result = merge_branch(open_store(store), name, into, side, author)
    commit = result.commit
    if not result.created:
        ui.note(f"{into}: nothing new in {name}, still at commit {commit.seq} ({short(commit.id)})")
        return
    taken = count(len(commit.sources), "source")
    ui.note(f"{into}: commit {commit.seq} ({short(commit.id)}) takes {taken} from {name}")


def tag_create(
    ui: Ui,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name.")],
    ref: Annotated[
        str | None, typer.Argument(metavar="[REF]", help="The commit to tag. Default: HEAD of main.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Move a tag of that name.")] = False,
    author: AuthorOption = None,
    store: StoreOption = None,
) -> None:
    """Name a commit, for --at and diff.

    govtool tag create audited-2026
    govtool tag create v1.0 HEAD~3 --force
    """
    from govtool.app.project.project import open_store
    from govtool.app.versions.branches import create_tag

    tag = create_tag(open_store(store), name, ref, author, replace=force)
    ui.note(f"tag {tag.name} is commit {tag.commit.seq} ({short(tag.commit.id)})")


def tag_list(ui: Ui, format: FormatOption = None, output: OutputOption = None, store: StoreOption = None) -> None:
    """List the tags of the store and their commits.

    govtool tag list
    govtool tag list --format csv
    """
    from govtool.app.versions.branches import list_tags

    _show(ui, "tag", list_tags, format, output, store)


def tag_delete(
    ui: Ui,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tag.")],
    store: StoreOption = None,
) -> None:
    """Delete a tag; its commit stays.

    govtool tag delete v1.0
    govtool tag delete audited-2026 --store s3://bucket/lineage
    """
    from govtool.app.project.project import open_store
    from govtool.app.versions.branches import delete_tag

    delete_tag(open_store(store), name)
    ui.note(f"tag {name} is deleted")


def _show(
    ui: Ui,
    what: str,
    names: Callable[[Store], Sequence[tuple[str, Commit]]],
    format: list[str] | None,
    output: list[Path] | None,
    store: str | None,
) -> None:
    """Write the branches or tags of a store."""
    from govtool.app.project.project import open_store
    from govtool.render.branches import FORMATS, render

    outputs = chosen(format, output, FORMATS)
    opened = open_store(store)
    found = names(opened)
    for form, file in outputs:
        ui.show(render(form, what, found, opened.uri), file)

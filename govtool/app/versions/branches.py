"""Branches and tags as commands use them: who did it, and refs instead of commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from govtool.app.project.project import commit_at
from govtool.app.project.user import user_name

if TYPE_CHECKING:
    from govtool.store import Commit, CommitResult, Store
    from govtool.store.tags import Tag


class Standing(NamedTuple):
    """A name and the commit that it stands for."""

    name: str
    at: Commit


def list_branches(store: Store) -> list[Standing]:
    """The branches, by name."""
    from govtool.store import branches

    return [Standing(branch.name, branch.head) for branch in branches.list_branches(store)]


def list_tags(store: Store) -> list[Standing]:
    """The tags, by name."""
    from govtool.store import tags

    return [Standing(tag.name, tag.commit) for tag in tags.list_tags(store)]


def delete_tag(store: Store, name: str) -> None:
    """Take a tag away."""
    from govtool.store import tags

    tags.delete_tag(store, name)


def create_branch(store: Store, name: str, ref: str | None, author: str | None) -> Commit:
    """Start a branch at what ``ref`` names, by default the head of the default branch."""
    from govtool.store import branches

    return branches.create_branch(store, name, commit_at(store, ref), author=author or user_name())


def delete_branch(store: Store, name: str, author: str | None) -> Commit:
    """End a branch; see ``govtool.store.branches``."""
    from govtool.store import branches

    return branches.delete_branch(store, name, author=author or user_name())


def merge_branch(
    store: Store, source: str, into: str, prefer: Literal["source", "target"] | None, author: str | None
) -> CommitResult:
    """Take over into one branch what another changed; see ``govtool.store.branches``."""
    from govtool.store import branches

    return branches.merge_branch(store, source, into, author=author or user_name(), prefer=prefer)


def create_tag(store: Store, name: str, ref: str | None, author: str | None, *, replace: bool) -> Tag:
    """Name what ``ref`` names, by default the head of the default branch."""
    from govtool.store import tags

    return tags.create_tag(store, name, commit_at(store, ref), author=author or user_name(), replace=replace)

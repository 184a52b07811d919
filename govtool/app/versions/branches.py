"""Branches and tags as commands use them: the user as author where none is given, and refs instead of commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from govtool.app.project.project import commit_at
from govtool.app.project.user import user_name
from govtool.store import branches, tags
from govtool.store.branches import list_branches
from govtool.store.tags import Tag, delete_tag, list_tags

if TYPE_CHECKING:
    from govtool.store import Commit, CommitResult, Store

__all__ = [
    "create_branch",
    "create_tag",
    "delete_branch",
    "delete_tag",
    "list_branches",
    "list_tags",
    "merge_branch",
]


def create_branch(store: Store, name: str, ref: str | None, author: str | None) -> Commit:
    """Start a branch at what ``ref`` names, by default the head of the default branch."""
    return branches.create_branch(store, name, commit_at(store, ref), author=author or user_name())


def delete_branch(store: Store, name: str, author: str | None) -> Commit:
    """End a branch; see ``govtool.store.branches``."""
    return branches.delete_branch(store, name, author=author or user_name())


def merge_branch(
    store: Store, source: str, into: str, prefer: Literal["source", "target"] | None, author: str | None
) -> CommitResult:
    """Take over into one branch what another changed; see ``govtool.store.branches``."""
    return branches.merge_branch(store, source, into, author=author or user_name(), prefer=prefer)


def create_tag(store: Store, name: str, ref: str | None, author: str | None, *, replace: bool) -> Tag:
    """Name what ``ref`` names, by default the head of the default branch."""
    return tags.create_tag(store, name, commit_at(store, ref), author=author or user_name(), replace=replace)

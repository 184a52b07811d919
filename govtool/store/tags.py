"""Tags: names for commits that stay where they are."""

from __future__ import annotations

from typing import NamedTuple

from govtool import clock
from govtool.errors import UnknownNameError, UsageError
from govtool.store import log, refs
from govtool.store.codec import FORMAT, seal
from govtool.store.commit import Commit
from govtool.store.names import check_new_name, check_tag
from govtool.store.store import Store


class Tag(NamedTuple):
    """A tag and its commit."""

    name: str
    commit: Commit


def create_tag(store: Store, name: str, commit: Commit, *, author: str, replace: bool = False) -> Tag:
    """Name a commit.

    Raises:
        UsageError: ``usage.tag`` for a bad name, ``usage.tag-exists`` if there is a tag of that name (unless
            ``replace``) or a branch.
    """
    objects = store.objects
    head = log.read_position(objects, check_new_name(name, "tag")).head
    body = {
        "format": FORMAT,
        "branch": commit.branch,
        "seq": commit.seq,
        "id": commit.id,
        "author": author,
        "time": clock.iso(clock.now()),
    }
    if head is not None and not head.closed:
        raise UsageError(f"there is a branch {name!r} already", code="usage.tag-exists", hint="choose another name")
    if replace:
        objects.put(refs.tag_key(name), seal(body))
    elif not objects.create(refs.tag_key(name), seal(body)):
        raise UsageError(f"there is a tag {name!r} already", code="usage.tag-exists", hint="choose another, or --force")
    return Tag(name, commit)


def delete_tag(store: Store, name: str) -> None:
    """Remove a tag; its commit stays.

    Raises:
        UnknownNameError: ``usage.unknown-tag``.
    """
    key = refs.tag_key(check_tag(name))
    if store.objects.get(key) is None:
        raise UnknownNameError(
            f"there is no tag {name!r}",
            code="usage.unknown-tag",
            nearest=tuple(refs.tag_names(store.objects))[:10],
            hint="govtool tag list",
        )
    store.objects.delete(key)


def list_tags(store: Store) -> tuple[Tag, ...]:
    """All tags, sorted by name, each verified."""
    found = []
    for name in refs.tag_names(store.objects):
        commit = refs.read_tag(store.objects, name)
        if commit is not None:
            found.append(Tag(name, commit))
    return tuple(found)

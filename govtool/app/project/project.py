"""Finds the project, its store, and a commit in it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.config import load_config, store_setting
from govtool.errors import FormatError, StoreError, UnknownNameError, UsageError
from govtool.store.names import DEFAULT_BRANCH

if TYPE_CHECKING:
    from govtool.store import Commit, Reader, Store


def store_uri(option: str | None) -> str:
    """The path or URI of the store that an option, the environment or the project names.

    Raises:
        UsageError: A checkout's settings name it, outside of their folder, and the user has not agreed.
    """
    from govtool.app.project.trust import require_trust

    config = load_config(Path.cwd())
    setting = store_setting(option, config)
    require_trust(setting, config)
    return str(setting.value)


def remote_store(option: str | None) -> str:
    """The address of the store without secrets, where it is remote; else nothing. It is not opened.

    Raises:
        UsageError: See `store_uri`.
    """
    from govtool.redaction import clean_location
    from govtool.store.backends.location import local_path

    uri = store_uri(option)
    return clean_location(uri) if local_path(uri) is None else ""


def create_store(option: str | None) -> Store:
    """Create a store; without any setting, in the working directory even if a parent has one.

    Raises:
        UsageError: A checkout's settings name it, outside of their folder, and the user has not agreed.
        StoreError: there is one already (``store.exists``), or it cannot be written.
        FormatError: there is one already, and a newer version made it.
    """
    from govtool.app.project.trust import require_trust
    from govtool.config import STORE_DIRECTORY
    from govtool.store import Store

    config = load_config(Path.cwd())
    setting = store_setting(option, config)
    require_trust(setting, config)
    uri = str(Path.cwd() / STORE_DIRECTORY) if setting.origin == "default" else str(setting.value)
    try:
        return Store.init(uri)
    except StoreError as error:
        if error.code == "store.exists":
            with _naming(uri):
                Store.open(uri)  # of a newer format: that is what there is to say
        raise


def open_store(option: str | None) -> Store:
    """Open the store to read and to write.

    Raises:
        UsageError: A checkout's settings name it, outside of their folder, and the user has not agreed.
        StoreError: there is none (``store.missing``), or it cannot be read.
    """
    from govtool.store import Store

    uri = store_uri(option)
    with _naming(uri):
        return Store.open(uri)


def read_store(option: str | None) -> Reader:
    """Open the store for reading only, which is quicker.

    Raises:
        UsageError: A checkout's settings name it, outside of their folder, and the user has not agreed.
        StoreError: there is none (``store.missing``), or it cannot be read.
    """
    from govtool.store.quick import open_reader

    uri = store_uri(option)
    with _naming(uri):
        return open_reader(uri)


@contextlib.contextmanager
def _naming(uri: str) -> Iterator[None]:
    """Let the error about a newer format name the store."""
    try:
        yield
    except FormatError as error:
        error.location = uri
        raise


def existing_branch(store: Reader, branch: str | None) -> str:
    """The branch that ``--branch`` names, or the default one, which may have no commit yet.

    Raises:
        UnknownNameError: there is no such branch (``usage.unknown-branch``).
    """
    name = branch or DEFAULT_BRANCH
    if name != DEFAULT_BRANCH and store.head(name) is None:
        from govtool.store.refs import branch_names

        raise UnknownNameError(
            f"there is no branch {name!r}",
            code="usage.unknown-branch",
            nearest=tuple(other for other in branch_names(store.objects) if store.head(other) is not None)[:10],
            hint="govtool branch list",
        )
    return name


def commit_at(store: Reader, ref: str | None, branch: str | None = None) -> Commit:
    """The commit that ``--at`` names, or the newest; on a branch other than the default one if ``branch`` says so.

    Raises:
        UnknownNameError: there is no such commit.
        UsageError: the store has no commit yet (``usage.empty-store``).
    """
    if ref is not None:
        return store.resolve(ref, existing_branch(store, branch))
    head = store.head(existing_branch(store, branch) if branch else DEFAULT_BRANCH)
    if head is None:
        raise UsageError(
            "the store has no commit yet",
            code="usage.empty-store",
            location=store.uri,
            hint="govtool ingest sql FOLDER",
        )
    return head

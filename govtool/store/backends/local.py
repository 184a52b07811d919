"""Objects on a local disk: as obstore writes them, but durable before they are visible.

obstore's LocalStore writes a staging file beside the target and links it into place without an fsync, so that a power
cut could leave a slot's name with nothing in it. Here the bytes go to a file under ``tmp/``, are synced, and only
then get their name (a hard link, which fails if the name is taken); the folder is synced before anyone is told.
"""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from govtool.errors import StoreError
from govtool.model.records import PRIVATE
from govtool.store.backends.failures import translate
from govtool.store.backends.files import refuse_device
from govtool.store.backends.objects import ObstoreObjects

STAGING = "tmp"
"""The folder of files that have no name yet; leftovers of killed writers are swept by gc."""

_PRIVATE = f"frag/{PRIVATE}"
"""The beginning of keys of private values: their files are closed to who is neither the owner nor of the group."""


class LocalObjects(ObstoreObjects):
    """Objects below a folder of the local file system.

    Args:
        uri: What to call it in messages.
        store: obstore's LocalStore for ``root``.
        root: The folder.
    """

    def __init__(self, uri: str, store: Any, root: Path) -> None:
        super().__init__(uri, store)
        self.root = root
        self._synced: set[Path] = set()
        self._within: set[str] = set()

    def create(self, key: str, data: bytes) -> bool:
        """See `Objects.create`."""
        return self.create_many([(key, data)])[0]

    def create_many(self, items: Sequence[tuple[str, bytes]]) -> list[bool]:
        """See `Objects.create_many`; each folder is synced once."""
        created = [self._write(key, data, overwrite=False) for key, data in items]
        # Also for what was there: whoever made it may not have come so far as to sync it.
        self._sync_folders([key for key, _ in items])
        return created

    def get(self, key: str) -> bytes | None:
        """See `ReadableObjects.get`."""
        refuse_device(self.root, key)
        return super().get(key)

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """See `ReadableObjects.get_many`."""
        return [self.get(key) for key in keys]

    def put(self, key: str, data: bytes) -> None:
        """See `Objects.put`."""
        self._write(key, data, overwrite=True)
        self._sync_folders([key])

    def delete(self, key: str) -> None:
        """See `Objects.delete`; also removes the staging files that obstore will not name."""
        self._require_within(key)
        try:
            (self.root / key).unlink(missing_ok=True)
        except OSError as error:
            raise translate(error, f"delete {key}", self.uri) from error

    def _write(self, key: str, data: bytes, *, overwrite: bool) -> bool:
        staged = f"{STAGING}/{uuid.uuid4().hex}"
        self._require_within(staged)
        self._require_within(key)
        try:
            try:
                if key.startswith(_PRIVATE):
                    self._stage_private(staged, data)
                else:
                    self._api.put(self._store, staged, data, use_multipart=False)
                sync(self.root / staged)
                self._api.rename(self._store, staged, key, overwrite=overwrite)
            except BaseException:
                (self.root / staged).unlink(missing_ok=True)
                raise
        except self._api.exceptions.AlreadyExistsError:
            return False
        except Exception as error:
            raise translate(error, f"write {key}", self.uri) from error
        return True

    def _require_within(self, key: str) -> None:
        """Refuse to write or delete through a link out of the store, as a checkout of others may hold one.

        Raises:
            StoreError: ``store.link``.
        """
        folder = key.rpartition("/")[0]
        if folder in self._within:
            return
        place = (self.root / folder).resolve()
        if not place.is_relative_to(self.root.resolve()):
            raise StoreError(
                f"{folder} leads out of the store, to {place}: nothing is written or deleted there",
                code="store.link",
                location=self.uri,
                hint="put a folder in the place of the link; the store as a whole may be a link",
            )
        self._within.add(folder)

    def _stage_private(self, staged: str, data: bytes) -> None:
        (self.root / STAGING).mkdir(exist_ok=True)
        with open(self.root / staged, "xb", opener=lambda path, flags: os.open(path, flags, 0o660)) as file:
            file.write(data)

    def _sync_folders(self, keys: Sequence[str]) -> None:
        try:
            for folder in {(self.root / key).parent for key in keys}:
                sync(folder)
                # Those above gain a name only when one is made, by this process or one that may not have synced it yet.
                above = folder
                while above != self.root and above not in self._synced:
                    self._synced.add(above)
                    above = above.parent
                    sync(above)
        except OSError as error:
            raise translate(error, f"sync {keys[0]}", self.uri) from error


def sync(path: Path) -> None:
    """Force a file or a folder to disk; file systems that cannot sync folders are taken at their word."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:
        if os.name == "nt":  # folders cannot be opened there
            return
        raise
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)

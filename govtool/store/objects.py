"""What the store asks of a place that holds bytes: five requests, of which *create* is the only compare-and-swap.

`ObstoreObjects` gives them on anything that obstore reaches; ``govtool.store.local`` adds durability on local disks,
and ``govtool.store.quick`` a reader that needs the standard library alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from govtool.store.failures import is_absent, translate

_PARALLEL = 16
_A = TypeVar("_A")
_R = TypeVar("_R")


class ObjectInfo(NamedTuple):
    """One line of a listing. ``size`` is in bytes."""

    key: str
    size: int
    modified: datetime


class ReadableObjects(Protocol):
    """The requests of a reader. All raise StoreError when the place cannot be reached or read."""

    uri: str

    def get(self, key: str) -> bytes | None:
        """The bytes of an object, or ``None`` if there is none."""

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """`get` for several keys, in parallel where that helps."""

    def scan(self, prefix: str, after: str = "") -> Iterator[ObjectInfo]:
        """The objects below the folder ``prefix`` (no trailing slash) with keys after ``after``, in any order."""


class Objects(ReadableObjects, Protocol):
    """The requests of a writer. A change that was acknowledged is durable."""

    def create(self, key: str, data: bytes) -> bool:
        """Write an object if there is none: True if this call made it, False if one was there. Atomic."""

    def create_many(self, items: Sequence[tuple[str, bytes]]) -> list[bool]:
        """`create` for several objects, in parallel where that helps."""

    def put(self, key: str, data: bytes) -> None:
        """Write or replace an object. Atomic."""

    def delete(self, key: str) -> None:
        """Remove an object; nothing happens if there is none."""


def _in_parallel(function: Callable[[_A], _R], items: Sequence[_A]) -> list[_R]:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(_PARALLEL, len(items))) as pool:
        return list(pool.map(function, items))


class ObstoreObjects:
    """Objects on any store that obstore reaches.

    Args:
        uri: What to call it in messages.
        store: An obstore store.
    """

    def __init__(self, uri: str, store: Any) -> None:
        import obstore

        self.uri = uri
        self._store = store
        self._api: Any = obstore

    def get(self, key: str) -> bytes | None:
        """See `ReadableObjects.get`."""
        try:
            return bytes(self._api.get(self._store, key).bytes())
        except Exception as error:
            if isinstance(error, FileNotFoundError) and is_absent(error):
                return None
            raise translate(error, f"read {key}", self.uri) from error

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """See `ReadableObjects.get_many`."""
        if len(keys) < 2:
            return [self.get(key) for key in keys]
        return _in_parallel(self.get, keys)

    def scan(self, prefix: str, after: str = "") -> Iterator[ObjectInfo]:
        """See `ReadableObjects.scan`."""
        try:
            for chunk in self._api.list(self._store, prefix=prefix, offset=after or None):
                for meta in chunk:
                    yield ObjectInfo(meta["path"], meta["size"], meta["last_modified"])
        except Exception as error:
            raise translate(error, f"list {prefix}", self.uri) from error

    def create(self, key: str, data: bytes) -> bool:
        """See `Objects.create`."""
        try:
            # One request whatever the size: a multipart upload would only be conditional at its end.
            self._api.put(self._store, key, data, mode="create", use_multipart=False)
        except self._api.exceptions.AlreadyExistsError:
            return False
        except Exception as error:
            raise translate(error, f"write {key}", self.uri) from error
        return True

    def create_many(self, items: Sequence[tuple[str, bytes]]) -> list[bool]:
        """See `Objects.create_many`."""
        if len(items) < 2:
            return [self.create(key, data) for key, data in items]
        return _in_parallel(lambda item: self.create(*item), items)

    def put(self, key: str, data: bytes) -> None:
        """See `Objects.put`."""
        try:
            self._api.put(self._store, key, data)
        except Exception as error:
            raise translate(error, f"write {key}", self.uri) from error

    def delete(self, key: str) -> None:
        """See `Objects.delete`."""
        try:
            self._api.delete(self._store, key)
        except Exception as error:
            if isinstance(error, FileNotFoundError) and is_absent(error):
                return
            raise translate(error, f"delete {key}", self.uri) from error

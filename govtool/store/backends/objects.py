"""The store's interface to a place that holds bytes: five requests, of which *create* is the only compare-and-swap.

`ObstoreObjects` gives them on anything that obstore reaches; ``local`` adds durability on local disks, and
``govtool.store.quick`` a reader that needs the standard library alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from govtool.errors import StoreError
from govtool.store.backends.failures import is_absent, translate
from govtool.store.backends.retry import ONCE, RetryPolicy

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

    def get_range(self, key: str, start: int, end: int) -> bytes | None:
        """The bytes of an object from ``start`` up to ``end``, or ``None`` if there is none."""

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


def in_parallel(function: Callable[[_A], _R], items: Sequence[_A]) -> list[_R]:
    """The results of requests that are made at once, in order."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(_PARALLEL, len(items))) as pool:
        return list(pool.map(function, items))


class ObstoreObjects:
    """Objects on any store that obstore reaches.

    Args:
        uri: What to call it in messages.
        store: An obstore store.
        patience: How often a request is tried.
    """

    def __init__(self, uri: str, store: Any, retries: RetryPolicy = ONCE) -> None:
        import obstore

        self.uri = uri
        self._store = store
        self._api: Any = obstore
        self._retries = retries
        self._ahead: dict[str, bytes] = {}

    @property
    def is_remote(self) -> bool:
        """True if a request is worth saving."""
        return self._retries is not ONCE

    def fetch_ahead(self, key: str) -> bool:
        """Get an object now, for the next `get` of it to give; whether there is one."""
        data = self.get(key)
        if data is None:
            return False
        self._ahead[key] = data
        return True

    def get(self, key: str) -> bytes | None:
        """See `ReadableObjects.get`."""
        if self._ahead and (data := self._ahead.pop(key, None)) is not None:
            return data

        def request() -> bytes | None:
            try:
                return bytes(self._api.get(self._store, key).bytes())
            except FileNotFoundError as error:
                if is_absent(error):
                    return None
                raise

        return self._run(f"read {key}", request)

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """See `ReadableObjects.get_many`."""
        if len(keys) < 2:
            return [self.get(key) for key in keys]
        return in_parallel(self.get, keys)

    def get_range(self, key: str, start: int, end: int) -> bytes | None:
        """See `ReadableObjects.get_range`."""

        def request() -> bytes | None:
            try:
                return bytes(self._api.get_range(self._store, key, start=start, end=end))
            except FileNotFoundError as error:
                if is_absent(error):
                    return None
                raise

        try:
            return self._run(f"read {key}", request)
        except StoreError:
            whole = self.get(key)  # one that was cut short has no such range: an error with most servers
            if whole is None or len(whole) < end:
                return None if whole is None else whole[start:end]
            raise

    def scan(self, prefix: str, after: str = "") -> Iterator[ObjectInfo]:
        """See `ReadableObjects.scan`."""
        seen: set[str] = set()
        chunks: Iterator[Any] | None = None

        def request() -> list[ObjectInfo]:
            # One page at a time; after an error, the listing starts anew without what it gave already.
            nonlocal chunks
            if chunks is None:
                chunks = iter(self._api.list(self._store, prefix=prefix, offset=after or None))
            try:
                page: list[Any] = next(chunks, [])
            except BaseException:
                chunks = None
                raise
            return [ObjectInfo(meta["path"], meta["size"], meta["last_modified"]) for meta in page]

        while page := self._run(f"list {prefix or 'the store'}", request):
            fresh = [info for info in page if info.key not in seen]
            seen.update(info.key for info in fresh)
            yield from fresh

    def create(self, key: str, data: bytes) -> bool:
        """See `Objects.create`."""

        def request() -> bool:
            try:
                # One request whatever the size: a multipart upload would only be conditional at its end.
                self._api.put(self._store, key, data, mode="create", use_multipart=False)
            except self._api.exceptions.AlreadyExistsError:
                return False
            return True

        return self._run(f"write {key}", request)

    def create_many(self, items: Sequence[tuple[str, bytes]]) -> list[bool]:
        """See `Objects.create_many`."""
        if len(items) < 2:
            return [self.create(key, data) for key, data in items]
        return in_parallel(lambda item: self.create(*item), items)

    def put(self, key: str, data: bytes) -> None:
        """See `Objects.put`."""
        self._run(f"write {key}", lambda: self._api.put(self._store, key, data))

    def delete(self, key: str) -> None:
        """See `Objects.delete`."""

        def request() -> None:
            try:
                self._api.delete(self._store, key)
            except FileNotFoundError as error:
                if not is_absent(error):
                    raise

        self._run(f"delete {key}", request)

    def _run(self, action: str, request: Callable[[], _R]) -> _R:
        def attempt() -> _R:
            try:
                return request()
            except Exception as error:
                raise translate(error, action, self.uri) from error

        return self._retries.run(attempt)


def list_with_tags(uri: str, store: Any) -> Iterator[tuple[str, int, str | None]]:
    """Key, size in bytes and ETag of everything in an obstore store.

    Raises:
        StoreError: if it cannot be listed.
    """
    import obstore

    try:
        for chunk in obstore.list(store):
            for meta in chunk:
                yield meta["path"], meta["size"], meta["e_tag"]
    except Exception as error:
        raise translate(error, "list the data", uri) from error

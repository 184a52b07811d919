"""Objects over those of a store: reads go through, and what is written stays in memory.

An ingest into a store over such objects makes the commit that it would make, and leaves the store as it is: no slot, no
fragment, no hint. What is in memory is that of one ingest.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from govtool import clock
from govtool.store.backends.objects import ObjectInfo, Objects


class OverlayObjects:
    """The objects of a store with changes of one process; safe to share between threads.

    Args:
        below: The objects of the store; nothing is written to them.
    """

    def __init__(self, below: Objects) -> None:
        self.uri = below.uri
        self._below = below
        self._lock = threading.Lock()
        self._changed: dict[str, bytes | None] = {}
        """Contents by key; None where an object was removed."""

    @property
    def is_remote(self) -> bool:
        """True if a request to the store below is worth saving."""
        return bool(getattr(self._below, "is_remote", False))

    def get(self, key: str) -> bytes | None:
        """See `ReadableObjects.get`."""
        return self._changed[key] if key in self._changed else self._below.get(key)

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """See `ReadableObjects.get_many`."""
        below = [key for key in keys if key not in self._changed]
        found = dict(zip(below, self._below.get_many(below), strict=True))
        return [found[key] if key in found else self._changed[key] for key in keys]

    def get_range(self, key: str, start: int, end: int) -> bytes | None:
        """See `ReadableObjects.get_range`."""
        if key not in self._changed:
            return self._below.get_range(key, start, end)
        data = self._changed[key]
        return None if data is None else data[start:end]

    def scan(self, prefix: str, after: str = "") -> Iterator[ObjectInfo]:
        """See `ReadableObjects.scan`."""
        with self._lock:
            changed = dict(self._changed)
        yield from (info for info in self._below.scan(prefix, after) if info.key not in changed)
        now = clock.now()
        for key, data in changed.items():
            if data is not None and key.startswith(f"{prefix}/") and key > after:
                yield ObjectInfo(key, len(data), now)

    def create(self, key: str, data: bytes) -> bool:
        """See `Objects.create`."""
        with self._lock:
            if self.get(key) is not None:
                return False
            self._changed[key] = data
            return True

    def create_many(self, items: Sequence[tuple[str, bytes]]) -> list[bool]:
        """See `Objects.create_many`."""
        return [self.create(key, data) for key, data in items]

    def put(self, key: str, data: bytes) -> None:
        """See `Objects.put`."""
        with self._lock:
            self._changed[key] = data

    def delete(self, key: str) -> None:
        """See `Objects.delete`."""
        with self._lock:
            self._changed[key] = None

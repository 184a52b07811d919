"""Objects of which those that never change are read once: slots and nodes of manifests.

For a command that looks at the whole history several times. Listings and hints are asked for anew each time, so that
what others commit meanwhile is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from govtool.store.backends.objects import Objects

_NEVER_CHANGED = ("log/", "manifest/")
"""Folders of objects that are created once, and neither replaced nor removed."""
_MOST = 256 * 1024 * 1024
"""Bytes that are kept at most; what comes later is read each time."""


class RememberedObjects:
    """The objects of a store, for one command. Every other request goes through as it is.

    Args:
        below: The objects of the store.

    Attributes:
        below: The same.
    """

    def __init__(self, below: Objects) -> None:
        self.uri = below.uri
        self.below = below
        self._known: dict[str, bytes] = {}
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        """Writing, listing, and what some kinds of objects have besides."""
        return getattr(self.below, name)

    def get(self, key: str) -> bytes | None:
        """See `ReadableObjects.get`."""
        return self.get_many([key])[0] if key.startswith(_NEVER_CHANGED) else self.below.get(key)

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """See `ReadableObjects.get_many`."""
        unknown = [key for key in keys if key not in self._known]
        found = dict(zip(unknown, self._read(unknown), strict=True))
        for key, data in found.items():
            if data is not None and key.startswith(_NEVER_CHANGED) and self._size + len(data) <= _MOST:
                self._known[key] = data
                self._size += len(data)
        return [found[key] if key in found else self._known[key] for key in keys]

    def _read(self, keys: Sequence[str]) -> Sequence[bytes | None]:
        return [self.below.get(key) for key in keys] if len(keys) < 2 else self.below.get_many(keys)

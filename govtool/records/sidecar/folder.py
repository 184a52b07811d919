"""The folder of key sidecars: bounded, what was used longest ago goes first; deleting any file of it is safe."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from govtool.records.sidecar import keyfile
from govtool.records.sidecar.keyfile import KeyFile, KeySet

_ABANDONED = 3600.0
"""Seconds after which a half-made file is taken to be left by a process that was killed."""


@dataclass(frozen=True, slots=True)
class SidecarFolder:
    """Where sidecars are.

    Attributes:
        path: The folder; it need not exist.
        limit: The most bytes of all of them.
    """

    path: Path
    limit: int

    def place(self, uri: str, keys: KeySet) -> Path:
        """The file of a sidecar."""
        return self.path / keyfile.file_name(uri, keys)

    def open(self, uri: str, keys: KeySet) -> KeyFile | None:
        """The sidecar of a file as it is now; None where there is none."""
        place = self.place(uri, keys)
        found = keyfile.opened(place, uri, keys)
        if found is not None:
            with contextlib.suppress(OSError):  # a folder that may only be read serves all the same
                os.utime(place)
        return found

    def remove(self, uri: str, keys: KeySet) -> int:
        """Remove a sidecar; return its bytes, 0 where there was none."""
        place = self.place(uri, keys)
        try:
            size = place.stat().st_size
            place.unlink()
        except OSError:
            return 0
        return size

    def evict(self) -> None:
        """Remove what was used longest ago until the bound holds, and what killed builders left."""
        found = []
        for entry in os.scandir(self.path):
            try:
                facts = entry.stat()
            except OSError:
                continue
            if not entry.name.startswith("."):
                found.append((facts.st_mtime, entry.path, facts.st_size))
            elif time.time() - facts.st_mtime > _ABANDONED:
                Path(entry.path).unlink(missing_ok=True)
        total = sum(size for _, _, size in found)
        for _, path, size in sorted(found):
            if total <= self.limit:
                break
            Path(path).unlink(missing_ok=True)
            total -= size

"""Accepted events, kept until they are committed."""

from __future__ import annotations

import hashlib
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from govtool.errors import StoreError
from govtool.store import Store

_NUMBER = "[0-9]" * 12
"""The names of files: numbers that only grow."""


class EventSpool:
    """Accepted events on disk, a line each, until they are committed.

    Args:
        folder: Its place; made if need be, readable by its owner only.

    Raises:
        StoreError: the folder cannot be written, or another server uses it (``store.spool``).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._guard = (folder / "lock").open("a")
            try:
                _lock_file(self._guard.fileno())
            except OSError:
                self._guard.close()
                raise
        except OSError as error:
            problem = "is used by another server" if isinstance(error, BlockingIOError) else "cannot be written"
            raise StoreError(
                f"the spool {problem}", code="store.spool", location=str(folder), hint="--spool FOLDER"
            ) from error
        left = _events_in(folder)
        for file in left:
            _cut(file)
        # Also above those that were set aside: a file of one number would take the place of the other.
        self._number = max((int(file.stem) for file in (*left, *folder.glob(f"{_NUMBER}.failed"))), default=0)
        self._file: Any = None
        self.waiting = 0
        """Events since the last ``take``."""
        self.left = bool(left)
        """True if an earlier server left events behind."""

    def put(self, lines: list[bytes]) -> None:
        """Keep events; when this returns they are on disk.

        Raises:
            OSError: they could not be written; nothing of them is kept.
        """
        with self._lock:
            if self._file is None:
                self._number += 1
                name = self.folder / f"{self._number:012d}.jsonl"
                self._file = os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab", 0)
            start = self._file.seek(0, os.SEEK_END)
            try:
                data = memoryview(b"".join(line + b"\n" for line in lines))
                while data:
                    data = data[self._file.write(data) :]
                os.fsync(self._file.fileno())
            except OSError:
                with suppress(OSError):
                    self._file.truncate(start)
                raise
            self.waiting += len(lines)

    def take(self) -> list[Path]:
        """All files that are complete by now, oldest first; later events go to a new one."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
            self.waiting = 0
            return _events_in(self.folder)

    def close(self) -> None:
        """Let another server use the folder."""
        with self._lock:
            if self._file is not None:
                self._file.close()
            self._guard.close()


def _events_in(folder: Path) -> list[Path]:
    """The files of events that a server has written into a folder, oldest first; no file of the user's own."""
    return sorted(folder.glob(f"{_NUMBER}.jsonl"))


def _cut(file: Path) -> None:
    """Take away the end of a line that was being written when its server was killed: it was never acknowledged."""
    with file.open("rb+") as handle:
        data = handle.read()
        if not data.endswith(b"\n"):
            handle.truncate(data.rfind(b"\n") + 1)


def _lock_file(descriptor: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: no two servers should share a spool there
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def spool_folder(store: Store, source: str) -> Path:
    """The default place of a store's spool: ``$XDG_STATE_HOME/govtool/spool`` (``~/.local/state``)."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    name = hashlib.sha256(f"{store.store_id} {source}".encode()).hexdigest()[:16]
    return Path(state) / "govtool" / "spool" / name

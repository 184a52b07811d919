"""Work that is done, kept until all is: what a killed ingest of the same log goes on with.

A spool is a folder in the local cache, named by a digest of what is read and how, so that a log that has changed has
another one. It holds statements as they were sent, literals included: nobody but the user may read it, and it is
removed with the commit, or after a week. Each file ends with a digest of what is in it; a torn one counts as missing.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from govtool.store.backends.failures import translate
from govtool.store.cache import cache_root

KEPT = 7 * 24 * 3600.0
"""Seconds for which the work of an ingest that was killed is kept."""

_DIGEST = 32
_LOCK = ".lock"
_UNFINISHED = ".part-"
"""The prefix of the names of unfinished files."""


class StepFiles:
    """One folder of finished work."""

    def __init__(self, folder: Path) -> None:
        """Use a folder that exists."""
        self.folder = folder

    def get(self, name: str) -> bytes | None:
        """Return the content under a name; None if there is none, or only a part of it."""
        try:
            data = (self.folder / name).read_bytes()
        except OSError:
            return None
        content = data[:-_DIGEST]
        return content if hashlib.blake2b(content, digest_size=_DIGEST).digest() == data[-_DIGEST:] else None

    def view(self, name: str) -> memoryview:
        """Return the known contents without reading them: only what is looked at is read.

        Raises:
            OSError: it is not there.
        """
        with (self.folder / name).open("rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))[:-_DIGEST]

    def put(self, name: str, content: bytes) -> None:
        """Keep finished work; at any moment all of it is there or none.

        Raises:
            StoreError: it cannot be written (``store.full``, ``store.denied`` …).
        """
        temporary = self.folder / f"{_UNFINISHED}{uuid4().hex}"
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.write(hashlib.blake2b(content, digest_size=_DIGEST).digest())
            temporary.replace(self.folder / name)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise translate(error, "write the work that is done", str(self.folder)) from error


def spool_key(batch: str) -> str:
    """The name of the spool of a batch: another one where the code is another that makes and reads what is kept."""
    digest = hashlib.sha256(batch.encode())
    for file in sorted([*Path(__file__).parent.glob("*.py"), Path(__file__).parents[2] / "coverage" / "sources.py"]):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:32]


@contextmanager
def spooled(key: str) -> Iterator[StepFiles]:
    """The spool of a piece of work, with results that are there already; removed when the work is done.

    Two processes that do the same at the same time do not disturb each other: the second has a spool of its own.

    Raises:
        StoreError: the cache cannot be written.
    """
    root = cache_root() / "ingest"
    folder = root / key
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        _remove_old(root)
        folder.mkdir(exist_ok=True, mode=0o700)
        lock = _locked(folder)
        if lock is None:
            folder = root / f"{key}-{os.getpid()}-{uuid4().hex[:8]}"
            folder.mkdir(mode=0o700)
            lock = _locked(folder)
        _remove_unfinished(folder)
        os.utime(folder)
    except OSError as error:
        raise translate(error, "write the cache", str(root)) from error
    try:
        yield StepFiles(folder)
    except BaseException:
        _remove_unfinished(folder)
        _unlock(lock)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    _unlock(lock)


def _locked(folder: Path) -> int | None:
    """A lock that goes with the process; None if another one has it."""
    handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # no such locks on Windows: each has a spool of its own, and nothing is resumed
        os.close(handle)
        return None
    except OSError:
        os.close(handle)
        return None
    return handle


def _unlock(lock: int | None) -> None:
    if lock is not None:
        with contextlib.suppress(OSError):
            os.close(lock)


def _remove_unfinished(folder: Path) -> None:
    """Remove what processes that were killed were writing."""
    for file in folder.glob(f"{_UNFINISHED}*"):
        with contextlib.suppress(OSError):
            file.unlink()


def _remove_old(root: Path) -> None:
    for folder in root.iterdir():
        try:
            if time.time() - folder.stat().st_mtime < KEPT:
                continue
            lock = _locked(folder)
            if lock is not None:
                shutil.rmtree(folder, ignore_errors=True)
                _unlock(lock)
        except OSError:
            continue

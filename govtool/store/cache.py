"""The local cache of files derived from a commit: a folder per commit, complete or absent, bounded in size.

A folder is built beside its place and renamed into it, so that it is never seen half made and concurrent builders do
not disturb each other: the first one wins. What was used longest ago is evicted when the cache grows over its bound.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from govtool.errors import StoreError, UsageError
from govtool.store.backends.failures import translate
from govtool.store.backends.local import sync

SIZE_VARIABLE = "GOVTOOL_CACHE_SIZE"
"""The environment variable with the bound: bytes, or a number with K, M, G or T (powers of 1024)."""
DEFAULT_SIZE = 4 * 1024**3
"""The bound in bytes where the environment names none."""
BLOBS = "blobs"
"""The folder of `govtool.store.blobs`, beside that of commits: the bound is for both together."""
_STALE = 24 * 3600.0
"""Seconds after which a half-made folder is taken to be abandoned."""
_SAFE = re.compile(r"[A-Za-z0-9_-]{1,128}")


def cache_root() -> Path:
    """The cache's folder: ``GOVTOOL_CACHE``, else ``govtool`` in ``XDG_CACHE_HOME``, else in ``~/.cache``."""
    if own := os.environ.get("GOVTOOL_CACHE"):
        return Path(own).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    # The XDG specification says to ignore relative paths.
    return (Path(base) if base and Path(base).is_absolute() else Path("~/.cache").expanduser()) / "govtool"


def cache_dir(store_id: str, commit_id: str) -> Path:
    """The folder for the files of one commit; it exists if and only if it is complete."""
    for part in (store_id, commit_id):
        if not _SAFE.fullmatch(part):
            raise UsageError(f"{part[:60]!r} is not an id", code="usage.id")
    return cache_root() / "commits" / f"{store_id}.{commit_id}"


def lookup(directory: Path) -> bool:
    """Return whether a folder of `cache_dir` is there; if so it counts as used now."""
    try:
        os.utime(directory)
    except FileNotFoundError:
        return False
    except OSError:
        return directory.is_dir()  # A cache that may only be read serves all the same.
    return True


def publish(directory: Path, write: Callable[[Path], None], *, limit: int | None = None) -> None:
    """Make a folder appear with all that ``write`` puts into it, or not at all.

    Args:
        directory: From `cache_dir`.
        write: Is given an empty folder to fill. What it raises is passed on (an OSError as a StoreError), and nothing
            appears.
        limit: The bound of the whole cache in bytes; by default that of the environment.

    Raises:
        StoreError: ``store.full``, ``store.denied``, … if the cache cannot be written.
        UsageError: ``usage.cache-size`` if the environment's bound makes no sense.
    """
    bound = size_limit() if limit is None else limit
    building = directory.parent / f".build-{uuid.uuid4().hex}"
    try:
        building.mkdir(parents=True, mode=0o700)
        write(building)
        _sync_tree(building)
        _appear(building, directory)
    except OSError as error:
        raise _unwritable(error, directory) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    evict(directory.parent, bound, keep=directory)


def evict(parent: Path, limit: int, *, keep: Path | None = None) -> int:
    """Remove the least recently used files until the cache has at most ``limit`` bytes, and remains of killed
    builders.

    Args:
        parent: The folder that holds the folders of commits; the files of `BLOBS` are beside it.
        limit: In bytes.
        keep: A folder to leave alone.

    Returns:
        The number of folders of commits that were removed.
    """
    folders = _folders(parent)
    blobs = _blobs(parent.parent / BLOBS)
    total = sum(size for _, _, size in (*folders, *blobs))
    removed = 0
    whole = {path for _, path, _ in folders}
    for _, path, size in sorted([*folders, *blobs]):
        if total <= limit:
            break
        if path == keep:
            continue
        if path not in whole:
            try:
                path.unlink(missing_ok=True)
            except OSError:
                continue
            total -= size
            continue
        grave = parent / f".evicted-{uuid.uuid4().hex}"
        try:
            path.rename(grave)  # In one step, so that no reader opens half a folder.
        except OSError:
            continue
        shutil.rmtree(grave, ignore_errors=True)
        total -= size
        removed += 1
    return removed


_Entry = tuple[float, Path, int]
"""The time of its last use, its path, its size in bytes."""


def _folders(parent: Path) -> list[_Entry]:
    """The complete folders of commits; remains of builders that were killed long ago are removed."""
    try:
        found = [Path(entry.path) for entry in os.scandir(parent) if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    complete = []
    for path in found:
        used = _used(path)
        if not path.name.startswith("."):
            complete.append((used, path, tree_size(path)))
        elif time.time() - used > _STALE:
            shutil.rmtree(path, ignore_errors=True)
    return complete


def _blobs(folder: Path) -> list[_Entry]:
    """The files of `govtool.store.blobs`; remains of writers that were killed long ago are removed."""
    found = []
    for inner, _, names in os.walk(folder):
        if inner == str(folder):
            continue
        for name in names:
            path = Path(inner, name)
            try:
                stat = path.stat()
                if not name.startswith("."):
                    found.append((stat.st_mtime, path, stat.st_size))
                elif time.time() - stat.st_mtime > _STALE:
                    path.unlink(missing_ok=True)
            except OSError:
                continue
    return found


def size_limit() -> int:
    """The bound of the cache in bytes.

    Raises:
        UsageError: ``usage.cache-size``.
    """
    text = os.environ.get(SIZE_VARIABLE, "").strip()
    if not text:
        return DEFAULT_SIZE
    found = re.fullmatch(r"(\d{1,15})\s*([KMGT]?)i?B?", text, re.IGNORECASE)
    if not found:
        raise UsageError(
            f"{SIZE_VARIABLE} is {text[:40]!r}", code="usage.cache-size", hint="use bytes, or a size such as 500M or 4G"
        )
    return int(found[1]) << (10 * " KMGT".index(found[2].upper() or " "))


def tree_size(path: Path) -> int:
    """The bytes of the files below a folder; files that vanish meanwhile count as none."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += Path(folder, name).stat().st_size
            except OSError:
                continue
    return total


def _used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _sync_tree(path: Path) -> None:
    for folder, _, names in os.walk(path):
        for name in names:
            sync(Path(folder, name))
        sync(Path(folder))


def _appear(building: Path, directory: Path) -> None:
    try:
        building.rename(directory)
    except OSError as error:
        # Somebody else was first, with the same content: the name is a commit's.
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY) or not directory.is_dir():
            raise
    os.utime(directory)
    sync(directory.parent)


def _unwritable(error: OSError, directory: Path) -> StoreError:
    found = translate(error, f"write the cache {directory.parent}", str(directory))
    found.hint = "set GOVTOOL_CACHE to a folder that can be written and has space"
    return found

"""Local copies of a remote store's objects that are named by their digest: fragments, nodes, index pages.

A file is named by the sha256 of its content, or by the first digits of it, and compared with its name whenever it is
read: what is damaged is removed and fetched again. It appears by a rename, so that nobody sees half of it. The bound is
that of the whole cache (`govtool.store.cache`): what was used longest ago goes first. Readers take no locks: the worst
that can happen to them is that a file is gone, and then it is fetched again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from govtool.errors import UsageError
from govtool.store import cache

_COMMITS = "commits"
_LEDGER = "written"
_LOCK = "lock"
_LEDGER_SIZE = 64 * 1024
"""Bytes of the ledger after which the files are counted anew."""


def folder() -> Path:
    """Return the folder of the files."""
    return cache.cache_root() / cache.BLOBS


def get(name: str) -> bytes | None:
    """The content that a digest (or its first 32 or more hex digits) names, if it is here and sound."""
    path = _path(name)
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if not hashlib.sha256(data).hexdigest().startswith(name):
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    with contextlib.suppress(OSError):  # a cache that may only be read serves all the same
        os.utime(path)
    return data


def put(found: Mapping[str, bytes]) -> None:
    """Keep contents under their digests. A cache that cannot be written keeps nothing, silently."""
    total = 0
    for name, data in found.items():
        path = _path(name)
        building = path.parent / f".{uuid.uuid4().hex}"
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            building.write_bytes(data)
            building.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                building.unlink(missing_ok=True)
            return
        total += len(data)
    if total:
        _enter(total)


def through(names: Sequence[str], fetch: Callable[[list[int]], Sequence[bytes | None]]) -> list[bytes | None]:
    """Contents by their digests, from here or else from where they are.

    Args:
        names: Digests.
        fetch: Is given the places in ``names`` of what is not here, and returns that, unverified. Only what is as it
            is named is kept.
    """
    result: list[bytes | None] = [get(name) for name in names]
    missing = [place for place, data in enumerate(result) if data is None]
    if missing:
        fetched = fetch(missing)
        sound: dict[str, bytes] = {}
        for place, data in zip(missing, fetched, strict=True):
            result[place] = data
            if data is not None and hashlib.sha256(data).hexdigest().startswith(names[place]):
                sound[names[place]] = data
        put(sound)
    return result


def _path(name: str) -> Path:
    if len(name) < 32 or not set(name) <= set("0123456789abcdef"):
        raise UsageError(f"{name[:60]!r} is no digest", code="usage.id")
    return folder() / name[:2] / name


def _enter(size: int) -> None:
    """Add to the ledger of what was written, and make room where the bound may have been passed.

    The ledger counts too much rather than too little: what was written twice or has been removed since is counted until
    the files are.
    """
    ledger = folder() / _LEDGER
    try:
        with _locked():
            with ledger.open("ab") as file:
                file.write(b"%d\n" % size)
            lines = ledger.read_bytes().split()
            limit = cache.size_limit()
            commits = cache.tree_size(cache.cache_root() / _COMMITS)
            if sum(map(int, lines)) + commits > limit or len(lines) * 4 > _LEDGER_SIZE:
                # A little more than needed goes, so that this is not done at every write.
                cache.evict(cache.cache_root() / _COMMITS, limit - limit // 10)
                ledger.write_bytes(b"%d\n" % cache.tree_size(folder()))
    except (OSError, ValueError):
        with contextlib.suppress(OSError):
            ledger.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    """One process at a time writes the ledger; where there are no such locks, it may count too little for a while."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with (folder() / _LOCK).open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

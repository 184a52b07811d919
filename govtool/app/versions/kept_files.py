"""Files of the cache, mapped: each is what was made for its folder, and as it was made.

What was cached may be damaged: by a disk, a full one, a copy. All of a file is compared with its checksums where that
costs nothing (small files), where it is not the very file that was last compared (its size, times and inode are noted
beside it), and once a week. What was made for another commit is told by its header, which is noted, too. In between, a
bit that rots without a write can go unnoticed.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import time
from pathlib import Path

from govtool.arrays import layout
from govtool.errors import IntegrityError

VERIFIED = "verified"
"""The file beside it that says what was made for the folder, which file was compared, and by its own time when."""
ALWAYS_VERIFIED = 1 << 20
"""Bytes up to which a file is compared each time: a quarter of a millisecond."""
VERIFIED_FOR = 7 * 24 * 3600.0
"""Seconds after which a larger one is compared again."""


def open_kept(file: Path, version: int) -> mmap.mmap:
    """Map a file of ``govtool.arrays.layout`` that lies in a folder of the cache.

    Args:
        file: The file.
        version: Of the meaning of its arrays.

    Raises:
        IntegrityError: It is damaged, or was made for another folder.
        FormatError: It is of another version.
        OSError: It is not there.
        ValueError: It is empty.
    """
    buffer = mapped(file)
    made = _made(file.parent.name, buffer)
    noted = _noted(file)
    if noted[0] != made:
        raise IntegrityError("The file was made for another commit", code="store.corrupt-index")
    if not _is_verified(file, noted[1]):
        layout.verify(buffer, version)
        with contextlib.suppress(OSError):  # in a cache that cannot be written it is compared each time
            _note(file, made)
    return buffer


def note_made(file: Path, folder: Path) -> None:
    """Note what was made for a folder.

    Args:
        file: The file, where it is built.
        folder: Where it will appear.

    Raises:
        OSError: The cache cannot be written.
    """
    _note(file, _made(folder.name, mapped(file)))


def mapped(file: Path) -> mmap.mmap:
    """Map a file, whatever it holds."""
    with file.open("rb") as opened:
        return mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)


def _made(folder: str, buffer: mmap.mmap) -> str:
    """The mark of a file in a folder: its header holds the checksums of all of it."""
    return hashlib.sha256(folder.encode() + b"\0" + layout.header(buffer)).hexdigest()


def _noted(file: Path) -> tuple[str, str]:
    """The mark of what was made, and those of the file that was compared; empty ones if nothing is noted."""
    with contextlib.suppress(OSError, ValueError):
        made, _, identity = (file.parent / VERIFIED).read_text("ascii").partition("\n")
        return made, identity
    return "", ""


def _is_verified(file: Path, identity: str) -> bool:
    """Return whether the file is as it was when it was compared, not long ago. Small ones are compared each time."""
    noted = (file.parent / VERIFIED).stat().st_mtime
    if file.stat().st_size <= ALWAYS_VERIFIED or time.time() - noted > VERIFIED_FOR:
        return False
    return identity == _identity(file)


def _note(file: Path, made: str) -> None:
    building = file.parent / f".{VERIFIED}-{os.getpid()}"
    building.write_text(f"{made}\n{_identity(file)}", "ascii")
    building.replace(file.parent / VERIFIED)


def _identity(file: Path) -> str:
    """Return the marks that change whenever the file is written, replaced or copied."""
    found = file.stat()
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"

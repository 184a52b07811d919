"""Files that a user or a repository names: their paths, and what they hold, within bounds, as a device has no end."""

from __future__ import annotations

import errno
import io
import os
import select
import stat
from pathlib import Path
from typing import IO, Any

from govtool.errors import UsageError

LARGEST = 1 << 30
"""Bytes of a file that is read whole."""
WAIT = 5.0
"""Seconds in which somebody must open a pipe to write to it."""
_CHUNK = 1 << 20


def absolute(path: str | Path) -> Path:
    """Return the whole path of what somebody names: without ``..``, links as they are."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - ``Path.absolute`` keeps "..", ``Path.resolve`` follows links


def read_given(path: Path, largest: int = LARGEST) -> bytes:
    """Read a file, or a pipe, to its end.

    Raises:
        OSError: It cannot be read, is a device, or holds more than that.
    """
    kind = path.stat().st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind) or stat.S_ISDIR(kind)):
        raise OSError(errno.EINVAL, "it is no file", str(path))
    with open_given(path) as stream:
        return read_bounded(stream, str(path), largest)


def open_given(path: Path) -> IO[bytes]:
    """Open a file, or a pipe once somebody writes to it.

    Raises:
        OSError: It cannot be opened, or nobody has opened the pipe to write to it.
    """
    if not path.is_fifo():
        return path.open("rb")
    pipe = _Pipe(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    stream = io.BufferedReader(pipe)
    waiting = select.poll()
    waiting.register(pipe)
    if not waiting.poll(WAIT * 1000) and not stream.peek(1) and not pipe.is_quiet:
        stream.close()
        raise OSError(errno.EPIPE, "nobody writes to this pipe", str(path))
    os.set_blocking(pipe.fileno(), True)
    return stream


class _Pipe(io.FileIO):
    """A pipe; knows whether it was empty while somebody had it open to write to it."""

    is_quiet = False

    def readinto(self, buffer: Any) -> int | None:
        """See ``io.FileIO``."""
        count = super().readinto(buffer)
        self.is_quiet = count is None
        return count


def read_given_text(path: Path, encoding: str = "utf-8", largest: int = LARGEST) -> str:
    """Read a file as text, with the ends of lines as Python has them.

    Raises:
        OSError: As for `read_given`.
        UnicodeDecodeError: It is no such text.
    """
    return io.TextIOWrapper(io.BytesIO(read_given(path, largest)), encoding=encoding).read()


def leads_out(path: Path, top: Path) -> bool:
    """Return whether what is behind a path, all its links followed, is outside of a folder that is without links."""
    return not Path(os.path.realpath(path)).is_relative_to(top)


def refuse_link_out(entry: Path, folder: Path) -> None:
    """Refuse an entry of a folder that is a link to something outside of it.

    Raises:
        UsageError: It is (``usage.link``).
    """
    if entry.is_symlink() and entry.exists() and leads_out(entry, folder.resolve()):
        raise UsageError(
            "a link out of the folder",
            code="usage.link",
            location=str(entry),
            hint="to read what is behind it, give that as a path of its own",
        )


def read_bounded(stream: IO[bytes], name: str, largest: int = LARGEST) -> bytes:
    """Read a stream to its end.

    Raises:
        OSError: It holds more than that.
    """
    data = io.BytesIO()
    while part := stream.read(_CHUNK):
        if data.tell() + len(part) > largest:
            raise OSError(errno.EFBIG, f"it is larger than {largest:,} bytes", name)
        data.write(part)
    return data.getvalue()

"""Objects on a local disk read with the standard library alone, for readers in a hurry."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from govtool.errors import IntegrityError
from govtool.store.backends.failures import translate
from govtool.store.backends.objects import ObjectInfo

_ENDLESS = (stat.S_ISCHR, stat.S_ISBLK, stat.S_ISFIFO, stat.S_ISSOCK)


def refuse_device(root: Path, key: str) -> None:
    """Refuse a device or a pipe, or a link to one, in the place of an object: it would be read without end.

    Raises:
        IntegrityError: It is one.
    """
    try:
        mode = (root / key).stat().st_mode
    except (OSError, ValueError):
        return  # that is said, or no object, when it is read
    if any(is_kind(mode) for is_kind in _ENDLESS):
        raise IntegrityError(
            f"{key} is a device or a pipe, and no file",
            location=key,
            hint="run govtool store fsck, and restore this object from a backup or a copy of the store",
        )


class LocalFiles:
    """`ReadableObjects` below a folder.

    Args:
        root: The folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.uri = str(self.root)

    def get(self, key: str) -> bytes | None:
        """See `ReadableObjects.get`."""
        refuse_device(self.root, key)
        try:
            return (self.root / key).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise translate(error, f"read {key}", self.uri) from error

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """See `ReadableObjects.get_many`."""
        return [self.get(key) for key in keys]

    def get_range(self, key: str, start: int, end: int) -> bytes | None:
        """See `ReadableObjects.get_range`."""
        refuse_device(self.root, key)
        try:
            with (self.root / key).open("rb") as file:
                file.seek(start)
                return file.read(end - start)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise translate(error, f"read {key}", self.uri) from error

    def scan(self, prefix: str, after: str = "") -> Iterator[ObjectInfo]:
        """See `ReadableObjects.scan`."""

        def fail(error: OSError) -> None:
            if not isinstance(error, FileNotFoundError):
                raise translate(error, f"list {prefix or 'the store'}", self.uri) from error

        for folder, _, names in os.walk(self.root / prefix, onerror=fail):
            for name in names:
                path = Path(folder, name)
                key = path.relative_to(self.root).as_posix()
                if key <= after:
                    continue
                try:
                    found = path.stat()
                except FileNotFoundError:
                    continue
                yield ObjectInfo(key, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))

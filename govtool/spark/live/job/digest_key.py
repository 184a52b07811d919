"""The secret key of whoever runs jobs, and digests under it.

Literals and arguments are never kept, but two runs of one person can be compared by them. A plain digest of ``42`` or
of a name is guessed at once; one under a key that lies only on that person's machine is not.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets

KEY_FILE = "GOVTOOL_DIGEST_KEY"
"""The environment variable that names the file of the key; by default ``govtool/digest.key`` of the user's settings."""
_SIZE = 32


def key_file() -> str:
    """The place of the key."""
    given = os.environ.get(KEY_FILE)
    if given:
        return given
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(home, "govtool", "digest.key")


def ensure_key() -> bytes:
    """The key; it is made when there is none. Empty where it cannot be kept: then nothing is digested."""
    path = key_file()
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_hex(_SIZE).encode())
    return read_key()


def read_key() -> bytes:
    """The key; empty if there is none."""
    try:
        with open(key_file(), "rb") as file:
            return file.read(1024).strip()
    except OSError:
        return b""


class Digests:
    """Digests under one key.

    Args:
        key: Empty: no digests are made.
    """

    def __init__(self, key: bytes) -> None:
        self._key = hashlib.sha256(key).digest() if key else b""
        self.id = hashlib.sha256(b"id" + self._key).hexdigest()[:12] if key else ""
        """Tells the key from others, and nothing of it."""

    def of(self, value: str, size: int = 8) -> str:
        """A digest of ``size`` bytes in hexadecimal digits; empty without a key."""
        if not self._key:
            return ""
        data = value.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(data, key=self._key, digest_size=size).hexdigest()

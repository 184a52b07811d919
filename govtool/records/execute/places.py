"""Identities of recorded files: equal where two runs mean the same file, however its URI was written."""

from __future__ import annotations

import re
from typing import Protocol
from urllib.parse import unquote

Place = tuple[str, int, int]
"""A file as it was recorded: URI, size, time of writing."""


class RecordedFile(Protocol):
    """A file as a run read or wrote it."""

    @property
    def uri(self) -> str:
        """Its URI."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def modified(self) -> int:
        """The time of writing, in milliseconds."""


def plain_uri(uri: str) -> str:
    """A URI in one spelling, decoded.

    Spark writes ``file:/a/day=1`` or ``file:///a/day=1``; what was listed after a write is ``file:///a/day%3D1``.
    """
    return unquote(re.sub("^(file:)?/+", "file:///", uri))


def place_of(file: RecordedFile) -> Place:
    """The recorded identity of a file."""
    return (plain_uri(file.uri), file.size, file.modified)

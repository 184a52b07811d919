"""The recorded files of a plan's leaves: are they still what was read."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlparse

from govtool.errors import EvidenceError
from govtool.records.plan.nodes import File, Relation
from govtool.records.plan.tree import Node, walk_nodes
from govtool.redaction import clean_failure

_READ_AGAIN = 1 << 30
"""Bytes of files that are read again in search of one that is damaged."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A file that is not what was read."""

    dataset: str
    uri: str
    reason: str


def relations(root: Node) -> list[Relation]:
    """The leaves of a plan that read files, each once, by number."""
    found = {node.leaf: node for node in walk_nodes(root) if isinstance(node, Relation)}
    return [found[leaf] for leaf in sorted(found)]


def local_path(uri: str) -> Path | None:
    """The path of a file on this machine; None for any other."""
    parts = urlparse(uri)
    return Path(unquote(parts.path)) if parts.scheme in ("", "file") else None


def changed(leaves: Iterable[Relation]) -> list[Changed]:
    """Local files that are gone, cannot be read, or have another size or time than recorded; no others."""
    found: list[Changed] = []
    for leaf in leaves:
        for file in leaf.files:
            reason = _difference(file)
            if reason:
                found.append(Changed(leaf.dataset, file.uri, reason))
    return found


class ReadFiles:
    """Local files as they were when a plan was first evaluated over them.

    Rows of several evaluations belong together only while the files stay what they were.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, tuple[int, ...] | None]] = {}
        self._parquet: set[str] = set()
        """The URIs of local Parquet files."""

    def check(self, leaf: Relation) -> None:
        """Compare the files of a leaf with what is recorded, and note them; or compare them with what was noted.

        Raises:
            EvidenceError: One is gone since, or was written again (``evidence.changed``).
        """
        for file in leaf.files:
            known = self._known.get(file.uri)
            if known is None:
                path = local_path(file.uri)
                place = "" if path is None else str(path)
                known = self._known[file.uri] = (place, _facts(place))
                if leaf.format == "parquet" and place:
                    self._parquet.add(file.uri)
                is_other = bool(_difference(file))  # since the records were opened
            else:
                is_other = bool(known[0]) and _facts(known[0]) != known[1]
            if is_other:
                raise EvidenceError(
                    f"{file.uri} was written again, or is gone, since the trace began",
                    code="evidence.changed",
                    hint="open the records again: rows of changed files are refused",
                )

    def refuse_damaged(self) -> None:
        """Read the Parquet files that were checked, as an engine could not: all footers, and a gigabyte of rows.

        Raises:
            EvidenceError: One cannot be decoded (``evidence.damaged``).
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        left = _READ_AGAIN
        for uri in sorted(self._parquet):
            place, _ = self._known[uri]
            try:
                with pq.ParquetFile(place) as file:
                    left -= os.stat(place).st_size  # noqa: PTH116
                    for _ in file.iter_batches() if left >= 0 else ():
                        pass
            except (OSError, ValueError, pa.ArrowException) as error:
                raise EvidenceError(
                    f"{uri} has the size and time that were recorded, and is damaged: {clean_failure(error)}",
                    code="evidence.damaged",
                    hint="restore the file, with its time of writing",
                ) from error


def _facts(place: str) -> tuple[int, ...] | None:
    try:
        now = os.stat(place) if place else None  # noqa: PTH116
    except OSError:
        return None
    return None if now is None else (now.st_size, now.st_mtime_ns, now.st_ino, now.st_ctime_ns)


def _difference(file: File) -> str:
    path = local_path(file.uri)
    if path is None:
        return ""
    try:
        now = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return "is gone"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if not stat.S_ISREG(now.st_mode):  # reading a device or a pipe need not end
        return "is no file any more"
    if now.st_size != file.size:
        return f"has {now.st_size:,} bytes instead of {file.size:,}"
    if now.st_mtime_ns // 1_000_000 != file.modified:
        return "was written again"
    if not os.access(path, os.R_OK):
        return f"cannot be read: {os.strerror(errno.EACCES)}"
    return ""

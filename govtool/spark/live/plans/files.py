"""Listings of files: what a plan's own index listed before it read, and what lies under a path after a write.

A listing is ``{files, size, modified, digest, shape, listed}``, as `govtool.model.file_listing` has it. Nothing here
opens a file. The index is asked in one call over py4j: its files as one string, 10,000 of them in about 0.1 s.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from govtool.spark.live.job.cleaned import clean_setting
from govtool.spark.live.jvm import hadoop

MAX_LISTED = 256
"""Files that are kept one by one; of more, the digests and counts."""
MAX_FOUND = 20_000
"""Files under a path that is written to; a larger dataset is not listed."""

Listed = tuple[str, int, int]
"""URI, bytes, milliseconds since 1970."""

_STATUS = re.compile(r"path=(.*?); isDirectory=false; length=(\d+);.*?; modification_time=(\d+);")
_JOB = re.compile(r"part-\d{5,}-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
"""The id of the write in the name of a file, as ``HadoopMapReduceCommitProtocol`` puts it there."""
_SLACK = 2000
"""Milliseconds by which clocks of a file system and of the driver may differ."""


def summed(files: Iterable[Listed], keep: int = MAX_LISTED) -> dict[str, Any]:
    """Return the listing of some files."""
    found = sorted(files)
    return {
        "files": len(found),
        "size": sum(size for _, size, _ in found),
        "modified": max((modified for _, _, modified in found), default=0),
        "digest": _digest(found),
        "shape": _digest([(uri, size) for uri, size, _ in found]),
        "listed": [list(file) for file in found] if len(found) <= keep else [],
    }


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, separators=(",", ":")).encode("utf-8", "backslashreplace")).hexdigest()


# ---- what is read ---------------------------------------------------------------------------------------------


def read_files(relation: Any) -> dict[str, Any] | None:
    """The listing of a relation of files, as its index has it, with ``changed`` where a file is another by now.

    None if the index lists nothing before partitions are chosen.
    """
    text = relation.location().allFiles().mkString("\n")
    found = [(plain(uri), int(size), int(modified)) for uri, size, modified in _STATUS.findall(text)]
    if len(found) != text.count("; isDirectory="):
        return None  # a name with a line break
    return {**summed(found), **_since(found)}


def read_options(relation: Any) -> dict[str, str]:
    """The options of a reader, without secrets and places."""
    text = relation.options().mkString("\x01")
    pairs = (part.partition(" -> ") for part in text.split("\x01") if part)
    return {name: clean_setting(name, value) for name, _, value in pairs if name not in ("path", "paths")}


def _since(found: list[Listed]) -> dict[str, Any]:
    """The earliest time at which a local file became another than it was listed as."""
    changed: list[int] = []
    for uri, size, modified in found:
        path = _local(uri)
        if path is None:
            return {}
        try:
            status = os.stat(path)
        except OSError:
            changed.append(0)
            continue
        now = status.st_mtime_ns // 1_000_000
        if (status.st_size, now) != (size, modified):
            changed.append(now if now > modified else 0)
    return {"changed": min(changed)} if changed else {}


def plain(uri: str) -> str:
    """``file:/data/x`` for whatever way a local URI is written."""
    return "file:/" + uri[5:].lstrip("/") if uri.startswith("file:") else uri


def _local(uri: str) -> str | None:
    return uri[5:] if uri.startswith("file:") else None


# ---- what is written ------------------------------------------------------------------------------------------


def left_files(
    path: str, started: float | None, ended: float, expected: dict[str, int], keep: int = MAX_LISTED
) -> dict[str, Any]:
    """The files under a path right after a write, as ``left``, and those that the write made, as ``written``.

    Args:
        path: As Hadoop has it.
        started: When the write began, in seconds; None: not known.
        ended: When it was heard of.
        expected: Spark's own count of ``files`` and ``bytes``.
        keep: Files that are kept one by one.
    """
    found = list(_below(plain(path)))
    if len(found) > MAX_FOUND:
        return {}
    facts: dict[str, Any] = {"left": summed(found, keep)}
    made = _made_by(found, started, ended, expected)
    if made is not None:
        facts["written"] = summed(made, keep)
    return facts


def _made_by(found: list[Listed], started: float | None, ended: float, expected: dict[str, int]) -> list[Listed] | None:
    """The files of the one job whose count, bytes and times are those of the write; None if that is not one job."""
    if started is None or "files" not in expected:
        return None
    by_job: dict[str, list[Listed]] = {}
    for file in found:
        job = _JOB.match(file[0].rsplit("/", 1)[-1])
        if job is not None:
            by_job.setdefault(job[1], []).append(file)
    first, last = started * 1000 - _SLACK, ended * 1000 + _SLACK
    fits = [
        files
        for files in by_job.values()
        if len(files) == expected["files"]
        and expected.get("bytes") in (None, sum(size for _, size, _ in files))
        and all(first <= modified <= last for _, _, modified in files)
    ]
    if not expected["files"]:
        return []
    return fits[0] if len(fits) == 1 else None


def _below(path: str) -> Iterator[Listed]:
    """The files below a path, without those that Spark and Hive hide."""
    local = _local(path)
    folders = _local_folder if local is not None else _hadoop_folder()
    stack = [local if local is not None else path]
    count = 0
    while stack:
        for name, is_folder, uri, size, modified in folders(stack.pop()):
            if name.startswith(".") or (name.startswith("_") and "=" not in name):
                continue
            if is_folder:
                stack.append(uri)
                continue
            count += 1
            yield (f"file:{uri}" if local is not None else uri, size, modified)
            if count > MAX_FOUND:
                return


Entry = tuple[str, bool, str, int, int]
"""Name, whether it is a folder, its place, bytes, milliseconds."""


def _local_folder(folder: str) -> Iterator[Entry]:
    with os.scandir(folder) as entries:
        for entry in entries:
            status = entry.stat()
            yield entry.name, entry.is_dir(), entry.path, status.st_size, status.st_mtime_ns // 1_000_000


def _hadoop_folder() -> Callable[[str], Iterator[Entry]]:
    """Lists a folder of any other file system, in one call of it."""
    jvm, settings = hadoop.java(), hadoop.configuration()
    pattern = re.compile(
        r"path=(.*?); isDirectory=(true|false);(?: length=(\d+);)?.*?modification_time=(\d+);", re.DOTALL
    )

    def listed(folder: str) -> Iterator[Entry]:
        path = jvm.org.apache.hadoop.fs.Path(folder)
        system = path.getFileSystem(settings)
        for uri, is_folder, size, modified in pattern.findall(jvm.java.util.Arrays.toString(system.listStatus(path))):
            yield uri.rsplit("/", 1)[-1], is_folder == "true", uri, int(size or 0), int(modified)

    return listed

"""The log of a streaming sink of files: which files each batch wrote, and which are rows of the sink at all.

Spark keeps it in the sink's folder, ``_spark_metadata``: a file a batch, and every tenth one, ``N.compact``, has the
entries of all before it as well (``FileStreamSinkLog``). Files that a failed attempt left are in none.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from govtool.spark.live.jvm import hadoop
from govtool.spark.live.plans.files import Listed, plain

FOLDER = "_spark_metadata"
_COMPACT = ".compact"


def batch_files(sink: str, batch: int) -> list[Listed] | None:
    """The files that a batch wrote; None if the log does not tell them.

    Args:
        sink: The folder of the sink, as Hadoop has it.
        batch: The number of the batch.
    """
    jvm = hadoop.java()
    folder = jvm.org.apache.hadoop.fs.Path(sink, FOLDER)
    system = folder.getFileSystem(hadoop.configuration())

    def entries(name: str) -> dict[str, Listed] | None:
        path = jvm.org.apache.hadoop.fs.Path(folder, name)
        if not system.exists(path):
            return None
        stream = system.open(path)
        try:
            return read_entries(str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")))
        finally:
            stream.close()

    own = entries(str(batch))
    if own is not None:
        return list(own.values())
    together = entries(f"{batch}{_COMPACT}")
    if together is None:
        return None
    for number in range(batch - 1, -1, -1):
        alone, before = entries(str(number)), entries(f"{number}{_COMPACT}")
        if alone is None and before is None:
            return None
        for uri in {**(alone or {}), **(before or {})}:
            together.pop(uri, None)
        if before is not None:
            break
    return list(together.values())


def logged_files(log: Path) -> frozenset[str] | None:
    """The files of a local sink that are rows of it, as ``file:/…``; None if the folder is no such log, or damaged.

    Args:
        log: The folder of the log.
    """
    names = {int(each.stem): each for each in sorted(log.glob("*")) if each.stem.isdigit()} if log.is_dir() else {}
    if not names:
        return None
    compact = max((number for number, each in names.items() if each.suffix == _COMPACT), default=0)
    found: set[str] = set()
    try:
        for number, each in names.items():
            if number >= compact:
                found.update(read_entries(each.read_text("utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return frozenset(found)


def read_entries(text: str) -> dict[str, Listed]:
    """The files of one file of the log, by their URIs.

    Raises:
        ValueError: It is another format.
        KeyError: An entry lacks a member.
    """
    version, *lines = text.splitlines()
    if version != "v1":
        raise ValueError(f"the sink's log has format {version[:20]}")
    found: dict[str, Listed] = {}
    for line in filter(None, lines):
        entry: dict[str, Any] = json.loads(line)
        uri = plain(unquote(str(entry["path"])))  # as listings of files have it
        if entry.get("action", "add") == "add":
            found[uri] = (uri, int(entry["size"]), int(entry["modificationTime"]))
        else:
            found.pop(uri, None)
    return found

"""Files behind an RDD: their identity, and the names of records in them."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from govtool.spark.rdd import worker
from govtool.spark.rdd.log import RddNode

MAX_FILES = 1_000
"""Files of a store that is not local whose identity is noted; beyond that a change is not noticed."""

_PARTS = re.compile(r",(?![^{]*\})")

Identity = dict[str, tuple[int, int]]
"""Size and time of modification in milliseconds, by path."""


@dataclass(frozen=True, slots=True, order=True)
class RecordId:
    """The name of one record.

    Attributes:
        dataset: The source: a path, or the operator and where it is written.
        file: The file; empty where there is none.
        record: Ordinal of the record in file or source; for a group, its key.
    """

    dataset: str
    file: str
    record: Any

    def __str__(self) -> str:
        """Return ``DATASET:FILE/RECORD``."""
        return f"{self.dataset}:{self.file}/{self.record}" if self.file else f"{self.dataset}/{self.record}"


def identities(sc: Any, path: str) -> Identity:
    """Return the identity of the files that Hadoop reads for a path: lists, patterns and folders included."""
    found: Identity = {}
    for each in parts(path):
        local = None if "{" in each else _local(sc, each)  # Python has no such patterns
        found.update(_of_local(local) if local is not None else _of_hadoop(sc, each))
    return found


def parts(path: str) -> list[str]:
    """Return the paths of a list, as Hadoop separates them."""
    return _PARTS.split(path)


def _local(sc: Any, path: str) -> str | None:
    """The path on this machine, resolved as Spark does: Python may have changed its working folder since."""
    place = sc._jvm.org.apache.hadoop.fs.Path(path)
    whole = place.getFileSystem(sc._jsc.hadoopConfiguration()).makeQualified(place).toString()
    return _plain(whole) if whole.startswith("file:") else None


def _of_local(pattern: str) -> Identity:
    found: Identity = {}
    for name in glob.glob(pattern):  # noqa: PTH207 - an absolute pattern
        path = Path(name)
        for file in path.iterdir() if path.is_dir() else (path,):
            if file.is_file() and not file.name.startswith(("_", ".")):
                status = file.stat()
                found[str(file)] = (status.st_size, status.st_mtime_ns // 1_000_000)
    return found


def _of_hadoop(sc: Any, path: str) -> Identity:
    pattern = sc._jvm.org.apache.hadoop.fs.Path(path)
    system = pattern.getFileSystem(sc._jsc.hadoopConfiguration())
    found: Identity = {}
    for top in system.globStatus(pattern) or ():
        for status in system.listStatus(top.getPath()) if top.isDirectory() else (top,):
            name = status.getPath().getName()
            if status.isFile() and not name.startswith(("_", ".")):
                found[_plain(status.getPath().toString())] = (status.getLen(), status.getModificationTime())
            if len(found) >= MAX_FILES:
                return found
    return found


def changed(node: RddNode) -> list[str]:
    """Return the files of a source that are gone or were written again since a job read them."""
    recorded: Identity | None = node.details.get("files")
    if not recorded:
        return []
    now = identities(node.rdd.context, node.details["path"])
    return sorted(file for file, identity in recorded.items() if now.get(file) != identity)


def files_of_partitions(node: RddNode, numbers: Iterable[int]) -> dict[int, str]:
    """Return the file of each partition of ``textFile``."""
    partitions = node.rdd._jrdd.rdd().partitions()
    return {number: _plain(partitions[number].inputSplit().value().getPath().toString()) for number in numbers}


def _plain(path: str) -> str:
    return "/" + path.removeprefix("file:").lstrip("/") if path.startswith("file:") else path


def refuse(node: RddNode, files: list[str]) -> None:
    """Leave out the partitions of files that have changed."""
    if not files:
        node.details.pop("refused", None)
        return
    every = files_of_partitions(node, range(node.rdd.getNumPartitions()))
    node.details["refused"] = frozenset(number for number, file in every.items() if file in files)


def record_ids(node: RddNode, ids: list[Any]) -> list[RecordId]:
    """Return the names of rows of a node, in their order. Partitions before those of the rows are counted."""
    if node.operator.kind.value != "source":
        return sorted((RecordId(node.label, "", each) for each in ids), key=lambda each: worker.token(each.record))
    return sorted(RecordId(node.label, file, record) for file, record in places_of(node, ids))


def places_of(node: RddNode, ids: list[tuple[int, int]]) -> list[tuple[str, int]]:
    """Return file and ordinal of records of a source, each in its turn; the file is empty where there is none."""
    files = _files(node, {partition for partition, _ in ids})
    before = {partition: _before(partition, files) for partition in {partition for partition, _ in ids}}
    counts = _counts(node, sorted(set().union(*before.values())))
    starts = {partition: sum(counts[each] for each in earlier) for partition, earlier in before.items()}
    return [(files.get(partition, ""), starts[partition] + ordinal) for partition, ordinal in ids]


def _files(node: RddNode, wanted: set[int]) -> dict[int, str]:
    if "path" not in node.details or not wanted:
        return {}
    return files_of_partitions(node, range(max(wanted) + 1))


def _before(partition: int, files: dict[int, str]) -> set[int]:
    """Partitions that hold records before those of a partition: of the same file, or all."""
    return {each for each in range(partition) if files.get(each) == files.get(partition)}


def _counts(node: RddNode, partitions: list[int]) -> dict[int, int]:
    if not partitions:
        return {}
    counted = node.rdd.mapPartitionsWithIndex(worker.counted)
    return dict(node.rdd.context.runJob(counted, list, partitions))

"""The live files of a Delta table, by its log: the last checkpoint and the commits after it.

After the Delta protocol (github.com/delta-io/delta, PROTOCOL.md): "Delta Log Entries" and "Checkpoints". Absolute
paths, as in shallow clones, are files of other tables: they are left out, as are paths that lead out of the table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from govtool.model.parquet import read_parquet

Read = Callable[[str], bytes | None]
"""Returns the bytes of a file below the table, or None if it cannot be read or is too large."""
_COMMIT = re.compile(r"_delta_log/(\d{20})\.json")
_CHECKPOINT = re.compile(r"_delta_log/(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.[0-9a-f-]{36})?\.(parquet|json)")


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A data file of a table, as the table's log names it.

    Attributes:
        path: Below the table.
        size: Bytes; -1: not told.
        partition: Values of the partition columns as texts; None and empty texts are NULL.
        vector: What its log says of the deletion vector that deletes rows of it; empty if none does.
        changes: Whether it came with changed data, and not by a compaction.
    """

    path: str
    size: int
    partition: Mapping[str, str | None] = field(default_factory=dict)
    vector: Mapping[str, Any] = field(default_factory=dict)
    changes: bool = True


@dataclass(slots=True)
class DeltaVersion:
    """What a table's log says of a version.

    Attributes:
        files: Live files by path.
        outside: Live files that are not below the table, as they are named.
        metadata: The action ``metaData``: ``id``, ``schemaString``, ``configuration`` …
        protocol: The action ``protocol``.
    """

    files: dict[str, LoggedFile] = field(default_factory=dict)
    outside: set[str] = field(default_factory=set)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    protocol: Mapping[str, Any] = field(default_factory=dict)

    @property
    def configuration(self) -> dict[str, str]:
        """The table's properties."""
        return _texts(self.metadata.get("configuration"))


def delta_files(paths: Iterable[str], read: Read, version: int) -> dict[str, int] | None:
    """The path and size in bytes of each live file at a version; None if the log does not tell.

    Args:
        paths: All files below the table.
        read: Reads one of them.
        version: The table's version.
    """
    found = delta_version(paths, read, version)
    return None if found is None else {path: file.size for path, file in found.files.items()}


def delta_version(paths: Iterable[str], read: Read, version: int) -> DeltaVersion | None:
    """What a table's log says of a version; None if the log does not tell. Arguments are those of `delta_files`."""
    listed = sorted(paths)
    commits = _commits(listed)
    start, state = -1, DeltaVersion()
    for number, parts in sorted(_checkpoints(listed).items(), reverse=True):
        known = _from_checkpoint(parts, read) if number <= version else None
        if known is not None:
            start, state = number, known
            break
    for number in range(start + 1, version + 1):
        data = read(commits[number]) if number in commits else None
        actions = None if data is None else _actions(data)
        if actions is None:
            return None
        _apply(state, actions)
    return state


def delta_commits(paths: Iterable[str], read: Read, first: int, last: int) -> dict[int, tuple[LoggedFile, ...]] | None:
    """The files that commits added, by version; None if one of those that were looked at cannot be read.

    Only commits whose ``commitInfo`` has a time are told, and only those from a time on and up to another.

    Args:
        paths: All files of the table's log.
        read: Reads one of them.
        first: The earliest time, in milliseconds.
        last: The latest.
    """
    found: dict[int, tuple[LoggedFile, ...]] = {}
    for number, path in sorted(_commits(paths).items(), reverse=True):
        data = read(path)
        actions = None if data is None else _actions(data)
        if actions is None:
            return None
        time = next((_time(each) for each in actions if isinstance(each.get("commitInfo"), dict)), None)
        if time is not None and time < first:
            break
        if time is not None and time <= last:
            state = DeltaVersion()
            _apply(state, actions)
            found[number] = () if state.outside else tuple(state.files.values())
    return found


def newest_version(paths: Iterable[str]) -> int | None:
    """The number of the last commit of a log; None if there is none."""
    listed = list(paths)
    return max([*_commits(listed), *_checkpoints(listed)], default=None)


def _time(action: Mapping[str, Any]) -> int | None:
    info = action["commitInfo"]
    time = info.get("inCommitTimestamp", info.get("timestamp"))
    return time if isinstance(time, int) else None


def _commits(paths: Iterable[str]) -> dict[int, str]:
    return {int(found[1]): path for path in paths if (found := _COMMIT.fullmatch(path))}


def _checkpoints(paths: Iterable[str]) -> dict[int, list[str]]:
    """The files of each whole checkpoint; those whose parts are not all there are left out."""
    found: dict[int, list[str]] = {}
    parts: dict[tuple[int, int], list[str]] = {}
    for path in paths:
        match = _CHECKPOINT.fullmatch(path)
        if match is None:
            continue
        if match[3] is None:
            found[int(match[1])] = [path]
        else:
            parts.setdefault((int(match[1]), int(match[3])), []).append(path)
    for (number, count), files in parts.items():
        if len(files) == count:
            found.setdefault(number, files)
    return found


def _from_checkpoint(files: Iterable[str], read: Read) -> DeltaVersion | None:
    """The state of a checkpoint; None if it cannot be read, or keeps its files in sidecars."""
    state = DeltaVersion()
    for file in files:
        data = read(file)
        actions = None if data is None else (_rows(data) if file.endswith(".parquet") else _actions(data))
        if actions is None or any(isinstance(action.get("sidecar"), dict) for action in actions):
            return None
        _apply(state, actions)
    return state


def _rows(data: bytes) -> list[Mapping[str, Any]] | None:
    import pyarrow as pa

    try:
        table = read_parquet(data)
        names = [name for name in ("add", "remove", "sidecar", "metaData", "protocol") if name in table.schema.names]
        return list(table.select(names).to_pylist())
    except (pa.ArrowException, OSError, ValueError):
        return None


def _actions(data: bytes) -> list[Mapping[str, Any]] | None:
    try:
        return [action for action in _lines(data) if isinstance(action, dict)]
    except (ValueError, RecursionError):
        return None


def _lines(data: bytes) -> Iterator[Any]:
    return (json.loads(line) for line in data.splitlines() if line.strip())


def _apply(state: DeltaVersion, actions: Iterable[Mapping[str, Any]]) -> None:
    """Removals come first: one commit may remove a file and add it again, with a deletion vector."""
    listed = list(actions)
    for action in listed:
        gone = action.get("remove")
        if isinstance(gone, dict):
            path = unquote(str(gone.get("path")))
            state.files.pop(path, None)
            state.outside.discard(path)
        if isinstance(action.get("metaData"), dict):
            state.metadata = action["metaData"]
        if isinstance(action.get("protocol"), dict):
            state.protocol = action["protocol"]
    for action in listed:
        added = action.get("add")
        if not isinstance(added, dict) or not isinstance(added.get("path"), str):
            continue
        path = unquote(added["path"])
        if is_below(path):
            state.files[path] = _data_file(path, added)
        else:
            state.outside.add(path)


def is_below(path: str) -> bool:
    """Return whether a path is relative and does not lead out of its table."""
    return "://" not in path and not path.startswith(("/", "file:")) and ".." not in path.split("/")


def _data_file(path: str, added: Mapping[str, Any]) -> LoggedFile:
    size, deleted = added.get("size"), added.get("deletionVector")
    return LoggedFile(
        path,
        size if isinstance(size, int) else -1,
        _texts(added.get("partitionValues")),
        deleted if isinstance(deleted, Mapping) and any(value is not None for value in deleted.values()) else {},
        added.get("dataChange") is not False,
    )


def _texts(found: Any) -> dict[str, Any]:
    """A map of JSON, or of a checkpoint, where it is a list of pairs."""
    pairs = found.items() if isinstance(found, Mapping) else found if isinstance(found, list) else ()
    return {str(name): None if value is None else str(value) for name, value in pairs}

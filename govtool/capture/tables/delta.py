"""The live files of a Delta table, by its log: the last checkpoint and the commits after it.

After the Delta protocol (github.com/delta-io/delta, PROTOCOL.md): "Delta Log Entries" and "Checkpoints". Absolute
paths, as in shallow clones, are files of other tables and left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from govtool.model.parquet import read_parquet

Read = Callable[[str], bytes | None]
"""Returns the bytes of a file below the table, or None if it cannot be read or is too large."""
_COMMIT = re.compile(r"_delta_log/(\d{20})\.json")
_CHECKPOINT = re.compile(r"_delta_log/(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.[0-9a-f-]{36})?\.(parquet|json)")


def delta_files(paths: Iterable[str], read: Read, version: int) -> dict[str, int] | None:
    """The path and size in bytes of each live file at a version; None if the log does not tell.

    Args:
        paths: All files below the table.
        read: Reads one of them.
        version: The table's version.
    """
    listed = sorted(paths)
    commits = {int(found[1]): path for path in listed if (found := _COMMIT.fullmatch(path))}
    start, live = -1, dict[str, int]()
    for number, parts in sorted(_checkpoints(listed).items(), reverse=True):
        known = _from_checkpoint(parts, read) if number <= version else None
        if known is not None:
            start, live = number, known
            break
    for number in range(start + 1, version + 1):
        data = read(commits[number]) if number in commits else None
        actions = None if data is None else _actions(data)
        if actions is None:
            return None
        _apply(live, actions)
    return live


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


def _from_checkpoint(files: Iterable[str], read: Read) -> dict[str, int] | None:
    """The live files of a checkpoint; None if it cannot be read, or keeps its files in sidecars."""
    live: dict[str, int] = {}
    for file in files:
        data = read(file)
        actions = None if data is None else (_rows(data) if file.endswith(".parquet") else _actions(data))
        if actions is None or any(isinstance(action.get("sidecar"), dict) for action in actions):
            return None
        _apply(live, actions)
    return live


def _rows(data: bytes) -> list[Mapping[str, Any]] | None:
    import pyarrow as pa

    try:
        table = read_parquet(data)
        names = [name for name in ("add", "remove", "sidecar") if name in table.schema.names]
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


def _apply(live: dict[str, int], actions: Iterable[Mapping[str, Any]]) -> None:
    """Removals come first: one commit may remove a file and add it again, with a deletion vector."""
    listed = list(actions)
    for action in listed:
        gone = action.get("remove")
        if isinstance(gone, dict):
            live.pop(unquote(str(gone.get("path"))), None)
    for action in listed:
        added = action.get("add")
        if not isinstance(added, dict) or not isinstance(added.get("path"), str):
            continue
        path, size = unquote(added["path"]), added.get("size")
        if "://" not in path and not path.startswith(("/", "file:")):
            live[path] = size if isinstance(size, int) else -1

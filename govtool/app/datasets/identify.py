"""The content of outputs, identified after the job; inputs are known by the listing of the plan.

A file counts only as long as it is the file that the write made, by size and modification time. What a later write
has replaced is not identified.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from govtool.app.datasets.row_digest import digest_rows
from govtool.app.datasets.snapshot import local_data_paths, read_identity
from govtool.errors import GovtoolError
from govtool.model.version import ContentIdentity, DataFile, content_identity, identify

if TYPE_CHECKING:
    from govtool.capture.spark.identity import DatasetPlace
    from govtool.model.file_listing import ListedFile
    from govtool.model.run import Run, RunOutput

SMALL_OUTPUT = 1 << 20
"""Bytes of an output up to which a digest of its rows is made unless the settings say otherwise."""
_CHUNK = 1 << 20
_PARQUET_END = 8
"""Bytes of the footer's length and the magic number."""
_REPLACES = frozenset({"overwrite", "create", "replace", "errorifexists"})


def identify_outputs(
    runs: list[Run], places: Mapping[str, DatasetPlace], limit: int, *, rows: bool | None = None
) -> list[Run]:
    """Return runs with the content of their outputs.

    Args:
        runs: Of one job, in order.
        places: Datasets with their names, by id.
        limit: Bytes of a dataset up to which it is read.
        rows: Make digests of rows; None: of small outputs only.
    """
    last = {output.dataset: number for number, run in enumerate(runs) for output in run.outputs}
    made = []
    for number, run in enumerate(runs):
        outputs = tuple(
            _identified(output, places.get(output.dataset), limit, rows, is_last=last[output.dataset] == number)
            for output in run.outputs
        )
        made.append(replace(run, outputs=outputs))
    return made


def _identified(
    output: RunOutput, place: DatasetPlace | None, limit: int, rows: bool | None, *, is_last: bool
) -> RunOutput:
    """An output with what it contains."""
    root = _local_root(place)
    if root is None:
        return replace(output, identity=_remote_identity(place)) if is_last and output.identity is None else output
    try:
        if not root.exists() or _size_of(root) > limit:
            return output
        hashes: dict[Path, _Hashed] = {}
        if is_last and output.identity is None:
            hashes = {path: _hashed(path, name) for name, path in local_data_paths(root).items()}
            output = replace(output, identity=identify(found.whole for found in hashes.values()))
        files = _files_of(output, root, hashes)
        if files is None:
            return output
        found = [hashes.get(path) or _hashed(path, path.relative_to(root).as_posix()) for path in files]
        content = content_identity(each.content for each in found)
        wanted = rows if rows is not None else content.size <= SMALL_OUTPUT
        return replace(output, content=content, row_digest=(digest_rows(files, root) or "") if wanted else "")
    except (GovtoolError, OSError):
        # The write is recorded without its content: a run is worth more than its digests.
        return output


class _Hashed(NamedTuple):
    """A file, read once."""

    whole: DataFile
    content: DataFile
    """Of Parquet without the footer's own order: two writers of one program list the encodings of a column chunk
    in another order, as it is that of a hash table."""


def _hashed(path: Path, name: str) -> _Hashed:
    body = _parquet_body(path) if path.suffix == ".parquet" else 0
    digest = hashlib.sha256()
    with path.open("rb") as file:
        _update(digest, file, body)
        pages = digest.hexdigest()
        _update(digest, file, None)
        whole = DataFile(name, file.tell(), digest.hexdigest())
    if not body:
        return _Hashed(whole, whole)
    content = hashlib.sha256(f"{pages} {_parquet_schema(path)}".encode()).hexdigest()
    return _Hashed(whole, DataFile(name, body, content))


def _update(digest: Any, file: BinaryIO, count: int | None) -> None:
    """Take in so many bytes of a file; None: all that follow."""
    while chunk := file.read(_CHUNK if count is None else min(_CHUNK, count)):
        digest.update(chunk)
        count = None if count is None else count - len(chunk)


def _parquet_body(path: Path) -> int:
    """The bytes before the footer; 0 if this is no plain Parquet file."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size < _PARQUET_END:
            return 0
        file.seek(size - _PARQUET_END)
        end = file.read()
    body = size - _PARQUET_END - int.from_bytes(end[:4], "little")
    return body if end[4:] == b"PAR1" and 0 < body <= size else 0


def _parquet_schema(path: Path) -> str:
    """Return what the footer holds and pages do not: columns with their types, and the number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        footer = pq.read_metadata(path)
    except (pa.ArrowException, ValueError):
        return ""
    columns = [footer.schema.column(number) for number in range(len(footer.schema))]
    shown = [(c.path, c.physical_type, str(c.logical_type), c.max_definition_level) for c in columns]
    return f"{footer.num_rows} {shown}"


def _files_of(output: RunOutput, root: Path, hashes: Mapping[Path, _Hashed]) -> list[Path] | None:
    """The files that a write made, if they have not changed since; None if that is not known."""
    if output.written is not None:
        listed = output.written.listed or _listed_again(output, root)
        paths = [Path(file.uri.removeprefix("file:")) for file in listed]
        same = len(paths) == output.written.files and all(map(_is_unchanged, paths, listed))
        return paths if same and all(path.is_relative_to(root) for path in paths) else None
    table = output.identity is None or output.identity.kind != "listing"
    if table or output.mode not in _REPLACES:
        return None
    there = len(hashes), sum(found.whole.size for found in hashes.values())
    if output.left is not None and there != (output.left.files, output.left.size):
        return None  # somebody else wrote there since
    return sorted(hashes)


def _listed_again(output: RunOutput, root: Path) -> list[ListedFile]:
    """The files of a write of which there were too many to keep: those that are there, if they give its digest."""
    from govtool.model.file_listing import ListedFile
    from govtool.spark.live.plans.files import left_files

    assert output.written is not None
    expected = {"files": output.written.files, "bytes": output.written.size}
    modified = output.written.modified / 1000
    found = left_files(f"file:{root}", 0.0, modified, expected, keep=output.written.files).get("written")
    if found is None or found["digest"] != output.written.digest:
        return []
    return [ListedFile(*file) for file in found["listed"]]


def _is_unchanged(path: Path, listed: ListedFile) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    return (status.st_size, status.st_mtime_ns // 1_000_000) == (listed.size, listed.modified)


def _names(place: DatasetPlace | None) -> Iterator[tuple[str, str]]:
    for name in (place.name, *place.aliases) if place is not None else ():
        if name.is_path:
            yield name.namespace, name.name


def _local_root(place: DatasetPlace | None) -> Path | None:
    return next((Path(name) for namespace, name in _names(place) if namespace == "file"), None)


def _remote_identity(place: DatasetPlace | None) -> ContentIdentity | None:
    for namespace, name in _names(place):
        if namespace.startswith("s3://"):
            try:
                return read_identity(f"{namespace}/{name}")
            except (GovtoolError, OSError):
                continue
    return None


def _size_of(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())

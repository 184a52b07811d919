"""The content of what runs wrote, identified after the job: inputs are known by the listing that the plan had of them.

A file counts only as long as it is the file that the write made, by size and modification time. What a later write
has replaced is not identified.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.app.row_digest import digest_rows
from govtool.app.snapshot import hash_file, local_data_files, read_identity
from govtool.errors import GovtoolError
from govtool.model.version import ContentIdentity, DataFile, content_identity, identify

if TYPE_CHECKING:
    from govtool.capture.spark.identity import DatasetPlace
    from govtool.model.listing import ListedFile
    from govtool.model.run import Run, RunOutput

SMALL_OUTPUT = 1 << 20
"""Bytes of an output up to which a digest of its rows is made unless the settings say otherwise."""
_REPLACES = frozenset({"overwrite", "create", "replace", "errorifexists", ""})


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
        hashes: dict[Path, DataFile] = {}
        if is_last and output.identity is None:
            hashes = {root / file.path if root.is_dir() else root: file for file in local_data_files(root)}
            output = replace(output, identity=identify(hashes.values()))
        files = _files_of(output, root, hashes)
        if files is None:
            return output
        found = [hashes.get(path) or hash_file(path, path.relative_to(root).as_posix()) for path in files]
        content = content_identity(found)
        wanted = rows if rows is not None else content.size <= SMALL_OUTPUT
        return replace(output, content=content, row_digest=(digest_rows(files, root) or "") if wanted else "")
    except (GovtoolError, OSError):
        return output


def _files_of(output: RunOutput, root: Path, hashes: Mapping[Path, DataFile]) -> list[Path] | None:
    """The files that a write made, if they still are what it made; None if that is not known."""
    if output.written is not None:
        listed = output.written.listed or _listed_again(output, root)
        paths = [Path(file.uri.removeprefix("file:")) for file in listed]
        same = len(paths) == output.written.files and all(map(_is_unchanged, paths, listed))
        return paths if same and all(path.is_relative_to(root) for path in paths) else None
    table = output.identity is None or output.identity.kind != "listing"
    if table or output.mode not in _REPLACES or (output.left is not None and not hashes):
        return None
    return sorted(hashes)


def _listed_again(output: RunOutput, root: Path) -> list[ListedFile]:
    """The files of a write of which there were too many to keep: those that are there, if they give its digest."""
    from govtool.model.listing import ListedFile
    from govtool.spark.live.files import left_files

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

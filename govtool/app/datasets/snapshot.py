"""Snapshots: a dataset's content and its provenance in one commit."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.app.project.path_root import within_root
from govtool.app.project.project import existing_branch
from govtool.app.project.user import user_name
from govtool.errors import StoreError, UsageError
from govtool.model import ROWS, ColumnRef, Derivation, Edge, EdgeKind, Statement
from govtool.model.version import (
    VERSION_TABLES,
    VERSIONS,
    Ancestor,
    ContentIdentity,
    DataFile,
    DatasetVersion,
    decode_version,
    encode_version,
    identify,
    needed,
)
from govtool.names import former_id, join_name, quote, split_name, written_id

if TYPE_CHECKING:
    from govtool.store import Commit, CommitResult, Reader, Store

Progress = Callable[[int, int], None]


def take_snapshot(
    store: Store,
    place: str,
    *,
    run: str,
    name: str | None = None,
    made_of: Sequence[str] = (),
    rows: bool = False,
    branch: str | None = None,
    message: str | None = None,
    author: str | None = None,
    progress: Progress | None = None,
) -> tuple[CommitResult, DatasetVersion]:
    """Commit a dataset's content as a version, with its run and the data from which it was made.

    Args:
        store: The store.
        place: A file, a folder, or ``s3://…``.
        run: The run or software that made it.
        name: The dataset's name in the graph; by default that of its place, as runs name it.
        made_of: Places of data that it was made of. Data without a snapshot of its present content is kept as unknown.
        rows: Also record a digest of its rows, whatever their order and files.
        branch: Where to commit.
        message: What the log says.
        author: By default the user.
        progress: Called with (files read, files).

    Raises:
        UsageError: there is no data (``usage.no-data``), or rows are of a format that is not read (``usage.rows``).
    """
    from govtool.model.columnar import DERIVATIONS, encode
    from govtool.store import Changes, Fragment

    if not run.strip():
        raise UsageError("the run has no name", code="usage.run", hint="--run NAME")
    target = existing_branch(store, branch)
    if name:
        given = join_name(split_name(written_id(name)))
        dataset = _known_name(store, target, [given], within_root(given))
    else:
        dataset = _name_of_place(store, target, place)
    identity = read_identity(place, progress)
    if identity is None:
        raise UsageError(
            f"there is no data in {place}", code="usage.no-data", hint="take the snapshot after the data was written"
        )
    ancestors = tuple(sorted((_ancestor(store, target, each) for each in made_of), key=lambda a: a.dataset))
    version = DatasetVersion(dataset, identity, run, ancestors, rows_of(place) if rows else "")
    live = _live_sources(store, target, _sources(dataset))
    source = live[0] if live else _sources(dataset)[0]
    # Of one place under its former names, too: the version that is taken now stands in place of theirs.
    former = [] if name else [each for other in names_of_place(place) if other != dataset for each in _sources(other)]
    ended = [each for each in (*live, *_live_sources(store, target, former)) if each != source]
    statement = Statement(
        fingerprint=hashlib.sha256(f"{dataset} {run}".encode()).hexdigest()[:16],
        kind="snapshot",
        dialect="",
        file=split_name(dataset)[-1].strip('"'),
        source=source,
        how="declared",
        run=run,
    )
    edges = tuple(Edge(ColumnRef(a.dataset, ROWS), ROWS, EdgeKind.READ) for a in ancestors)
    derivation = Derivation(dataset, "file", "replace", statement, columns_complete=False, edges=edges)
    data = encode_version(version)
    result = store.commit(
        Changes(
            (source, *ended),
            (Fragment(source, VERSIONS, data, 1), Fragment(source, DERIVATIONS, encode([derivation]), 1)),
        ),
        message=message or f"snapshot {dataset}",
        author=author or user_name(),
        batch=f"snapshot:{hashlib.sha256(data).hexdigest()}",
        summary={"command": "snapshot", "dataset": dataset, "run": run, "digest": identity.digest},
        branch=target,
    )
    return result, version


def find_version(store: Reader, commit: Commit, dataset: str) -> DatasetVersion | None:
    """The live version of a dataset, as the newest snapshot has it."""
    names = _sources(dataset)
    refs = [ref for ref in store.fragments(commit) if ref.table in VERSION_TABLES and ref.source in names]
    refs.sort(key=lambda ref: names.index(ref.source))
    return decode_version(store.read(refs[0])) if refs else None


def _known_name(store: Store, branch: str, names: Sequence[str], new: str) -> str:
    """The first of some names that a dataset at the head of a branch has; ``new`` if none has."""
    from govtool.app.versions.index import open_index

    head = store.head(branch)
    if head is None or {*names} == {new}:
        return new
    index = open_index(store, head)
    return next((name for name in names if index.find_dataset(name) is not None), new)


def _name_of_place(store: Store, branch: str, place: str) -> str:
    names = names_of_place(place)
    return _known_name(store, branch, names, names[0])


def _sources(dataset: str) -> list[str]:
    """The ingest sources that a version of a dataset may have: that of today, and those of earlier versions."""
    names = dict.fromkeys((dataset, former_id(dataset)))
    return [f"{command}:{name}" for command in ("snapshot", "record") for name in names]


def _live_sources(store: Store, branch: str, names: Sequence[str]) -> list[str]:
    """The sources of a dataset's versions, of those named, at the head of a branch.

    A source keeps its name from snapshot to snapshot, so that branches that were forked before and after merge as one
    source. A merge may bring both names together; the next snapshot retracts all but the first.
    """
    head = store.head(branch)
    if head is None:
        return []
    live = {ref.source for ref in store.fragments(head) if ref.table in VERSION_TABLES}
    return [name for name in names if name in live]


def names_of_place(place: str) -> list[str]:
    """The names that a place may have in the graph, the one that every command gives it first.

    That is the one of `path_id`. Before it, snapshots were named relative to the working directory, and a graph may be
    older than its ``[paths] root``.
    """
    from govtool.app.datasets.places import absolute_id, path_id
    from govtool.store.backends.location import local_path, normalise

    path = local_path(place)
    if path is None:
        return list(dict.fromkeys((path_id(place), quote(normalise(place)))))
    names = [path_id(place), absolute_id(path)]
    with contextlib.suppress(ValueError):  # elsewhere on this machine
        names.append(quote(f"file:{path.absolute().resolve().relative_to(Path.cwd().resolve()).as_posix()}"))
    return list(dict.fromkeys(names))


def read_identity(place: str, progress: Progress | None = None) -> ContentIdentity | None:
    """Identify the contents of a dataset now; ``None`` if there is nothing.

    Raises:
        StoreError: it cannot be read.
    """
    from govtool.store.backends.location import local_path

    path = local_path(place)
    found = identify(_remote_files(place) if path is None else local_data_files(path, progress))
    if found is None or found.kind != "iceberg":
        return found
    from govtool.app.datasets.table_files import iceberg_snapshot

    snapshot = iceberg_snapshot(place)
    return found if snapshot is None else replace(found, version=snapshot)


def rows_of(place: str) -> str:
    """A digest of the rows of a dataset on this machine, independent of their order and files.

    Raises:
        UsageError: its rows cannot be read (``usage.rows``).
    """
    from govtool.app.datasets.row_digest import digest_rows
    from govtool.store.backends.location import local_path

    path = local_path(place)
    found = None
    if path is not None:
        paths = local_data_paths(path)
        if not any(name.startswith(("_delta_log/", "metadata/")) for name in paths):  # there, not all files are live
            found = digest_rows(paths.values(), path)
    if found is None:
        raise UsageError(
            f"the rows of {place} cannot be read",
            code="usage.rows",
            hint="rows are read of local Parquet, ORC, CSV, JSON and text files, not of Delta and Iceberg tables",
        )
    return found


def local_data_files(root: Path, progress: Progress | None = None) -> Iterator[DataFile]:
    """The files of a local dataset whose content decides, each with the sha256 of its content.

    Raises:
        StoreError: one cannot be read.
    """
    from govtool.store.backends.failures import translate

    try:
        paths = local_data_paths(root)
        for done, (name, path) in enumerate(paths.items(), 1):
            yield hash_file(path, name)
            if progress:
                progress(done, len(paths))
    except OSError as error:
        raise translate(error, "read the data", str(root)) from error


def local_data_paths(root: Path) -> dict[str, Path]:
    """The files of a local dataset whose content decides, by their path in it.

    Raises:
        OSError: a folder cannot be read.
    """
    if root.is_file():
        return {root.name: root}

    def fail(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    paths = {
        Path(folder, name).relative_to(root).as_posix(): Path(folder, name)
        for folder, _, names in os.walk(root, onerror=fail)
        for name in names
    }
    return {name: paths[name] for name in needed(paths)}


def hash_file(path: Path, name: str) -> DataFile:
    """A file under a name, with its size and the sha256 of its content."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return DataFile(name, file.tell(), digest)


def _remote_files(place: str) -> Iterator[DataFile]:
    from govtool.store.backends.location import open_object_store
    from govtool.store.backends.objects import list_with_tags

    for key, size, tag in list_with_tags(place, open_object_store(place)):
        if tag is None:
            raise StoreError(f"the server gives no ETag for {key}", code="store.no-etag", location=place)
        yield DataFile(key, size, tag)


def _ancestor(store: Store, branch: str, place: str) -> Ancestor:
    """The data at a place as an ancestor, under the name by which its content was recorded before."""
    identity = read_identity(place)
    head = store.head(branch)
    known = None
    if head is not None:
        known = next(filter(None, (find_version(store, head, name) for name in names_of_place(place))), None)
    dataset = _name_of_place(store, branch, place) if known is None else known.dataset
    same = known is not None and identity is not None and known.identity.same_content(identity)
    return Ancestor(dataset, identity.digest if identity else None, head.id if head is not None and same else None)

"""Verification: is the data under a path, or of a dataset, what its provenance describes?

Provenance of content comes from `govtool snapshot` and from runs that state what they left. Where both know a dataset,
the data may be what either says. Read correctness of Muniswamy-Reddy, Macko and Seltzer, "Making a Cloud
Provenance-Aware" (TaPP 2009).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from govtool.answers.verify import CHANGED, MATCH, MISSING, SAME_ROWS, UNRECORDED, VerifyAnswer
from govtool.app.datasets.snapshot import Progress, find_version, names_of_place, read_identity, rows_of
from govtool.app.datasets.table_files import check_table_files
from govtool.errors import UsageError
from govtool.model.version import CONTENT, Ancestor, DatasetVersion

if TYPE_CHECKING:
    from govtool.query.runs.history import Writing
    from govtool.store import Commit, Reader


def verify_data(
    store: Reader,
    commit: Commit,
    place: str,
    name: str | None,
    progress: Progress | None = None,
    *,
    rows: bool = False,
) -> VerifyAnswer:
    """Compare what a path or dataset contains with what was recorded of it.

    Args:
        store: The store.
        commit: As of this commit.
        place: A file, a folder, ``s3://…``, or a dataset of the graph that has a place.
        name: The dataset's name in the graph, where it is not that of its place.
        progress: Called with (files read, files).
        rows: Where the files differ, compare digests of the rows.

    Raises:
        UsageError: there is no data, and no run or snapshot of it (``usage.no-data``), or a dataset has no place
            that is known (``usage.place``).
        StoreError: the data or the store cannot be read.
    """
    from govtool.app.datasets.places import place_of
    from govtool.app.project.path_root import within_root
    from govtool.names import written_id

    names = [written_id(name), within_root(written_id(name))] if name else names_of_place(place)[::-1]
    path = place
    # Files that are here go before a dataset that is called so.
    if name is None and "://" not in place and not _is_here(place):
        found_place = place_of(store, commit, place)
        if found_place is not None:
            names, path = [*found_place.names], found_place.path
    known = _recorded(store, commit, names)
    found = read_identity(path, progress)
    dataset = known[0].dataset if known else names[0]
    if not known:
        if found is None:
            written = _last_writing(store, commit, names)
            if written is not None:
                return VerifyAnswer(store.uri, written.version.dataset, MISSING, None, None, writer=written.run.id)
            raise UsageError(
                f"there is no data in {place}, and nothing was recorded of it",
                code="usage.no-data",
                hint="govtool snapshot PATH --run RUN",
            )
        return VerifyAnswer(store.uri, dataset, UNRECORDED, found, None)
    if found is None:
        return VerifyAnswer(store.uri, dataset, MISSING, None, known[0])
    same = next((version for version in known if version.identity.same_content(found)), None)
    if same is None:
        same = _of_same_rows(path, known) if rows else None
        return VerifyAnswer(store.uri, dataset, CHANGED if same is None else SAME_ROWS, found, same or known[0])
    files = check_table_files(path, found)
    state = MATCH if files is None else MISSING if files.missing else CHANGED if files.resized else MATCH
    return VerifyAnswer(store.uri, dataset, state, found, same, files)


def _of_same_rows(path: str, known: list[DatasetVersion]) -> DatasetVersion | None:
    """The recorded version with the rows that are there now.

    Raises:
        UsageError: no version has a digest of its rows (``usage.rows``), or they cannot be read.
    """
    if not any(version.rows for version in known):
        raise UsageError(
            "no digest of its rows was recorded",
            code="usage.rows",
            hint="govtool snapshot --rows, govtool run --row-digests",
        )
    found = rows_of(path)
    return next((version for version in known if version.rows == found), None)


def _is_here(place: str) -> bool:
    """Return whether a path exists.

    Raises:
        UsageError: The file system can have no such path (``usage.place``).
    """
    try:
        return Path(place).expanduser().exists()
    except (OSError, RuntimeError, ValueError) as error:  # too long, of an unknown user, or with a NUL
        raise UsageError(f"{place[:80]!r} is not a path", code="usage.place", hint="govtool verify PATH") from error


def _last_writing(store: Reader, commit: Commit, names: list[str]) -> Writing | None:
    """The last write of a dataset under any of its names, whether its content was recorded or not."""
    from govtool.app.runs.lookup import read_history

    history = read_history(store, commit)
    last = next(filter(None, (history.before(name, None) for name in names)), None)
    return None if last is None else history.writing(last)


def _recorded(store: Reader, commit: Commit, names: list[str]) -> list[DatasetVersion]:
    """The recorded versions of a dataset under any of its names: by runs, newest first, and by `govtool snapshot`."""
    from govtool.app.runs.lookup import read_history

    history = read_history(store, commit)
    found: list[DatasetVersion] = []
    for name in dict.fromkeys(names):
        last = history.before(name, None)
        if last is not None:
            writing = history.writing(last)
            identity = writing.output.identity
            if identity is not None and identity.kind in CONTENT:
                ancestors = tuple(
                    Ancestor(read.dataset, read.identity.digest if read.identity else None, None)
                    for read in writing.run.inputs
                )
                rows = writing.output.row_digest if writing.replaces else ""
                found.append(DatasetVersion(name, identity, writing.run.id, ancestors, rows))
        version = find_version(store, commit, name)
        if version is not None:
            found.append(version)
    return found

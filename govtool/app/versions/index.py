"""Opens the index of a commit: from the local cache, or built from the store's fragments and kept there.

What was cached is compared as ``govtool.app.versions.kept_files`` says. A bit that rots without a write can go
unnoticed until a number leads out of an array; then a command asks `damaged_since` and starts again with a new index.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.app.project.path_root import paths_root
from govtool.app.versions.kept_files import mapped, note_made, open_kept
from govtool.arrays.layout import header
from govtool.errors import FormatError, IntegrityError, StoreError
from govtool.graph import layout
from govtool.graph.index import Index
from govtool.store.cache import cache_dir, lookup, publish

if TYPE_CHECKING:
    from govtool.app.versions.published import Published
    from govtool.model import Derivation
    from govtool.store import Commit, FragmentRef, Reader

Progress = Callable[[int, int], None]

_CHANGE = "-change"
"""The end of the names of folders with what changed since an earlier index; see ``govtool.graph.delta.spliced``."""


@dataclass(slots=True)
class _Opened:
    """The indexes that this process took from the cache, and those that it found damaged."""

    cached: list[Path] = field(default_factory=list)
    damaged: list[Path] = field(default_factory=list)


_opened = _Opened()


def open_index(
    store: Reader, commit: Commit | None, progress: Progress | None = None, *, evidence: Iterable[str] = ()
) -> Index:
    """The index of a commit; of the empty graph for ``None``.

    Where the store is remote and has the index published, it is asked page by page (``govtool.graph.paging.paged``).
    The cache is a help, not a need: if it cannot be written the index is built in memory.

    Args:
        store: Where the commit is (``Store`` is a ``Reader``).
        commit: A commit of that store.
        progress: Called with derivations done and derivations in all (or parts of a thousand, of a smaller graph) while
            the index is built.
        evidence: How what is in the index is known (``sql``, ``plan`` …); by default everything.

    Raises:
        StoreError: A fragment cannot be read.
    """
    index = index_of(()) if commit is None else _open(store, commit, progress, evidence)
    index.paths_root = paths_root()
    return index


def _open(store: Reader, commit: Commit, progress: Progress | None, evidence: Iterable[str]) -> Index:
    """The index from the cache, from the store, or built."""
    wanted = tuple(sorted(set(evidence)))
    found = _cached(store, commit, wanted) or (None if wanted else _spliced(store, commit))
    if found is not None:
        return found
    if not wanted and store.is_remote:
        from govtool.app.versions.published import find_published

        remote = find_published(store, commit)
        if remote is not None:
            return remote.open(lambda: _kept(store, commit, wanted, lambda: _downloaded(remote, progress)))
    if not wanted:
        _derive(store, commit)
        found = _spliced(store, commit)
        if found is not None:
            return found
    return _kept(store, commit, wanted, lambda: list(_build(store, commit, progress, wanted)))


def index_on_spark(store: Reader, commit: Commit, master: str | None) -> None:
    """Build the index of a commit on Spark and keep it in the cache, if it is not there: the same, to the byte.

    The cache then holds all of it or nothing, whatever ends the process.

    Raises:
        EngineError: Spark is not installed, cannot be started, or fails.
        StoreError: An executor does not find the store, a fragment cannot be read, or the cache cannot be written.
    """
    if cached_index(store, commit) is not None:
        return
    from govtool.app.project.spark_session import session
    from govtool.app.versions.spark_index.build import write_index
    from govtool.app.versions.spark_index.frames import SETTINGS

    directory = _directory(store, commit, ())

    def write(folder: Path) -> None:
        write_index(store, _derivations(store, commit), spark, folder / layout.FILE)
        note_made(folder / layout.FILE, directory)

    with session(master, "index", SETTINGS) as spark:
        publish(directory, write)


def built_index(store: Reader, commit: Commit) -> Index:
    """Build the index of a commit from its fragments, in memory; no cache is read or written.

    Raises:
        StoreError: A fragment cannot be read.
    """
    from govtool.app.versions.gathered import read_gathered
    from govtool.graph.builder.build import build_gathered

    index = Index(b"".join(build_gathered(read_gathered(store, _derivations(store, commit)))))
    index.paths_root = paths_root()
    return index


def _downloaded(remote: Published, progress: Progress | None) -> list[Any]:
    """The pieces of a published index; if it turns out to be damaged, of one that is built instead."""
    try:
        pieces: list[Any] = remote.pieces()
        layout.verify(memoryview(b"".join(pieces)))
    except (IntegrityError, FormatError):
        return list(_build(remote.store, remote.commit, progress, ()))
    return pieces


def _kept(store: Reader, commit: Commit, wanted: tuple[str, ...], make: Callable[[], list[Any]]) -> Index:
    """The index assembled from pieces, kept in the cache if it can be written."""
    directory = _directory(store, commit, wanted)
    pieces = make()

    def write(folder: Path) -> None:
        with (folder / layout.FILE).open("wb") as file:
            file.writelines(pieces)
        note_made(folder / layout.FILE, directory)

    try:
        publish(directory, write)
        return Index(
            open_kept(directory / layout.FILE, layout.FORMAT)
        )  # one that could not be taken away may be damaged
    except (StoreError, OSError, ValueError):
        return Index(b"".join(pieces))


def cached_index(store: Reader, commit: Commit) -> Index | None:
    """The index of a commit if the local cache has it."""
    index = _cached(store, commit, ()) or _spliced(store, commit)
    if index is not None:
        index.paths_root = paths_root()
    return index


def _cached(store: Reader, commit: Commit, evidence: tuple[str, ...]) -> Index | None:
    buffer = _opened_buffer(_directory(store, commit, evidence))
    return None if buffer is None else Index(buffer)


def _opened_buffer(directory: Path) -> Any:
    """The file of a folder of the cache, mapped; None if it is not there, or damaged and therefore discarded."""
    if lookup(directory):
        try:
            buffer = open_kept(directory / layout.FILE, layout.FORMAT)
            layout.view(buffer)
        except (IntegrityError, FormatError, OSError, ValueError):
            _discard(directory)
        else:
            if directory not in _opened.cached:
                _opened.cached.append(directory)
            return buffer
    return None


def _spliced(store: Reader, commit: Commit) -> Index | None:
    """The index of a commit if the cache has an earlier one and what changed since."""
    directory = _directory(store, commit, (), _CHANGE)
    buffer = _opened_buffer(directory)
    if buffer is None:
        return None
    from govtool.graph.delta.spliced import SplicedIndex

    change, meta = layout.view(buffer)
    before = _opened_buffer(cache_dir(store.cache_id, f"{meta['base']}-{layout.FORMAT}"))
    if before is None or _header_digest(before) != meta["base_header"]:
        _discard(directory, damaged=False)
        return None
    return SplicedIndex(
        Index(before), change, meta, lambda: _kept(store, commit, (), lambda: list(_build(store, commit, None, ())))
    )


def _derive(store: Reader, commit: Commit) -> None:
    """Keep what changed since an earlier commit whose index and columns the cache has, if that is little."""
    from govtool.app.versions.gathered import derived_change
    from govtool.arrays.layout import narrowed

    refs = _derivations(store, commit)
    found = derived_change(
        store, refs, lambda base: _opened_buffer(cache_dir(store.cache_id, f"{base}-{layout.FORMAT}"))
    )
    if found is None:
        return
    base, index, derived = found
    directory = _directory(store, commit, (), _CHANGE)
    meta = {**derived.meta, "base": base, "base_header": _header_digest(index.buffer)}

    def write(folder: Path) -> None:
        with (folder / layout.FILE).open("wb") as file:
            file.writelines(layout.pack(narrowed(derived.arrays), meta))
        note_made(folder / layout.FILE, directory)

    with contextlib.suppress(StoreError, OSError):
        publish(directory, write)


def _header_digest(buffer: Any) -> str:
    """What names an index: its header holds the checksums of all of it."""
    return hashlib.sha256(header(buffer)).hexdigest()


def forget_opened() -> None:
    """Begin anew: ``damaged_since`` ignores files that were opened before."""
    _opened.cached.clear()


def damaged_since() -> bool:
    """Return whether an index that was taken from the cache since is damaged, all of it compared; it is discarded then.

    To be asked when something went wrong that should not have: a damaged index explains it, and the next opening
    builds a new one.
    """
    found = False
    while _opened.cached:
        found |= _discarded_if_damaged(_opened.cached.pop())
    return found


def discard_damaged(store: Reader, commit: Commit, evidence: Iterable[str] = ()) -> bool:
    """Return whether the cached index of one commit is damaged, all of it compared; it is discarded then.

    Args:
        store: Where the commit is.
        commit: The commit.
        evidence: As for ``open_index``.
    """
    directory = _directory(store, commit, tuple(sorted(set(evidence))))
    with contextlib.suppress(ValueError):
        _opened.cached.remove(directory)  # compared here: `damaged_since` need not do it again
    if _discarded_if_damaged(directory):
        return True
    change = _directory(store, commit, (), _CHANGE)
    return not evidence and change in _opened.cached and damaged_since()


def _discarded_if_damaged(directory: Path) -> bool:
    try:
        layout.verify(mapped(directory / layout.FILE))
    except (IntegrityError, FormatError, ValueError):
        _discard(directory)
        return True
    except OSError:
        return False  # never kept, or evicted meanwhile
    return False


def discard_cached(store: Reader, commit: Commit) -> None:
    """Move the cached index of a commit out of the way: it may have come from a published one."""
    for what in ("", _CHANGE):
        _discard(_directory(store, commit, (), what), damaged=False)


def damaged_indexes() -> list[Path]:
    """The damaged indexes that were discarded since this was last asked."""
    found, _opened.damaged = _opened.damaged, []
    return found


def _directory(store: Reader, commit: Commit, evidence: tuple[str, ...], what: str = "") -> Path:
    known = f"-{hashlib.sha256(repr(evidence).encode()).hexdigest()[:12]}" if evidence else ""
    return cache_dir(store.cache_id, f"{commit.content_id}-{layout.FORMAT}{known}{what}")


def index_of(derivations: Iterable[Derivation]) -> Index:
    """The index of derivations in memory, without a store."""
    from govtool.graph.builder.build import build
    from govtool.model.columnar import to_table

    index = Index(b"".join(build([to_table(derivations)])))
    index.paths_root = paths_root()
    return index


def _build(store: Reader, commit: Commit, progress: Progress | None, evidence: tuple[str, ...]) -> Iterator[Any]:
    """Build an index, using what the cache has of earlier ones."""
    from govtool.app.versions.gathered import derived_gathered, kept_columns, missing, read_gathered
    from govtool.graph.builder.build import build_gathered
    from govtool.graph.builder.meter import BuildMeter

    refs = _derivations(store, commit)
    kept = None if evidence else kept_columns(store, refs)
    fresh = missing(refs, kept)
    built = sum(ref.size for ref in refs) - sum(ref.size for ref in fresh)
    meter = BuildMeter(progress, [ref.size for ref in fresh], sum(ref.rows for ref in refs), built)
    if evidence:
        gathered = read_gathered(store, refs, meter.read, evidence)
    else:
        gathered = derived_gathered(store, commit, refs, kept, meter.read)
    return build_gathered(gathered, meter)


def _derivations(store: Reader, commit: Commit) -> list[FragmentRef]:
    """The fragments that an index is built from, in its order."""
    from govtool.model.columnar import DERIVATIONS

    return sorted(ref for ref in store.fragments(commit) if ref.table == DERIVATIONS)


def _discard(directory: Path, *, damaged: bool = True) -> None:
    """Take an index out of the way, so that a good one can take its place."""
    if damaged:
        _opened.damaged.append(directory)
    import shutil

    shutil.rmtree(directory, ignore_errors=True)

"""Opens the index of a commit: from the local cache, or built from the store's fragments and kept there."""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.errors import FormatError, IntegrityError, StoreError
from govtool.graph import layout
from govtool.graph.index import Index
from govtool.store.cache import cache_dir, lookup, publish

if TYPE_CHECKING:
    from govtool.model import Derivation
    from govtool.store import Commit, Reader

Progress = Callable[[int, int], None]


def open_index(
    store: Reader, commit: Commit | None, progress: Progress | None = None, *, evidence: Iterable[str] = ()
) -> Index:
    """The index of a commit; of the empty graph for ``None``.

    The cache is a help, not a need: if it cannot be written the index is built in memory.

    Args:
        store: Where the commit is (``Store`` is a ``Reader``).
        commit: A commit of that store.
        progress: Called with steps done and steps in all while the index is built.
        evidence: How what is in the index is known (``sql``, ``plan`` …); by default everything.

    Raises:
        StoreError: A fragment cannot be read.
    """
    if commit is None:
        return index_of(())
    wanted = tuple(sorted(set(evidence)))
    found = cached_index(store, commit, wanted)
    if found is not None:
        return found
    directory = _directory(store, commit, wanted)
    pieces = list(_build(store, commit, progress, wanted))

    def write(folder: Path) -> None:
        with (folder / layout.FILE).open("wb") as file:
            file.writelines(pieces)

    try:
        publish(directory, write)
        return Index(_mapped(directory / layout.FILE))
    except (StoreError, OSError, ValueError):
        return Index(b"".join(pieces))


def cached_index(store: Reader, commit: Commit, evidence: tuple[str, ...] = ()) -> Index | None:
    """The index of a commit if the local cache has it."""
    directory = _directory(store, commit, evidence)
    if lookup(directory):
        try:
            return Index(_mapped(directory / layout.FILE))
        except (IntegrityError, FormatError, OSError, ValueError):
            _discard(directory)
    return None


def _directory(store: Reader, commit: Commit, evidence: tuple[str, ...]) -> Path:
    known = f"-{hashlib.sha256(repr(evidence).encode()).hexdigest()[:12]}" if evidence else ""
    return cache_dir(store.store_id, f"{commit.id}-{layout.FORMAT}{known}")


def index_of(derivations: Iterable[Derivation]) -> Index:
    """The index of derivations in memory, without a store."""
    from govtool.graph.build import build
    from govtool.model.columnar import to_table

    return Index(b"".join(build([to_table(derivations)])))


def _build(store: Reader, commit: Commit, progress: Progress | None, evidence: tuple[str, ...]) -> Iterator[Any]:
    from govtool.graph.build import build
    from govtool.model.columnar import DERIVATIONS, read_table

    refs = sorted(ref for ref in store.fragments(commit) if ref.table == DERIVATIONS)
    tables = (_known_by(read_table(store.read(ref)), evidence) for ref in refs)
    return build(tables, total=len(refs), progress=progress)


def _known_by(table: Any, evidence: tuple[str, ...]) -> Any:
    """The derivations of a table that are known in some ways; all for none."""
    if not evidence:
        return table
    import pyarrow as pa
    import pyarrow.compute as pc

    return table.filter(pc.is_in(table.column("how").cast(pa.string()), value_set=pa.array(evidence, pa.string())))


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _discard(directory: Path) -> None:
    """Take a damaged index out of the way, so that a good one can take its place."""
    import shutil

    shutil.rmtree(directory, ignore_errors=True)

"""The columns of a commit's derivations: of an earlier commit in the local cache, and read from what is new.

Reading costs a few milliseconds a fragment, so that the first question after a commit would cost as many as the store
has sources. The columns that the newest index was built from are kept beside it; the next commit reads only the
fragments that these lack. They are a help, not a need: what is damaged, missing or of another version is read anew.
"""

from __future__ import annotations

import contextlib
import mmap
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.app.versions.kept_files import note_made, open_kept
from govtool.errors import FormatError, IntegrityError, StoreError
from govtool.graph.builder.gathered import (
    FORMAT,
    Gathered,
    first_derivation,
    fragment_order,
    fragments_of,
    gather,
    joined,
    mapped,
    ordered,
    pack,
    unpack,
)
from govtool.store.cache import cache_dir, lookup, publish

if TYPE_CHECKING:
    from govtool.graph.delta.derive import Derived
    from govtool.graph.index import Index
    from govtool.store import Commit, FragmentRef, Reader

FILE = "columns"
"""The file's name in a cache directory."""

_PLAIN = 1 << 16
"""Bytes up to which a fragment is read without dictionaries, so that it can be put together with others."""
_QUICK = 1 << 24
"""Bytes of columns of which an index is built in a fraction of a second: some 400,000 edges."""
_SHARE = 20
"""An index is derived as a change of another one where at most one in so many of its edges is looked at."""
_READ_SHARE = 8
"""And where at most one in so many derivations is read, to be compared with what it was."""
_KEPT = 2
"""Columns of as many commits are kept."""
_AT_ONCE = 64
"""Fragments that are fetched together."""

Taken = Callable[[int, float], None]


def read_gathered(
    store: Reader, refs: Sequence[FragmentRef], taken: Taken | None = None, evidence: tuple[str, ...] = ()
) -> Gathered:
    """The columns of fragments of derivations, all of them read.

    Args:
        store: Where they are.
        refs: The fragments, in the order of an index.
        taken: Called with the number of a fragment, and the share of it that is there, and all before it.
        evidence: Only derivations that are known in one of these ways; none for all.

    Raises:
        StoreError: A fragment cannot be read.
    """
    tables = ((name, _known_by(table, evidence) if evidence else table) for name, table in fragment_tables(store, refs))
    return ordered(gather(tables, taken))


def derived_gathered(
    store: Reader, commit: Commit, refs: Sequence[FragmentRef], kept: Gathered | None, taken: Taken | None = None
) -> Gathered:
    """Gather all evidence anew, using the cached columns, and keep the result for the next commit.

    Args:
        store: Where the commit is.
        commit: The commit.
        refs: Its fragments of derivations, in the order of an index.
        kept: Of `kept_columns`.
        taken: As for `read_gathered`, about those that are `missing`.

    Raises:
        StoreError: A fragment cannot be read.
    """
    fresh = missing(refs, kept)
    gathered = read_gathered(store, fresh, taken)
    if kept is not None and len(fresh) < len(refs):
        gathered = ordered(joined((kept, gathered), [ref.sha256 for ref in refs]))
    _keep(store, commit, gathered)
    return gathered


def derived_change(
    store: Reader, refs: Sequence[FragmentRef], open_base: Callable[[str], Any]
) -> tuple[str, Index, Derived] | None:
    """What changed since the commit in the cache whose columns have most of some fragments; its content, its index, and
    that.

    Args:
        store: Where the fragments are.
        refs: The fragments of a commit, in the order of the store.
        open_base: Gives the file of the index of a content.

    Returns:
        None if there is no such commit, if little is saved, or much has changed.

    Raises:
        StoreError: A fragment cannot be read.
    """
    wanted = [ref.sha256 for ref in refs]
    folder = _best(store, wanted)
    columns = None if folder is None else _large(folder)
    if folder is None or columns is None:
        return None
    base = folder.name.removeprefix(f"{store.cache_id}.").removesuffix(f"-columns-{FORMAT}")
    buffer = open_base(base)
    if buffer is None:
        return None
    from govtool.graph.delta.derive import derive
    from govtool.graph.index import Index

    kept = mapped(columns)
    index = Index(buffer)
    most = index.edge_count // _SHARE
    known = dict(zip(kept.fragments, range(len(kept.fragments)), strict=True))
    fresh = [ref for ref in refs if ref.sha256 not in known]
    if sum(ref.rows for ref in fresh) * _READ_SHARE > kept.derivations:
        return None
    lookup(folder)
    gathered = gather(fragment_tables(store, fresh))
    firsts = {name: first_derivation(kept, known[name], index.text) for name in wanted if name in known}
    firsts |= {name: first_derivation(gathered, place) for place, name in enumerate(gathered.fragments)}
    order = fragment_order(wanted, [firsts[name] for name in wanted])
    derived = derive(index, kept, gathered, [wanted[place] for place in order], most)
    return None if derived is None else (base, index, derived)


def _large(folder: Path) -> Any:
    """The columns in a folder of the cache, mapped; None if they are few, or not there, or damaged."""
    try:
        if (folder / FILE).stat().st_size > _QUICK:
            return open_kept(folder / FILE, FORMAT)
    except (IntegrityError, FormatError):
        shutil.rmtree(folder, ignore_errors=True)
    except (OSError, ValueError):
        pass
    return None


def missing(refs: Sequence[FragmentRef], kept: Gathered | None) -> list[FragmentRef]:
    """The fragments that are not among what is kept."""
    known = set(kept.fragments) if kept else set()
    return [ref for ref in refs if ref.sha256 not in known]


def builds_quickly(store: Reader, refs: Sequence[FragmentRef]) -> bool:
    """Return whether an index of some fragments is built in a fraction of a second: the cache has nearly all of them.

    Args:
        store: Where the fragments are.
        refs: The fragments.
    """
    with contextlib.suppress(OSError):
        if any((folder / FILE).stat().st_size > _QUICK for folder in _kept(store)):
            return False
    names = max((names for _, names in _kept_names(store)), key=len, default=set())
    return sum(ref.sha256 not in names for ref in refs) * 10 <= len(refs)


def fragment_tables(store: Reader, refs: Sequence[FragmentRef]) -> Iterator[tuple[str, Any]]:
    """The names and tables of fragments."""
    from govtool.model.columnar import read_table

    for start in range(0, len(refs), _AT_ONCE):
        some = refs[start : start + _AT_ONCE]
        for ref, data in zip(some, store.read_many(some), strict=True):
            yield ref.sha256, read_table(data, dictionary=len(data) > _PLAIN)


def _known_by(table: Any, evidence: tuple[str, ...]) -> Any:
    """The derivations of a table that are known in some ways."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return table.filter(pc.is_in(table.column("how").cast(pa.string()), value_set=pa.array(evidence, pa.string())))


def _kept(store: Reader) -> list[Path]:
    """The folders of the cache that hold columns of this store, the newest first."""
    found = []
    with contextlib.suppress(OSError):
        folder = cache_dir(store.cache_id, "x").parent
        found = [(path.stat().st_mtime, path) for path in folder.glob(f"{store.cache_id}.*-columns-{FORMAT}")]
    return [path for _, path in sorted(found, reverse=True)]


def kept_columns(store: Reader, refs: Sequence[FragmentRef]) -> Gathered | None:
    """The columns in the cache that have most of some fragments; None where there are none, or damaged ones."""
    best = _best(store, [ref.sha256 for ref in refs])
    if best is None:
        return None
    try:
        return unpack((best / FILE).read_bytes())
    except (IntegrityError, FormatError):
        shutil.rmtree(best, ignore_errors=True)
    except (OSError, ValueError):
        pass
    return None


def _best(store: Reader, fragments: Collection[str]) -> Path | None:
    """The folder of the cache whose columns have most of some fragments."""
    wanted = set(fragments)
    return max(((len(wanted & names), folder) for folder, names in _kept_names(store)), default=(0, None))[1]


def _kept_names(store: Reader) -> Iterator[tuple[Path, set[str]]]:
    """The folders of the cache that hold columns of this store, each with the names of its fragments."""
    for folder in _kept(store):
        try:
            with (folder / FILE).open("rb") as file:
                yield folder, set(fragments_of(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
        except (IntegrityError, FormatError):
            shutil.rmtree(folder, ignore_errors=True)
        except (OSError, ValueError):
            continue


def _keep(store: Reader, commit: Commit, gathered: Gathered) -> None:
    """Keep columns for the next commit, and those before them: of a branch in turn, or of a head while an old commit is
    asked about.
    """
    folder = cache_dir(store.cache_id, f"{commit.content_id}-columns-{FORMAT}")
    if lookup(folder):
        return

    def write(building: Path) -> None:
        with (building / FILE).open("wb") as file:
            file.writelines(pack(gathered))
        note_made(building / FILE, folder)

    earlier = _kept(store)[_KEPT - 1 :]
    with contextlib.suppress(StoreError, OSError):
        publish(folder, write)
        for path in earlier:
            shutil.rmtree(path, ignore_errors=True)

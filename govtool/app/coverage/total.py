"""The sum of the coverage of a commit's sources: every answer ends with it.

It is kept in the local cache, and beside it the counts of each fragment, so that the first question after a commit
reads only those of the sources that were ingested anew.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.answers.coverage import Coverage
from govtool.app.coverage.sources import COVERAGE_TABLE, source_rows
from govtool.errors import GovtoolError
from govtool.store import cache

if TYPE_CHECKING:
    from govtool.store import Commit, FragmentRef, Reader

TOTAL = "total.json"
"""The file of the cache with the sum: a count by its name."""
_FRAGMENTS = "fragments.json"
"""The file with the counts of each fragment, by its digest; only the newest commit has it."""
_SUFFIX = "-coverage"

_Counts = dict[str, dict[str, int]]


def total_coverage(store: Reader, commit: Commit) -> Coverage:
    """The sum over all live sources of a commit.

    Raises:
        StoreError: a fragment cannot be read.
        IntegrityError: a fragment is not what was written.
    """
    folder = coverage_dir(store, commit)
    if cache.lookup(folder):
        with contextlib.suppress(OSError, ValueError, TypeError):  # evicted meanwhile, or damaged: the store is read
            return Coverage(**json.loads((folder / TOTAL).read_text(encoding="utf-8")))
    refs = [ref for ref in store.fragments(commit) if ref.table == COVERAGE_TABLE]
    counts = _counts(store, refs)
    total = Coverage()
    for ref in refs:  # batches of one source may have equal fragments, each of which counts
        total += Coverage(**counts[ref.sha256])
    with contextlib.suppress(GovtoolError):  # a cache that cannot be written serves nobody, and harms nobody
        earlier = _kept(store)
        cache.publish(folder, lambda building: _write(building, total, counts))
        for file in earlier:
            file.unlink(missing_ok=True)
    return total


def coverage_dir(store: Reader, commit: Commit) -> Path:
    """Return the folder of the local cache for the sum, ``TOTAL``."""
    return cache.cache_dir(store.cache_id, f"{commit.content_id}{_SUFFIX}")


def write_total(folder: Path, counts: Mapping[str, int]) -> None:
    """Write a sum into a folder of the cache."""
    (folder / TOTAL).write_text(json.dumps(counts), encoding="utf-8")


def _write(folder: Path, total: Coverage, counts: _Counts) -> None:
    write_total(folder, total.counts())
    (folder / _FRAGMENTS).write_text(json.dumps(counts), encoding="utf-8")


def _counts(store: Reader, refs: Sequence[FragmentRef]) -> _Counts:
    """The counts of fragments of coverage, by their digests: of the cache, or read."""
    known = _known(store)
    missing = [ref for ref in refs if ref.sha256 not in known]
    for ref, data in zip(missing, store.read_many(missing), strict=True):
        total = Coverage()
        for row in source_rows(data):
            total += row.coverage
        known[ref.sha256] = total.counts()
    return {ref.sha256: known[ref.sha256] for ref in refs}


def _kept(store: Reader) -> list[Path]:
    """The files of the cache with counts of fragments of this store, the newest first."""
    found = []
    with contextlib.suppress(OSError):
        files = cache.cache_dir(store.cache_id, "x").parent.glob(f"{store.cache_id}.*{_SUFFIX}/{_FRAGMENTS}")
        found = [(file.stat().st_mtime, file) for file in files]
    return [file for _, file in sorted(found, reverse=True)]


def _known(store: Reader) -> _Counts:
    """What the cache has; what is no count is not there."""
    names = Coverage().counts().keys()
    for file in _kept(store):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            found = json.loads(file.read_text(encoding="utf-8"))
            return {
                name: counts
                for name, counts in found.items()
                if isinstance(counts, dict)
                and counts.keys() == names
                and all(type(count) is int for count in counts.values())
            }
    return {}

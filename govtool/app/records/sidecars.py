"""Key sidecars of recorded runs: where they lie, what is built and removed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from govtool.errors import StoreError, UsageError
from govtool.store.cache import cache_root, size_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from govtool.app.records.opened import OpenedWrite
    from govtool.model.records import RecordRun
    from govtool.records.plan.nodes import Relation
    from govtool.records.sidecar.build import BuiltKeys, Wanted
    from govtool.records.sidecar.folder import SidecarFolder
    from govtool.records.sidecar.lookup import SidecarUse
    from govtool.store import Commit, Reader

SHARE = 4
"""Sidecars have a bound of their own: this part of the cache's."""
WORTH = 32 << 20
"""Bytes of an input from which a trace builds a sidecar: a scan of less takes no time."""


def sidecar_folder() -> SidecarFolder:
    """The folder of sidecars in the cache.

    Raises:
        UsageError: the environment's bound of the cache makes no sense (``usage.cache-size``).
    """
    from govtool.records.sidecar.folder import SidecarFolder

    return SidecarFolder(cache_root() / "sidecars", size_limit() // SHARE)


def sidecar_use(wanted: bool) -> SidecarUse:
    """The sidecars of a trace; none where they are not wanted."""
    from govtool.records.sidecar.lookup import SidecarUse

    return SidecarUse(sidecar_folder() if wanted else None)


def missing_keys(use: SidecarUse) -> tuple[Wanted, ...]:
    """The sidecars that would have answered a trace, of inputs that are large enough to gain by it."""
    return tuple(each for each in use.missed.values() if _bytes(each[0]) >= WORTH)


def build_missing(wanted: Sequence[Wanted], opened: OpenedWrite) -> list[BuiltKeys]:
    """Build sidecars after a trace.

    Raises:
        StoreError: the cache cannot be written (``store.cache``).
    """
    return _built(opened, wanted)


def index_records(store: Reader, commit: Commit, runs: Iterable[RecordRun], *, remove: bool = False) -> list[BuiltKeys]:
    """Build, or remove, the key sidecars of the inputs of recorded writes.

    Args:
        store: The store.
        commit: Plans are those of this commit.
        runs: The writes.
        remove: Remove them instead; ``built`` and ``bytes`` then count what is gone.

    Returns:
        The keys of each input. A write that cannot be traced has none, and says why; so does a file that is gone or has
        changed, as its rows are in no trace.

    Raises:
        UsageError: none of the writes can be traced; the error is that of the first.
        EngineError: DuckDB is missing.
        StoreError: the cache cannot be written (``store.cache``).
    """
    from govtool.app.records.opening import open_write
    from govtool.records.sidecar.build import BuiltKeys, wanted_keys

    answers: dict[tuple[str, tuple[str, ...]], BuiltKeys] = {}
    work: Callable[[OpenedWrite, Sequence[Wanted]], list[BuiltKeys]] = _removed if remove else _built
    failed: list[tuple[RecordRun, UsageError]] = []
    lost: dict[str, BuiltKeys] = {}
    of_queries = [run for run in runs if not run.program]  # RDDs have no columns
    for run in of_queries:
        try:
            opened = open_write(store, commit, run)
        except UsageError as error:
            failed.append((run, error))
            continue
        for each in work(opened, wanted_keys(opened.lineage)):
            answers.setdefault((each.dataset, each.columns), each)
        if not remove:
            lost.update((each.file, BuiltKeys(each.file, (), why=each.reason)) for each in opened.lineage.refused)
    if failed and len(failed) == len(of_queries):
        raise failed[0][1]
    untraced = (BuiltKeys(run.output or run.run, (), why=error.message) for run, error in failed)
    return [*answers.values(), *lost.values(), *untraced]


def _built(opened: OpenedWrite, wanted: Sequence[Wanted]) -> list[BuiltKeys]:
    from govtool.records.execute.duckdb import DuckExecutor
    from govtool.records.sidecar.build import build_keys

    folder = sidecar_folder()
    try:
        return build_keys(DuckExecutor(opened.plan.session), folder, wanted)
    except OSError as error:
        raise StoreError(
            f"key sidecars cannot be written: {error}", code="store.cache", location=str(folder.path)
        ) from error


def _removed(opened: OpenedWrite, wanted: Sequence[Wanted]) -> list[BuiltKeys]:
    from govtool.records.execute.duckdb import DuckExecutor
    from govtool.records.sidecar.build import BuiltKeys, remove_keys

    executor, folder, answers = DuckExecutor(opened.plan.session), sidecar_folder(), []
    for leaf, names in wanted:
        count, size = remove_keys(executor, folder, [(leaf, names)])
        answers.append(replace(BuiltKeys(leaf.dataset, names), built=count, bytes=size))
    return answers


def _bytes(leaf: Relation) -> int:
    return sum(file.size for file in leaf.files)

"""Sidecars built: of the keys that traces of a plan look rows up by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from govtool.records.execute.duckdb import RECORD, DuckExecutor, column_name
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.nodes import File, Relation
from govtool.records.plan.tree import walk_nodes
from govtool.records.plan.types import LONG, Struct
from govtool.records.sidecar import keyfile
from govtool.records.sidecar.folder import SidecarFolder
from govtool.records.sidecar.keyfile import KeySet
from govtool.records.sidecar.lookup import HASH, key_set_of, lookup_of
from govtool.records.sql.dialect import NotExact
from govtool.records.sql.statement import KEPT
from govtool.records.trace.push import semijoined
from govtool.records.trace.segment import LinkSource

if TYPE_CHECKING:
    import numpy as np

    from govtool.records.trace.traced_plan import TracedPlan

Wanted = tuple[Relation, tuple[str, ...]]
"""A leaf, and the names of columns by which its rows are looked up."""


@dataclass(frozen=True, slots=True)
class BuiltKeys:
    """The sidecars of one input by one set of columns.

    Attributes:
        dataset: The input; of a write that cannot be traced, its output; or a file that is gone or has changed.
        columns: The columns; none where the write cannot be traced, or the file is not that which was read.
        built: Files that got one now.
        present: Files that had one.
        rows: Rows of those that were built.
        bytes: Bytes of those that were built.
        why: Why some files have none.
    """

    dataset: str
    columns: tuple[str, ...]
    built: int = 0
    present: int = 0
    rows: int = 0
    bytes: int = 0
    why: str = ""


def wanted_keys(lineage: TracedPlan) -> list[Wanted]:
    """The keys that a trace back over a plan looks rows up by: those of its boundaries, as far as they are columns."""
    found: dict[tuple[Any, ...], Wanted] = {}
    for stage in lineage.stages():
        for source in stage.segment.sources:
            if not isinstance(source, LinkSource) or source.link.free:
                continue
            values = Relation(0, "", KEPT, (), tuple(parameter for parameter, _ in source.pairs), Struct(()))
            joined = semijoined(source.link.child.node, values, source.link.condition)
            for node in walk_nodes(joined):
                lookup = lookup_of(node)
                names = tuple(sorted(lookup.keys())) if lookup is not None else ()
                if lookup is not None and names:
                    found[tuple(each.uri for each in lookup.leaf.files), names] = (lookup.leaf, names)
    return list(found.values())


def build_keys(executor: DuckExecutor, folder: SidecarFolder, wanted: Iterable[Wanted]) -> list[BuiltKeys]:
    """Build the sidecars that are missing.

    Raises:
        OSError: The folder cannot be written.
    """
    folder.path.mkdir(parents=True, exist_ok=True, mode=0o700)
    built = [_built(executor, folder, leaf, names) for leaf, names in wanted]
    folder.evict()
    return built


def remove_keys(executor: DuckExecutor, folder: SidecarFolder, wanted: Iterable[Wanted]) -> tuple[int, int]:
    """Remove the sidecars of some keys; return how many there were, and their bytes."""
    sizes = []
    for leaf, names in wanted:
        keys = key_set_of(executor, _columns(leaf, names))
        sizes += [folder.remove(file.uri, keys) for file in leaf.files]
    return sum(size > 0 for size in sizes), sum(sizes)


def _built(executor: DuckExecutor, folder: SidecarFolder, leaf: Relation, names: tuple[str, ...]) -> BuiltKeys:
    answer = BuiltKeys(leaf.dataset, names)
    keys = key_set_of(executor, _columns(leaf, names))
    for file in leaf.files:
        if folder.open(file.uri, keys) is not None:
            answer = replace(answer, present=answer.present + 1)
            continue
        known = keyfile.identity(file.uri)
        if known is None:
            return replace(answer, why="files are not on this machine")
        try:
            packed = packed_hashes(executor, leaf, file, keys)
        except NotExact as error:
            return replace(answer, why=str(error))
        if len(packed) >= keyfile.MAX_ROWS:
            return replace(answer, why="a file has too many rows")
        if answer.bytes + 8 * len(packed) > folder.limit:
            return replace(answer, why="the cache is too small for them: raise GOVTOOL_CACHE_SIZE")
        if keyfile.identity(file.uri) != known:
            return replace(answer, why="a file changed meanwhile")
        place = folder.place(file.uri, keys)
        keyfile.write(place, file.uri, keys, known, packed)
        more = place.stat().st_size
        answer = replace(answer, built=answer.built + 1, rows=answer.rows + len(packed), bytes=answer.bytes + more)
    return answer


def packed_hashes(executor: DuckExecutor, leaf: Relation, file: File, keys: KeySet) -> np.ndarray[Any, Any]:
    """The key hashes of a file, ascending, ``[rows] uint64``: hash in the upper half, row in the lower.

    Raises:
        NotExact: The file cannot be read as the plan reads it.
    """
    import numpy as np

    columns = _columns(leaf, tuple(name for name, _ in keys.columns))
    record = Attribute(max(column.id for column in leaf.columns) + 1, "record", LONG)
    own = replace(leaf, files=(replace(file, ordinal=0),), columns=(*columns, record), metadata=((record.id, RECORD),))
    parts = ", ".join(column_name(column) for column in columns)
    text = f"SELECT {HASH.format(columns=parts)} * 4294967296 + {column_name(record)}::UBIGINT AS v"
    reader = executor.stream(f"{text} FROM ({executor.view(own)})")
    packed = np.concatenate([batch.column(0).to_numpy() for batch in reader] or [np.empty(0, np.uint64)])
    packed = packed.astype(np.uint64, copy=False)
    packed.sort()
    return packed


def _columns(leaf: Relation, names: tuple[str, ...]) -> list[Attribute]:
    """Columns of a leaf by name, sorted by it."""
    by_name = {column.name: column for column in leaf.columns}
    return [by_name[name] for name in sorted(names)]

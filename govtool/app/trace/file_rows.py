"""Rows of recorded files, which a trace takes from one run to the next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeGuard

from govtool.model.token import file_and_row
from govtool.records.execute.places import Place, place_of
from govtool.records.plan.nodes import Limit, Relation
from govtool.records.recordset import RecordSet
from govtool.records.trace.back import ReachedRows
from govtool.records.trace.forward import input_key

if TYPE_CHECKING:
    from govtool.app.records.opened import OpenedWrite

MAX_ROWS = 100_000
"""The most rows that go from one run to the next."""
Rows = dict[Place, set[int]]
"""Rows by file."""
Found = list[tuple[str, Rows]]
"""Rows by dataset and file."""


def together(*groups: Rows) -> Rows:
    """Rows of several groups, each once."""
    found: Rows = {}
    for rows in groups:
        for place, ids in rows.items():
            found.setdefault(place, set()).update(ids)
    return found


def merged(found: Iterable[tuple[str, Rows]]) -> Rows:
    """Rows by file, of all datasets."""
    return together(*(rows for _, rows in found))


def rows_by_file(found: RecordSet) -> Found:
    """Rows of files, by dataset and file."""
    parts = [part for part in found.parts if is_behind(part)]
    return [(part.leaf.dataset, rows_of(found, part)) for part in parts if isinstance(part.leaf, Relation)]


def is_behind(part: object) -> TypeGuard[ReachedRows]:
    """Return True for rows of files that are behind a result."""
    return isinstance(part, ReachedRows) and isinstance(part.leaf, Relation) and not part.against


def rows_of(found: RecordSet, part: ReachedRows) -> Rows:
    """Rows of one input by file; one more than ``MAX_ROWS`` where there are more."""
    assert isinstance(part.leaf, Relation)
    files = {file.ordinal: place_of(file) for file in part.leaf.files}
    rows: Rows = {}
    for (packed,) in found.lineage.executor.fetch(Limit(part.rows, MAX_ROWS + 1)):
        file, row = file_and_row(packed)
        rows.setdefault(files[file], set()).add(row)
    return rows


def rows_at(write: OpenedWrite, rows: Rows) -> RecordSet:
    """Rows of inputs at given places of files."""
    lineage, parts = write.lineage, {}
    for leaf in lineage.leaves():
        ordinals = {place_of(file): file.ordinal for file in leaf.files} if isinstance(leaf, Relation) else {}
        ids = [(ordinals[place], row) for place in rows if place in ordinals for row in rows[place]]
        if ids:
            parts[input_key(leaf)] = ReachedRows(leaf, lineage.kept_records(ids))
    return RecordSet(lineage, tuple(parts.values()))

"""The difference of the graphs of two commits, from the fragments that differ.

Only those fragments are read and folded. Whether what they say is said elsewhere, too, is looked up in the local
indexes of both commits if they are there; otherwise the other fragments are looked through for the datasets in
question.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from govtool.app.index import cached_index
from govtool.query.diff import Difference, Facts, concerned, difference, facts, spilled

if TYPE_CHECKING:
    from govtool.graph.index import Index
    from govtool.store import Commit, FragmentRef, Reader

_BATCH = 16


def diff_commits(store: Reader, old: Commit, new: Commit) -> Difference:
    """What was added, removed and changed from one commit to another, of any branches.

    Raises:
        StoreError: A fragment cannot be read.
    """
    from govtool.model.columnar import DERIVATIONS
    from govtool.store.changes import fragment_changes

    changed = fragment_changes(store.objects, old, new)
    removed = [ref for ref in changed.removed if ref.table == DERIVATIONS]
    added = [ref for ref in changed.added if ref.table == DERIVATIONS]
    sides = list(_tables(store, removed)), list(_tables(store, added))
    left, right, touched = _unequal(*sides)
    names = touched | concerned(facts(_index(left)), facts(_index(right)))
    if not names:
        return Difference(())
    return difference(*_whole(store, old, new, names, sides, set(added)))


def _unequal(old: list[Any], new: list[Any]) -> tuple[list[Any], list[Any], set[str]]:
    """Of two sides the rows that only one of them has, and the datasets that these make or take away."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from govtool.model.signatures import signatures

    if not old or not new:
        return old, new, set()
    table = pa.concat_tables([*old, *new])
    count = sum(part.num_rows for part in old)
    told = signatures(table).tolist()
    before, after = set(told[:count]), set(told[count:])
    sides = (
        table.slice(0, count).filter(pa.array([s not in after for s in told[:count]], pa.bool_())),
        table.slice(count).filter(pa.array([s not in before for s in told[count:]], pa.bool_())),
    )
    names: set[str] = set()
    for side in sides:
        names.update(side.column("target").to_pylist())
        # What is renamed is made no longer, and only the edge says what it was.
        renaming = side.filter(pc.equal(side.column("mode"), "rename"))
        names.update(e["source_dataset"] for edges in renaming.column("edges").to_pylist() for e in edges)
    return [sides[0]], [sides[1]], names


def _whole(
    store: Reader,
    old: Commit,
    new: Commit,
    names: set[str],
    sides: tuple[list[Any], list[Any]],
    added: set[FragmentRef],
) -> tuple[Facts, Facts]:
    """What the whole of each version says of the datasets in question."""
    from govtool.model.columnar import DERIVATIONS

    cached = cached_index(store, old), cached_index(store, new)
    rest = sorted(ref for ref in store.fragments(new) if ref.table == DERIVATIONS and ref not in added)
    while True:
        left, right = cached
        if left is None or right is None:
            speaking = [table for table in _tables(store, rest) if _mentions(table, names)]
            left, right = _index([*sides[0], *speaking]), _index([*sides[1], *speaking])
        more = names | spilled(left, names) | spilled(right, names)
        if more == names:
            return facts(left, names), facts(right, names)
        names = more


def _index(tables: list[Any]) -> Index:
    from govtool.graph.build import build
    from govtool.graph.index import Index

    return Index(b"".join(build(tables)))


def _tables(store: Reader, refs: Iterable[FragmentRef]) -> Iterator[Any]:
    from govtool.model.columnar import read_table

    # The same bytes may be live for two sources; they say the same.
    distinct = list({ref.sha256: ref for ref in refs}.values())
    for start in range(0, len(distinct), _BATCH):
        for data in store.read_many(distinct[start : start + _BATCH]):
            yield read_table(data)


def _mentions(table: Any, names: set[str]) -> bool:
    """Whether a fragment makes or reads one of the datasets."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pa.array(sorted(names), pa.string())
    edges = pc.list_flatten(table.column("edges").combine_chunks())
    for column in (table.column("target").combine_chunks(), pc.struct_field(edges, "source_dataset")):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        for chunk in chunks:
            values = chunk.dictionary if isinstance(chunk, pa.DictionaryArray) else chunk
            if pc.any(pc.is_in(values, value_set=wanted)).as_py():
                return True
    return False

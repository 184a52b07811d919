"""The words of statements that were not understood: they bound what these can read and write.

An ingest stores them (table ``reach``, a row a statement) where the statement's own text decides what it reads and
writes. Statements without a row, such as dynamic SQL, may read and write anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from govtool.answers.version import GraphVersion
    from govtool.app.versions.opening import Snapshot
    from govtool.capture.sql.extract import Shortfall
    from govtool.store import Commit, Fragment, Reader

REACH_TABLE = "reach"


def reach_fragments(source: str, shortfalls: Iterable[Shortfall]) -> Iterator[Fragment]:
    """The fragment with the reach of a source's statements that were not understood; none if there are no such
    statements.
    """
    import pyarrow as pa

    from govtool.model.arrow_arrays import lists, texts
    from govtool.model.parquet import write_parquet
    from govtool.store import Fragment

    words = sorted(list(one.words) for one in shortfalls if one.words)
    if words:
        items = texts([word for listed in words for word in listed])
        table = pa.table({"words": lists(map(len, words), items, pa.list_(pa.string()))})
        yield Fragment(source, REACH_TABLE, write_parquet(table, statistics=True), len(words))


def read_reach(store: Reader, commit: Commit) -> list[frozenset[str]]:
    """The words of each statement of known reach of the live sources.

    Raises:
        StoreError: A fragment cannot be read.
        IntegrityError: A fragment is not what was written.
    """
    from govtool.model.parquet import read_parquet

    found: list[frozenset[str]] = []
    for ref in store.fragments(commit):
        if ref.table == REACH_TABLE:
            found += [frozenset(words) for words in read_parquet(store.read(ref)).column("words").to_pylist()]
    return found


def version_for(snapshot: Snapshot, datasets: Iterable[int], *, backward: bool = False) -> GraphVersion:
    """The version of an answer about some datasets: without the statements that have nothing to do with it.

    Args:
        snapshot: The opened version.
        datasets: Numbers of the datasets that the question is about.
        backward: Whether the question goes upstream.
    """
    from govtool.query.unread import unrelated

    version = snapshot.version
    if not version.coverage.opaque:
        return version
    statements = read_reach(snapshot.store, snapshot.commit)
    if not statements:
        return version
    return replace(version, unrelated=unrelated(snapshot.index, datasets, statements, backward=backward))

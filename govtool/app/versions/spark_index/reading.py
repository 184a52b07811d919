"""Executors read fragments: their texts, and their columns with numbers of all texts in place of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from govtool.app.versions.spark_index.frames import arrow_rows
from govtool.errors import GovtoolError, StoreError

if TYPE_CHECKING:
    from govtool.graph.builder.gathered import Gathered
    from govtool.store import Reader

FIRST = -1
"""In place of the number of a text: what a fragment is ordered by."""


@dataclass(frozen=True, slots=True)
class Fragments:
    """The fragments of a commit, as every executor knows them."""

    uri: str
    store_id: str
    refs: tuple[tuple[Any, ...], ...]
    """Values of ``FragmentRef`` by place."""
    more: bytes = b""
    """Derivations beside those of fragments, at the place behind them; a table as Parquet."""

    def __len__(self) -> int:
        return len(self.refs) + bool(self.more)

    def store(self) -> Reader:
        """The store, opened on an executor.

        Raises:
            StoreError: It is not there, or another store is.
        """
        from govtool.store import Store

        hint = "--store with a place that all machines see, such as s3://bucket/store"
        try:
            store = Store.open(self.uri)
        except GovtoolError as error:
            raise StoreError(f"an executor cannot open the store: {error}", location=self.uri, hint=hint) from error
        if store.store_id != self.store_id:
            raise StoreError("what an executor finds there is another store", location=self.uri, hint=hint)
        return store

    def tables(self, store: Reader, place: int) -> Iterator[tuple[str, Any]]:
        """The name and the table of a fragment."""
        from govtool.app.versions.gathered import fragment_tables
        from govtool.model.columnar import read_table
        from govtool.store import FragmentRef

        if place == len(self.refs):
            yield "", read_table(self.more)
        else:
            yield from fragment_tables(store, [FragmentRef(*self.refs[place])])

    def gathered(self, store: Reader, place: int) -> Gathered:
        """The columns of a fragment."""
        from govtool.graph.builder.gathered import gather

        return gather(self.tables(store, place))


def read_texts(batches: Iterator[Any], fragments: Fragments) -> Iterator[Any]:
    """Places of fragments to their texts."""
    import pyarrow as pa

    from govtool.graph.builder.gathered import first_derivation

    store = fragments.store()
    for place in _places(batches):
        found = fragments.gathered(store, place)
        first = json.dumps(first_derivation(found, 0))
        numbers = [FIRST, *range(1, len(found.texts))]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([place] * len(numbers), pa.int64()),
                pa.array(numbers, pa.int64()),
                pa.array([first, *found.texts[1:]], pa.string()),
            ],
            names=["place", "local", "text"],
        )


def _places(batches: Iterator[Any]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


PARTS: Mapping[str, Sequence[str]] = {
    "d": (
        "target", "target_kind", "mode", "status", "namespace", "fingerprint", "kind", "dialect", "file", "source",
        "how", "session", "text", "run", "principal", "first_seen", "last_seen", "min_group_of", "places", "literals",
        "line", "count", "min_group", "complete",
    ),
    "e": ("source_dataset", "source_path", "target_path", "functions", "reason", "arm", "tag"),
    "o": ("path", "type"),
    "g": ("json",),
    "r": ("dataset", "path"),
}  # fmt: skip
"""The columns that are read of derivations, edges, outputs, diagnostics and references. Beside them each row has the
number of its derivation and its place in the fragment."""


def columns_of(part: str) -> list[str]:
    """The names of the columns of a part."""
    return ["did", "pos", *PARTS[part]]


def read_part(batches: Iterator[Any], fragments: Fragments, starts: Sequence[int], part: str) -> Iterator[Any]:
    """Fragments with the numbers of their texts to the rows of a part.

    Args:
        batches: Places, and the numbers of texts in the order of those of ``gather``.
        fragments: The fragments.
        starts: By place the number of its first derivation.
        part: One of ``PARTS``.
    """
    import numpy as np

    store = fragments.store()
    for batch in batches:
        for place, pairs in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            numbers = np.zeros(len(pairs) + 1, np.int64)
            for pair in pairs:
                numbers[pair["local"]] = pair["id"]
            found = _part(fragments.gathered(store, place), numbers, starts[place], part)
            size = 1 << 16
            for low in range(0, len(found[0]), size):
                yield arrow_rows(columns_of(part), [column[low : low + size] for column in found])


def _part(gathered: Gathered, numbers: Any, start: int, part: str) -> list[Any]:
    import numpy as np

    from govtool.graph.builder.columns import TEXTS
    from govtool.graph.builder.edge_arrays import edge_tags

    columns = dict(gathered.columns)
    if part == "e":
        columns["e.tag"] = edge_tags(columns["e.kind"], columns["e.star"], columns["e.masking"])
    count = len(columns[f"{part}.{PARTS[part][0]}"])
    own = np.arange(count) if part == "d" else columns[f"{part}.derivation"]
    found = [own.astype(np.int64) + start, np.arange(count)]
    for name in PARTS[part]:
        values = columns[f"{part}.{name}"]
        found.append(numbers[values] if f"{part}.{name}" in TEXTS else values)
    return found


def read_mentions(batches: Iterator[Any], fragments: Fragments, wildcards: Sequence[str]) -> Iterator[Any]:
    """Places of fragments to the derivations that mention wildcards or their shards, a table in Parquet each."""
    import pyarrow as pa

    from govtool.graph.builder.shards import is_shard_of
    from govtool.model.columnar import write_table

    store = fragments.store()
    for place in _places(batches):
        gathered = fragments.gathered(store, place)
        wanted = {text for text in gathered.texts if text in wildcards or is_shard_of(text, wildcards)}
        if not wanted:
            continue
        ((_, table),) = fragments.tables(store, place)
        some = table.take(pa.array(_mentioning(gathered, wanted), pa.int64()))
        yield pa.RecordBatch.from_arrays(
            [pa.array([place], pa.int64()), pa.array([write_table(some)], pa.binary())], names=["place", "data"]
        )


def _mentioning(gathered: Gathered, names: set[str]) -> list[int]:
    import numpy as np

    c = gathered.columns
    wanted = np.array([text in names for text in gathered.texts])
    found: list[int] = np.unique(
        np.concatenate(
            [
                np.flatnonzero(wanted[c["d.target"]]),
                c["e.derivation"][wanted[c["e.source_dataset"]]],
                c["r.derivation"][wanted[c["r.dataset"]]],
            ]
        )
    ).tolist()
    return found

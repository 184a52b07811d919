"""Builds the index of a commit on Spark.

Executors read the fragments, number texts, datasets, nodes, edges and statements by ranges, and sort each array. The
driver sees a count a partition, a few names, and the arrays one piece at a time on their way to its disk. What one task
does alone is said in ``folding``.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.app.project.spark_session import PARTITIONS
from govtool.app.versions.spark_index import datasets, graph
from govtool.app.versions.spark_index.arrays import take_arrays
from govtool.app.versions.spark_index.frames import Frames
from govtool.app.versions.spark_index.reading import (
    FIRST,
    PARTS,
    Fragments,
    columns_of,
    read_mentions,
    read_part,
    read_texts,
)
from govtool.app.versions.spark_index.words import Words
from govtool.app.versions.spark_index.writing import ArrayFiles
from govtool.errors import StoreError
from govtool.graph import layout

if TYPE_CHECKING:
    from govtool.store import FragmentRef, Reader

_OF_A_PARTITION = 4 << 20
"""Bytes of fragments whose rows are sorted together: a million edges, about."""


def write_index(store: Reader, refs: Sequence[FragmentRef], spark: Any, file: Path) -> None:
    """Write the index of some fragments.

    Args:
        store: Where they are, where all executors find it.
        refs: All fragments of derivations of a commit.
        spark: A session.
        file: Is written; beside it as much again is needed for a time.

    Raises:
        StoreError: An executor cannot open the store, or a fragment cannot be read.
        EngineError: Spark fails.
    """
    size = sum(ref.size for ref in refs)
    frames = Frames(spark, max(2, spark.sparkContext.defaultParallelism, size // _OF_A_PARTITION))
    spark.conf.set(PARTITIONS, str(frames.partitions))
    fragments = Fragments(store.uri, store.store_id, tuple(tuple(ref) for ref in refs))
    try:
        _check(spark, fragments)
        words = _read(frames, fragments, [ref.rows for ref in refs])
        datasets.prepare(frames, words)
        datasets.settle(frames, words)
        graph.edges_with_reads(frames, words)
        graph.nodes(frames, words)
        graph.open_stars(frames)
        graph.edges(frames)
        with tempfile.TemporaryDirectory(dir=file.parent) as folder:
            files = ArrayFiles(Path(folder))
            meta = take_arrays(frames, words, files)
            with file.open("wb") as out:
                out.writelines(layout.pack(files.arrays(), meta))
    finally:
        frames.end()


def _check(spark: Any, fragments: Fragments) -> None:
    """Ask an executor whether it finds the store, before there is anything to lose.

    Raises:
        StoreError: It does not.
    """
    rows = spark.createDataFrame([(0,)], "place long").mapInArrow(partial(_found, fragments=fragments), "why string")
    why = rows.collect()[0]["why"]
    if why:
        message, hint = json.loads(why)
        raise StoreError(message, location=fragments.uri, hint=hint)


def _found(batches: Iterator[Any], fragments: Fragments) -> Iterator[Any]:
    import pyarrow as pa

    for _ in batches:
        why = ""
        try:
            fragments.store()
        except StoreError as error:
            why = json.dumps([error.message, error.hint])
        yield pa.RecordBatch.from_arrays([pa.array([why])], names=["why"])


def _read(frames: Frames, fragments: Fragments, rows: Sequence[int]) -> Words:
    """Put the parts of all derivations with numbers of texts, ``d``, ``e``, ``o``, ``g`` and ``r``."""
    words, firsts = _texts(frames, fragments)
    more = _links(frames, fragments)
    if more is not None:
        table, count = more
        fragments = Fragments(fragments.uri, fragments.store_id, fragments.refs, table)
        frames.end()
        words, firsts = _texts(frames, fragments)
        rows = [*rows, count]
    starts = _starts(fragments, firsts, rows)
    frames.put(
        "numbered",
        f"""
        SELECT x.place, collect_list(struct(x.local, t.id)) AS numbers
        FROM {{texts}} x JOIN {{t}} t ON x.text = t.text AND x.local <> {FIRST} GROUP BY x.place""",
        keep=True,
    )  # a fragment without texts is empty
    for part in PARTS:
        read = partial(read_part, fragments=fragments, starts=starts, part=part)
        schema = ", ".join(f"`{name}` long" for name in columns_of(part))
        frames.put(part, frames["numbered"].mapInArrow(read, schema), keep=True)
    return words


def _placed(frames: Frames, fragments: Fragments) -> Any:
    """The places of fragments, a task each."""
    count = max(1, len(fragments))
    rows = [(place,) for place in range(len(fragments))]
    return frames.spark.createDataFrame(rows, "place long").repartitionByRange(count, "place")


def _texts(frames: Frames, fragments: Fragments) -> tuple[Words, dict[int, Any]]:
    """Put ``texts``, those of each fragment, and ``t``, all of them numbered; returns what fragments are ordered by."""
    read = partial(read_texts, fragments=fragments)
    placed = _placed(frames, fragments)
    frames.put("texts", placed.mapInArrow(read, "place long, local long, text string"), keep=True)
    firsts = {
        row["place"]: tuple(json.loads(row["text"]))
        for row in frames.sql(f"SELECT place, text FROM {{texts}} WHERE local = {FIRST}").collect()
    }
    count = frames.number("t", f"SELECT DISTINCT text FROM {{texts}} WHERE local <> {FIRST}", "id", "text", first=1)
    return Words(frames, count), firsts


def _starts(fragments: Fragments, firsts: dict[int, Any], rows: Sequence[int]) -> list[int]:
    """The number of the first derivation of each fragment."""
    from govtool.graph.builder.gathered import fragment_order

    names = [ref[2] for ref in fragments.refs]
    order = fragment_order(names, [firsts[place] for place in range(len(names))])
    starts = [0] * len(rows)
    begin = 0
    for place in [*order, *range(len(names), len(rows))]:
        starts[place] = begin
        begin += rows[place]
    return starts


def _links(frames: Frames, fragments: Fragments) -> tuple[bytes, int] | None:
    """Links of wildcard tables to their shards, as a table in Parquet, and their number; None if there are none.

    The driver reads the derivations that mention either.
    """
    from pyspark.sql import functions as f

    from govtool.graph.builder.gathered import gather
    from govtool.graph.builder.shards import WILDCARD_END, shard_links
    from govtool.model.columnar import read_table, to_table, write_table

    found = frames["t"].where(f.col("text").endswith(WILDCARD_END)).collect()
    if not found:
        return None
    wildcards = tuple(row["text"] for row in found)
    read = partial(read_mentions, fragments=fragments, wildcards=wildcards)
    rows = _placed(frames, fragments).mapInArrow(read, "place long, data binary").collect()
    order = {ref[2]: place for place, ref in enumerate(fragments.refs)}
    tables = [(fragments.refs[row["place"]][2], read_table(bytes(row["data"]))) for row in rows]
    firsts = {
        row["place"]: tuple(json.loads(row["text"]))
        for row in frames.sql(f"SELECT place, text FROM {{texts}} WHERE local = {FIRST}").collect()
    }
    tables.sort(key=lambda pair: (firsts[order[pair[0]]], pair[0]))
    links = shard_links(gather(tables))
    return (write_table(to_table(links)), len(links)) if links else None

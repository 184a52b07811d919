"""Frames of numbers on Spark: kept on the disks of executors, numbered in an order, and joined by SQL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_NAME = re.compile(r"{(\w+)}")

SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.ansi.enabled": "true",  # a number that does not fit is an error
}
"""Settings of a session during a build."""


class Frames:
    """Named frames of one build.

    Args:
        spark: The session.
        partitions: Into how many parts frames are cut.
    """

    def __init__(self, spark: Any, partitions: int) -> None:
        self.spark = spark
        self.partitions = partitions
        self._named: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        return self._named[name]

    def sql(self, query: str) -> Any:
        """The answer to a query in which ``{name}`` is a frame."""
        return self.spark.sql(query, **{name: self._named[name] for name in set(_NAME.findall(query))})

    def put(self, name: str, frame: Any, *, keep: bool = False) -> Any:
        """Name a frame, given as such or as a query; kept on the disks of executors if it is used several times."""
        found = self.sql(frame) if isinstance(frame, str) else frame
        self._named[name] = self.keep(found) if keep else found
        return self._named[name]

    def keep(self, frame: Any) -> Any:
        """Compute a frame and keep it until nobody knows it. What is made of it does not know how it came about.

        Spark looks through all that a frame is made of whenever one is used: of hundreds of joins that takes minutes.
        """
        from pyspark import StorageLevel

        return frame.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)

    def end(self) -> None:
        """Let go of all frames: Spark then removes what it kept of them."""
        self._named.clear()

    def in_order(self, frame: Any, *order: str) -> Any:
        """The rows of a frame in a total order, partition after partition."""
        return frame.repartitionByRange(self.partitions, *order).sortWithinPartitions(*order)

    def number(self, name: str, frame: Any, number: str, *order: str, first: int = 0) -> int:
        """Name a frame whose rows are numbered in an order; returns how many there are.

        The driver sees one count a partition.
        """
        from pyspark.sql import functions as f

        found = self.sql(frame) if isinstance(frame, str) else frame
        rows = self.keep(self.in_order(found, *order))
        counts = {
            row["part"]: row["count"] for row in rows.groupBy(f.spark_partition_id().alias("part")).count().collect()
        }
        begins, total = [], 0
        for part in range(max(counts, default=0) + 1):
            begins.append(total)
            total += counts.get(part, 0)
        begin = f.array(*[f.lit(first + value) for value in begins])[f.spark_partition_id()].cast("long")
        place = f.monotonically_increasing_id() - f.shiftleft(f.spark_partition_id().cast("long"), 33)
        self._named[name] = rows.withColumn(number, begin + place)
        return total


def arrow_rows(names: Sequence[str], columns: Sequence[Any]) -> Any:
    """A batch of whole numbers, as executors hand them to Spark."""
    import numpy as np
    import pyarrow as pa

    arrays = [pa.array(np.ascontiguousarray(column).astype(np.int64)) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def long_schema(names: Sequence[str]) -> str:
    """The schema of such batches."""
    return ", ".join(f"`{name}` long" for name in names)


def number_columns(batch: Any) -> dict[str, Any]:
    """The columns of a batch of whole numbers, by name: int64; what is absent is 0."""
    from govtool.graph.builder.columns import numbers_of

    return {name: numbers_of(batch.column(place)) for place, name in enumerate(batch.schema.names)}

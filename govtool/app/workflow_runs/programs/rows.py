"""Files that stand for relations of a recorded program, and their rows."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

from govtool.model.token import PositionToken
from govtool.records.execute.inputs import local_path
from govtool.records.execute.written_types import without_zones
from govtool.records.plan.nodes import File
from govtool.records.plan.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, VOID, Type
from govtool.workflow.modules.run_tuples import RelationRows


@dataclass(frozen=True, slots=True)
class ReadableFile:
    """A file that stands for a relation: the relation's own, or a temporary one.

    Attributes:
        files: The files, with partition values; ordinals are those of the relation.
        columns: Names of all columns, those of partitions last.
        partitioned: Names of the partition columns.
        kinds: Their types.
        is_own: They are the files that were written.
        tokens: Of a source that was evaluated again: the tokens of its rows.
    """

    files: tuple[File, ...]
    columns: tuple[str, ...]
    partitioned: tuple[str, ...] = ()
    is_own: bool = True
    tokens: tuple[str, ...] = ()
    kinds: tuple[Type, ...] = ()


def partition_cell(value: Any, kind: Type) -> Any:
    """The value of a partition as rows have it: dates are recorded as days, times as microseconds."""
    if kind == DATE and isinstance(value, int):
        return datetime.date(1970, 1, 1) + datetime.timedelta(days=value)
    if kind in (TIMESTAMP, TIMESTAMP_NTZ) and isinstance(value, int):
        return datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=value)
    return value


def output_rows(found: ReadableFile) -> RelationRows:
    """The rows of written files, with the values of their partitions."""
    import pyarrow.parquet as pq

    columns = [name for name in found.columns if name not in found.partitioned]
    values: list[tuple[Any, ...]] = []
    counts = []
    for file in found.files:
        path = local_path(file.uri)
        assert path is not None
        table = pq.ParquetFile(path).read()
        columns = columns or table.column_names
        lists = [without_zones(table.column(name)).to_pylist() for name in columns]
        kinds = found.kinds or (VOID,) * len(file.partition)
        lists += [[partition_cell(*each)] * table.num_rows for each in zip(file.partition, kinds, strict=True)]
        values += list(zip(*lists, strict=True))
        counts.append(table.num_rows)
    return RelationRows((*columns, *found.partitioned), values, tuple(counts), [])


def source_rows(found: ReadableFile, dataset: str, version: str) -> RelationRows:
    """The tokens of records that are in Parquet files; their values are read by the plans."""
    import pyarrow.parquet as pq

    counts, tokens = [], []
    for file in found.files:
        path = local_path(file.uri)
        assert path is not None
        rows = pq.read_metadata(path).num_rows
        counts.append(rows)
        tokens += [str(PositionToken(dataset, version, file.ordinal, row)) for row in range(rows)]
    return RelationRows((), [], tuple(counts), tokens)

"""Copies of relations for a run without some records: Parquet of the rows that are left, text line by line."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from govtool.app.workflow_runs.inputs import listing
from govtool.app.workflow_runs.text_relations import count_records, text_records
from govtool.model.workflow_run import BoundaryRelation

if TYPE_CHECKING:
    from govtool.workflow.queries.statuses import RowDeletion


def written_rows(relation: BoundaryRelation, deletion: RowDeletion, place: Path) -> BoundaryRelation | None:
    """Write the rows that a deletion leaves; None where their types are not written here as Spark writes them.

    Args:
        relation: The relation as it was recorded.
        deletion: A deletion that is certain.
        place: The folder of the new relation, which is not there yet.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if relation.format != "parquet" or not relation.files:
        return None
    schema = pq.read_schema(_path(relation.files[0].uri)).remove_metadata()
    if any(pa.types.is_timestamp(each.type) or pa.types.is_nested(each.type) for each in schema):
        return None
    rows = [row.after for row in deletion.rows if row.after is not None] + list(deletion.gains)
    try:
        table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
    except (pa.ArrowException, ValueError, TypeError):
        return None
    place.mkdir(parents=True)
    pq.write_table(table, place / "part-00000.parquet")
    return BoundaryRelation(str(place), "parquet", relation.schema, listing(place))


def rows_by_file(relation: BoundaryRelation, rows: Collection[int]) -> dict[str, list[int]]:
    """Numbers of rows within each file, from numbers in the order of the files."""
    sizes = [0] if len(relation.files) == 1 else _starts(relation)
    found: dict[str, list[int]] = {}
    for row in sorted(rows):
        at = bisect_right(sizes, row) - 1
        found.setdefault(relation.files[at].uri, []).append(row - sizes[at])
    return found


def _starts(relation: BoundaryRelation) -> list[int]:
    """The number of the first row of each file."""
    counts = [_count(relation, _path(file.uri)) for file in relation.files]
    return list(accumulate(counts[:-1], initial=0))


def _count(relation: BoundaryRelation, file: Path) -> int:
    if relation.format == "parquet":
        import pyarrow.parquet as pq

        found: int = pq.ParquetFile(file).metadata.num_rows
        return found
    return count_records(relation.format, file)


def _path(uri: str) -> Path:
    return Path(unquote(urlparse(uri).path))


def lines_without(relation: BoundaryRelation, rows: Collection[int], place: Path) -> BoundaryRelation:
    """A copy of files of CSV with a header, or of JSON lines, without some rows; all others as they are written."""
    place.mkdir(parents=True)
    gone = rows_by_file(relation, rows)
    for number, file in enumerate(relation.files):
        source = _path(file.uri)
        left = set(gone.get(file.uri, ()))
        first = 1 if relation.format == "csv" else 0
        with (place / f"part-{number:05}{source.suffix}").open(
            "w", encoding="utf-8", errors="surrogateescape", newline=""
        ) as target:
            for at, record in enumerate(text_records(source)):
                if at < first or at - first not in left:
                    target.write(record)
    return BoundaryRelation(str(place), relation.format, relation.schema, listing(place))

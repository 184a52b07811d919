"""Copies of relations in files of text, without some of their rows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from itertools import accumulate
from pathlib import Path
from urllib.parse import unquote, urlparse

from govtool.app.workflow_runs.inputs import listing
from govtool.model.workflow_run import BoundaryRelation


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
    return sum(1 for _ in _records(relation, file)) - (relation.format == "csv")


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
        with (place / f"part-{number:05}{source.suffix}").open("w", encoding="utf-8", newline="") as target:
            for at, record in enumerate(_records(relation, source)):
                if at < first or at - first not in left:
                    target.write(record)
    return BoundaryRelation(str(place), relation.format, relation.schema, listing(place))


def _records(relation: BoundaryRelation, file: Path) -> Iterator[str]:
    """The records of a file as text, the header of CSV first. A quoted value may hold line breaks."""
    pending = ""
    with file.open(encoding="utf-8", newline="") as lines:
        for line in lines:
            pending += line
            if relation.format == "csv" and pending.count('"') % 2:
                continue
            if pending.strip():
                yield pending if pending.endswith(("\n", "\r")) else pending + "\n"
            pending = ""
    if pending.strip():
        yield pending

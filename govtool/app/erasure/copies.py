"""Corrected copies of a dataset's files: the same format, schema and folders, without the rows that go."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from govtool.app.erasure.deltas import DatasetDelta, arrow_schema
from govtool.app.erasure.lines import without_lines
from govtool.errors import EngineError, EvidenceError
from govtool.records.execute.inputs import local_path
from govtool.records.execute.places import Place, place_of
from govtool.records.plan.nodes import File, Relation
from govtool.redaction import clean_failure

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

LINES = ("csv", "json", "text")
"""Formats with a row a line."""
NEW_FILE = "part-corrected.parquet"
"""The name of a file that no original stands for."""
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_PLAIN = re.compile(r"[^A-Za-z0-9._=-]+")


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """A file of a corrected copy.

    Attributes:
        path: Where it lies.
        original: The file that it was made of; None: there was none.
        partition: Its partition values.
        changed: Whether it differs from the original.
    """

    path: Path
    original: File | None
    partition: tuple[Any, ...] = ()
    changed: bool = False


@dataclass(slots=True)
class _FileEdit:
    """What happens to a file: rows that go, those that come in their place, those that come at the end."""

    file: File
    drops: set[int] = field(default_factory=set)
    replaced: dict[int, int] = field(default_factory=dict)
    appended: list[int] = field(default_factory=list)

    @property
    def changes(self) -> bool:
        return bool(self.drops or self.replaced or self.appended)


def plain_name(dataset: str, taken: set[str]) -> str:
    """A name for a dataset's folder: no separators, nothing hidden, none that is taken already."""
    last = dataset.rstrip("/").split(",")[0].rpartition("/")[2]
    name = _PLAIN.sub("_", last).lstrip(".") or "dataset"
    found, number = name, 2
    while found.lower() in taken:
        found, number = f"{name}-{number}", number + 1
    taken.add(found.lower())
    return found


def relative_paths(files: Sequence[File]) -> tuple[Path | None, dict[Place, Path]]:
    """The folder that files have in common, and their paths below; no folder for a single file.

    Raises:
        EngineError: A file is not on this machine (``engine.place``).
        EvidenceError: A path leads out of the folder (``evidence.path``).
    """
    paths = {}
    for file in files:
        path = local_path(file.uri)
        if path is None:
            raise EngineError(f"{file.uri} is not on this machine: no copy can be written", code="engine.place")
        if ".." in path.parts or not path.is_absolute():
            raise EvidenceError(f"{file.uri} is no plain path", code="evidence.path")
        paths[place_of(file)] = path
    if not paths:
        return None, {}
    folders = [path.parent for path in paths.values()]
    depth = max(len(file.partition) for file in files)
    root = Path(os.path.commonpath([Path(*folder.parts[: len(folder.parts) - depth]) for folder in folders]))
    return root, {place: path.relative_to(root) for place, path in paths.items()}


def write_copy(delta: DatasetDelta, target: Path) -> list[CopiedFile]:
    """Write the corrected files of a delta into a new folder.

    Raises:
        EngineError: Files of this format, or in this place, cannot be written from here (``engine.format``).
        EvidenceError: A file is not what it was.
    """
    _, paths = relative_paths(delta.relation.files)
    copied = []
    for edit in _edits(delta):
        place = target / paths[place_of(edit.file)]
        place.parent.mkdir(parents=True, exist_ok=True)
        source = local_path(edit.file.uri)
        assert source is not None
        if not edit.changes:
            _copy(source, place)
        elif delta.relation.format == "parquet":
            _rewrite_parquet(source, place, edit, delta)
        elif delta.relation.format in LINES and not (edit.replaced or edit.appended):
            without_lines(source, place, edit.drops, delta.relation)
        else:
            raise EngineError(f"rows of {delta.relation.format} files cannot be replaced", code="engine.format")
        copied.append(CopiedFile(place, edit.file, edit.file.partition, edit.changes))
    copied += _new_folders(delta, target)
    return copied


def can_edit(delta: DatasetDelta) -> bool:
    """Return whether the files can be edited one by one, without an engine that writes them anew."""
    kind = delta.relation.format
    return kind == "parquet" or (kind in LINES and not delta.arriving() and not _is_multiline(delta.relation))


def _is_multiline(relation: Relation) -> bool:
    options = {name.lower(): value.lower() for name, value in relation.options}
    return options.get("multiline") == "true" or options.get("wholetext") == "true"


def _edits(delta: DatasetDelta) -> list[_FileEdit]:
    """What happens to each file; a row whose partition changes goes from one file and comes into another."""
    edits = {place_of(file): _FileEdit(file) for file in delta.relation.files}
    last = {file.partition: place_of(file) for file in delta.relation.files}
    partitions = _partitions(delta)
    arriving = list(delta.appended)
    for place, rows in delta.drops.items():
        edit = edits[place]
        for row, index in rows.items():
            if index is not None and partitions.get(index, ()) == edit.file.partition:
                edit.replaced[row] = index
                continue
            edit.drops.add(row)
            arriving += [] if index is None else [index]
    for index in arriving:
        place_there = last.get(partitions.get(index, ()))
        if place_there is not None:
            edits[place_there].appended.append(index)
    return list(edits.values())


def _partitions(delta: DatasetDelta) -> dict[int, tuple[Any, ...]]:
    """The partition values of rows that come."""
    if delta.table is None:
        return {}
    columns = [delta.table.column(name).to_pylist() for name in delta.relation.partitioned]
    return {index: tuple(column[index] for column in columns) for index in delta.arriving()}


def _new_folders(delta: DatasetDelta, target: Path) -> Iterator[CopiedFile]:
    """Files of rows that come into a partition that has none, or into a dataset without files."""
    known = {file.partition for file in delta.relation.files}
    fresh: dict[tuple[Any, ...], list[int]] = {}
    for index, partition in _partitions(delta).items():
        if partition not in known:
            fresh.setdefault(partition, []).append(index)
    for partition, rows in fresh.items():
        import pyarrow.parquet as pq

        assert delta.table is not None
        names = zip(delta.relation.partitioned, partition, strict=True)
        place = target.joinpath(*(f"{escaped(name)}={escaped(value)}" for name, value in names))
        place.mkdir(parents=True, exist_ok=True)
        file = place / NEW_FILE
        first = local_path(delta.relation.files[0].uri) if delta.relation.files else None
        own = [column for column in delta.relation.columns if column.name not in delta.relation.partitioned]
        schema = pq.read_schema(first) if first is not None else arrow_schema(own)
        pq.write_table(_as_file(delta.table, schema).take(rows), file)
        yield CopiedFile(file, None, partition, True)


def escaped(value: Any) -> str:
    """A value as the folder of its partition is named."""
    return _NULL_PARTITION if value is None else quote(str(value), safe=" !$&()+,;@-_.~")


def _copy(source: Path, place: Path) -> None:
    with source.open("rb") as read, place.open("xb") as written:
        shutil.copyfileobj(read, written, 1 << 20)


# ---- Parquet ----------------------------------------------------------------------------------------------------


def _rewrite_parquet(source: Path, place: Path, edit: _FileEdit, delta: DatasetDelta) -> None:
    """Write a Parquet file again, row group by row group."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(source, coerce_int96_timestamp_unit="us") as file:
        schema = file.schema_arrow
        come = None if delta.table is None else _as_file(delta.table, schema)
        first = 0
        with _parquet_writer(file, place) as writer:
            for number in range(file.num_row_groups):
                group = file.read_row_group(number)
                writer.write_table(_edited(group, first, edit, come).cast(schema))
                first += group.num_rows
            if edit.appended and come is not None:
                writer.write_table(come.take(pa.array(edit.appended, pa.int64())).cast(schema))
            elif not file.num_row_groups:
                writer.write_table(schema.empty_table())


def _edited(group: pa.Table, first: int, edit: _FileEdit, come: pa.Table | None) -> pa.Table:
    """A row group without the rows that go, and with others in their place."""
    import pyarrow as pa

    numbers = range(first, first + group.num_rows)
    if not any(first <= row < first + group.num_rows for row in (*edit.drops, *edit.replaced)):
        return group
    places = [
        group.num_rows + edit.replaced[n] if n in edit.replaced else n - first for n in numbers if n not in edit.drops
    ]
    every = group if come is None else pa.concat_tables([group, come])
    return every.take(pa.array(places, pa.int64()))


def _as_file(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows that come, under the columns of a file.

    Raises:
        EngineError: A value does not fit.
    """
    import pyarrow as pa

    try:
        arrays = [table.column(name).cast(schema.field(name).type) for name in schema.names]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, KeyError) as error:
        raise EngineError(f"rows do not fit into the file: {clean_failure(error)}", code="engine.format") from error
    return pa.table(arrays, schema=schema)


def _parquet_writer(file: pq.ParquetFile, place: Path) -> pq.ParquetWriter:
    """A writer with a file's schema, metadata and compression."""
    import pyarrow.parquet as pq

    metadata = file.metadata
    codec = "snappy"
    if metadata.num_row_groups and metadata.num_columns:
        codec = metadata.row_group(0).column(0).compression.lower()
    kinds = {file.schema.column(n).physical_type for n in range(len(file.schema))}
    return pq.ParquetWriter(
        place,
        file.schema_arrow,
        compression="none" if codec == "uncompressed" else codec,
        # Spark's own form of timestamps. A file has it for all of them or for none.
        use_deprecated_int96_timestamps="INT96" in kinds,
        store_schema=b"ARROW:schema" in (metadata.metadata or {}),
    )

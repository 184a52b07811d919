"""What warehouses themselves recorded of column lineage: exports of Snowflake's ACCESS_HISTORY and Databricks'
``system.access.column_lineage``.

Snowflake: a row a query; ``objects_modified`` lists what it wrote, and of each column the ``directSources`` (what the
query names) and ``baseSources`` (the tables below). Databricks: a row a pair of columns. Both exports come as JSON,
JSON lines, CSV (with JSON inside) or Parquet; names of columns in any case.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from govtool.errors import UsageError
from govtool.model import ColumnRef
from govtool.names import fold, fold_name

FORMATS = ("snowflake", "databricks")


class Recorded(NamedTuple):
    """An edge that the warehouse recorded."""

    source: ColumnRef
    target: ColumnRef


@dataclass(slots=True)
class Export:
    """The contents of one or several exports."""

    format: str
    """``snowflake`` or ``databricks``; joined by ``+`` where there are both."""
    edges: dict[Recorded, int] = field(default_factory=dict)
    """Number of times that each edge was recorded."""
    written: dict[str, set[str]] = field(default_factory=dict)
    """Columns that were written, by dataset; those without a source, too."""
    rows: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    """Rows, or parts of them, that say nothing about columns of tables, by reason."""


def read_exports(files: Iterable[Path], form: str = "auto") -> Export:
    """Read exports.

    Args:
        files: Files, whose format is told by their columns.
        form: ``auto``, or one of ``FORMATS``.

    Raises:
        UsageError: a file cannot be read, or is no such export.
    """
    whole = Export("")
    forms = []
    for file in files:
        rows = list(_rows(file))
        own = _format(rows, file) if form == "auto" else form
        forms.append(own)
        for row in rows:
            whole.rows += 1
            (_snowflake if own == "snowflake" else _databricks)(row, whole)
    whole.format = "+".join(dict.fromkeys(forms))
    return whole


def _format(rows: list[dict[str, Any]], file: Path) -> str:
    keys = {key for row in rows[:100] for key in row}
    if "objects_modified" in keys:
        return "snowflake"
    if {"source_column_name", "target_column_name"} <= keys:
        return "databricks"
    raise UsageError(
        f"{file} is not a known export",
        code="usage.oracle",
        location=str(file),
        hint="it needs OBJECTS_MODIFIED (ACCESS_HISTORY), or source_column_name and target_column_name",
    )


# ---- rows --------------------------------------------------------------------------------------------


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file, names of columns in lower case."""
    from govtool.capture.logs.query_record import Reject

    try:
        if _is_parquet(file):
            found: Iterable[Any] = _parquet(file)
        else:
            found = _texts(file)
        for row in found:
            if isinstance(row, Reject):
                raise UsageError(f"{row.message}", code="usage.oracle", location=f"{row.file}:{row.line}")
            yield {str(key).lower().strip(): value for key, value in row.items()}
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"{file} cannot be read: {reason}", code="usage.no-such-path", location=str(file)) from error


def _is_parquet(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(4) == b"PAR1"


def _parquet(file: Path) -> Iterator[Mapping[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as parquet:
            for batch in parquet.iter_batches(batch_size=4096):
                yield from batch.to_pylist()
    except pa.ArrowException as error:
        raise UsageError(f"{file} is damaged: {error}", code="usage.oracle", location=str(file)) from error


def _texts(file: Path) -> Iterator[Any]:
    """JSON, JSON lines or CSV, plain or compressed."""
    from govtool.capture.compressed import UnreadableStreamError
    from govtool.capture.logs.query_record import Reject
    from govtool.capture.logs.rows import csv_rows, json_rows
    from govtool.capture.logs.stream import chunks, lines

    with file.open("rb") as raw:
        pieces = chunks(raw)
        try:
            first = next(pieces, b"")
        except UnreadableStreamError as error:
            raise UsageError(str(error), code="usage.oracle", location=str(file)) from error
        numbered = lines(_all(first, pieces), file.name)
        is_json = first.lstrip()[:1] in (b"{", b"[")
        for row in (json_rows if is_json else csv_rows)(numbered, file.name):
            yield row if isinstance(row, Reject) else row[1]


def _all(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _json(value: Any) -> Any:
    """A value that a CSV or a Parquet file holds as text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return None


# ---- Snowflake -----------------------------------------------------------------------------------------


def _snowflake(row: Mapping[str, Any], export: Export) -> None:
    modified = _json(row.get("objects_modified"))
    if not modified:
        export.left_out["nothing was written"] += 1
        return
    for item in modified if isinstance(modified, list) else ():
        if not isinstance(item, Mapping):
            continue
        target = _table(item)
        if target is None:
            export.left_out[f"written: {item.get('objectDomain') or 'an object without a name'}"] += 1
            continue
        columns = export.written.setdefault(target, set())
        for column in item.get("columns") or ():
            path = fold(str(column.get("columnName")), quoted=True, dialect="snowflake")
            columns.add(path)
            sources = column.get("directSources") or column.get("baseSources") or ()
            for source in sources:
                read = _table(source)
                if read is None or not source.get("columnName"):
                    export.left_out[f"read: {source.get('objectDomain') or 'an object without a name'}"] += 1
                    continue
                name = fold(str(source["columnName"]), quoted=True, dialect="snowflake")
                _record(export, ColumnRef(read, name), ColumnRef(target, path))


_RELATIONS = frozenset({"table", "view", "materialized view", "external table", "dynamic table", "iceberg table", ""})


def _table(item: Mapping[str, Any]) -> str | None:
    """The canonical name of an object that has columns; None of stages, functions and the like."""
    name = item.get("objectName")
    if not name or str(item.get("objectDomain") or "").lower() not in _RELATIONS:
        return None
    return fold_name(str(name), "snowflake")


# ---- Databricks ----------------------------------------------------------------------------------------


def _databricks(row: Mapping[str, Any], export: Export) -> None:
    target, source = _full_name(row, "target"), _full_name(row, "source")
    column, read = row.get("target_column_name"), row.get("source_column_name")
    if target is None or not column:
        export.left_out["nothing was written" if not row.get("target_path") else "written: a path"] += 1
        return
    path = fold(str(column), quoted=True, dialect="databricks")
    export.written.setdefault(target, set()).add(path)
    if source is None or not read:
        export.left_out["read: a path" if row.get("source_path") else "read: no table"] += 1
        return
    _record(export, ColumnRef(source, fold(str(read), quoted=True, dialect="databricks")), ColumnRef(target, path))


def _full_name(row: Mapping[str, Any], side: str) -> str | None:
    """Three parts, from the columns of their own where the export has them: a full name does not quote its parts."""
    parts = [row.get(f"{side}_table_{part}") for part in ("catalog", "schema", "name")]
    if all(parts):
        return ".".join(fold(str(part), quoted=True, dialect="databricks", table=True) for part in parts)
    full = row.get(f"{side}_table_full_name")
    return fold_name(str(full), "databricks") if full else None


def _record(export: Export, source: ColumnRef, target: ColumnRef) -> None:
    edge = Recorded(source, target)
    export.edges[edge] = export.edges.get(edge, 0) + 1

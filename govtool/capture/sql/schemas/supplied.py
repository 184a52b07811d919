"""Schemas: which columns datasets have, from DDL, JSON, information_schema exports and dbt artifacts.

A schema settles what SQL leaves open: ``SELECT *`` and columns without a table. Names are canonical
(``govtool.names``).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from govtool.capture.sql.files import decode, is_sql
from govtool.capture.sql.schemas.ddl import from_ddl
from govtool.capture.sql.schemas.tables import Columns as Columns
from govtool.capture.sql.schemas.tables import Naming, frozen, naming_of
from govtool.capture.sql.schemas.tables import Schema as Schema
from govtool.errors import UsageError
from govtool.given_files import read_given
from govtool.names import split_name


def load_schema(
    path: str | Path, dialect: str = "", default_catalog: str | None = None, default_schema: str | None = None
) -> Schema:
    """Read a schema from a file, or from a folder of DDL.

    Args:
        path: DDL (``.sql``, ``.ddl``); JSON (``{table: [columns]}``, ``{table: {column: type}}``, nested by schema and
            catalog, rows of ``information_schema.columns``, dbt's ``catalog.json`` or ``manifest.json``); JSON Lines, a
            row of ``information_schema.columns`` each; or a CSV export of these rows.
        dialect: A sqlglot dialect name: how names fold.
        default_catalog: Catalog of names that give none, as written.
        default_schema: Schema of names that give none, as written.

    Raises:
        UsageError: The file cannot be read or holds no schema.
    """
    path = Path(path)
    if path.is_dir() or is_sql(path.name):
        return from_ddl(path, dialect, default_catalog, default_schema)
    text = _text(path)
    naming = naming_of(dialect, default_catalog, default_schema)
    if path.suffix.lower() in (".csv", ".tsv"):
        return _from_csv(text, path, naming)
    stripped = text.lstrip()
    if stripped[:1] in ("[", "{"):
        return _from_json(text, path, naming)
    raise UsageError(
        f"{path} is no schema that can be read",
        code="usage.schema",
        location=str(path),
        hint="give DDL (.sql), JSON or CSV",
    )


def schema_from_mapping(
    obj: object, dialect: str = "", default_catalog: str | None = None, default_schema: str | None = None
) -> Schema:
    """A schema from JSON data, as the batch protocol gives it.

    Args:
        obj: ``{table: [columns]}``, ``{table: {column: type}}`` with dotted or nested table names, a list of
            information_schema rows, or dbt's catalog or manifest; None is an empty schema.
        dialect: A sqlglot dialect name: how names fold.
        default_catalog: Catalog of names that give none, as written.
        default_schema: Schema of names that give none, as written.

    Raises:
        UsageError: It has none of these shapes (code ``usage.schema``).
    """
    if obj is None:
        return Schema()
    naming = naming_of(dialect, default_catalog, default_schema)
    stored = replace(naming, exact=dialect != "")
    if isinstance(obj, Mapping):
        if _is_dbt(obj):
            return _from_dbt(obj, stored)
        rows = next((obj[k] for k in ("rows", "columns", "data") if _are_rows(obj.get(k))), None)
        if rows is None:
            tables: dict[str, dict[str, str | None]] = {}
            _nested(obj, (), tables, naming)
            return frozen(tables)
        obj = rows
    if _are_rows(obj):
        assert isinstance(obj, list)
        return _from_rows(obj, stored)
    if isinstance(obj, list) and not obj:
        return Schema()
    raise UsageError(
        f"a schema is an object of tables, not {_in_words(obj)}",
        code="usage.schema",
        hint='for example {"shop.orders": ["id", "customer_id"]}',
    )


def _text(path: Path) -> str:
    try:
        return decode(read_given(path))[0]
    except FileNotFoundError as error:
        raise UsageError(f"{path} does not exist", code="usage.no-such-path", location=str(path)) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{path} cannot be read: {reason}", code="usage.schema", location=str(path)) from error


def _from_json(text: str, path: Path, naming: Naming) -> Schema:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        lines = [line for line in text.splitlines() if line.strip()]
        try:
            data = [json.loads(line) for line in lines]
        except (ValueError, RecursionError):
            where = f"{path}:{getattr(error, 'lineno', 1)}:{getattr(error, 'colno', 1)}"
            raise UsageError(
                f"{path} is not valid JSON: {getattr(error, 'msg', error)}", code="usage.schema", location=where
            ) from error
    try:
        return schema_from_mapping(data, naming.dialect, naming.catalog, naming.schema)
    except UsageError as error:
        error.location = str(path)
        raise


def _from_csv(text: str, path: Path, naming: Naming) -> Schema:
    try:
        dialect: Any = csv.Sniffer().sniff(text[:8192].splitlines()[0], delimiters=",;\t|")
    except (csv.Error, IndexError):
        dialect = csv.excel
    try:
        rows = list(csv.DictReader(io.StringIO(text), dialect=dialect))
    except csv.Error as error:
        raise UsageError(f"{path} is not valid CSV: {error}", code="usage.schema", location=str(path)) from error
    if not _are_rows(rows):
        raise UsageError(
            f"{path} has no columns table_name and column_name",
            code="usage.schema",
            location=str(path),
            hint="export information_schema.columns with its header",
        )
    return _from_rows(rows, replace(naming, exact=naming.dialect != ""))


# -- shapes ------------------------------------------------------------------------------------------------------------


def _lower_keys(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key).lower().strip('\ufeff "'): value for key, value in row.items()}


def _are_rows(obj: object) -> bool:
    if not isinstance(obj, list) or not obj or not isinstance(obj[0], Mapping):
        return False
    keys = set(_lower_keys(obj[0]))
    return bool(keys & {"table_name", "table"}) and bool(keys & {"column_name", "column"})


def _from_rows(rows: list[Any], naming: Naming) -> Schema:
    found: dict[str, list[tuple[int, int, str, str | None]]] = {}
    for index, raw in enumerate(rows):
        if not isinstance(raw, Mapping):
            continue
        row = _lower_keys(raw)
        table, column = row.get("table_name") or row.get("table"), row.get("column_name") or row.get("column")
        if not table or not column:
            continue
        parts = [
            str(part)
            for part in (
                row.get("table_catalog") or row.get("catalog") or row.get("table_database") or row.get("database"),
                row.get("table_schema") or row.get("schema"),
            )
            if part
        ]
        kind = row.get("data_type") or row.get("type")
        try:
            position = int(row.get("ordinal_position") or 0)
        except (TypeError, ValueError):
            position = 0
        name = naming.dataset([*parts, str(table)])
        found.setdefault(name, []).append((position, index, naming.column(str(column)), str(kind) if kind else None))
    return frozen({name: {c: t for _, _, c, t in sorted(cells, key=lambda x: x[:2])} for name, cells in found.items()})


def _nested(
    obj: Mapping[Any, Any], prefix: tuple[str, ...], out: dict[str, dict[str, str | None]], naming: Naming
) -> None:
    """``{table: columns}`` or the same below schema and catalog."""
    for key, value in obj.items():
        if not str(key).strip():
            raise UsageError("a table has an empty name", code="usage.schema")
        parts = (*prefix, *split_name(str(key)))
        if len(parts) > 8:
            raise UsageError("the schema is nested too deeply", code="usage.schema")
        columns = _columns(value, naming)
        if columns is not None:
            out[naming.dataset(parts)] = columns
        elif isinstance(value, Mapping):
            _nested(value, parts, out, naming)
        else:
            raise UsageError(
                f"the columns of {key!s} are a list or an object, not {_in_words(value)}",
                code="usage.schema",
                hint='for example {"shop.orders": ["id", "customer_id"]}',
            )


def _columns(value: object, naming: Naming) -> dict[str, str | None] | None:
    """Columns of one table; None if the value is a level of nesting."""
    if isinstance(value, (list, tuple)):
        return dict(_column(item, naming) for item in value)
    if not isinstance(value, Mapping):
        return None
    inside = list(value.values())
    if isinstance(value.get("columns"), (list, dict)) and all(not isinstance(v, str) for v in inside):
        return _columns(value["columns"], naming)
    if any(not str(k).strip() for k in value):
        raise UsageError("a table or column has an empty name", code="usage.schema")
    if all(v is None or isinstance(v, str) for v in inside):
        return {naming.column(str(k)): v for k, v in value.items()}
    if all(isinstance(v, Mapping) and ("type" in v or "data_type" in v) for v in inside):
        return {naming.column(str(k)): str(v.get("type") or v.get("data_type")) for k, v in value.items()}
    return None


def _column(item: object, naming: Naming) -> tuple[str, str | None]:
    """One column of a list: a name, an object with name and type, or a pair of these."""
    if isinstance(item, str):
        if not item.strip():
            raise UsageError("a column has an empty name", code="usage.schema")
        return naming.column(item), None
    if isinstance(item, Mapping) and isinstance(item.get("name"), str):
        kind = item.get("type") or item.get("data_type")
        return naming.column(item["name"]), str(kind) if kind else None
    if isinstance(item, (list, tuple)) and item and isinstance(item[0], str):
        return naming.column(item[0]), str(item[1]) if len(item) > 1 and item[1] else None
    raise UsageError(f"a column is a name or an object with a name, not {_in_words(item)}", code="usage.schema")


def _in_words(value: object) -> str:
    """Describe a JSON value for people."""
    if isinstance(value, str):
        return f"the text {value[:40]!r}" if value.strip() else "an empty text"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"the number {value}"[:60]
    return "null" if value is None else "an object" if isinstance(value, Mapping) else "a list"


def _is_dbt(obj: Mapping[Any, Any]) -> bool:
    return isinstance(obj.get("nodes"), Mapping) and (isinstance(obj.get("metadata"), Mapping) or "sources" in obj)


def _from_dbt(obj: Mapping[Any, Any], naming: Naming) -> Schema:
    """Columns of dbt's catalog.json (as the warehouse has them) or manifest.json (as documented, often not all)."""
    tables: dict[str, dict[str, str | None]] = {}
    for group in ("nodes", "sources"):
        nodes = obj.get(group)
        for node in nodes.values() if isinstance(nodes, Mapping) else ():
            if not isinstance(node, Mapping) or not isinstance(node.get("columns"), Mapping) or not node["columns"]:
                continue
            meta = node.get("metadata") if isinstance(node.get("metadata"), Mapping) else node
            assert isinstance(meta, Mapping)
            name = meta.get("alias") or meta.get("identifier") or meta.get("name")
            if not name or node.get("resource_type", "model") not in ("model", "seed", "snapshot", "source"):
                continue
            parts = [str(p) for p in (meta.get("database"), meta.get("schema")) if p]
            tables[naming.dataset([*parts, str(name)])] = _dbt_columns(node["columns"], naming)
    return frozen(tables)


def _dbt_columns(columns: Mapping[Any, Any], naming: Naming) -> dict[str, str | None]:
    """The columns of one of dbt's nodes, in the order of their index where they have one."""
    cells = [c for c in columns.items() if isinstance(c[1], Mapping)]
    cells.sort(key=lambda c: c[1].get("index") if isinstance(c[1].get("index"), int) else 0)
    return {
        naming.column(str(c.get("name") or key)): (str(c.get("type") or c.get("data_type") or "") or None)
        for key, c in cells
    }

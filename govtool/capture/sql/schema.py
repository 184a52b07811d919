"""Schemas: which columns datasets have, from DDL, JSON, information_schema exports and dbt artifacts.

A schema settles what SQL leaves open: ``SELECT *`` and columns without a table. Names are canonical
(``govtool.names``).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from sqlglot import exp

from govtool.capture.sql.files import decode, is_sql, read_scripts
from govtool.capture.sql.scripts.script import parse_script
from govtool.errors import UsageError
from govtool.model.diagnostic import Diagnostic
from govtool.names import fold, fold_name, join_name, split_name

Columns: TypeAlias = Mapping[str, str | None]
"""Column name to type (as written; None if unknown), in order."""


@dataclass(frozen=True, slots=True)
class Schema:
    """Columns of datasets."""

    tables: Mapping[str, Columns] = field(default_factory=dict)
    """Canonical dataset name to its columns (canonical, in order) and their types."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Diagnostics of the source."""

    def columns(self, dataset: str) -> Columns | None:
        """The columns of a dataset by its full canonical name; None if it is not known."""
        return self.tables.get(dataset)

    def merged(self, other: Schema) -> Schema:
        """Both schemas; the other one wins where both know a dataset."""
        return Schema({**self.tables, **other.tables}, self.diagnostics + other.diagnostics)

    def __len__(self) -> int:
        return len(self.tables)


def load_schema(
    path: str | Path, dialect: str = "", default_catalog: str | None = None, default_schema: str | None = None
) -> Schema:
    """Read a schema from a file, or from a folder of DDL.

    Args:
        path: DDL (``.sql``, ``.ddl``), JSON (``{table: [columns]}``, ``{table: {column: type}}``, nested by schema and
            catalog, rows of ``information_schema.columns``, dbt's ``catalog.json`` or ``manifest.json``), or a CSV
            export
            of ``information_schema.columns``.
        dialect: A sqlglot dialect name: how names fold.
        default_catalog: Catalog of names that give none, as written.
        default_schema: Schema of names that give none, as written.

    Raises:
        UsageError: The file cannot be read or holds no schema.
    """
    path = Path(path)
    if path.is_dir() or is_sql(path.name):
        return _from_ddl(path, dialect, default_catalog, default_schema)
    text = _text(path)
    naming = _naming(dialect, default_catalog, default_schema)
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
    naming = _naming(dialect, default_catalog, default_schema)
    stored = replace(naming, exact=dialect != "")
    if isinstance(obj, Mapping):
        if _is_dbt(obj):
            return _from_dbt(obj, stored)
        rows = next((obj[k] for k in ("rows", "columns", "data") if _are_rows(obj.get(k))), None)
        if rows is None:
            tables: dict[str, dict[str, str | None]] = {}
            _nested(obj, (), tables, naming)
            return _freeze(tables)
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


@dataclass(frozen=True, slots=True)
class _Naming:
    """Rules for canonical names."""

    dialect: str
    catalog: str | None
    schema: str | None
    exact: bool = False
    """Names are as the warehouse stores them (an export), not as someone writes them."""

    def dataset(self, parts: Iterable[str]) -> str:
        """The canonical name of a table of a mapping: parts as written in metadata, filled up by the defaults."""
        return self.qualified([self.part(p) for p in parts])

    def qualified(self, names: list[str]) -> str:
        """Canonical parts, filled up by the defaults."""
        if len(names) == 1 and self.schema:
            names = [*split_name(self.schema), *names]
        if len(names) == 2 and self.catalog:
            names = [self.catalog, *names]
        return join_name(names)

    def part(self, text: str) -> str:
        """One part of a table's name: quoted parts keep their case where the dialect does."""
        quoted = len(text) > 1 and text[0] in '"`[' and text[-1] in '"`]'
        return fold(text[1:-1] if quoted else text, quoted=quoted or self.exact, dialect=self.dialect, table=True)

    def column(self, text: str) -> str:
        """A column's name."""
        quoted = len(text) > 1 and text[0] in '"`[' and text[-1] in '"`]'
        return fold(text[1:-1] if quoted else text, quoted=quoted or self.exact, dialect=self.dialect)


def _naming(dialect: str, default_catalog: str | None, default_schema: str | None) -> _Naming:
    """Return the rules for canonical names, with defaults as a user wrote them."""
    return _Naming(
        dialect,
        fold_name(default_catalog, dialect) if default_catalog else None,
        fold_name(default_schema, dialect) if default_schema else None,
    )


def _text(path: Path) -> str:
    try:
        return decode(path.read_bytes())[0]
    except FileNotFoundError as error:
        raise UsageError(f"{path} does not exist", code="usage.no-such-path", location=str(path)) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{path} cannot be read: {reason}", code="usage.schema", location=str(path)) from error


def _from_json(text: str, path: Path, naming: _Naming) -> Schema:
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


def _from_csv(text: str, path: Path, naming: _Naming) -> Schema:
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
    return _from_rows(rows, _Naming(naming.dialect, naming.catalog, naming.schema, exact=naming.dialect != ""))


# -- shapes
# -------------------------------------------------------------------------------------------------------------


def _lower_keys(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key).lower().strip('\ufeff "'): value for key, value in row.items()}


def _are_rows(obj: object) -> bool:
    if not isinstance(obj, list) or not obj or not isinstance(obj[0], Mapping):
        return False
    keys = set(_lower_keys(obj[0]))
    return bool(keys & {"table_name", "table"}) and bool(keys & {"column_name", "column"})


def _from_rows(rows: list[Any], naming: _Naming) -> Schema:
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
    return _freeze({name: {c: t for _, _, c, t in sorted(cells, key=lambda x: x[:2])} for name, cells in found.items()})


def _nested(
    obj: Mapping[Any, Any], prefix: tuple[str, ...], out: dict[str, dict[str, str | None]], naming: _Naming
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


def _columns(value: object, naming: _Naming) -> dict[str, str | None] | None:
    """Columns of one table; None if the value is a level of nesting."""
    if isinstance(value, (list, tuple)):
        columns: dict[str, str | None] = {}
        for item in value:
            if isinstance(item, str):
                if not item.strip():
                    raise UsageError("a column has an empty name", code="usage.schema")
                columns[naming.column(item)] = None
            elif isinstance(item, Mapping) and isinstance(item.get("name"), str):
                kind = item.get("type") or item.get("data_type")
                columns[naming.column(item["name"])] = str(kind) if kind else None
            elif isinstance(item, (list, tuple)) and item and isinstance(item[0], str):
                columns[naming.column(item[0])] = str(item[1]) if len(item) > 1 and item[1] else None
            else:
                raise UsageError(
                    f"a column is a name or an object with a name, not {_in_words(item)}", code="usage.schema"
                )
        return columns
    if isinstance(value, Mapping):
        if isinstance(value.get("columns"), (list, dict)) and all(not isinstance(v, str) for v in value.values()):
            return _columns(value["columns"], naming)
        if any(not str(k).strip() for k in value):
            raise UsageError("a table or column has an empty name", code="usage.schema")
        if all(v is None or isinstance(v, str) for v in value.values()):
            return {naming.column(str(k)): v for k, v in value.items()}
        if all(isinstance(v, Mapping) and ("type" in v or "data_type" in v) for v in value.values()):
            return {naming.column(str(k)): str(v.get("type") or v.get("data_type")) for k, v in value.items()}
    return None


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


def _from_dbt(obj: Mapping[Any, Any], naming: _Naming) -> Schema:
    """Dbt's catalog.json (columns as the warehouse has them) or manifest.json (columns as documented, often not
    all).
    """
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
            cells = [c for c in node["columns"].items() if isinstance(c[1], Mapping)]
            cells.sort(key=lambda c: c[1].get("index") if isinstance(c[1].get("index"), int) else 0)
            columns = {
                naming.column(str(c.get("name") or key)): (str(c.get("type") or c.get("data_type") or "") or None)
                for key, c in cells
            }
            tables[naming.dataset([*parts, str(name)])] = columns
    return _freeze(tables)


def _from_ddl(path: Path, dialect: str, catalog: str | None, schema: str | None) -> Schema:
    tables: dict[str, dict[str, str | None]] = {}
    diagnostics: list[Diagnostic] = []
    for script in read_scripts([path]):
        if isinstance(script, Diagnostic):
            diagnostics.append(script)
            continue
        naming = _naming(dialect, catalog, schema)
        for statement in parse_script(script.text, dialect, file=script.file):
            if statement.session is not None:
                change = statement.session
                naming = _Naming(dialect, change.catalog or naming.catalog, change.schema or naming.schema)
            diagnostics.extend(d for d in statement.diagnostics if d.severity != "info")
            if statement.tree is not None:
                _declared(statement.tree, naming, tables)
    if not tables and not diagnostics:
        diagnostics.append(Diagnostic("not-sql", "warning", "no CREATE TABLE with columns in it", path.name))
    return Schema(_freeze(tables).tables, tuple(diagnostics))


def _declared(tree: exp.Expr, naming: _Naming, tables: dict[str, dict[str, str | None]]) -> None:
    """Apply one DDL statement: CREATE TABLE with columns, ALTER TABLE ADD/DROP/RENAME, DROP TABLE."""
    if isinstance(tree, exp.Create) and isinstance(tree.this, exp.Schema) and isinstance(tree.this.this, exp.Table):
        columns: dict[str, str | None] = {}
        for item in tree.this.expressions:
            if isinstance(item, exp.ColumnDef):
                kind = item.args.get("kind")
                columns[_identifier(item.this, naming)] = (
                    kind.sql(naming.dialect or None) if isinstance(kind, exp.Expr) else None
                )
            elif isinstance(item, exp.LikeProperty) and isinstance(item.this, exp.Table):
                columns.update(tables.get(_table(item.this, naming)) or {})
            elif isinstance(item, exp.Identifier):
                columns[_identifier(item, naming)] = None
        if columns:
            tables[_table(tree.this.this, naming)] = columns
    elif isinstance(tree, exp.Create) and isinstance(tree.this, exp.Table):
        like = tree.find(exp.LikeProperty)
        if like is not None and isinstance(like.this, exp.Table):
            source = tables.get(_table(like.this, naming))
            if source is not None:
                tables[_table(tree.this, naming)] = dict(source)
    elif isinstance(tree, exp.Alter) and isinstance(tree.this, exp.Table):
        _altered(tree, naming, tables)
    elif isinstance(tree, exp.Drop):
        for table in tree.args.get("tables") or ():
            if isinstance(table, exp.Table):
                tables.pop(_table(table, naming), None)


def _altered(tree: exp.Alter, naming: _Naming, tables: dict[str, dict[str, str | None]]) -> None:
    name = _table(tree.this, naming)
    columns = tables.get(name)
    for action in tree.args.get("actions") or ():
        if isinstance(action, exp.AlterRename) and isinstance(action.this, exp.Table):
            if columns is not None:
                target = _table(action.this, naming)
                if "." not in target and "." in name:
                    target = join_name([*split_name(name)[:-1], target])
                tables[target] = tables.pop(name)
        elif columns is None:
            continue
        elif isinstance(action, exp.ColumnDef):
            kind = action.args.get("kind")
            columns[_identifier(action.this, naming)] = (
                kind.sql(naming.dialect or None) if isinstance(kind, exp.Expr) else None
            )
        elif isinstance(action, exp.Drop):
            for column in action.args.get("tables") or ():
                columns.pop(naming.column(column.name), None)
        elif isinstance(action, exp.RenameColumn):
            old, new = _identifier(action.this, naming), _identifier(action.args["to"], naming)
            tables[name] = columns = {(new if c == old else c): t for c, t in columns.items()}


def _table(table: exp.Table, naming: _Naming) -> str:
    parts = [
        fold(part.name, quoted=bool(part.args.get("quoted")), dialect=naming.dialect, table=True)
        for part in table.parts
        if part.name
    ]
    return naming.qualified(parts)


def _identifier(node: exp.Expr, naming: _Naming) -> str:
    while isinstance(node, exp.Column):
        node = node.this
    return fold(node.name, quoted=bool(node.args.get("quoted")), dialect=naming.dialect)


def _freeze(tables: Mapping[str, Mapping[str, str | None]]) -> Schema:
    return Schema({name: dict(columns) for name, columns in tables.items()})

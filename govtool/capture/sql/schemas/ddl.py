"""Schemas from DDL: CREATE TABLE, ALTER TABLE and DROP TABLE, applied in order."""

from __future__ import annotations

from pathlib import Path

from sqlglot import exp

from govtool.capture.sql.files import read_scripts
from govtool.capture.sql.schemas.tables import Naming, Schema, frozen, naming_of
from govtool.capture.sql.scripts.script import parse_script
from govtool.model.diagnostic import Diagnostic
from govtool.names import fold, join_name, split_name


def from_ddl(path: Path, dialect: str, catalog: str | None, schema: str | None) -> Schema:
    """Return the tables that DDL in a file or folder leaves behind, with diagnostics of what is not understood."""
    tables: dict[str, dict[str, str | None]] = {}
    diagnostics: list[Diagnostic] = []
    for script in read_scripts([path]):
        if isinstance(script, Diagnostic):
            diagnostics.append(script)
            continue
        naming = naming_of(dialect, catalog, schema)
        for statement in parse_script(script.text, dialect, file=script.file):
            if statement.session is not None:
                change = statement.session
                naming = Naming(dialect, change.catalog or naming.catalog, change.schema or naming.schema)
            diagnostics.extend(d for d in statement.diagnostics if d.severity != "info")
            if statement.tree is not None:
                _declared(statement.tree, naming, tables)
    if not tables and not diagnostics:
        diagnostics.append(Diagnostic("not-sql", "warning", "no CREATE TABLE with columns in it", path.name))
    return Schema(frozen(tables).tables, tuple(diagnostics))


def _declared(tree: exp.Expr, naming: Naming, tables: dict[str, dict[str, str | None]]) -> None:
    """Apply one DDL statement: CREATE TABLE with columns, ALTER TABLE ADD/DROP/RENAME, DROP TABLE."""
    if isinstance(tree, exp.Create):
        _created(tree, naming, tables)
    elif isinstance(tree, exp.Alter) and isinstance(tree.this, exp.Table):
        _altered(tree, naming, tables)
    elif isinstance(tree, exp.Drop):
        for table in tree.args.get("tables") or ():
            if isinstance(table, exp.Table):
                tables.pop(_table(table, naming), None)


def _created(tree: exp.Create, naming: Naming, tables: dict[str, dict[str, str | None]]) -> None:
    """CREATE TABLE with columns, or with those of another table (LIKE)."""
    if isinstance(tree.this, exp.Table):
        like = tree.find(exp.LikeProperty)
        source = (
            tables.get(_table(like.this, naming)) if like is not None and isinstance(like.this, exp.Table) else None
        )
        if source is not None:
            tables[_table(tree.this, naming)] = dict(source)
        return
    if not isinstance(tree.this, exp.Schema) or not isinstance(tree.this.this, exp.Table):
        return
    columns: dict[str, str | None] = {}
    for item in tree.this.expressions:
        if isinstance(item, exp.ColumnDef):
            columns[_identifier(item.this, naming)] = _type(item, naming)
        elif isinstance(item, exp.LikeProperty) and isinstance(item.this, exp.Table):
            columns.update(tables.get(_table(item.this, naming)) or {})
        elif isinstance(item, exp.Identifier):
            columns[_identifier(item, naming)] = None
    if columns:
        tables[_table(tree.this.this, naming)] = columns


def _type(column: exp.ColumnDef, naming: Naming) -> str | None:
    kind = column.args.get("kind")
    return kind.sql(naming.dialect or None) if isinstance(kind, exp.Expr) else None


def _altered(tree: exp.Alter, naming: Naming, tables: dict[str, dict[str, str | None]]) -> None:
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
            columns[_identifier(action.this, naming)] = _type(action, naming)
        elif isinstance(action, exp.Drop):
            for column in action.args.get("tables") or ():
                columns.pop(naming.column(column.name), None)
        elif isinstance(action, exp.RenameColumn):
            old, new = _identifier(action.this, naming), _identifier(action.args["to"], naming)
            tables[name] = columns = {(new if c == old else c): t for c, t in columns.items()}


def _table(table: exp.Table, naming: Naming) -> str:
    parts = [
        fold(part.name, quoted=bool(part.args.get("quoted")), dialect=naming.dialect, table=True)
        for part in table.parts
        if part.name
    ]
    return naming.qualified(parts)


def _identifier(node: exp.Expr, naming: Naming) -> str:
    while isinstance(node, exp.Column):
        node = node.this
    return fold(node.name, quoted=bool(node.args.get("quoted")), dialect=naming.dialect)

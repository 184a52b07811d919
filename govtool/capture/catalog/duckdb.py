"""DuckDB: a database file, opened for reading only."""

from __future__ import annotations

from pathlib import Path

from govtool.capture.catalog.address import Address, missing
from govtool.capture.catalog.model import (
    Catalog,
    CatalogColumn,
    CatalogDefinition,
    CatalogRelation,
    CatalogRemark,
    stored,
    stored_name,
)

DIALECT = "duckdb"

_TABLES = """
SELECT database_name, schema_name, table_name, 'table', comment, NULL FROM duckdb_tables()
 WHERE NOT internal AND database_name = current_database()
 UNION ALL
SELECT database_name, schema_name, view_name, 'view', comment, sql FROM duckdb_views()
 WHERE NOT internal AND database_name = current_database()
 ORDER BY 1, 2, 3"""

_COLUMNS = """
SELECT schema_name, table_name, column_name, data_type, comment FROM duckdb_columns()
 WHERE NOT internal AND database_name = current_database() ORDER BY schema_name, table_name, column_index"""


def read_duckdb(address: Address) -> Catalog:
    """Read a database file.

    Raises:
        SourceError: DuckDB is missing, or the file cannot be read.
    """
    try:
        import duckdb
    except ImportError:
        raise missing("duckdb", "catalog", address) from None
    path = file_of(address)
    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            found = connection.execute("SELECT current_database(), current_schema()").fetchone()
            assert found is not None
            database, schema = (stored(part, DIALECT, table=True) for part in found)
            tables = connection.execute(_TABLES).fetchall()
            columns: dict[tuple[str, str], list[CatalogColumn]] = {}
            remarks: dict[tuple[str, str], list[CatalogRemark]] = {}
            for table_schema, table, column, type_, comment in connection.execute(_COLUMNS).fetchall():
                name = stored(column, DIALECT)
                columns.setdefault((table_schema, table), []).append(CatalogColumn(name, type_))
                if comment:
                    remarks.setdefault((table_schema, table), []).append(CatalogRemark(name, "description", comment))
    except duckdb.Error as error:
        raise address.failed(error) from None
    relations = []
    for catalog, table_schema, table, kind, comment, statement in tables:
        remarks_ = [CatalogRemark(None, "description", comment)] if comment else []
        own = stored(catalog, DIALECT, table=True), stored(table_schema, DIALECT, table=True)
        relations.append(
            CatalogRelation(
                stored_name((catalog, table_schema, table), DIALECT),
                kind,
                tuple(columns.get((table_schema, table), ())),
                CatalogDefinition(statement, *own) if statement else None,
                (*remarks_, *remarks.get((table_schema, table), ())),
            )
        )
    return Catalog(DIALECT, f"duckdb:{path.name}", path.stem, database, schema, (schema,), tuple(relations))


def file_of(address: Address) -> Path:
    """The file that an address names: relative, or absolute where there is no such relative one.

    Raises:
        SourceError: there is none.
    """
    for path in (Path(address.path), Path("/") / address.path):
        if path.is_file():
            return path
    raise address.failed(FileNotFoundError("there is no such file"))

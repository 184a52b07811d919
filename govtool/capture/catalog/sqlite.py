"""SQLite: a database file, opened for reading only."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from govtool.capture.catalog.address import Address
from govtool.capture.catalog.duckdb import file_of
from govtool.capture.catalog.model import (
    Catalog,
    CatalogColumn,
    CatalogDefinition,
    CatalogRelation,
    stored,
    stored_name,
)

DIALECT = "sqlite"

_RELATIONS = """
SELECT name, type, sql FROM sqlite_master
 WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"""


def read_sqlite(address: Address) -> Catalog:
    """Read a database file. Its names have one part, as SQL for SQLite writes them.

    Raises:
        SourceError: the file cannot be read, or is no database.
    """
    path = file_of(address)
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            relations = [
                CatalogRelation(
                    stored_name((name,), DIALECT),
                    kind,
                    tuple(
                        CatalogColumn(stored(column, DIALECT), type_ or None)
                        for column, type_ in connection.execute(
                            "SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid", (name,)
                        )
                    ),
                    CatalogDefinition(statement) if kind == "view" and statement else None,
                )
                for name, kind, statement in connection.execute(_RELATIONS).fetchall()
            ]
    except sqlite3.Error as error:
        raise address.failed(error) from None
    return Catalog(DIALECT, f"sqlite:{path.name}", path.stem, relations=tuple(relations))

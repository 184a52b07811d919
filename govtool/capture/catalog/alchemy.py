"""Any other database, through SQLAlchemy's inspector: what all of them have in common."""

from __future__ import annotations

from typing import Any

from govtool.capture.catalog.address import Address, missing
from govtool.capture.catalog.model import (
    Catalog,
    CatalogColumn,
    CatalogDefinition,
    CatalogRelation,
    CatalogRemark,
    stored,
    stored_name,
    view_statement,
)
from govtool.model import Diagnostic

_DIALECTS = {"mssql": "tsql", "mariadb": "mysql", "postgresql": "postgres", "awsathena": "athena", "presto": "presto"}
_NAMESPACES = {"postgresql": "postgres", "mariadb": "mysql", "awsathena": "awsathena"}
_PORTS = {"mysql": 3306, "mariadb": 3306, "mssql": 1433, "oracle": 1521, "trino": 8080, "redshift": 5439}
_SYSTEM = frozenset(
    {"information_schema", "pg_catalog", "performance_schema", "mysql", "sys", "system", "guest", "definition_schema"}
)


def read_alchemy(address: Address) -> Catalog:
    """Read a database that SQLAlchemy has a dialect for, installed by the user.

    Raises:
        SourceError: SQLAlchemy or the driver is missing, or the database cannot be read.
    """
    try:
        import sqlalchemy
    except ImportError:
        raise missing("sqlalchemy", "catalog", address) from None
    try:
        engine = sqlalchemy.create_engine(address.url)
    except sqlalchemy.exc.NoSuchModuleError:
        raise missing(f"a SQLAlchemy dialect for {address.scheme}", "", address) from None
    except ModuleNotFoundError as error:
        hint = f"install it, or name a driver that is installed: {address.scheme.partition('+')[0]}+DRIVER://…"
        raise missing(f"the Python module {error.name}", "", address, hint) from None
    except (sqlalchemy.exc.SQLAlchemyError, ImportError, ValueError) as error:
        raise address.failed(error) from None
    try:
        with engine.connect() as connection:
            return _read(sqlalchemy.inspect(connection), engine, address)
    except (sqlalchemy.exc.SQLAlchemyError, NotImplementedError) as error:
        raise address.failed(getattr(error, "orig", None) or error) from None
    finally:
        engine.dispose()


def _read(inspector: Any, engine: Any, address: Address) -> Catalog:
    backend = engine.url.get_backend_name()
    dialect = _DIALECTS.get(backend, backend)
    two_levels = backend in ("mysql", "mariadb", "clickhouse", "hive")
    database = None if two_levels else engine.url.database
    default = inspector.default_schema_name
    reader = _Reader(inspector, dialect, database)
    for schema in inspector.get_schema_names():
        if schema is None or schema.lower() not in _SYSTEM:
            reader.add_schema(schema, None if backend == "sqlite" else schema)
    return Catalog(
        dialect,
        _namespace(backend, address),
        engine.url.database or address.host or backend,
        stored(database, dialect, table=True) if database and default else None,
        stored(default, dialect, table=True) if default and backend != "sqlite" else None,
        (),
        tuple(sorted(reader.relations, key=lambda relation: relation.name)),
        (),
        tuple(reader.diagnostics),
    )


class _Reader:
    """Relations of schemas, as an inspector lists them."""

    def __init__(self, inspector: Any, dialect: str, database: str | None) -> None:
        self.inspector = inspector
        self.dialect = dialect
        self.database = database
        self.relations: list[CatalogRelation] = []
        self.diagnostics: list[Diagnostic] = []

    def add_schema(self, schema: str | None, shown: str | None) -> None:
        """Read the relations of a schema; ``shown`` is the schema in their names."""
        names = {
            "table": self.inspector.get_table_names(schema),
            "view": self.inspector.get_view_names(schema),
            "materialized_view": _materialized(self.inspector, schema),
        }
        for kind, tables in names.items():
            self.relations += [self._relation(schema, shown, table, kind) for table in tables]

    def _relation(self, schema: str | None, shown: str | None, table: str, kind: str) -> CatalogRelation:
        name = stored_name((self.database if shown else None, shown, table), self.dialect)
        columns = self.inspector.get_columns(table, schema)
        comment = _comment(self.inspector, table, schema)
        remarks = [CatalogRemark(None, "description", comment)] if comment else []
        remarks += [
            CatalogRemark(stored(str(column["name"]), self.dialect), "description", str(column["comment"]))
            for column in columns
            if column.get("comment")
        ]
        definition = None
        if kind != "table":
            query = _definition(self.inspector, table, schema)
            if query:
                definition = self._view(shown, table, kind, query, [str(column["name"]) for column in columns])
            else:
                message = "the definition of the view is not given to this user"
                self.diagnostics.append(Diagnostic("opaque", "warning", message, target=name))
        typed = tuple(CatalogColumn(stored(str(c["name"]), self.dialect), str(c["type"])) for c in columns)
        return CatalogRelation(name, kind, typed, definition, tuple(remarks))

    def _view(self, shown: str | None, table: str, kind: str, query: str, columns: list[str]) -> CatalogDefinition:
        text = _statement((shown, table) if shown else (table,), columns, query, self.dialect, kind)
        here = stored(shown, self.dialect, table=True) if shown else None
        catalog = stored(self.database, self.dialect, table=True) if self.database and shown else None
        return CatalogDefinition(text, catalog, here)


def _namespace(backend: str, address: Address) -> str:
    """OpenLineage's naming: ``mysql://host:3306``, ``snowflake://account``; no user, no password."""
    scheme = _NAMESPACES.get(backend, backend)
    port = address.port or _PORTS.get(backend)
    return f"{scheme}://{address.host}{f':{port}' if port else ''}"


def _statement(parts: tuple[str, ...], columns: list[str], query: str, dialect: str, kind: str) -> str:
    """Some databases give the query, others the whole statement."""
    if query.lstrip()[:6].lower() == "create":
        return query
    return view_statement(parts, columns, query, dialect, materialized=kind == "materialized_view")


def _materialized(inspector: Any, schema: str | None) -> list[str]:
    try:
        return list(inspector.get_materialized_view_names(schema))
    except (NotImplementedError, AttributeError):
        return []


def _definition(inspector: Any, view: str, schema: str | None) -> str | None:
    from sqlalchemy.exc import SQLAlchemyError

    try:
        found = inspector.get_view_definition(view, schema)
    except (NotImplementedError, SQLAlchemyError):
        return None
    return None if found is None else str(found)


def _comment(inspector: Any, table: str, schema: str | None) -> str | None:
    from sqlalchemy.exc import SQLAlchemyError

    try:
        return inspector.get_table_comment(table, schema).get("text") or None
    except (NotImplementedError, SQLAlchemyError):
        return None

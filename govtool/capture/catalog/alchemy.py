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
    relations: list[CatalogRelation] = []
    diagnostics: list[Diagnostic] = []
    for schema in inspector.get_schema_names():
        if schema is not None and schema.lower() in _SYSTEM:
            continue
        shown = None if backend == "sqlite" else schema
        tables = [(name, "table") for name in inspector.get_table_names(schema)]
        views = [(name, "view") for name in inspector.get_view_names(schema)]
        views += [(name, "materialized_view") for name in _materialized(inspector, schema)]
        for table, kind in (*tables, *views):
            name = stored_name((database if shown else None, shown, table), dialect)
            columns = inspector.get_columns(table, schema)
            remarks = [
                CatalogRemark(stored(str(column["name"]), dialect), "description", str(column["comment"]))
                for column in columns
                if column.get("comment")
            ]
            comment = _comment(inspector, table, schema)
            definition = None
            if kind != "table":
                query = _definition(inspector, table, schema)
                if query:
                    named = [str(column["name"]) for column in columns]
                    text = _statement((schema, table) if shown else (table,), named, query, dialect, kind)
                    here = stored(shown, dialect, table=True) if shown else None
                    catalog = stored(database, dialect, table=True) if database and shown else None
                    definition = CatalogDefinition(text, catalog, here)
                else:
                    message = "the definition of the view is not given to this user"
                    diagnostics.append(Diagnostic("opaque", "warning", message, target=name))
            relations.append(
                CatalogRelation(
                    name,
                    kind,
                    tuple(CatalogColumn(stored(str(c["name"]), dialect), str(c["type"])) for c in columns),
                    definition,
                    (*([CatalogRemark(None, "description", comment)] if comment else ()), *remarks),
                )
            )
    return Catalog(
        dialect,
        _namespace(backend, address),
        engine.url.database or address.host or backend,
        stored(database, dialect, table=True) if database and default else None,
        stored(default, dialect, table=True) if default and backend != "sqlite" else None,
        (),
        tuple(sorted(relations, key=lambda relation: relation.name)),
        (),
        tuple(diagnostics),
    )


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

"""PostgreSQL: ``pg_catalog`` read in one read-only transaction.

``pg_get_viewdef`` writes a view with every name resolved; with an empty ``search_path`` it qualifies them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from govtool.capture.catalog.address import Address, missing
from govtool.capture.catalog.model import (
    Catalog,
    CatalogColumn,
    CatalogDefinition,
    CatalogRelation,
    CatalogRemark,
    Function,
    stored,
    stored_name,
    view_statement,
)
from govtool.model import Diagnostic

if TYPE_CHECKING:
    from psycopg import Connection

DIALECT = "postgres"

CONNECT_SECONDS = 10
"""Seconds for a server's first answer, unless the address sets another limit."""

_KINDS = {"r": "table", "p": "table", "f": "table", "v": "view", "m": "materialized_view"}
_SYSTEM = "n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)'"

_RELATIONS = f"""
SELECT c.oid, n.nspname, c.relname, c.relkind::text, pg_get_userbyid(c.relowner), obj_description(c.oid, 'pg_class'),
       CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) END,
       (SELECT s.srvname FROM pg_foreign_server s JOIN pg_foreign_table f ON f.ftserver = s.oid AND f.ftrelid = c.oid),
       ARRAY(SELECT i.inhparent::regclass::text FROM pg_inherits i WHERE i.inhrelid = c.oid ORDER BY i.inhseqno)
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND {_SYSTEM}
 ORDER BY n.nspname, c.relname"""

_COLUMNS = f"""
SELECT a.attrelid, a.attname, format_type(a.atttypid, a.atttypmod), col_description(a.attrelid, a.attnum)
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'f', 'v', 'm') AND {_SYSTEM}
 ORDER BY a.attrelid, a.attnum"""

_GRANTS = f"""
SELECT c.oid, NULL, CASE x.grantee WHEN 0 THEN 'public' ELSE pg_get_userbyid(x.grantee) END,
       string_agg(x.privilege_type, ', ' ORDER BY x.privilege_type)
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, aclexplode(c.relacl) x
 WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND x.grantee <> c.relowner AND {_SYSTEM}
 GROUP BY c.oid, x.grantee
 UNION ALL
SELECT c.oid, a.attname, CASE x.grantee WHEN 0 THEN 'public' ELSE pg_get_userbyid(x.grantee) END,
       string_agg(x.privilege_type, ', ' ORDER BY x.privilege_type)
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid,
       aclexplode(a.attacl) x
 WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND x.grantee <> c.relowner AND {_SYSTEM}
 GROUP BY c.oid, a.attname, x.grantee
 ORDER BY 1, 2, 3"""

_POLICIES = """
SELECT p.polrelid, p.polname, pg_get_expr(p.polqual, p.polrelid) FROM pg_policy p ORDER BY p.polrelid, p.polname"""

_FUNCTIONS = f"""
SELECT n.nspname, p.proname, pg_get_functiondef(p.oid), p.proconfig
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
 WHERE l.lanname = 'sql' AND p.prokind = 'f' AND {_SYSTEM}
   AND NOT EXISTS (SELECT FROM pg_depend d
                    WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
 ORDER BY n.nspname, p.proname, p.oid"""


@contextmanager
def connected(address: Address, *, read_only: bool = True) -> Iterator[Connection[Any]]:
    """Connect, in one transaction that is always rolled back.

    Raises:
        SourceError: psycopg is missing, or the server cannot be reached, refuses, or fails while it is read.
    """
    try:
        import psycopg
    except ImportError:
        raise missing("psycopg", "catalog", address) from None
    url = address.url.replace("postgresql+psycopg://", "postgresql://", 1)
    seconds = address.options.get("connect_timeout", CONNECT_SECONDS)
    try:
        connection = psycopg.connect(url, application_name="govtool", connect_timeout=seconds)
    except (psycopg.Error, UnicodeError) as error:
        # Without the cause: its traceback would show the address.
        raise address.failed(error, "psql with the same address; PGPASSWORD or ~/.pgpass hold passwords") from None
    try:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = read_only
        yield connection
    except psycopg.Error as error:
        raise address.failed(error) from None
    finally:
        try:
            connection.rollback()
        except psycopg.Error:
            pass  # the connection is gone, and its transaction with it
        finally:
            connection.close()


def read_postgres(address: Address) -> Catalog:
    """Read the database that an address names.

    Raises:
        SourceError: psycopg is missing, or the server cannot be reached, refuses, or fails while it is read.
    """
    with connected(address) as connection:
        return read_catalog(connection, address)


def read_catalog(connection: Connection[Any], address: Address) -> Catalog:
    """Read the catalog within the connection's transaction."""
    database, schemas = _one(connection, "SELECT current_database(), current_schemas(false)::text[]")
    path = tuple(stored(schema, DIALECT, table=True) for schema in schemas)
    _one(connection, "SELECT set_config('search_path', '', true)")
    remarks = _remarks(connection)
    columns: dict[int, list[CatalogColumn]] = {}
    for oid, column, type_, comment in connection.execute(_COLUMNS):
        name = stored(column, DIALECT)
        columns.setdefault(oid, []).append(CatalogColumn(name, type_))
        if comment:
            remarks.setdefault(oid, []).append(CatalogRemark(name, "description", comment))
    relations = []
    diagnostics = []
    names: dict[int, list[str]] = {}
    for oid, column, *_ in connection.execute(_COLUMNS):
        names.setdefault(oid, []).append(column)
    catalog = stored(database, DIALECT, table=True)
    for oid, schema, table, kind, owner, comment, query, server, parents in connection.execute(_RELATIONS):
        name = stored_name((database, schema, table), DIALECT)
        of_relation = [CatalogRemark(None, "owner", owner), *remarks.get(oid, ())]
        of_relation += [CatalogRemark(None, "description", comment)] if comment else []
        of_relation += (
            [CatalogRemark(None, "kind", "foreign table"), CatalogRemark(None, "server", server)] if kind == "f" else []
        )
        of_relation += [CatalogRemark(None, "kind", "partitioned table")] if kind == "p" else []
        of_relation += [CatalogRemark(None, "partition_of", parent) for parent in parents]
        definition = None
        if query:
            text = view_statement((schema, table), names.get(oid, ()), query, DIALECT, materialized=kind == "m")
            definition = CatalogDefinition(text, catalog, None)
        elif kind in ("v", "m"):
            message = "the definition of the view is not given to this user"
            diagnostics.append(Diagnostic("opaque", "warning", message, target=name))
        relations.append(
            CatalogRelation(name, _KINDS[kind], tuple(columns.get(oid, ())), definition, tuple(of_relation))
        )
    return Catalog(
        DIALECT,
        namespace(connection),
        database,
        catalog,
        path[0] if path else None,
        path,
        tuple(relations),
        tuple(_functions(connection, database, catalog, path)),
        tuple(diagnostics),
    )


def namespace(connection: Connection[Any]) -> str:
    """OpenLineage's name of the server, ``postgres://host:5432``; of one on a unix socket, that of localhost."""
    info = connection.info
    host = info.host if info.host and not info.host.startswith(("/", "@")) else "localhost"
    return f"postgres://{host}:{info.port}"


def _one(connection: Connection[Any], sql: str) -> tuple[Any, ...]:
    row = connection.execute(sql).fetchone()
    assert row is not None
    return tuple(row)


def _remarks(connection: Connection[Any]) -> dict[int, list[CatalogRemark]]:
    """Grants and row policies, by relation."""
    found: dict[int, list[CatalogRemark]] = {}
    for oid, column, grantee, privileges in connection.execute(_GRANTS):
        path = stored(column, DIALECT) if column else None
        found.setdefault(oid, []).append(CatalogRemark(path, "grant", f"{grantee}: {privileges}"))
    for oid, policy, condition in connection.execute(_POLICIES):
        value = f"{policy}: {condition}" if condition else policy
        found.setdefault(oid, []).append(CatalogRemark(None, "row_policy", value))
    return found


def _functions(connection: Connection[Any], database: str, catalog: str, path: tuple[str, ...]) -> Iterator[Function]:
    for schema, function, statement, settings in connection.execute(_FUNCTIONS):
        own = [item.partition("=")[2] for item in settings or () if item.startswith("search_path=")]
        named = tuple(part.strip().strip('"') for part in own[0].split(",")) if own else None
        schemas = path if named is None else tuple(stored(part, DIALECT, table=True) for part in named if part)
        name = stored_name((database, schema, function), DIALECT)
        default = schemas[0] if schemas else None
        yield Function(name, CatalogDefinition(statement, catalog, default, schemas))

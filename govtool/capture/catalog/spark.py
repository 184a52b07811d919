"""Spark: all catalogs that a session sees, read by SHOW and DESCRIBE.

``spark:///srv/warehouse`` is a local session on a warehouse folder, ``?metastore=/srv/metastore_db`` adds the Derby
metastore that spark-sql made, ``?spark.sql.catalog.lake=…`` any setting of Spark; ``sc://host:15002`` is a running
Spark Connect server.
"""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from govtool.errors import UsageError
from govtool.model import Diagnostic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DIALECT = "spark"

SESSION_CATALOG = "spark_catalog"

CONNECT_PORT = 15002
"""The port of a Spark Connect server, unless its address has another."""

CONNECT_SECONDS = 10
"""Seconds for the first answer."""

CONNECT_TRIES = 4
"""Number of attempts on a server that does not answer."""

_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


def read_spark(address: Address) -> Catalog:
    """Start a session on a warehouse folder, or connect to a server, and read what it sees.

    Raises:
        SourceError: pyspark is missing, or the session cannot be had.
        UsageError: an option is unknown.
    """
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise missing("pyspark", "spark", address) from None
    remote = address.scheme == "sc"
    builder: Any = SparkSession.builder
    if remote:
        _check_listening(address)
        builder = builder.remote(address.url)
    else:
        if not Path(address.path).is_dir():
            raise address.failed(FileNotFoundError("there is no such folder"))
        if SparkSession.getActiveSession() is not None:  # its settings would win over ours
            raise UsageError("a Spark session runs in this process already: use read_session", code="usage.spark")
        for name, value in _settings(address).items():
            builder = builder.config(name, value)
        if "metastore" in address.options:
            builder = builder.enableHiveSupport()
    try:
        session = builder.getOrCreate()
    except (PySparkException, OSError, RuntimeError) as error:
        raise address.failed(error) from None
    except Exception as error:  # py4j and gRPC raise their own kinds
        raise address.failed(error, "is Java 17 installed?" if not remote else None) from None
    if remote:
        _try_a_few_times(session)
    try:
        place = f"{address.host}:{address.port or CONNECT_PORT}" if remote else address.file_name
        return read_session(session, f"spark:{place}", place)
    except PySparkException as error:
        raise address.failed(error) from None
    finally:
        session.stop()


def _check_listening(address: Address) -> None:
    """Refuse a server that nobody can connect to: the client would try for ten minutes, and again to say goodbye.

    Raises:
        SourceError: nothing listens there.
    """
    if any(os.environ.get(name) for name in ("grpc_proxy", "https_proxy", "http_proxy")):
        return  # only the client knows the way
    try:
        socket.create_connection((address.host, address.port or CONNECT_PORT), CONNECT_SECONDS).close()
    except OSError as error:
        raise address.failed(error) from None


def _try_a_few_times(session: SparkSession) -> None:
    """Give up within seconds on a server that does not speak our language; the client's own patience is ten minutes."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    client: Any = session.client
    client.set_retry_policies([DefaultPolicy(max_retries=CONNECT_TRIES)])


def _settings(address: Address) -> dict[str, str]:
    settings = {
        "spark.master": "local[1]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": address.path,
        "spark.driver.extraJavaOptions": f"-Dderby.stream.error.file={os.devnull}",
    }
    for name, value in address.options.items():
        if name == "metastore":
            # No create=true: what is not there must not come into being by being read.
            settings["spark.hadoop.javax.jdo.option.ConnectionURL"] = f"jdbc:derby:;databaseName={value}"
            settings["spark.hadoop.hive.metastore.schema.verification"] = "false"
            if not Path(value).is_dir():
                raise address.failed(FileNotFoundError(f"there is no metastore {value}"))
        elif name.startswith("spark."):
            settings[name] = value
        else:
            raise UsageError(
                f"no option {name} of spark://",
                code="usage.url",
                nearest=("metastore",),
                hint="metastore=FOLDER, or any setting that begins with spark.",
            )
    return settings


def read_session(session: SparkSession, namespace: str, name: str = "spark") -> Catalog:
    """Read what a running session sees: every catalog, namespace, table and view that is not temporary.

    Args:
        session: A session, classic or of Spark Connect.
        namespace: OpenLineage's namespace of its datasets.
        name: What people call it.
    """
    relations: list[CatalogRelation] = []
    diagnostics: list[Diagnostic] = []
    for (catalog,) in session.sql("SHOW CATALOGS").collect():
        for namespace_parts in _namespaces(session, catalog, ()):
            place = ".".join(_quoted(part) for part in (catalog, *namespace_parts))
            for row in session.sql(f"SHOW TABLES IN {place}").collect():
                if not row["isTemporary"]:
                    parts = (catalog, *namespace_parts, str(row["tableName"]))
                    relations.append(_relation(session, parts, diagnostics))
    current = stored(session.catalog.currentCatalog(), DIALECT, table=True)
    schema = stored(session.catalog.currentDatabase(), DIALECT, table=True)
    return Catalog(
        DIALECT,
        namespace,
        name,
        current,
        schema,
        (schema,),
        tuple(sorted(relations, key=lambda relation: relation.name)),
        (),
        tuple(diagnostics),
    )


def _namespaces(session: SparkSession, catalog: str, above: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Every namespace of a catalog; those of the session catalog have one level."""
    found: list[tuple[str, ...]] = []
    place = ".".join(_quoted(part) for part in (catalog, *above))
    for (text,) in session.sql(f"SHOW NAMESPACES IN {place}").collect():
        parts = tuple(_parts(text))
        found.append(parts)
        if catalog != SESSION_CATALOG and len(parts) > len(above):
            found.extend(_namespaces(session, catalog, parts))
    return found


def _relation(session: SparkSession, parts: tuple[str, ...], diagnostics: list[Diagnostic]) -> CatalogRelation:
    name = stored_name(parts, DIALECT)
    rows = session.sql(f"DESCRIBE TABLE EXTENDED {'.'.join(_quoted(part) for part in parts)}").collect()
    columns: list[CatalogColumn] = []
    written: list[str] = []
    remarks: list[CatalogRemark] = []
    details: dict[str, str] = {}
    heading = ""
    for column, type_, comment in rows:
        # DESCRIBE lists columns first, then partitions and details, each below a heading of its own.
        if not column or column.startswith("# "):
            heading = column or heading or "#"
        elif not heading:
            path = stored(column, DIALECT)
            written.append(column)
            columns.append(CatalogColumn(path, type_))
            if comment:
                remarks.append(CatalogRemark(path, "description", comment))
        elif heading.startswith("# Detailed"):
            details.setdefault(column, type_)
    kind = details.get("Type", "").upper()
    if details.get("Owner"):
        remarks.append(CatalogRemark(None, "owner", details["Owner"]))
    if details.get("Comment"):
        remarks.append(CatalogRemark(None, "description", details["Comment"]))
    if kind == "EXTERNAL":
        remarks.append(CatalogRemark(None, "kind", "external table"))
    query = details.get("View Text")
    if query is None:
        return CatalogRelation(name, "view" if kind == "VIEW" else "table", tuple(columns), None, tuple(remarks))
    default = [stored(part, DIALECT, table=True) for part in _parts(details.get("View Catalog and Namespace", ""))]
    text = view_statement(parts, written, query, DIALECT)
    definition = CatalogDefinition(text, default[0] if default else None, ".".join(default[1:]) or None)
    return CatalogRelation(name, "view", tuple(columns), definition, tuple(remarks))


def _quoted(part: str) -> str:
    return "`" + part.replace("`", "``") + "`"


def _parts(text: str) -> list[str]:
    """The parts of a name that Spark writes, with backquotes where it thinks they are needed."""
    return [m[2] if m[1] is None else m[1].replace("``", "`") for m in _PART.finditer(text)]

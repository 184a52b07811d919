"""Tables behind JDBC, by OpenLineage's naming: system, host, port, database, schema and table.

An example:

>>> table_behind("jdbc:postgresql://db.example/erp?user=x", "public.items").id
'postgres://db.example:5432/erp.public.items'
"""

from __future__ import annotations

import re

from govtool.capture.openlineage.identity import DatasetName, normalise

_URL = re.compile(r"jdbc:([a-z0-9]+):(?:thin:)?(.*)\Z", re.IGNORECASE | re.DOTALL)
_ADDRESS = re.compile(
    r"(?://|@/{0,2})?(\[[^\]]*\]|[^/;:?,(\[]*)(?::(\d+))?(?:,[^/;?]*)?([/:][^?;]*)?([?;].*)?\Z", re.DOTALL
)
"""Host (in brackets for IPv6), port, further hosts, database, parameters."""
_FAR = re.compile(r"\s*(?://|@)")
_LISTED = re.compile(r"\(\s*host\s*=\s*([^(),\s]+)(?:[),(]+\s*port\s*=\s*(\d+))?[^/]*(/[^?;]*)?", re.IGNORECASE)
"""MySQL's ``//address=(host=h)(port=1)(user=u)/db`` and ``//(host=h,port=1)/db``."""
_LOGIN = re.compile(r"(?<=//)[^/@]*@|(?<=thin:)[^@/]+/?.*(?=@)")
_PARAMETER = re.compile(r"[?&;]\s*(\w+)\s*=\s*([^&;]*)")
_PART = re.compile(r'"((?:[^"]|"")*+)"|`([^`]*)`|\[([^\]]{0,1000})\]|([^."`\[\]]+)')
_SYSTEMS = {
    "postgresql": ("postgres", "5432"),
    "mysql": ("mysql", "3306"),
    "mariadb": ("mysql", "3306"),
    "sqlserver": ("mssql", "1433"),
    "oracle": ("oracle", "1521"),
    "redshift": ("redshift", "5439"),
    "db2": ("db2", "50000"),
    "trino": ("trino", "8080"),
    "snowflake": ("snowflake", ""),
}
_LOCAL = frozenset({"postgres", "mysql"})
"""Systems whose drivers take this machine where a URL names no host."""
_SCHEMAS = {"postgres": "public", "redshift": "public", "mssql": "dbo"}
_DATABASE = ("databasename", "database", "db")
_SCHEMA = ("currentschema", "schema")


def table_behind(url: str, table: str) -> DatasetName:
    """The dataset of a table; of a driver or a form of URL that is not known, by the URL without its parameters."""
    url = _LOGIN.sub("", url.strip())
    address = _address(url)
    if address is None:
        return DatasetName(re.split(r"[?;]", url, maxsplit=1)[0] or "jdbc", table.strip())
    system, place, database, parameters = address
    parts = [next(part for part in found.groups() if part is not None).strip() for found in _PART.finditer(table)]
    database = next((parameters[key] for key in _DATABASE if parameters.get(key)), database)
    schema = next((parameters[key].split(",")[0] for key in _SCHEMA if parameters.get(key)), _SCHEMAS.get(system, ""))
    if len(parts) == 1 and schema:
        parts.insert(0, schema)
    return normalise(f"{system}://{place}", ".".join([*filter(None, [database]), *parts]))


def _address(url: str) -> tuple[str, str, str, dict[str, str]] | None:
    """System, host and port, database, parameters; None of what has no host."""
    found = _URL.match(url)
    if found is None:
        return None
    system, default = _SYSTEMS.get(found[1].lower(), (found[1].lower(), ""))
    rest = found[2]
    parameters = {key.lower(): value.strip() for key, value in _PARAMETER.findall(rest)}
    listed = _LISTED.search(rest)
    if listed is not None:
        host, port, database = listed[1], listed[2], listed[3] or ""
    else:
        near = system in _LOCAL and _FAR.match(rest) is None  # jdbc:postgresql:erp
        parsed = _ADDRESS.match(f"///{rest.lstrip('/')}" if near else rest)
        if parsed is None or (not near and _FAR.match(rest) is None):
            return None
        host, port, database = parsed[1], parsed[2], parsed[3] or ""
    host = host.strip() or ("localhost" if system in _LOCAL else "")
    if not host:
        return None
    port = port or default
    return system, host + (f":{port}" if port else ""), database.strip("/:"), parameters

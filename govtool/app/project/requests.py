"""Options of questions and ingests over the defaults of ``govtool.toml``, as requests."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from govtool.app.ingest.sql_options import SqlRequest
from govtool.app.project.source_trust import require_schema_trust
from govtool.config import load_config
from govtool.errors import UnknownNameError, UsageError

PathArgument = str | os.PathLike[str]
"""A path as text or as an object."""
SchemaArgument = PathArgument | Iterable[PathArgument] | Mapping[str, object]
"""Files of DDL or JSON, or columns by table: ``{table: [column]}`` or ``{table: {column: type}}``."""

SEMANTICS = ("precise", "lineagex")


def sql_request(
    paths: PathArgument | Iterable[PathArgument],
    *,
    dialect: str | None = None,
    schema: SchemaArgument | None = None,
    default_catalog: str | None = None,
    default_schema: str | None = None,
    relation_from: str | None = None,
    var: Mapping[str, object] | Iterable[str] | None = None,
    namespace: str | None = None,
    source: str | None = None,
    catalog: str | None = None,
    explain: bool = False,
    follow_links: bool = False,
    workers: int | None = None,
) -> SqlRequest:
    """Return the SQL to read and its options; options that are not given come from ``govtool.toml``.

    An empty ``source`` is the name by default, whatever the file holds.

    Raises:
        UsageError: ``govtool.toml`` is not valid, its schema lies outside of its folder and the user has not agreed
            (``usage.untrusted-source``), or an entry of ``var`` is not ``NAME=VALUE`` (``usage.arguments``).
    """
    config = load_config(Path.cwd())
    defaults = config.sql
    tables = schema if isinstance(schema, Mapping) else None
    files = tuple(Path(file) for file in texts(None if isinstance(schema, Mapping) else schema))
    if not files and not tables and defaults.schema:
        require_schema_trust(config)
    return SqlRequest(
        paths=texts(paths),
        dialect=dialect or defaults.dialect or "",
        schema=files or (() if tables else defaults.schema),
        tables=tables,
        default_catalog=default_catalog or defaults.default_catalog,
        default_schema=default_schema or defaults.default_schema,
        namespace=namespace or defaults.namespace,
        source=defaults.source if source is None else source or None,
        relation_from=relation_from or defaults.relation_from,
        variables={**defaults.variables, **variables(var)},
        catalog=catalog,
        explain=explain,
        follow_links=follow_links,
        workers=workers,
    )


def default_namespace(namespace: str | None) -> str | None:
    """Return a namespace, or else that of ``govtool.toml``.

    Raises:
        UsageError: ``govtool.toml`` is not valid.
    """
    return namespace or load_config(Path.cwd()).sql.namespace


def texts(given: PathArgument | Iterable[PathArgument] | None) -> tuple[str, ...]:
    """Return one text or path, or several, as a tuple of texts."""
    if given is None:
        return ()
    if isinstance(given, (str, os.PathLike)):
        return (os.fspath(given),)
    return tuple(os.fspath(one) for one in given)


def variables(given: Mapping[str, object] | Iterable[str] | None) -> dict[str, object]:
    """Return values for templates by name; of ``NAME=VALUE``, the value is JSON where it can be.

    Raises:
        UsageError: a text has no name or no ``=`` (``usage.arguments``).
    """
    if isinstance(given, Mapping):
        return dict(given)
    return dict(_variable(text) for text in _several(given))


def field_map(given: Mapping[str, str] | Iterable[str] | None) -> dict[str, str]:
    """Return names of a log's columns by field: of a mapping, or of ``text=query,user=who``.

    Raises:
        UsageError: a text has no name or no ``=`` (``usage.arguments``).
    """
    if isinstance(given, Mapping):
        return dict(given)
    pairs = [pair for text in _several(given) for pair in text.split(",") if pair.strip()]
    return {name.strip(): value for name, value in (_pair(pair, "FIELD=NAME", "--map") for pair in pairs)}


def check_semantics(semantics: str) -> str:
    """Return the name of a reading of set operations.

    Raises:
        UnknownNameError: there is no such reading (``usage.unknown-semantics``).
    """
    if semantics not in SEMANTICS:
        raise UnknownNameError.of_few("semantics", semantics, SEMANTICS)
    return semantics


def _several(given: str | Iterable[str] | None) -> Sequence[str]:
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(given)


def _variable(text: str) -> tuple[str, object]:
    name, value = _pair(text, "NAME=VALUE", "--var")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _pair(text: str, form: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"not {form}: {text}", code="usage.arguments", location=option)
    return name, value

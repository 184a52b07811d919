"""Settings: command line over environment over ``govtool.toml`` over built-in defaults.

``govtool.toml`` is looked for in the working directory and its parents; the first directory that holds one, or a
``.govtool`` store, is the project's root::

    store = ".govtool"                  # a path relative to this file, or a URI

    [store]                             # instead, where there is more to say of it
    uri = "s3://bucket/lineage"
    publish = true                      # every ingest publishes the index, for readers on other machines

    [sql]                               # defaults of `govtool ingest sql` and `govtool lineage`
    dialect = "postgres"
    default_catalog = "dw"
    default_schema = "public"
    schema = ["ddl.sql"]                # relative to this file
    namespace = "postgres://dw:5432"
    source = "warehouse"
    relation_from = "{schema}/{table}.sql"

    [sql.variables]                     # values for templates
    target = "prod"

    [spark]
    row_digests = true                  # of every output of a run; default: of small ones
    records = true                      # exact plans of every run, so that rows can be traced; default: false

    [keys]                              # columns that identify a row of a dataset: its token is crm.users[id=42]
    "crm.users" = "id"
    "s3://lake/views" = ["day", "view"]

    [erasure]
    no_subject = ["geo.countries"]      # inputs that hold nothing about a person, for `govtool erase plan --run`

    [[sources]]                         # what `govtool ingest` brings up to date; see govtool.config_sources
    kind = "sql"
    path = "warehouse"

    [paths]                             # local files below this folder are called file:data/x, not file:///srv/etl/data/x
    root = "."

    [aliases]                           # names that are one dataset: what ingests say of the left goes to the right
    "spark_catalog.sales.*" = "sales.*"
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from govtool.config_sources import FLAG, KINDS, NUMBER, PATHS, SHARED, TABLE, TEXT, SourceSettings
from govtool.errors import UsageError

CONFIG_FILE = "govtool.toml"
STORE_DIRECTORY = ".govtool"
_LARGEST = 1 << 20
"""Bytes of a ``govtool.toml``."""
_DOTS = 5000
"""Dots of one of its lines."""

_SQL_TEXTS = ("dialect", "default_catalog", "default_schema", "namespace", "source", "relation_from")


@dataclass(frozen=True, slots=True)
class SqlDefaults:
    """The ``[sql]`` table; settings that it lacks are ``None`` or empty."""

    dialect: str | None = None
    default_catalog: str | None = None
    default_schema: str | None = None
    schema: tuple[Path, ...] = ()
    namespace: str | None = None
    source: str | None = None
    relation_from: str | None = None
    variables: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of ``govtool.toml``, with paths made absolute."""

    root: Path
    """The project's directory: where the file or the store was found, else the working directory."""
    file: Path | None = None
    store: str | None = None
    publish: bool = False
    """``[store] publish``: every ingest publishes the index of its commit."""
    sql: SqlDefaults = field(default_factory=SqlDefaults)
    row_digests: bool | None = None
    """``[spark] row_digests``: whether runs record a digest of the rows that they wrote; None: of small outputs."""
    records: bool | None = None
    """``[spark] records``: whether runs record exact plans, for record-level provenance."""
    keys: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The ``[keys]`` table: a dataset, by its name or the end of it, and the columns that identify its rows."""
    no_subject: tuple[str, ...] = ()
    """``[erasure] no_subject``: datasets, by their names or ends of them, that hold nothing about a data subject."""
    aliases: tuple[tuple[str, str], ...] = ()
    """The ``[aliases]`` table: a pattern with ``*`` for any text, and the name with as many ``*`` to take instead."""
    paths_root: Path | None = None
    """``[paths] root``: names of local files below this folder are relative to it; None: they are absolute."""
    sources: tuple[SourceSettings, ...] = ()
    """The entries of ``[[sources]]``, in their order."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One resolved value and where it came from, for ``govtool config show``."""

    name: str
    value: object
    origin: str
    """``--store``, ``GOVTOOL_STORE``, a file, or ``default``."""


def load_config(start: Path) -> Config:
    """Find and read ``govtool.toml`` from ``start`` upwards.

    Raises:
        UsageError: the file is not valid (``usage.config``), has an unknown key or a value of a wrong type.
    """
    for folder in (start, *start.parents):
        file = folder / CONFIG_FILE
        if file.is_file():
            return _read(file)
        if (folder / STORE_DIRECTORY).is_dir():
            return Config(root=folder)
    return Config(root=start)


def store_setting(option: str | None, config: Config, environ: Mapping[str, str] = os.environ) -> Setting:
    """The store's path or URI: the option, ``GOVTOOL_STORE``, the file's ``store``, or ``.govtool`` in the root.

    Raises:
        UsageError: the option is empty, as a variable of a shell is that was never set (``usage.store``).
    """
    if option is not None and not option.strip():
        raise UsageError(
            "--store is empty",
            code="usage.store",
            hint="name a path or a URI, or leave the option out: govtool config show",
        )
    if option:
        return Setting("store", option, "--store")
    if environ.get("GOVTOOL_STORE"):
        return Setting("store", environ["GOVTOOL_STORE"], "GOVTOOL_STORE")
    if config.store:
        return Setting("store", config.store, str(config.file))
    return Setting("store", str(config.root / STORE_DIRECTORY), "default")


def settings(store: str | None, config: Config, environ: Mapping[str, str] = os.environ) -> tuple[Setting, ...]:
    """Every setting with its value and origin; values are JSON values."""
    origin = str(config.file)
    sql: list[Setting] = []
    for name in _SQL_TEXTS:
        value = getattr(config.sql, name)
        sql.append(Setting(f"sql.{name}", value, "default" if value is None else origin))
    files = [str(path) for path in config.sql.schema]
    return (
        store_setting(store, config, environ),
        Setting("cache", environ.get("GOVTOOL_CACHE"), "GOVTOOL_CACHE" if environ.get("GOVTOOL_CACHE") else "default"),
        Setting("store.publish", config.publish, origin if config.publish else "default"),
        *sql,
        Setting("sql.schema", files, origin if files else "default"),
        *(Setting(f"sql.variables.{name}", value, origin) for name, value in config.sql.variables.items()),
        Setting("spark.row_digests", config.row_digests, "default" if config.row_digests is None else origin),
        Setting("spark.records", config.records, "default" if config.records is None else origin),
        *(Setting(f"keys.{name}", list(columns), origin) for name, columns in config.keys),
        Setting("erasure.no_subject", list(config.no_subject), origin if config.no_subject else "default"),
        *(Setting(f"aliases.{pattern}", name, origin) for pattern, name in config.aliases),
        Setting(
            "paths.root",
            None if config.paths_root is None else str(config.paths_root),
            "default" if config.paths_root is None else origin,
        ),
        *(Setting(f"sources.{source.label}", source.shown_options, origin) for source in config.sources),
    )


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML that anybody may have written.

    Raises:
        ValueError: It is none, is nested too deeply, or has a number of thousands of digits.
    """
    import tomllib

    if any(
        line.count(".") > _DOTS for line in text.split("\n")
    ):  # the time of a dotted key is the square of its length
        raise ValueError("nested too deeply")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _read(file: Path) -> Config:
    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise UsageError(f"more than {_LARGEST >> 10} KB", code="usage.config", location=str(file))
        table = parse_toml(data.decode())
    except ValueError as error:
        raise UsageError(f"not valid TOML: {error}", code="usage.config", location=str(file)) from error
    except OSError as error:
        raise UsageError(f"cannot read it: {error.strerror}", code="usage.config", location=str(file)) from error
    reader = _Table(table, file)
    reader.only("store", "sql", "spark", "keys", "erasure", "aliases", "paths", "sources")
    spark = reader.table("spark")
    spark.only("row_digests", "records")
    erasure = reader.table("erasure")
    erasure.only("no_subject")
    sql = reader.table("sql")
    sql.only("schema", "variables", *_SQL_TEXTS)
    store, publish = _store_of(reader)
    paths = reader.table("paths")
    paths.only("root")
    within = paths.text("root")
    aliases, keys = reader.table("aliases"), reader.table("keys")
    root = file.parent
    return Config(
        root=root,
        file=file,
        store=store if store is None or "://" in store else str(root / store),
        publish=publish,
        sql=SqlDefaults(
            **{name: sql.text(name) for name in _SQL_TEXTS},
            schema=tuple(root / item for item in sql.texts("schema")),
            variables=sql.table("variables").values,
        ),
        row_digests=spark.truth("row_digests"),
        records=spark.truth("records"),
        keys=tuple((name, keys.key(name)) for name in keys.values),
        no_subject=tuple(erasure.texts("no_subject")),
        aliases=tuple(aliases.alias(pattern) for pattern in aliases.values),
        paths_root=None if within is None else Path(os.path.normpath(root / within)),
        sources=_sources(reader, root),
    )


def _store_of(reader: _Table) -> tuple[str | None, bool]:
    """The store's address, and whether ingests publish the index: ``store`` is a text or a table."""
    if not isinstance(reader.values.get("store"), dict):
        return reader.text("store"), False
    store = reader.table("store")
    store.only("uri", "publish")
    return store.text("uri"), store.truth("publish") or False


def _sources(reader: _Table, root: Path) -> tuple[SourceSettings, ...]:
    found = tuple(_source(table, root) for table in reader.tables("sources"))
    seen: set[object] = set()
    for source in found:
        for mark in ((source.kind, source.paths), source.name):
            if mark is not None and mark in seen:
                raise reader.mistake(f"two [[sources]] are {source.label}", "give each its own path, and its own name")
            seen.add(mark)
    return found


def _source(table: _Table, root: Path) -> SourceSettings:
    """One entry of ``[[sources]]``, its paths made absolute."""
    kind = table.text("kind") or ""
    if kind not in KINDS:
        raise table.mistake(f"kind must be one of {', '.join(KINDS)}", 'kind = "sql"', near=(kind, KINDS))
    place = "url" if kind == "catalog" else "path"
    table.only("kind", place, *SHARED, *KINDS[kind])
    paths = [table.text(place) or ""] if kind == "catalog" else table.texts(place)
    if not paths or not all(paths) or "-" in paths:
        raise table.mistake(
            f"{place} is missing", f'{place} = "{"duckdb:///shop.duckdb" if place == "url" else "models"}"'
        )
    if kind == "dbt" and len(paths) > 1:
        raise table.mistake("path must be one folder: dbt's target", 'path = "target"')
    kinds = {**SHARED, **KINDS[kind]}
    options = {name: table.value(name, kinds[name], root) for name in table.values if name not in ("kind", place)}
    least = options.get("min_coverage", 0)
    if not isinstance(least, (int, float)) or not 0 <= least <= 100:
        raise table.mistake("min_coverage must be from 0 to 100", "min_coverage = 95")
    name = options.pop("name", None)
    whole = (_address(paths[0], root),) if kind == "catalog" else tuple(str(root / path) for path in paths)
    return SourceSettings(kind, whole, None if name is None else str(name), tuple(paths), options)


def _address(url: str, root: Path) -> str:
    """The address of a database; a file is one from the root, as paths are."""
    scheme, found, file = url.partition(":///")
    if "://" not in url:
        return str(root / url)
    if not found or scheme.lower() not in ("duckdb", "sqlite") or file.startswith(("/", ":memory:")):
        return url
    return f"{scheme}:///{root / file}"


class _Table:
    """A TOML table that answers with the right type or a pointed error."""

    def __init__(self, values: Mapping[str, object], file: Path, prefix: str = "") -> None:
        self.values = values
        self._file = file
        self._prefix = prefix

    def only(self, *names: str) -> None:
        for key in self.values:
            if key not in names:
                raise UsageError(
                    f"unknown key {self._prefix}{key}",
                    code="usage.config-key",
                    location=str(self._file),
                    nearest=tuple(self._prefix + near for near in difflib.get_close_matches(key, names)),
                    hint=f"known keys: {', '.join(sorted(names))}",
                )

    def text(self, name: str) -> str | None:
        value = self.values.get(name)
        if value is None or isinstance(value, str):
            return value
        raise self._wrong(name, "a string")

    def truth(self, name: str) -> bool | None:
        value = self.values.get(name)
        if value is None or isinstance(value, bool):
            return value
        raise self._wrong(name, "true or false")

    def texts(self, name: str) -> list[str]:
        value = self.values.get(name, [])
        items = [value] if isinstance(value, str) else value
        if isinstance(items, list) and all(isinstance(item, str) for item in items):
            return items
        raise self._wrong(name, "a string or a list of strings")

    def key(self, name: str) -> tuple[str, ...]:
        columns = self.texts(name)
        if not name or not columns or not all(columns) or len(set(columns)) < len(columns):
            raise UsageError(
                f"{self._prefix}{name} must be a column or a list of distinct columns",
                code="usage.config-keys",
                location=str(self._file),
                hint='"crm.users" = "id"',
            )
        return tuple(columns)

    def alias(self, pattern: str) -> tuple[str, str]:
        name = self.text(pattern) or ""
        if not name or not pattern or pattern.count("*") != name.count("*"):
            raise UsageError(
                f"{self._prefix}{pattern} must be a name with as many * as the pattern",
                code="usage.config-alias",
                location=str(self._file),
                hint='"spark_catalog.sales.*" = "sales.*"',
            )
        return pattern, name

    def value(self, name: str, kind: str, root: Path) -> object:
        """An option of a source, of one of the types of ``govtool.config_sources``."""
        if kind == TEXT:
            return self.text(name)
        if kind == FLAG:
            return self.truth(name)
        if kind == TABLE:
            return dict(self.table(name).values)
        if kind == NUMBER:
            value = self.values[name]
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise self._wrong(name, "a number")
            return value
        return [str(root / each) if kind == PATHS else each for each in self.texts(name)]

    def tables(self, name: str) -> list[_Table]:
        """An array of tables."""
        value = self.values.get(name, [])
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self._wrong(name, f"an array of tables: [[{name}]]")
        return [_Table(each, self._file, f"{name}[{number}].") for number, each in enumerate(value)]

    def mistake(self, text: str, hint: str, near: tuple[str, Iterable[str]] = ("", ())) -> UsageError:
        """The error about a value that is not one of the allowed ones."""
        nearest = tuple(difflib.get_close_matches(*near))
        location = str(self._file)
        return UsageError(f"{self._prefix}{text}", code="usage.config", location=location, nearest=nearest, hint=hint)

    def table(self, name: str) -> _Table:
        value = self.values.get(name, {})
        if not isinstance(value, dict):
            raise self._wrong(name, "a table")
        return _Table(value, self._file, f"{self._prefix}{name}.")

    def _wrong(self, name: str, expected: str) -> UsageError:
        return UsageError(
            f"{self._prefix}{name} must be {expected}", code="usage.config-type", location=str(self._file)
        )

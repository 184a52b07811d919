"""Reads dbt's ``target/`` folder: manifest.json, and catalog.json and run_results.json where there are any.

dbt's artifacts are documented at https://schemas.getdbt.com; what is read here has been the same since manifest v4
(dbt 1.0), with ``compiled_sql`` become ``compiled_code`` in v7.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from govtool.errors import UsageError
from govtool.given_files import read_given
from govtool.model import Diagnostic
from govtool.names import fold, join_name

MAX_BYTES = 1 << 30
"""Of an artifact: the manifests of the largest projects have a few hundred megabytes."""

ADAPTERS = {
    "sqlserver": "tsql", "synapse": "tsql", "fabric": "fabric", "postgres": "postgres", "spark": "spark",
    "databricks": "databricks", "athena": "athena", "trino": "trino", "glue": "spark", "clickhouse": "clickhouse",
    "dremio": "dremio", "materialize": "materialize", "risingwave": "risingwave", "oracle": "oracle", "mysql": "mysql",
    "starrocks": "starrocks", "doris": "doris", "duckdb": "duckdb", "snowflake": "snowflake", "bigquery": "bigquery",
    "redshift": "redshift", "teradata": "teradata", "exasol": "exasol", "sqlite": "sqlite",
    "singlestore": "singlestore", "hive": "hive",
    "fabricspark": "spark", "presto": "presto",
}  # fmt: skip
"""Dialects by the adapter that a manifest names."""

_UNQUOTED = frozenset({"snowflake"})
"""Adapters that write names without quotes unless a project says otherwise."""

RELATIONS = frozenset({"model", "snapshot", "seed", "source"})
_OPEN = {'"': '"', "`": "`", "[": "]"}


@dataclass(frozen=True, slots=True)
class DbtColumn:
    """A column, as the warehouse has it or as it is documented."""

    name: str
    """Canonical."""
    type: str | None
    description: str
    tags: tuple[str, ...]
    meta: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DbtNode:
    """A model, snapshot, seed, source or exposure."""

    id: str
    """dbt's unique id: ``model.shop.orders``."""
    kind: str
    relation: str
    """Canonical dataset name; ``exposure:<name>`` for an exposure."""
    catalog: str | None
    schema: str | None
    file: str
    """Relative to the project, with forward slashes."""
    materialized: str
    language: str
    sql: str | None
    """Compiled SQL; None if it was not compiled."""
    depends_on: tuple[str, ...]
    columns: tuple[DbtColumn, ...]
    known: bool
    """True if the columns are those of the warehouse, all of them."""
    facts: tuple[tuple[str, str], ...]
    """Its facts: pairs of name and value."""


@dataclass(frozen=True, slots=True)
class DbtRun:
    """The entry of a node in run_results.json."""

    status: str
    started_at: str | None
    completed_at: str | None
    invocation: str | None


@dataclass(frozen=True, slots=True)
class DbtArtifacts:
    """A dbt project as its artifacts tell it."""

    name: str
    dialect: str
    nodes: Mapping[str, DbtNode]
    runs: Mapping[str, DbtRun]
    diagnostics: tuple[Diagnostic, ...]


def read_project(target: Path, dialect: str = "") -> DbtArtifacts:
    """Read the artifacts of a project.

    Args:
        target: Its ``target`` folder, the folder of the project, or a manifest.json.
        dialect: A sqlglot dialect name; empty: that of the manifest's adapter.

    Raises:
        UsageError: there is no manifest, or it is none.
    """
    folder = _folder(target)
    manifest = _artifact(folder / "manifest.json")
    if not isinstance(manifest.get("nodes"), dict):
        raise UsageError(
            "this is not a dbt manifest: it has no nodes", code="usage.dbt", location=str(folder / "manifest.json")
        )
    metadata = _mapping(manifest.get("metadata"))
    dialect = dialect or ADAPTERS.get(_text(metadata.get("adapter_type")), "")
    reader = _Reader(folder, manifest, dialect)
    diagnostics: list[Diagnostic] = []
    others: dict[str, dict[str, Any]] = {}
    for name in ("catalog.json", "run_results.json", "sources.json"):
        if not (folder / name).exists():
            continue
        try:
            others[name] = _artifact(folder / name)
        except UsageError as error:
            diagnostics.append(Diagnostic("unreadable", "error", error.message, name))
    catalog = others.get("catalog.json", {})
    if not catalog:
        note = "there is no catalog.json (dbt docs generate): columns are those that are documented or inferred"
        diagnostics.append(Diagnostic("dbt-catalog", "info", note, "manifest.json"))
    reader.catalog = {
        **_mapping(catalog.get("sources")),
        **_mapping(catalog.get("nodes")),
    }
    runs, compiled = _runs(others.get("run_results.json", {}))
    reader.freshness = _freshness(others.get("sources.json", {}))
    reader.compiled = compiled
    nodes: dict[str, DbtNode] = {}
    for node_id, raw in reader.raw():
        try:
            nodes[node_id] = reader.node(node_id, raw)
        except (TypeError, ValueError, AttributeError) as error:
            note = f"{node_id[:200]} is not as dbt writes it: {error}"
            diagnostics.append(Diagnostic("reject", "warning", note, "manifest.json"))
    return DbtArtifacts(_text(metadata.get("project_name")), dialect, nodes, runs, tuple(diagnostics))


def _folder(target: Path) -> Path:
    if target.is_file():
        return target.parent
    for folder in (target, target / "target"):
        if (folder / "manifest.json").is_file():
            return folder
    hint = "dbt compile (or dbt docs generate), then govtool ingest dbt target/"
    if (target / "dbt_project.yml").is_file():
        hint += f"; or without dbt: govtool ingest sql {shlex.quote(str(target))} --dialect DIALECT"
    raise UsageError("there is no manifest.json", code="usage.dbt", location=str(target), hint=hint)


def _artifact(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"more than {MAX_BYTES >> 20} MiB", code="usage.dbt", location=str(path))
        value = json.loads(read_given(path, MAX_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or f"no JSON: {str(error)[:100]}"
        raise UsageError(f"{path.name} cannot be read: {reason}", code="usage.dbt", location=str(path)) from error
    if not isinstance(value, dict):
        raise UsageError(f"{path.name} is not a dbt artifact", code="usage.dbt", location=str(path))
    return value


class _Reader:
    """Turns a manifest's nodes into ours."""

    def __init__(self, folder: Path, manifest: Mapping[str, Any], dialect: str) -> None:
        self.folder = folder
        self.manifest = manifest
        self.dialect = dialect
        self.catalog: Mapping[str, Any] = {}
        self.compiled: Mapping[str, str] = {}
        self.freshness: Mapping[str, tuple[tuple[str, str], ...]] = {}
        self.groups = {
            _text(g.get("name")): g for g in _mapping(manifest.get("groups")).values() if isinstance(g, dict)
        }

    def raw(self) -> Iterator[tuple[str, Any]]:
        """All nodes that are, or depend on, relations."""
        for part in ("sources", "nodes", "exposures"):
            for node_id, raw in sorted(_mapping(self.manifest.get(part)).items()):
                kind = _text(raw.get("resource_type")) if isinstance(raw, dict) else None
                if kind in RELATIONS or kind == "exposure" or not isinstance(raw, dict):
                    yield node_id, raw

    def node(self, node_id: str, raw: Any) -> DbtNode:
        """One node.

        Raises:
            TypeError: it is no object.
        """
        if not isinstance(raw, dict):
            raise TypeError("no object")
        kind = _text(raw.get("resource_type"))
        config = _mapping(raw.get("config"))
        parts = [] if kind == "exposure" else self._parts(raw)
        columns, known = self._columns(node_id, raw)
        return DbtNode(
            id=node_id,
            kind=kind,
            relation=f"exposure:{_text(raw.get('name'))}" if kind == "exposure" else join_name(parts),
            catalog=parts[-3] if len(parts) > 2 else None,
            schema=parts[-2] if len(parts) > 1 else None,
            file=_text(raw.get("original_file_path")).replace("\\", "/") or "manifest.json",
            materialized=_text(config.get("materialized")) or kind,
            language=_text(raw.get("language")) or "sql",
            sql=self._sql(node_id, raw) if kind in ("model", "snapshot") else None,
            depends_on=tuple(_texts(_mapping(raw.get("depends_on")).get("nodes"))),
            columns=columns,
            known=known,
            facts=(*self._facts(raw, config), *self.freshness.get(node_id, ())),
        )

    def _parts(self, raw: Mapping[str, Any]) -> list[str]:
        written = raw.get("relation_name")
        if isinstance(written, str) and written:
            return relation_parts(written, self.dialect)
        quoted = self.dialect not in _UNQUOTED
        name = raw.get("alias") or raw.get("identifier") or raw.get("name")
        parts = [_text(part) for part in (raw.get("database"), raw.get("schema"), name)]
        return [fold(part, quoted=quoted, dialect=self.dialect, table=True) for part in parts if part]

    def _sql(self, node_id: str, raw: Mapping[str, Any]) -> str | None:
        if _text(raw.get("language")) == "python":
            return None
        for name in ("compiled_code", "compiled_sql"):
            if isinstance(raw.get(name), str) and raw[name].strip():
                return str(raw[name])
        if node_id in self.compiled:
            return self.compiled[node_id]
        path = _text(raw.get("compiled_path"))
        try:
            file = (self.folder.parent / path).resolve()
            if path and file.is_relative_to(self.folder.resolve()) and file.is_file():
                return file.read_text(encoding="utf-8", errors="replace")
        except (OSError, ValueError):
            pass
        return None

    def _columns(self, node_id: str, raw: Mapping[str, Any]) -> tuple[tuple[DbtColumn, ...], bool]:
        documented: dict[str, Mapping[str, Any]] = {}
        for key, value in _mapping(raw.get("columns")).items():
            about = _mapping(value)
            text = _text(about.get("name")) or key
            documented[fold(text, quoted=bool(about.get("quote")), dialect=self.dialect)] = about
        has = _mapping(_mapping(self.catalog.get(node_id)).get("columns"))
        if not has:
            return tuple(self._column(name, None, about) for name, about in documented.items()), False
        cells = sorted((_mapping(cell) | {"_key": key} for key, cell in has.items()), key=_position)
        found = []
        for cell in cells:
            name = fold(_text(cell.get("name")) or cell["_key"], quoted=True, dialect=self.dialect)
            found.append(self._column(name, _text(cell.get("type")) or None, documented.pop(name, {}), cell))
        return tuple(found), True

    def _column(
        self, name: str, type_: str | None, about: Mapping[str, Any], cell: Mapping[str, Any] | None = None
    ) -> DbtColumn:
        config = _mapping(about.get("config"))
        return DbtColumn(
            name,
            type_ or _text(about.get("data_type")) or None,
            _text(about.get("description")) or _text((cell or {}).get("comment")),
            tuple(dict.fromkeys([*_texts(about.get("tags")), *_texts(config.get("tags"))])),
            {**_mapping(config.get("meta")), **_mapping(about.get("meta"))},
        )

    def _facts(self, raw: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        for name in ("description", "url", "maturity", "loader", "type", "label"):
            if _text(raw.get(name)):
                yield name, _text(raw[name])
        if _text(config.get("materialized")):
            yield "materialized", _text(config["materialized"])
        for tag in dict.fromkeys([*_texts(raw.get("tags")), *_texts(config.get("tags"))]):
            yield "tag", tag
        meta = {**_mapping(config.get("meta")), **_mapping(raw.get("meta"))}
        for key, value in meta.items():
            yield f"meta.{key}", fact_text(value)
        group = _text(raw.get("group")) or _text(config.get("group"))
        if group:
            yield "group", group
        owners = [raw.get("owner"), meta.get("owner"), _mapping(self.groups.get(group)).get("owner")]
        yield from (("owner", owner) for owner in dict.fromkeys(text for o in owners for text in owner_texts(o)))


def owner_texts(owner: Any) -> list[str]:
    """An owner as dbt writes one (name and email), or as people do."""
    if isinstance(owner, dict):
        names = [_text(owner.get(key)) for key in ("name", "email")]
        texts = [name for name in names if name]
        return [f"{texts[0]} <{texts[1]}>"] if len(texts) == 2 else texts
    if isinstance(owner, list):
        return [text for one in owner if not isinstance(one, list) for text in owner_texts(one)]
    return [owner] if isinstance(owner, str) and owner else []


def fact_text(value: Any) -> str:
    """A value of ``meta`` as text: JSON unless it is text."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def relation_parts(written: str, dialect: str) -> list[str]:
    """Canonical parts of a relation as an adapter writes it: ``"db"."schema"."name"``, with any quotes or none."""
    parts: list[str] = []
    at = 0
    while at < len(written):
        close = _OPEN.get(written[at])
        if close is not None:
            end = written.find(close, at + 1)
            end = len(written) if end < 0 else end
            inner = written[at + 1 : end]
            names = inner.split(".") if dialect == "bigquery" else [inner]
            parts.extend(fold(name, quoted=True, dialect=dialect, table=True) for name in names)
            at = end + 1
        else:
            end = written.find(".", at)
            end = len(written) if end < 0 else end
            if written[at:end].strip():
                parts.append(fold(written[at:end].strip(), dialect=dialect, table=True))
            at = end
        if at < len(written) and written[at] == ".":
            at += 1
    return parts


def _runs(results: Mapping[str, Any]) -> tuple[dict[str, DbtRun], dict[str, str]]:
    invocation = _text(_mapping(results.get("metadata")).get("invocation_id")) or None
    runs: dict[str, DbtRun] = {}
    compiled: dict[str, str] = {}
    given = results.get("results")
    for result in given if isinstance(given, list) else ():
        about = _mapping(result)
        node_id = _text(about.get("unique_id"))
        stages = about.get("timing")
        timing = [stage for stage in stages if isinstance(stage, dict)] if isinstance(stages, list) else []
        execute = next((t for t in timing if t.get("name") == "execute"), {})
        started, completed = (_text(execute.get(key)) or None for key in ("started_at", "completed_at"))
        runs[node_id] = DbtRun(_text(about.get("status")), started, completed, invocation)
        if isinstance(about.get("compiled_code"), str) and about["compiled_code"].strip():
            compiled[node_id] = about["compiled_code"]
    return runs, compiled


def _freshness(sources: Mapping[str, Any]) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the freshness of each source from sources.json (dbt source freshness)."""
    found = {}
    given = sources.get("results")
    for result in given if isinstance(given, list) else ():
        about = _mapping(result)
        facts = [(f"freshness.{key}", _text(about.get(key))) for key in ("status", "max_loaded_at", "snapshotted_at")]
        found[_text(about.get("unique_id"))] = tuple(fact for fact in facts if fact[1])
    return found


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _position(cell: Mapping[str, Any]) -> int:
    index = cell.get("index")
    return index if isinstance(index, int) else 0

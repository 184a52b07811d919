"""The ``sql`` facet: kept without literals, and given to the SQL extractor where an event has no column lineage.

The names in a statement are those of its own session; the event's inputs and outputs say which datasets they mean.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from govtool.capture.openlineage.events import EntityPart, Event
from govtool.capture.openlineage.identity import DatasetName, Fields, scheme_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.folding.results import MAX_TEXT
from govtool.capture.sql.schemas.supplied import Schema
from govtool.capture.sql.syntax.fingerprint import fingerprint
from govtool.capture.sql.syntax.redact import redact
from govtool.model import ColumnRef, Derivation, Diagnostic
from govtool.names import fold, join_name, split_name, unquote

DIALECTS: Mapping[str, str] = {
    "postgres": "postgres", "postgresql": "postgres", "redshift": "redshift", "snowflake": "snowflake",
    "bigquery": "bigquery", "mysql": "mysql", "mssql": "tsql", "sqlserver": "tsql", "oracle": "oracle",
    "trino": "trino", "presto": "presto", "awsathena": "athena", "hive": "hive", "duckdb": "duckdb",
    "clickhouse": "clickhouse", "unitycatalog": "databricks", "databricks": "databricks", "teradata": "teradata",
    "sqlite": "sqlite", "dbfs": "databricks",
}  # fmt: skip
"""The dialect that the datasets of a namespace speak."""

_ENGINES = {"spark": "spark", "dbt": "", "databricks": "databricks", "flink": "", "trino": "trino"}


@dataclass(frozen=True, slots=True)
class SqlText:
    """The SQL of a job as the state keeps it."""

    digest: str
    """sha256 of the text as it came, with its dialect: what names its lineage."""
    text: str
    """Without literals, at most ``MAX_TEXT`` characters."""
    fingerprint: str
    dialect: str


def attach(event: Event, default: str = "") -> tuple[str, str] | None:
    """Put the job's SQL into the event's registers, redacted; return its digest and its text for the extractor."""
    if event.sql is None:
        return None
    dialect = dialect_of(event, default)
    digest = hashlib.sha256(f"{dialect}\n{event.sql}".encode("utf-8", "surrogatepass")).hexdigest()
    facet = {
        "digest": digest,
        "query": redact(event.sql, dialect)[:MAX_TEXT],
        "fingerprint": fingerprint(event.sql, dialect),
        "dialect": dialect,
    }
    text = json.dumps(facet, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    event.registers[EntityPart("job"), "sql"] = text.encode("utf-8", "replace").decode()
    return digest, event.sql


def sql_of(facet: object) -> SqlText | None:
    """The ``sql`` facet of a state."""
    if not isinstance(facet, Mapping) or not isinstance(facet.get("digest"), str):
        return None
    return SqlText(
        str(facet["digest"]), str(facet.get("query", "")), str(facet.get("fingerprint")), str(facet.get("dialect", ""))
    )


def dialect_of(event: Event, default: str = "") -> str:
    """The dialect of a job's SQL: as its facet says, of the namespace of its outputs or inputs, of its engine."""
    facet = event.registers.get((EntityPart("job"), "sql"))
    stated = json.loads(facet).get("dialect") if facet is not None else None
    if isinstance(stated, str) and (known := _known(stated)):
        return known
    for role in ("out", "in"):
        for part, _ in event.registers:
            if part.role == role and scheme_of(part.namespace) in DIALECTS:
                return DIALECTS[scheme_of(part.namespace)]
    engine = event.registers.get((EntityPart("run"), "processing_engine"))
    name = json.loads(engine).get("name") if engine is not None else None
    return default or (_ENGINES.get(name.lower(), "") if isinstance(name, str) else "")


def _known(dialect: str) -> str:
    from sqlglot.dialects.dialect import Dialects

    lower = dialect.strip().lower()
    return lower if lower in {d.value for d in Dialects} else DIALECTS.get(lower, "")


def derivations(
    sql: SqlText,
    text: str,
    file: str,
    inputs: Iterable[DatasetName],
    outputs: Iterable[DatasetName],
    schemas: Mapping[str, Fields],
) -> tuple[list[Derivation], list[Diagnostic]]:
    """Return the derivations of the outputs from the SQL of a job.

    Args:
        sql: The facet.
        text: The statement or script as it came.
        file: What evidence names as the file.
        inputs: Datasets that the job reads.
        outputs: Datasets that it writes.
        schemas: Columns of datasets by id.

    Returns:
        Derivations in the names of the event; their session is the digest of the SQL.
    """
    inputs, outputs = list(inputs), list(outputs)
    known = list(dict.fromkeys((*outputs, *inputs)))
    tables = {
        _sql_name(name, sql.dialect): {_unqualified(path, sql.dialect): kind for path, kind in schemas[name.id].columns}
        for name in known
        if name.id in schemas and schemas[name.id].columns
    }
    extraction = extract([Script(file, text)], Options(dialect=sql.dialect, schema=Schema(tables)))
    namer = _Namer(known, outputs, sql.dialect, schemas)
    found = [namer.derivation(d, sql) for d in extraction.derivations]
    return found, list(extraction.diagnostics)


def _parts(name: DatasetName, dialect: str) -> list[str]:
    return [fold(part, quoted=True, dialect=dialect, table=True) for part in name.name.split(".") if part]


def _sql_name(name: DatasetName, dialect: str) -> str:
    return join_name(_parts(name, dialect))


def _unqualified(path: str, dialect: str) -> str:
    return join_name([fold(unquote(part), quoted=True, dialect=dialect) for part in split_name(path)])


class _Namer:
    """Gives the datasets and columns of an extraction the names that the event has for them."""

    def __init__(
        self, known: list[DatasetName], outputs: list[DatasetName], dialect: str, schemas: Mapping[str, Fields]
    ) -> None:
        self._known = [(name, [p.lower() for p in name.name.split(".")]) for name in known]
        self._outputs = outputs
        self._namespace = next((n.namespace for n in known if not n.is_path), "default")
        self._columns = {
            name.id: {_unqualified(path, dialect): path for path, _ in schemas[name.id].columns}
            for name in known
            if name.id in schemas
        }
        self._cache: dict[str, DatasetName] = {}

    def derivation(self, derivation: Derivation, sql: SqlText) -> Derivation:
        """A derivation in the event's names; a bare SELECT makes the one output."""
        target, kind = self.dataset(derivation.target), derivation.target_kind
        if kind == "query" and len(self._outputs) == 1:
            target, kind = self._outputs[0], "table"
        edges = [
            edge._replace(source=self._named(edge.source), target_path=self.column(target.id, edge.target_path))
            for edge in derivation.edges
        ]
        columns = tuple(c._replace(path=self.column(target.id, c.path)) for c in derivation.columns)
        statement = derivation.statement._replace(session=sql.digest)
        return derivation._replace(
            target=target.id,
            target_kind=kind,
            namespace=target.namespace,
            edges=tuple(edges),
            columns=columns,
            references=tuple(map(self._named, derivation.references)),
            statement=statement,
        )

    def _named(self, column: ColumnRef) -> ColumnRef:
        dataset = self.dataset(column.dataset).id
        return ColumnRef(dataset, self.column(dataset, column.path))

    def column(self, dataset: str, path: str) -> str:
        return self._columns.get(dataset, {}).get(path, path)

    def dataset(self, name: str) -> DatasetName:
        """The one dataset of the event whose name ends like this, else a dataset of the event's namespace."""
        found = self._cache.get(name)
        if found is None:
            found = self._cache[name] = self._find(name)
        return found

    def _find(self, name: str) -> DatasetName:
        if name.startswith("query:"):
            return DatasetName("default", name)
        wanted = [unquote(part).lower() for part in split_name(name)]
        matches = [known for known, parts in self._known if _ends_alike(parts, wanted)]
        if len(matches) == 1:
            return matches[0]
        return DatasetName(self._namespace, ".".join(unquote(part) for part in split_name(name)))


def _ends_alike(one: list[str], other: list[str]) -> bool:
    length = min(len(one), len(other))
    return one[-length:] == other[-length:]


def diagnostics_of(found: Iterable[Derivation]) -> Iterator[Diagnostic]:
    """All notes of derivations."""
    for derivation in found:
        yield from derivation.diagnostics

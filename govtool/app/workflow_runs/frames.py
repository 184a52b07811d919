"""Relations at module boundaries as DataFrames: read, checked against their schemas, written.

A boundary costs a fixed time, whatever its size: so the schema of what was written is kept, and reading it back starts
no job; and a small relation is read as one partition, so that it does not become more files from version to version.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.app.workflow_runs.inputs import listing
from govtool.app.workflow_runs.relation_copies import lines_without, rows_by_file
from govtool.errors import EngineError, UsageError
from govtool.model.workflow_run import BoundaryRelation
from govtool.records.execute.inputs import local_path
from govtool.redaction import clean_failure, raised_in_worker

if TYPE_CHECKING:
    from govtool.workflow.modules.definition import RelationSchema

PARTITION = 32 << 20
"""Bytes of a partition in which a relation of many small files is read."""
_CAUSE = "Caused by:"
_LONGEST_HEADER = 1 << 16
"""Characters of a CSV file in which its header must end to be compared."""
_MOST_SHOWN = 1000
"""Characters of a header in a message."""
_WRITE = {
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
"""Options of a write. Nobody reads an execution before the pointer names it: files need no second move."""


class BoundaryFrames:
    """Reads and writes relations in one Spark session."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._schemas: dict[str, Any] = {}
        self._scheduler: Any = None

    def read(self, relation: BoundaryRelation, declared: RelationSchema) -> Any:
        """A relation as a DataFrame.

        Raises:
            UsageError: It is not of its declared schema (``usage.schema``), or cannot be read (``usage.inputs``).
        """
        wanted = self.declared(declared)
        reader = self._spark.read
        if relation.format == "csv":
            reader = reader.option("header", "true").option("enforceSchema", "false")
        if relation.format == "csv" and wanted is not None:
            _require_header(relation, wanted, declared.name)
        schema = self._stored(relation) or (wanted if relation.format != "parquet" else None)
        reader = reader.schema(schema) if schema is not None else reader.option("inferSchema", "true")
        try:
            frame = getattr(reader, relation.format)(relation.path)
            self._require(frame.schema, wanted, f"{declared.name} in {relation.path}")
        except UsageError:
            raise
        except Exception as error:
            raise UsageError(
                f"{declared.name} cannot be read: {first_line(error)}", code="usage.inputs", location=relation.path
            ) from error
        partitions = max(1, -(-sum(file.size for file in relation.files) // PARTITION))
        return frame.coalesce(partitions) if len(relation.files) > partitions else frame

    def empty(self, declared: RelationSchema) -> Any:
        """A relation without rows."""
        return self._spark.createDataFrame([], self.declared(declared))

    def write(
        self, frame: Any, place: Path, declared: RelationSchema, expected: BoundaryRelation | None
    ) -> BoundaryRelation:
        """Write a relation, and return it as files.

        Args:
            frame: Its rows.
            place: Its folder, which is not there yet.
            declared: The schema that it was declared with.
            expected: The version that it replaces, whose schema it has to have.

        Raises:
            EngineError: It is no DataFrame, or of another schema (``engine.module``).
        """
        schema = self._checked(frame, declared, expected)
        writer = frame.write
        for name, value in _WRITE.items():
            writer = writer.option(name, value)
        writer.parquet(str(place))
        text = schema.json()
        self._schemas[text] = schema
        return BoundaryRelation(str(place), "parquet", text, listing(place))

    def jobs_run(self) -> int | None:
        """How many jobs the session's application has submitted so far; None: not known."""
        try:
            if self._scheduler is None:
                self._scheduler = self._spark.sparkContext._jsc.sc().dagScheduler()
            return int(self._scheduler.numTotalJobs())
        except Exception:  # nothing that Spark promises to keep
            return None

    def without(self, relation: BoundaryRelation, rows: Collection[int], place: Path) -> BoundaryRelation:
        """A copy of a relation without some rows, by their numbers in the order of its files.

        Args:
            relation: The relation.
            rows: Numbers of rows, from 0.
            place: The folder of the copy, which is not there yet.
        """
        if relation.format != "parquet":
            return lines_without(relation, rows, place)
        from pyspark.sql import functions as f

        frame = self._spark.read.parquet(relation.path)
        for file, numbers in rows_by_file(relation, rows).items():
            gone = f.col("_metadata.row_index").isin(list(numbers))
            if len(relation.files) > 1:
                gone = gone & (f.regexp_replace("_metadata.file_path", "^file:/+", "/") == _bare_path(file))
            frame = frame.where(~gone)
        frame.write.options(**_WRITE).parquet(str(place))
        return BoundaryRelation(str(place), "parquet", relation.schema, listing(place))

    def declared(self, relation: RelationSchema) -> Any:
        """The declared schema as a ``StructType``; None if there is none.

        Raises:
            UsageError: It is no schema (``usage.schema``).
        """
        if relation.schema is None:
            return None
        key = f"ddl {relation.schema}"
        if key not in self._schemas:
            self._schemas[key] = _parsed(relation)
        return self._schemas[key]

    def _stored(self, relation: BoundaryRelation) -> Any:
        if not relation.schema:
            return None
        if relation.schema not in self._schemas:
            import json

            from pyspark.sql.types import StructType

            self._schemas[relation.schema] = StructType.fromJson(json.loads(relation.schema))
        return self._schemas[relation.schema]

    def _checked(self, frame: Any, declared: RelationSchema, expected: BoundaryRelation | None) -> Any:
        if not hasattr(frame, "write") or not hasattr(frame, "schema"):
            raise EngineError(f"{declared.name} is {type(frame).__name__}, no DataFrame", code="engine.module")
        schema = frame.schema
        wanted = self.declared(declared)
        if wanted is None and expected is not None:
            wanted = self._stored(expected)
        try:
            self._require(schema, wanted, declared.name)
        except UsageError as error:
            raise EngineError(error.message, code="engine.module") from error
        twice = sorted({name for name in schema.names if [n.lower() for n in schema.names].count(name.lower()) > 1})
        if twice or not schema.names:
            what = f"has the column {', '.join(twice)} twice" if twice else "has no columns"
            raise EngineError(f"{declared.name} {what}", code="engine.module")
        return schema

    def _require(self, found: Any, wanted: Any, what: str) -> None:
        """Refuse a schema that is not the wanted one; whether columns may be NULL does not count.

        Raises:
            UsageError: ``usage.schema``.
        """
        if wanted is None or _columns(found) == _columns(wanted):
            return
        raise UsageError(
            f"{what} has the columns ({_shown(found)}); ({_shown(wanted)}) are declared", code="usage.schema"
        )


def _bare_path(uri: str) -> str:
    return "/" + uri.removeprefix("file:").lstrip("/")


def _parsed(relation: RelationSchema) -> Any:
    from pyspark.sql.types import StructType

    try:
        return StructType.fromDDL(relation.schema or "")
    except Exception as error:
        raise UsageError(
            f"the schema of {relation.name} cannot be read: {relation.schema!r}",
            code="usage.schema",
            hint="name type, name type: 'CarId string, Price int'",
        ) from error


def _columns(schema: Any) -> list[tuple[str, str]]:
    return [(each.name, each.dataType.simpleString()) for each in schema.fields]


def _shown(schema: Any) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in _columns(schema))


def first_line(error: BaseException) -> str:
    """The type and the first line of an error; of one of the JVM those of its innermost cause."""
    text = str(error).strip()
    lines = text.splitlines()
    causes = [line.partition(_CAUSE)[2].strip() for line in lines if line.lstrip().startswith(_CAUSE)]
    if type(error).__name__ == "Py4JJavaError" and (causes or len(lines) > 1):
        return clean_failure(causes[-1] if causes else lines[1].strip().removeprefix(": "))[:300]
    first = raised_in_worker(text) or next(iter(lines), "")
    return clean_failure(f"{type(error).__name__}: {first}")[:300] if first else type(error).__name__


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _require_header(relation: BoundaryRelation, wanted: Any, name: str) -> None:
    """Refuse a CSV file whose header is not the declared columns: Spark would say so only when it reads the rows.

    Raises:
        UsageError: ``usage.schema``.
    """
    import csv

    for file in relation.files:
        path = local_path(file.uri)
        if path is None:
            continue
        try:
            with path.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
                head = stream.read(_LONGEST_HEADER)
            header = next(csv.reader(head.splitlines(keepends=True), strict=True), [])
        except (OSError, csv.Error):
            continue  # Spark says what is wrong with it
        if len(head) == _LONGEST_HEADER and "\n" not in head:
            continue
        if header and [each.strip().lower() for each in header] != [each.lower() for each in wanted.names]:
            there = _cut(", ".join(header))
            raise UsageError(
                f"{name} in {relation.path} has the columns ({there}); ({_shown(wanted)}) are declared",
                code="usage.schema",
                hint="the first line of a CSV file names the columns, in the order in which they are declared",
            )


def mapping_of(returned: Any, names: tuple[str, ...], module: str, has_state: bool) -> Mapping[str, Any]:
    """What a module returned, by the names of relations.

    Raises:
        EngineError: It is no mapping, and the module has state or several outputs (``engine.module``).
    """
    if isinstance(returned, Mapping):
        return returned
    if len(names) == 1 and not has_state and returned is not None:
        return {names[0]: returned}
    raise EngineError(
        f"module {module} returned {type(returned).__name__}; a mapping from relations to DataFrames is needed",
        code="engine.module",
    )

"""Rebuilt plans in Spark: a session of their own with the recorded settings, one view a leaf."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from govtool.errors import UsageError
from govtool.model.token import ROW_BITS
from govtool.records.execute.places import plain_uri
from govtool.records.lake.deleted import deleted_records
from govtool.records.lake.files import TABLES, plain_parts
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Literal
from govtool.records.plan.nodes import Plan, Relation, Session
from govtool.records.sql.dialect import NotExact
from govtool.records.sql.spark import SparkDialect, string, udf_name
from govtool.records.sql.statement import SqlStatement, write
from govtool.spark.live.records.exact import SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from govtool.records.plan.expressions import Udf

RECORD = "_record"
"""The column of a relation that holds a record's id: file ordinal and row, packed."""
_ORDINAL, _ROW, _FILE = "_govtool_ordinal", "_govtool_row", "_govtool_file"
_PARTITION_BITS = 33
"""Of ``monotonically_increasing_id``: the row's number in its partition."""
_WHOLE = 1 << 50
"""Bytes of a partition, and of opening a file: so every file is a partition of its own."""
_DELETED = 100_000
"""Deleted rows that a statement lists at most."""
_FORMATS = ("parquet", "csv", "json", "text", "orc")
_IGNORED = frozenset({"inferschema", "mergeschema", "basepath", "path", "pathglobfilter", "recursivefilelookup"})
"""Options that say which files or which schema: both are recorded."""
_OWN = {
    "spark.sql.variable.substitute": "false",
    "spark.sql.groupByOrdinal": "false",
    "spark.sql.orderByOrdinal": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.doubleQuotedIdentifiers": "false",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
    "spark.sql.sources.ignoreCorruptFiles": "false",
    "spark.sql.analyzer.maxIterations": "10000",
    "spark.sql.optimizer.maxIterations": "10000",
}
"""Settings that the statement is written for, whatever the recorded session had."""


def run(plan: Plan, spark: SparkSession, udfs: Callable[[Udf], Any] | None = None) -> DataFrame:
    """Rebuild a plan as a DataFrame; nothing runs before an action on it.

    Args:
        plan: The recorded plan.
        spark: A session; a new one beside it is used, and it is not changed.
        udfs: Gives the user's function for a call, found in the user's own files by digest.

    Raises:
        NotExact: Spark cannot evaluate the plan exactly from what is recorded.
    """
    statement = write(plan, SparkDialect(plan.session))
    return execute(statement, plan.session, spark, udfs)


def execute(
    statement: SqlStatement,
    session: Session,
    spark: SparkSession,
    udfs: Callable[[Udf], Any] | None = None,
    ids: bool = False,
) -> DataFrame:
    """Run a statement over its leaves; its columns get their names back."""
    own = prepared(spark, session)
    for name, leaf in statement.relations:
        view(leaf, own).createOrReplaceTempView(name)
    for call in statement.udfs:
        _register(call, own, udfs)
    found = own.sql(statement.text)
    return found.toDF(*(each.name for each in statement.columns)) if statement.columns else found.select()


def prepared(spark: SparkSession, session: Session) -> SparkSession:
    """A new session with the recorded settings."""
    own = _session_beside(spark)
    settings = dict(session.settings)
    settings.update(
        {
            "spark.sql.ansi.enabled": str(session.ansi).lower(),
            "spark.sql.session.timeZone": session.zone,
            "spark.sql.caseSensitive": "false",
            **_OWN,
        }
    )
    for name, value in settings.items():
        if name not in SETTINGS and name not in _OWN:
            continue  # a record could name a setting that loads a class
        try:
            own.conf.set(name, value)
        except Exception as error:  # static, or not of this version
            if name in _OWN or name in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone"):
                raise UsageError(f"Spark does not take the recorded setting {name}={value}") from error
    return own


def _session_beside(spark: SparkSession) -> SparkSession:
    """A new session. PySpark gives ``rdd.toDF()`` to the session that was made last; it stays the user's here."""
    from pyspark.rdd import RDD

    of_user = getattr(RDD, "toDF", None)
    own = spark.newSession()
    if of_user is not None:
        RDD.toDF = of_user
    return own


def view(leaf: Relation, spark: SparkSession) -> DataFrame:
    """The rows of a leaf's recorded files, under its columns' ids.

    Raises:
        NotExact: Files of a format, or columns, that cannot be read as they were.
    """
    from pyspark.sql import functions as F

    if leaf.format in TABLES:
        return _live_rows(leaf, spark)
    if leaf.format not in _FORMATS:
        raise NotExact(f"files of format {leaf.format}")
    records = {number for number, name in leaf.metadata if name == RECORD}
    if len(records) < len(leaf.metadata):
        raise NotExact("a column of a relation that is no data")
    names = [each.name for each in leaf.schema.fields]
    if len({name.lower() for name in names}) < len(names):
        raise NotExact("files with two columns whose names differ in case only")
    if not leaf.files:
        return _empty(leaf, spark)
    files = _read(leaf, spark)
    if records:
        files = _with_rows(leaf, files, spark)
    partitions = {name: f"_partition_{i}" for i, name in enumerate(leaf.partitioned)}
    if partitions or records:
        files = _with_ordinals(leaf, files, spark, list(partitions.values()))
    columns = []
    for each in leaf.columns:
        if each.id in records:
            column = F.col(_ORDINAL).cast("long") * F.lit(1 << ROW_BITS) + F.col(_ROW)
        else:
            column = F.col(partitions.get(each.name) or _quoted(each.name))
        columns.append(column.alias(f"c{each.id}"))
    return files.select(*columns)


def _live_rows(leaf: Relation, spark: SparkSession) -> DataFrame:
    """The rows of files of which some are deleted, or whose columns have other names.

    Raises:
        NotExact: There are too many, or what deletes them cannot be read.
    """
    gone = deleted_records(leaf)
    if len(gone) > _DELETED:
        raise NotExact(f"a table with {len(gone):,} deleted rows")
    record = Attribute(max((abs(each.id) for each in leaf.columns), default=0) + 1, RECORD, t.LONG)
    whole = replace(leaf, columns=(*leaf.columns, record), metadata=(*leaf.metadata, (record.id, RECORD)))
    files = reduce(lambda one, other: one.unionAll(other), (view(each, spark) for each in plain_parts(whole)))
    if len(gone):
        deleted = spark.sql(f"SELECT * FROM VALUES {', '.join(f'({number}L)' for number in gone)} AS deleted (record)")
        files = files.join(deleted, files[f"c{record.id}"] == deleted["record"], "left_anti")
    return files.drop(f"c{record.id}")


def _read(leaf: Relation, spark: SparkSession) -> DataFrame:
    from pyspark.sql.types import StructType

    if leaf.format == "parquet" and any(_has_floats(each.type) for each in leaf.columns):
        # Statistics of other writers than Spark leave NaN out: it would skip row groups with the rows that are wanted.
        spark.conf.set("spark.sql.parquet.filterPushdown", "false")
    schema = StructType.fromJson(t.to_json(t.bare(leaf.schema)))
    reader = spark.read.format(leaf.format).schema(schema)
    for name, value in leaf.options:
        if name.lower() not in _IGNORED and not name.startswith("govtool."):
            reader = reader.option(name, value)
    return reader.load([_path(each.uri) for each in leaf.files])


def _has_floats(kind: t.Type) -> bool:
    """Return whether Spark may compare floats of such a column with statistics of a file."""
    if isinstance(kind, t.Struct):
        return any(_has_floats(field.type) for field in kind.fields)
    return kind in (t.FLOAT, t.DOUBLE)


def _with_rows(leaf: Relation, files: DataFrame, spark: SparkSession) -> DataFrame:
    """Each row with its index in its file: Parquet's own, else its position in one sequential read of each file.

    A partition is then a whole file, and Spark numbers rows within partitions. The number is no function of the row, so
    that no filter comes before it.

    Raises:
        NotExact: The reader leaves out rows that it cannot parse, which depends on the columns that are requested.
    """
    from pyspark.sql import functions as F

    if leaf.format == "parquet":
        return files.withColumn(_ROW, F.col("_metadata.row_index")).withColumn(_FILE, F.col("_metadata.file_path"))
    if any(name.lower() == "mode" and value.upper() == "DROPMALFORMED" for name, value in leaf.options):
        raise NotExact("rows of files from which malformed ones are dropped")
    for name in ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes"):
        spark.conf.set(name, str(_WHOLE))
    within = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << _PARTITION_BITS) - 1))
    return files.select("*", within.alias(_ROW), F.col("_metadata.file_path").alias(_FILE))


def _path(uri: str) -> str:
    """A URI as Hadoop's paths are written, which Spark takes for patterns: not encoded, special characters escaped."""
    return re.sub(r"([{}\[\]*?\\])", r"\\\1", unquote(uri))


def _with_ordinals(leaf: Relation, files: DataFrame, spark: SparkSession, partitions: list[str]) -> DataFrame:
    """Join each row with its file's ordinal and partition values."""
    from pyspark.sql import functions as F

    dialect = SparkDialect(Session("", True, "UTC"))
    kinds = {each.name: each.type for each in leaf.columns}
    rows = []
    for file in leaf.files:
        values = zip(leaf.partitioned, file.partition, strict=True)
        literals = [dialect.literal(Literal(value, kinds.get(name, t.STRING))) for name, value in values]
        rows.append(f"({', '.join([string(plain_uri(file.uri)), str(file.ordinal), *literals])})")
    names = ", ".join(["_path", _ORDINAL, *partitions])
    listing = spark.sql(f"SELECT * FROM VALUES {', '.join(rows)} AS files ({names})")
    given = F.col(_FILE if _FILE in files.columns else "_metadata.file_path")
    # as plain_uri: url_decode takes a plus for a space
    path = F.url_decode(F.regexp_replace(F.regexp_replace(given, "^file:/+", "file:///"), "[+]", "%2B"))
    joined = files.join(F.broadcast(listing), path == F.col("_path"), "left")
    lost = F.raise_error(F.concat(F.lit("govtool: a file that was not recorded: "), given))
    return joined.filter(F.coalesce(F.col(_ORDINAL) >= 0, lost.cast("boolean")))


def _empty(leaf: Relation, spark: SparkSession) -> DataFrame:
    """No rows; not by ``createDataFrame``, which would leave this session the active one of the user's process."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    columns = []
    for each in leaf.columns:
        (field,) = StructType.fromJson(t.to_json(t.Struct((t.Field("x", t.bare(each.type)),)))).fields
        columns.append(F.lit(None).cast(field.dataType).alias(f"c{each.id}"))
    return spark.range(0).select(*columns)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _register(call: Udf, spark: SparkSession, udfs: Callable[[Udf], Any] | None) -> None:
    function = udfs(call) if udfs is not None else None
    if function is None:
        raise NotExact(f"the function {call.reference.qualname}, which was not found again")
    spark.udf.register(udf_name(call), function)

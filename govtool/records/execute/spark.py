"""Rebuilt plans in Spark: a session of their own with the recorded settings, one view a leaf."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from govtool.errors import UsageError
from govtool.records.plan import types as t
from govtool.records.plan.nodes import Plan, Relation, Session
from govtool.records.sql.dialect import NotExact
from govtool.records.sql.spark import SparkDialect, udf_name
from govtool.records.sql.statement import Statement, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from govtool.records.plan.expressions import Udf

FILE, ROW = "_govtool_file", "_govtool_row"
"""Columns of a leaf's view that hold a record's file ordinal and row index, where they are wanted."""
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
}
"""Settings that the statement is written for, whatever the recorded session had."""


def run(plan: Plan, spark: SparkSession, udfs: Callable[[Udf], Any] | None = None, ids: bool = False) -> DataFrame:
    """Rebuild a plan as a DataFrame; nothing runs before an action on it.

    Args:
        plan: The recorded plan.
        spark: A session; a new one beside it is used, and it is not changed.
        udfs: Gives the user's function for a call, found in the user's own files by digest.
        ids: Leaves have the columns ``FILE`` and ``ROW``, for statements that carry them.

    Raises:
        NotExact: Spark cannot evaluate the plan exactly from what is recorded.
    """
    statement = write(plan, SparkDialect(plan.session))
    return execute(statement, plan.session, spark, udfs, ids)


def execute(
    statement: Statement,
    session: Session,
    spark: SparkSession,
    udfs: Callable[[Udf], Any] | None = None,
    ids: bool = False,
) -> DataFrame:
    """Run a statement over its leaves; its columns get their names back."""
    own = prepared(spark, session)
    for leaf in statement.relations:
        view(leaf, own, ids).createOrReplaceTempView(f"leaf_{leaf.leaf}")
    for call in statement.udfs:
        _register(call, own, udfs)
    found = own.sql(statement.text)
    return found.toDF(*(each.name for each in statement.columns)) if statement.columns else found.select()


def prepared(spark: SparkSession, session: Session) -> SparkSession:
    """A new session with the recorded settings."""
    own = spark.newSession()
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
        if not name.startswith("spark.sql."):
            continue
        try:
            own.conf.set(name, value)
        except Exception as error:  # static, or not of this version
            if name in _OWN or name in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone"):
                raise UsageError(f"Spark does not take the recorded setting {name}={value}") from error
    return own


def view(leaf: Relation, spark: SparkSession, ids: bool = False) -> DataFrame:
    """The rows of a leaf's recorded files, under its columns' ids.

    Raises:
        NotExact: Files of a format, or columns, that cannot be read as they were.
    """
    from pyspark.sql import functions as F

    if leaf.format not in _FORMATS:
        raise NotExact(f"files of format {leaf.format}")
    if leaf.metadata:
        raise NotExact(f"the column {leaf.metadata[0][1]}, which is no data")
    names = [each.name for each in leaf.schema.fields]
    if len({name.lower() for name in names}) < len(names):
        raise NotExact("files with two columns whose names differ in case only")
    if not leaf.files:
        return _empty(leaf, spark, ids)
    files = _read(leaf, spark)
    partitions = {name: f"_partition_{i}" for i, name in enumerate(leaf.partitioned)}
    if partitions or ids:
        files = _with_ordinals(leaf, files, spark, list(partitions.values()))
    columns = [
        F.col(partitions[each.name]) if each.name in partitions else F.col(_quoted(each.name)) for each in leaf.columns
    ]
    if ids:
        columns += [F.col(FILE), F.col("_metadata.row_index").alias(ROW)]
    return files.select(*columns).toDF(*(f"c{each.id}" for each in leaf.columns), *([FILE, ROW] if ids else []))


def _read(leaf: Relation, spark: SparkSession) -> DataFrame:
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(t.to_json(t.bare(leaf.schema)))
    reader = spark.read.format(leaf.format).schema(schema)
    for name, value in leaf.options:
        if name.lower() not in _IGNORED:
            reader = reader.option(name, value)
    return reader.load([each.uri for each in leaf.files])


def _with_ordinals(leaf: Relation, files: DataFrame, spark: SparkSession, partitions: list[str]) -> DataFrame:
    """Join each row with its file's ordinal and partition values."""
    from pyspark.sql import functions as F

    dialect = SparkDialect(Session("", True, "UTC"))
    kinds = {each.name: each.type for each in leaf.columns}
    from govtool.records.plan.expressions import Literal
    from govtool.records.sql.spark import string

    rows = []
    for file in leaf.files:
        values = zip(leaf.partitioned, file.partition, strict=True)
        literals = [dialect.literal(Literal(value, kinds.get(name, t.STRING))) for name, value in values]
        rows.append(f"({', '.join([string(file.uri), str(file.ordinal), *literals])})")
    names = ", ".join(["_path", FILE, *partitions])
    listing = spark.sql(f"SELECT * FROM VALUES {', '.join(rows)} AS files ({names})")
    return files.join(F.broadcast(listing), F.col("_metadata.file_path") == F.col("_path"))


def _empty(leaf: Relation, spark: SparkSession, ids: bool) -> DataFrame:
    from pyspark.sql.types import LongType, StructField, StructType

    fields = [
        StructField(
            f"c{each.id}",
            StructType.fromJson(t.to_json(t.Struct((t.Field("x", t.bare(each.type)),)))).fields[0].dataType,
        )
        for each in leaf.columns
    ]
    if ids:
        fields += [StructField(FILE, LongType()), StructField(ROW, LongType())]
    return spark.createDataFrame([], StructType(fields))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _register(call: Udf, spark: SparkSession, udfs: Callable[[Udf], Any] | None) -> None:
    function = udfs(call) if udfs is not None else None
    if function is None:
        raise NotExact(f"the function {call.reference.qualname}, which was not found again")
    spark.udf.register(udf_name(call), function)

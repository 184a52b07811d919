"""Conditions that Spark's own parser reads: all of Spark SQL, where govtool's reader covers the most common part."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from govtool.errors import UsageError
from govtool.records.execute.spark import prepared
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Expression, Opaque, Udf
from govtool.records.plan.nodes import Filter, Session, outputs
from govtool.records.plan.tree import Term, rewrite, walk
from govtool.records.sql.dialect import NotExact
from govtool.redaction import clean_failure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_condition(text: str, columns: Sequence[Attribute], session: Session, spark: SparkSession) -> Expression:
    """Read a boolean expression over columns, as Spark does in a session with the recorded settings.

    Raises:
        UsageError: It means nothing to Spark (``usage.sql-meaning``).
        NotExact: It has a part that is not on the list of what is evaluated again.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    from govtool.records.plan import catalyst
    from govtool.spark.live.records.exact import Walker

    own = prepared(spark, session)
    own.conf.set("spark.sql.caseSensitive", str(session.case_sensitive).lower())
    fields = t.Struct(tuple(t.Field(column.name, column.type) for column in columns))
    try:
        frame = own.createDataFrame([], StructType.fromJson(t.to_json(fields))).where(text)
    except PySparkException as error:
        message = clean_failure(str(error)).splitlines()[0]
        raise UsageError(f"Spark: {message}", code="usage.sql-meaning", location="1:1") from error
    found = Walker(own.sparkContext._gateway, own.version).read(frame._jdf.queryExecution())
    if not isinstance(found, str):
        raise NotExact(str(found["break"]))
    root = catalyst.read(json.loads(found)["exact"], session).root
    if not isinstance(root, Filter):
        raise NotExact("a condition that is no filter")
    of_id = {made.id: column for made, column in zip(outputs(root.child), columns, strict=True)}

    def named(term: Term) -> Term:
        return of_id.get(term.id, term) if isinstance(term, Attribute) else term

    for term in walk(root.condition):
        if isinstance(term, (Opaque, Udf)) or term.nodes():
            raise NotExact(term.reason if isinstance(term, Opaque) else "a subquery or a function of yours")
    return cast(Expression, rewrite(root.condition, named))

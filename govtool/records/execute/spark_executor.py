"""Plans evaluated in Spark, one after the other in one session; what is kept stays on the cluster."""

from __future__ import annotations

import contextlib
import datetime
import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from govtool.errors import EngineError
from govtool.records.execute.spark import prepared, view
from govtool.records.plan import types as t
from govtool.records.plan.nodes import Plan, Relation, Session, outputs
from govtool.records.plan.tree import Node
from govtool.records.sql.dialect import EvaluationFailed, NotExact
from govtool.records.sql.spark import SparkDialect, udf_name
from govtool.records.sql.statement import KEPT, SqlStatement, write
from govtool.redaction import clean_failure, raised_in_worker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from govtool.records.plan.expressions import Attribute, Expression, Udf


class SparkExecutor:
    """Evaluates plans of one recorded session.

    Args:
        session: What the plans ran in.
        spark: A session; a new one beside it is used, and it is not changed.
        udfs: Gives the user's function for a call, found in the user's own files by digest.
    """

    def __init__(self, session: Session, spark: SparkSession, udfs: Callable[[Udf], Any] | None = None) -> None:
        require_running(spark)
        self.session = session
        self.spark = prepared(spark, session)
        self._udfs = udfs
        self._numbers = count(1)
        self._kept: dict[str, DataFrame] = {}

    def frame(self, node: Node, names: Sequence[str] | None = None) -> DataFrame:
        """The rows of a plan as a DataFrame; nothing runs before an action on it.

        Args:
            node: The plan.
            names: Names for its columns; those of the plan if not given.

        Raises:
            NotExact: Spark cannot evaluate the plan exactly from what is recorded.
        """
        found = self._statement(node)
        with _refusals():
            frame = self.spark.sql(found.text)
        if not found.columns:
            return frame.select()
        return frame.toDF(*(names if names is not None else [each.name for each in found.columns]))

    def fetch(self, node: Node) -> list[tuple[Any, ...]]:
        """The rows of a plan as Python values, in the form that DuckDB gives them in."""
        kinds = [column.type for column in outputs(node)]
        frame = self.frame(node)
        with _refusals():
            rows = _collected(frame)
        return [tuple(plain(value, kind) for value, kind in zip(row, kinds, strict=True)) for row in rows]

    def arrow(self, node: Node) -> Any:
        """The rows of a plan as a pyarrow table, columns by position."""
        frame = self.frame(node)
        with _refusals():
            return frame.toArrow()

    def keep(self, node: Node) -> Relation:
        """Evaluate a plan once, and return the leaf that reads what came out.

        Raises:
            NotExact: Spark cannot evaluate the plan exactly from what is recorded.
        """
        found = self._statement(node)
        columns = {each.id: (i, each) for i, each in enumerate(found.columns)}
        name = f"kept_{next(self._numbers)}"
        with _refusals():
            kept = self.spark.sql(found.text).selectExpr(*(f"o{i} AS c{number}" for number, (i, _) in columns.items()))
            # Not persist(): Spark does not find a cached plan below a WITH, and computes lost blocks anew. Either way a
            # second read would number the rows differently. A checkpoint has no plan, and a lost block is an error.
            kept = kept.localCheckpoint()
            kept.createOrReplaceTempView(name)
        self._kept[name] = kept
        return Relation(0, name, KEPT, (), tuple(each for _, each in columns.values()), t.Struct(()))

    def condition(self, text: str, columns: Sequence[Attribute]) -> Expression:
        """Read a boolean expression over columns by Spark's own parser; see ``spark_condition``."""
        from govtool.records.execute.spark_conditions import spark_condition

        with _unlogged():
            return spark_condition(text, columns, self.session, self.spark)

    def close(self) -> None:
        """Free what is kept."""
        for name, kept in self._kept.items():
            self.spark.catalog.dropTempView(name)
            kept._jdf.queryExecution().analyzed().rdd().unpersist(False)
        self._kept.clear()

    def _statement(self, node: Node) -> SqlStatement:
        found = write(Plan(node, self.session), SparkDialect(self.session))
        require_running(self.spark)
        for name, leaf in found.relations:
            view(leaf, self.spark).createOrReplaceTempView(name)
        for call in found.udfs:
            function = self._udfs(call) if self._udfs is not None else None
            if function is None:
                raise NotExact(f"the function {call.reference.qualname}, which was not found again")
            self.spark.udf.register(udf_name(call), function)
        return found


def require_running(spark: SparkSession) -> None:
    """Refuse a session that was stopped.

    Raises:
        EngineError: It was (``engine.spark``).
    """
    from py4j.protocol import Py4JError

    try:
        own = spark.sparkContext._jsc
        is_stopped = own is None or bool(own.sc().isStopped())
    except (Py4JError, OSError):  # its JVM is gone
        is_stopped = True
    if is_stopped:
        raise EngineError(
            "the Spark session of these rows was stopped",
            code="engine.spark",
            hint="make the DataFrame anew in a running session; of what was committed: govtool trace back OUTPUT",
        )


def _collected(frame: DataFrame) -> list[Any]:
    try:
        return frame.collect()
    except (OverflowError, ValueError) as error:  # of a conversion in Python
        raise NotExact("days or times beyond the years that Python has, 1 to 9999") from error


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """Errors of Spark as refusals: a statement that it does not take, files that it cannot read as recorded."""
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException, ParseException, PySparkException

    try:
        with _unlogged():
            yield
    except (PySparkException, Py4JError) as error:
        own = getattr(error, "java_exception", None)
        text = str(error if own is None else _message(own)).strip()
        text = raised_in_worker(text) or text
        kind = NotExact if isinstance(error, (AnalysisException, ParseException)) else EvaluationFailed
        raise kind(f"Spark: {clean_failure(text) or type(error).__name__}") from error


def _message(error: Any) -> str:
    """The message of an exception of Java; of one that only says that a thread failed, that of its cause."""
    while str(error.getMessage()).startswith("Exception thrown in awaitResult") and error.getCause() is not None:
        error = error.getCause()
    return str(error.getMessage())


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    """PySpark 4 prints the stack of each error of a statement, as JSON, before it raises it: not while this lasts."""
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # PySpark 3
        yield
        return
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


def plain(value: Any, kind: t.Type) -> Any:
    """A cell that PySpark collected, as DuckDB gives it: structs as dicts, timestamps in UTC without a zone, bytes.

    PySpark gives timestamps in the zone of the Python process.
    """
    if value is None:
        return None
    if isinstance(kind, t.Struct):
        return {field.name: plain(item, field.type) for field, item in zip(kind.fields, value, strict=True)}
    if isinstance(kind, t.Array):
        return [plain(item, kind.element) for item in value]
    if isinstance(kind, t.Map):
        return {plain(key, kind.key): plain(item, kind.value) for key, item in value.items()}
    if kind == t.TIMESTAMP and isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    return bytes(value) if isinstance(value, bytearray) else value

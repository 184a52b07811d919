"""The exact plan of an action, for record-level provenance: everything that its meaning depends on, in one event.

Nothing here runs unless records were asked for (``RECORDS``): an event holds literals and rows of the driver, which the
lineage record never has. It goes into a spool of its own.

``PlanWalker.java`` reads the plan inside the JVM, in one call. It is compiled there, once a process, by the compiler
that Spark carries for its generated code. Where that is not to be had, the event names the reason instead of a plan.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from govtool.spark.live.driver.driver_rows import DriverRows
from govtool.spark.live.jvm.janino import instance_in
from govtool.spark.live.jvm.scala import safely, sequence
from govtool.spark.live.records import by_plan
from govtool.spark.live.records.carried import PlanCarrier
from govtool.spark.live.records.eager import EagerWrites, newest_note
from govtool.spark.live.records.function_source import identity, undecorated
from govtool.spark.live.records.rewritten import replaced
from govtool.spark.live.records.sink_batches import WrittenBatch
from govtool.spark.live.records.stream_batches import StreamBatches
from govtool.spark.live.spool import EAGER, POSITIONS, RECORDS, Spool

MAX_UDFS = 10_000
SETTINGS = (
    "spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.caseSensitive", "spark.sql.mapKeyDedupPolicy",
    "spark.sql.decimalOperations.allowPrecisionLoss", "spark.sql.legacy.timeParserPolicy",
    "spark.sql.legacy.sizeOfNull", "spark.sql.storeAssignmentPolicy", "spark.sql.parquet.binaryAsString",
    "spark.sql.parquet.int96AsTimestamp", "spark.sql.parquet.inferTimestampNTZ.enabled",
    "spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.int96RebaseModeInRead",
    "spark.sql.csv.parser.columnPruning.enabled", "spark.sql.columnNameOfCorruptRecord",
    "spark.sql.legacy.charVarcharAsString",
    "spark.sql.timestampType", "spark.sql.json.enablePartialResults",
    "spark.sql.sources.ignoreCorruptFiles", "spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles",
)  # fmt: skip
"""Settings that change what a plan's expressions and readers give."""


def from_environment() -> PlanRecorder | None:
    """Return the recorder of exact plans for this process; None unless records were requested."""
    folder = os.environ.get(RECORDS)
    return PlanRecorder(Spool(folder), eager=bool(os.environ.get(EAGER))) if folder else None


class PlanRecorder:
    """Writes exact plans into a spool of their own; called on the recorder's thread, but for the patches.

    Args:
        spool: The private spool.
        eager: Positions of records are wanted, too.
    """

    def __init__(self, spool: Spool, eager: bool = False) -> None:
        self.spool = spool
        self.eager = eager
        self.functions = Functions()
        self.rows = DriverRows()
        positions = Spool(os.path.join(spool.folder, POSITIONS))
        self.writes = EagerWrites(positions, lambda: self.eager, lambda: frozenset(self.rows.known))
        self.batches = StreamBatches()
        self._walkers: dict[int, Walker] = {}
        self._patched = False

    def attach(self, session: Any) -> None:
        """Get ready for a classic session: hear of functions and rows that its driver makes."""
        os.makedirs(self.spool.folder, mode=0o700, exist_ok=True)
        if not self._patched:
            self._patched = True
            safely(self.functions.patch)
            safely(partial(self.rows.patch, type(session)))
            safely(self._patch_writers)

    def _patch_writers(self) -> None:
        from pyspark.sql.readwriter import DataFrameWriter, DataFrameWriterV2
        from pyspark.sql.session import SparkSession

        self.writes.patch(DataFrameWriter)
        by_plan.patch(SparkSession, DataFrameWriterV2, newest_note)

    def analyzed(self, session: Any, execution: Any) -> tuple[Any, int | None]:
        """The analyzed plan of an execution, without ids of records; and the key of its positions, if it has any."""
        try:
            return self.writes.original(session, execution.analyzed())
        except Exception:
            return execution.analyzed(), None

    def batch(self, frame: Any, sessions: list[Any]) -> None:
        """Hear of a batch of a stream before the function of ``foreachBatch`` runs; ``sessions`` are the job's."""
        safely(lambda: self.batches.begin(frame, PlanCarrier(frame.sparkSession), sessions))

    def _with_batches(self, session: Any, plan: Any, rows: list[dict[str, Any]]) -> Any:
        """A plan whose batches are those of files; None: it has none. Reasons go where rows of the driver do."""
        found: list[Any] = []

        def source(carrier: PlanCarrier, node: Any, kind: str) -> Any:
            if kind != "LogicalRDD":
                return None
            other, reason = self.batches.plan_of(node, carrier), self.batches.reason_of(node)
            if reason:
                ids = [each.exprId().id() for each in sequence(node.output())]
                rows.append({"ids": ids, "rows": None, "reason": reason})
            if other is not None:
                found.append(other)
            return other

        def rebuilt() -> Any:
            carrier = PlanCarrier(session)
            return replaced(carrier, plan, partial(source, carrier))

        made = safely(rebuilt)
        return made if found else None

    def walker(self, session: Any) -> Walker:
        """What reads plans of a session's JVM."""
        gateway = session.sparkContext._gateway
        if id(gateway) not in self._walkers:
            self._walkers[id(gateway)] = Walker(gateway, str(session.version))
        return self._walkers[id(gateway)]

    def executed(
        self,
        session: Any,
        execution: Any,
        number: int,
        application: str,
        plan: Any = None,
        key: int | None = None,
        facts: Mapping[str, Any] | None = None,
        batch: WrittenBatch | None = None,
    ) -> None:
        """Write down the exact plan of an execution that succeeded; never raises.

        Args:
            session: The session of pyspark.
            execution: The ``QueryExecution``.
            number: Its number in the job's spool.
            application: The application's id.
            plan: The analyzed plan; None: the execution's own.
            key: The key of its positions; None: it has none.
            facts: ``query_execution``, its id; ``began``, the ``SETTINGS`` with which it began: without, those that its
                session has by now count.
            batch: What it is of a streaming query that writes files by itself.
        """
        line: dict[str, Any] = {"e": "replay", "n": number, "application": application, **(facts or {})}
        if key is not None:
            self.writes.confirm(key, number)
        try:
            walker = self.walker(session)
            line["spark"] = walker.version
            line["functions"] = self.functions.fresh()
            line["rows"] = self.rows.fresh()
            given = plan if key is not None else None
            if batch is not None and batch.exact is None:
                self.spool.write({**line, "break": batch.reason})
                return
            if batch is not None:
                given = batch.exact
            elif self.batches:
                given = self._with_batches(session, given or execution.analyzed(), line["rows"]) or given
            found = walker.read(execution, given)
            if isinstance(found, str):
                self.spool.write_joined(line, found)
                return
            line.update(found)
        except Exception as error:
            line["break"] = f"the plan could not be read: {type(error).__name__}"
        self.spool.write(line)


class Walker:
    """Reads plans of one JVM; compiled when first used.

    Attributes:
        version: Spark's.
    """

    def __init__(self, gateway: Any, version: str) -> None:
        self.version = version
        self._gateway = gateway
        self._walk: Any = None
        self._reason = ""

    def read(self, execution: Any, plan: Any = None) -> str | dict[str, Any]:
        """Return the JSON text of ``{"settings": {…}, "exact": plan, "now": times}``, or ``{"break": reason}``.

        A plan that is given takes the place of the execution's own. It is one call of the JVM, and its text is not
        parsed here: an action waits for none of it, but its CPU counts.
        """
        if self._walk is None and not self._reason:
            try:
                self._walk = _compiled(self._gateway)
            except Exception as error:
                self._reason = f"the plan reader cannot be compiled in this JVM: {type(error).__name__}"
        if self._walk is None:
            return {"break": self._reason}
        try:
            return str(self._walk.apply(execution if plan is None else self._pair(execution, plan)))
        except Exception as error:
            reason = "plan-too-large" if "plan-too-large" in str(error) else "plan-unreadable"
            return {"break": reason}

    def _pair(self, execution: Any, plan: Any) -> Any:
        array = self._gateway.new_array(self._gateway.jvm.java.lang.Object, 2)
        array[0], array[1] = execution, plan
        return array


def _compiled(gateway: Any) -> Any:
    """The instance of ``PlanWalker`` within the JVM, which knows the settings."""
    walker = instance_in(gateway, "PlanWalker")
    walker.apply(",".join(SETTINGS))
    return walker


# ---- functions of the user ------------------------------------------------------------------------------------------


class Functions:
    """Identities of Python functions by the digest of what is sent to Spark's workers."""

    def __init__(self) -> None:
        self.known: dict[str, dict[str, str]] = {}
        self.live: dict[tuple[str, str, str], Any] = {}
        """Functions of this process by module, qualified name and digest."""
        self._written: set[str] = set()

    def note(self, command: bytes, function: Any) -> None:
        """Remember the function behind a pickled command."""
        if len(self.known) < MAX_UDFS:
            found = self.known.setdefault(hashlib.sha256(command).hexdigest(), identity(function))
            if found["digest"]:
                self.live[found["module"], found["qualname"], found["digest"]] = undecorated(function)

    def fresh(self) -> dict[str, dict[str, str]]:
        """Return what was not handed out before."""
        new = {key: value for key, value in self.known.items() if key not in self._written}
        self._written.update(new)
        return new

    def patch(self) -> None:
        """Hear of functions when they are made into UDFs."""
        try:
            import pyspark.core.rdd as made
        except ImportError:  # before Spark 4
            import pyspark.rdd as made  # type: ignore[no-redef]

        original = made._prepare_for_python_RDD

        def prepared(context: Any, command: Any) -> Any:
            result = original(context, command)
            try:
                if isinstance(command, tuple) and len(command) == 2:  # of a UDF; an RDD's has four parts
                    self.note(bytes(result[0]), command[0])
            except Exception:
                return result
            return result

        made._prepare_for_python_RDD = prepared  # type: ignore[assignment]

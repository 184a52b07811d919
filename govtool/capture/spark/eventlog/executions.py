"""From the executions of one root, as an event log has them, to runs and to derivations of the datasets they wrote."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from govtool.capture.spark import plan as p
from govtool.capture.spark.eventlog.application import Application, SqlExecution
from govtool.capture.spark.eventlog.runs import inputs_of, outputs_of, run_of
from govtool.capture.spark.eventlog.scanned import columns_of
from govtool.capture.spark.executed import Executed
from govtool.capture.spark.execution import Action, Reading, WrittenDataset
from govtool.capture.spark.identity import DEFAULT_DATABASE, DatasetPlace, column_path, path_name, table_name
from govtool.capture.spark.interpreter import interpret, is_internal
from govtool.capture.spark.plantext.plan_write import PlanWrite
from govtool.capture.spark.plantext.read import PlanText, read_plan
from govtool.capture.spark.plantext.scans import Names
from govtool.capture.spark.plantext.tree import PlanTextError
from govtool.capture.spark.streams import BatchKey, BatchProgress, batches_from
from govtool.model import Diagnostic
from govtool.model.run import Run, RunInput, RunOutput

MAX_KNOWN = 100_000
"""Attributes of base relations that are remembered."""

_OVERWRITE = "spark.sql.sources.partitionOverwriteMode"
_INFERENCE = re.compile(r"DataFrameReader\.|DataStreamReader\.|FileStreamSource|InferSchema|getFileFormat")
_FOREACH = Diagnostic("break.foreach-batch", "warning", "foreachBatch: what a batch was made of is not in the plan")
_SINK = Diagnostic("break.streaming-sink", "warning", "where a streaming query writes to is not in its plan")
_MIXED = Diagnostic(
    "break.source", "warning", "a batch reads several places of files: which of them are streams is not known"
)
_OF_BATCH = Diagnostic(
    "break.driver",
    "warning",
    "rows of the driver, in a batch of a stream: they may be of the batch, or collected before",
)
_LOCAL = re.compile(r"^\(\d+\) LocalTableScan.*\nOutput \[[1-9]|^[ :]*[:+]- LocalTableScan \[\w", re.MULTILINE)
"""Rows that a plan holds itself: as formatted text has them, and as an operator a line."""
_DRIVER = Diagnostic(
    "break.driver", "warning", "rows of the driver, which had collected others before: they may hold some of them"
)
_KEPT = Diagnostic(
    "break.driver", "warning", "rows in the driver's memory, where a stream had left its own: they may be these"
)
_VARIABLE = Diagnostic(
    "plan.variable", "info", "a variable was set to what a query found: a literal of this statement may be its value"
)
_LATER = frozenset({"break.source", "break.operator", "unresolved"})
"""Breaks that another execution of the same action may mend."""


@dataclass(frozen=True, slots=True)
class LoggedExecution:
    """An execution of an event log with its plan, or one of the writes of its plan."""

    execution: SqlExecution
    plan: PlanText | None
    reading: Reading | None
    problem: Diagnostic | None = None
    part: int = 0
    """Of a multi-insert: the write's position; the first is 0."""
    shared: bool = False
    """The execution has further writes: its figures are those of all of them."""

    @property
    def opened(self) -> float:
        """Its number: Spark counts executions as they begin."""
        return float(self.execution.id)

    @property
    def closed(self) -> float:
        """The millisecond of its end; one that has no end may enclose all that follow."""
        return math.inf if self.execution.ended is None else float(self.execution.ended)

    @property
    def is_batch(self) -> bool:
        """True if it is the batch of a streaming query itself."""
        return self.execution.id == self.execution.root and BatchKey.described(self.execution.description) is not None

    @property
    def is_inference(self) -> bool:
        """True if Spark only looks at a file's schema."""
        return bool(_INFERENCE.search(self.execution.details.split("\n", 1)[0]))


@dataclass(frozen=True, slots=True)
class LoggedSource:
    """Makes runs of the executions of one application."""

    application: Application

    def run(self, action: Action[LoggedExecution]) -> Run:
        """The run of an action."""
        lead, written = action.lead, action.written
        suffix = f".{lead.part}" if lead.part else ""
        writes = written is not None and written.final and written.kind == "insert"
        group = [member.execution for member in action.members]
        made = run_of(self.application, lead.execution, group, suffix=suffix, writes=writes)
        key = BatchKey.described(lead.execution.description)
        if key is None:
            return made
        return replace(made, batches=batches_from([self.application.progress.get(key, BatchProgress(key))]))

    def inputs(self, action: Action[LoggedExecution]) -> tuple[RunInput, ...]:
        """Return the inputs."""
        if action.main.plan is None:
            return ()
        plans = [(each.execution, each.plan) for each in action.members if each.plan is not None]
        columns = {d: c for each in action.members if each.reading is not None for d, c in each.reading.columns.items()}
        return inputs_of(self.application, action.main.plan, action.written, plans, columns)

    def outputs(self, action: Action[LoggedExecution]) -> tuple[RunOutput, ...]:
        """Return the outputs."""
        main = action.main
        if action.written is None or main.plan is None:
            return ()
        return outputs_of(self.application, None if main.shared else main.execution, main.plan, action.written)

    def evidence(self, action: Action[LoggedExecution]) -> str:
        """The plan that computes what is written."""
        return action.main.plan.normal if action.main.plan is not None else ""


@dataclass(frozen=True, slots=True)
class _Batch:
    """The batch of a streaming query that executions are a part of."""

    plan: PlanText | None = None
    """None: there is none."""
    writes: bool = False
    """Others of its executions write: those of a function of ``foreachBatch``."""

    def around(self, execution: SqlExecution) -> p.Node | None:
        """Return the enclosing batch of an execution."""
        return self.plan.root if self.plan is not None and execution.id != execution.root else None


@dataclass(slots=True)
class EventLogInterpreter:
    """Reads the plans of one application's executions, one root after the other."""

    application: Application
    names: Names = field(default_factory=Names)
    _known: dict[int, tuple[str, str]] = field(default_factory=dict)

    def actions(self, group: list[SqlExecution]) -> Iterator[Executed]:
        """Return the actions of the executions of one root."""
        plans = {execution.id: self._read(execution) for execution in group}
        # Commands print logical plans, which name the attributes of files and not the files: others of the root do.
        sources = [each.source for each in plans.values() if isinstance(each, PlanText) and each.source is not None]
        batch = _batch(group, plans)
        later = _LATER if batch.plan is None else _LATER | {"break.rdd"}
        for execution in group:
            plan = plans[execution.id]
            if isinstance(plan, PlanText) and any(d.code in later for d in (*plan.notes, *plan.flow.breaks)):
                plans[execution.id] = self._read(execution, sources, batch)
        read = [part for execution in group for part in self._parts(execution, plans[execution.id], batch)]
        if all(execution.id != execution.root for execution in group):
            read = [each for each in read if _stands_alone(each)]  # these came after all others of their root
        yield from interpret(read, LoggedSource(self.application))
        for execution in group:
            self.application.values.forget(execution.registered.ids())

    def _read(
        self, execution: SqlExecution, sources: Sequence[p.Node] = (), batch: _Batch | None = None
    ) -> PlanText | PlanTextError:
        try:
            plan = read_plan(
                execution.plan,
                self._names(execution),
                known=self._known,
                metadata=execution.registered.metadata,
                sources=sources,
                batch=batch.around(execution) if batch is not None else None,
            )
        except PlanTextError as error:
            return error
        self._known.update(plan.attributes)
        if len(self._known) > MAX_KNOWN:
            for old in list(self._known)[: MAX_KNOWN // 2]:
                del self._known[old]
        return plan

    def _settings(self, execution: SqlExecution) -> dict[str, str]:
        return {**self.application.config, **execution.config}

    def _names(self, execution: SqlExecution) -> Names:
        """Return the reader of names, with the catalogs and the settings of the session."""
        found: dict[str, list[str]] = {}
        settings = self._settings(execution)
        for key, value in settings.items():
            catalog = re.fullmatch(r"spark\.sql\.catalog\.([^.]+)", key)
            if catalog is not None:
                found.setdefault(value, []).append(catalog[1])
        catalogs = {class_: tuple(names) for class_, names in found.items()}
        sensitive = settings.get("spark.sql.caseSensitive", "").lower() == "true"
        return replace(self.names, catalogs=catalogs, case_sensitive=sensitive, streams=self._streams(execution))

    def _streams(self, execution: SqlExecution) -> frozenset[str] | None:
        """The folders of files that a plan reads as streams; None: all that it reads may be, or may not."""
        key = BatchKey.described(execution.description)
        if key is None or (execution.id != execution.root and "ExistingRDD" in execution.plan):
            return frozenset()  # inside of foreachBatch the stream is an RDD: files are those of static sides
        progress = self.application.progress.get(key)
        if progress is None:
            return None
        return frozenset(path_name(source.path).id for source in progress.offsets if source.path)

    def _parts(
        self, execution: SqlExecution, plan: PlanText | PlanTextError, batch: _Batch
    ) -> Iterator[LoggedExecution]:
        """An execution as one, or as one for each write of a multi-insert."""
        if isinstance(plan, PlanTextError):
            text = f"the plan of execution {execution.id} could not be read: {plan}"
            yield LoggedExecution(execution, None, None, Diagnostic("break.plan", "error", text))
            return
        for part, each in enumerate((plan, *(other for other in plan.others if other.write is not None))):
            reading = self._reading(execution, each, batch)
            yield LoggedExecution(execution, each, reading, part=part, shared=bool(plan.others))

    def _reading(self, execution: SqlExecution, plan: PlanText, batch: _Batch) -> Reading:
        """The meaning of a plan's text, with the facts that the log has beside it."""
        sources = dict(plan.sources)
        if batch.plan is not None:  # what a function of foreachBatch reads through its RDD
            sources = {
                **{read: batch.plan.sources[read] for read in plan.flow.reads if read in batch.plan.sources},
                **sources,
            }
        dynamic = self._settings(execution).get(_OVERWRITE, "").lower() == "dynamic"
        written = self._sunk(execution, plan)
        if plan.write is not None:
            nested = not self.application.is_old and plan.write.kind == "create_table_as" and not plan.write.final
            written = replace(_written(plan.write, dynamic=dynamic), nested=nested)
        return Reading(
            plan.flow,
            plan.normal,
            written,
            places={identity: found.place for identity, found in sources.items() if not is_internal(identity)},
            columns=self._columns(plan),
            notes=self._notes(execution, plan, is_open=written is None and not batch.writes),
            command=plan.command,
            defined=plan.defined,
            ids=plan.ids,
            unplaced=plan.unplaced,
            case_sensitive=self.names.case_sensitive,
        )

    def _columns(self, plan: PlanText) -> dict[str, dict[str, str | None]]:
        found: dict[str, dict[str, str | None]] = {}
        for operator, dataset in plan.scans:
            known = found.setdefault(dataset, {})
            for name, type_ in columns_of(operator).items():
                path = column_path(name, case_sensitive=self.names.case_sensitive)
                known[path] = type_ or known.get(path)
        return found

    def _sunk(self, execution: SqlExecution, plan: PlanText) -> WrittenDataset | None:
        """Return the write of a streaming batch into its sink of files, which its plan does not name."""
        if not _reads_data(execution, plan):
            return None  # Delta Lake reads its own log in executions of the batch
        key = BatchKey.described(execution.description)
        progress = self.application.progress.get(key) if key is not None and execution.id == execution.root else None
        if progress is None or not progress.sink:
            return None
        return WrittenDataset(self._sink(progress.sink), "insert", "append", "append", alone=True)

    def _sink(self, uri: str) -> DatasetPlace:
        """The dataset of a stream into files: the table that the application made whose own folder that is, if any."""
        path = path_name(uri)
        warehouse = self.application.config.get("spark.sql.warehouse.dir")
        for database, table in self.application.created if warehouse else ():
            folder = "" if database == DEFAULT_DATABASE else f"{database}.db/"
            if path_name(f"{str(warehouse).rstrip('/')}/{folder}{table}") == path:
                name = table_name((database, table), case_sensitive=self.names.case_sensitive)
                return DatasetPlace(name, "table", (path,))
        return DatasetPlace(path, "file")

    def _notes(self, execution: SqlExecution, plan: PlanText, *, is_open: bool) -> tuple[Diagnostic, ...]:
        """Everything that is not understood of a plan; ``is_open``: nothing that it could write to is known."""
        notes = list(dict.fromkeys((*plan.notes, *plan.flow.breaks)))
        if BatchKey.described(execution.description) is not None:
            notes = [_FOREACH if note.code == "break.rdd" else note for note in notes]
            if is_open and plan.flow.columns and execution.id == execution.root:
                notes.append(_SINK)
            if self._streams(execution) is None and len(plan.scans) > 1:
                notes.append(_MIXED)
        if plan.write is not None and (driver := self._driver_rows(execution)) is not None:
            notes.append(driver)
        if self.application.assigned is not None and execution.id > self.application.assigned:
            notes.append(_VARIABLE)
        if plan.uncertain:
            text = f"{plan.uncertain} expressions of unknown structure; their sources are certain"
            notes.append(Diagnostic("plan.expression", "info", text))
        return tuple(notes)

    def _driver_rows(self, execution: SqlExecution) -> Diagnostic | None:
        """Why rows of the driver that an execution writes may be of another query; None if they are not."""
        if BatchKey.described(execution.description) is not None:  # its calls have the place of the query's start
            return _OF_BATCH if _LOCAL.search(execution.plan) and "<empty>" not in execution.plan else None
        collected, kept = self.application.collected, self.application.kept
        after = [d for since, d in ((collected, _DRIVER), (kept, _KEPT)) if since is not None and execution.id >= since]
        if not after or "DataFrameWriter" not in execution.details[:300]:
            return None  # values of a statement are a part of its text
        return after[-1] if _LOCAL.search(execution.plan) is not None else None


def _batch(group: Sequence[SqlExecution], plans: Mapping[int, PlanText | PlanTextError]) -> _Batch:
    """The batch of a streaming query among executions of one root."""
    root = next((e for e in group if e.id == e.root and BatchKey.described(e.description) is not None), None)
    plan = plans[root.id] if root is not None else None
    if not isinstance(plan, PlanText) or plan.write is not None:
        return _Batch()
    others = [plans[execution.id] for execution in group if execution is not root]
    return _Batch(plan, any(isinstance(other, PlanText) and other.write is not None for other in others))


def _reads_data(execution: SqlExecution, plan: PlanText) -> bool:
    """Return whether a plan reads a stream or a dataset of somebody's."""
    return "MicroBatchScan" in execution.plan or any(not is_internal(read) for read in plan.flow.reads)


def _stands_alone(execution: LoggedExecution) -> bool:
    """Return whether an execution concerns a dataset even without the command that started it."""
    reading = execution.reading
    if reading is None:
        return False
    return reading.defined is not None or (reading.written is not None and reading.written.final)


def _written(write: PlanWrite, *, dynamic: bool) -> WrittenDataset:
    """The write of a plan's text; ``dynamic``: an overwrite replaces only the partitions that it has rows for."""
    some = dynamic and ((write.alone and bool(write.partitions)) or "delta" in write.format.lower())
    return WrittenDataset(
        write.place,
        write.kind,
        write.save_mode,
        "append" if some and write.mode == "replace" else write.mode,
        write.columns,
        write.hidden,
        write.parts,
        write.final,
        write.alone,
        expects=write.expects,
        version=write.version,
        rewrites=write.mode in ("update", "delete"),
    )

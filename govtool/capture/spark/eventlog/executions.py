"""From the executions of one action to a run, and to what it says of the dataset that it wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b

from govtool.capture.spark import plan as p
from govtool.capture.spark.definitions import Defined, definition
from govtool.capture.spark.eventlog.application import Application, Execution
from govtool.capture.spark.eventlog.environment import host_of, software_of
from govtool.capture.spark.eventlog.metrics import Figures, figures_of, summed
from govtool.capture.spark.eventlog.scanned import columns_of, largest, registered_by
from govtool.capture.spark.flow import derivation as derivation_of
from govtool.capture.spark.identity import Place, column_path, job_name, output_paths
from govtool.capture.spark.plantext.read import PlanText, read_plan
from govtool.capture.spark.plantext.scans import Names
from govtool.capture.spark.plantext.tree import PlanTextError
from govtool.capture.spark.plantext.writes import Write
from govtool.capture.spark.redact import clean_config
from govtool.model import Derivation, Diagnostic, EdgeKind, Statement
from govtool.model.record import Identity
from govtool.model.run import Run, RunInput, RunOutput

HOW = "plan-text"
MAX_TEXT = 4000
MAX_KNOWN = 100_000
"""Attributes of base relations that are remembered."""

_INFERENCE = re.compile(r"DataFrameReader\.|DataStreamReader\.|FileStreamSource|InferSchema|getFileFormat")
_INTERNAL = re.compile(r"/_delta_log(?:/|\Z)|/_spark_metadata(?:/|\Z)|/metadata/[^/]*\.avro\Z")
_BATCH = re.compile(r"\brunId = [0-9a-f-]{36}")
_FOREACH = Diagnostic("break.foreach-batch", "warning", "foreachBatch: what a batch was made of is not in the plan")
_SINK = Diagnostic("break.streaming-sink", "warning", "where a streaming query writes to is not in its plan")
_UNTOLD = Diagnostic("break.source", "warning", "none of the executions tells what the command writes")
_LATER = frozenset({"break.source", "break.operator", "unresolved"})
"""What another execution of the same action may tell."""


@dataclass(slots=True)
class Executed:
    """One action: what it did."""

    run: Run
    """Its job is not named yet: the log may tell the script later."""
    target: str
    derivation: Derivation | None
    outcome: str
    """``understood``, ``partial``, ``opaque`` or ``ignored``."""
    places: dict[str, Place] = field(default_factory=dict)
    columns: dict[str, dict[str, str | None]] = field(default_factory=dict)
    views: tuple[Derivation, ...] = ()
    """What views of the catalog that were read stand for."""


@dataclass(slots=True)
class Interpreter:
    """Reads the plans of one application's executions, one action after the other."""

    application: Application
    names: Names = field(default_factory=Names)
    _known: dict[int, tuple[str, str]] = field(default_factory=dict)
    _group: list[Execution] = field(default_factory=list)

    def actions(self, group: list[Execution]) -> Iterator[Executed]:
        """What the executions of one root did."""
        self._group = group
        read = {execution.id: self._read(execution) for execution in group}
        # Commands print logical plans, which name the attributes of files and not the files: others of the root do.
        sources = [each.source for each in read.values() if isinstance(each, PlanText) and each.source is not None]
        for execution in group:
            plan = read[execution.id]
            if isinstance(plan, PlanText) and any(d.code in _LATER for d in (*plan.notes, *plan.flow.breaks)):
                read[execution.id] = self._read(execution, sources)
        root = next((e for e in group if e.id == e.root), None)
        main = read[root.id] if root is not None else None
        written = [e for e in group if isinstance(plan := read[e.id], PlanText) and plan.write is not None]
        if root is not None and isinstance(main, PlanText) and main.defined is not None:
            yield self._defined(root, group, main, main.defined)
            return
        if root is not None and isinstance(main, PlanText) and main.write is not None:
            done = self._implementation(root, main.write, written, read)
            yield self._action(root, group, read, done)
            for number, other in enumerate(main.others, 1):
                if other.write is not None:
                    also = {**read, root.id: other}
                    yield self._action(root, group, also, (root, other.write), suffix=f".{number}")
            same = {done[1].place.name, *done[1].place.aliases}
            for execution in written:
                plan = read[execution.id]
                if not isinstance(plan, PlanText) or plan.write is None or execution in (root, done[0]):
                    continue
                if plan.write.final and not same & {plan.write.place.name, *plan.write.place.aliases}:
                    yield self._action(execution, [execution], read, (execution, plan.write))
            return
        for execution in group:
            plan = read[execution.id]
            if isinstance(plan, PlanText) and plan.write is not None and plan.write.final:
                yield self._action(execution, [execution], read, (execution, plan.write))
            elif isinstance(plan, PlanText) and plan.defined is not None:
                yield self._defined(execution, [execution], plan, plan.defined)
        if root is not None:  # else these came after all others of their action
            yield self._action(root, group if not written else [root], read, None)

    def _read(self, execution: Execution, sources: Sequence[p.Node] = ()) -> PlanText | PlanTextError:
        try:
            plan = read_plan(
                execution.plan,
                self._names(execution),
                known=self._known,
                metadata=execution.registered.metadata,
                sources=sources,
            )
        except PlanTextError as error:
            return error
        self._known.update(plan.attributes)
        if len(self._known) > MAX_KNOWN:
            for old in list(self._known)[: MAX_KNOWN // 2]:
                del self._known[old]
        return plan

    def _names(self, execution: Execution) -> Names:
        """How names are read: with the catalogs and the settings of the session."""
        found: dict[str, list[str]] = {}
        settings = {**self.application.config, **execution.config}
        for key, value in settings.items():
            catalog = re.fullmatch(r"spark\.sql\.catalog\.([^.]+)", key)
            if catalog is not None:
                found.setdefault(value, []).append(catalog[1])
        catalogs = {class_: tuple(names) for class_, names in found.items()}
        sensitive = settings.get("spark.sql.caseSensitive", "").lower() == "true"
        streaming = _is_batch(execution)
        return replace(self.names, catalogs=catalogs, case_sensitive=sensitive, streaming=streaming)

    def _implementation(
        self, root: Execution, write: Write, written: list[Execution], read: Mapping[int, PlanText | PlanTextError]
    ) -> tuple[Execution, Write]:
        """The execution that does what a command says, and the write with what both tell of its target."""
        for execution in written:
            plan = read[execution.id]
            nested = plan.write if isinstance(plan, PlanText) else None
            if execution is root or nested is None or nested.final or write.final or nested.place.kind != "table":
                continue
            # Only the second command has the name with its database.
            if nested.place.name.name.rpartition(".")[2] == write.place.name.name.rpartition(".")[2]:
                write = replace(write, place=replace(write.place, name=nested.place.name), columns=nested.columns)
        for execution in reversed(written):
            plan = read[execution.id]
            if execution is root or not isinstance(plan, PlanText) or plan.write is None or not plan.write.final:
                continue
            inner = plan.write
            own = inner.place.kind != "table" or inner.place.name == write.place.name
            # A catalog may name its new table without itself.
            if write.final or not (own or write.place.name.name.endswith(f".{inner.place.name.name}")):
                continue
            aliases = (*write.place.aliases, *inner.place.aliases)
            if inner.place.name != write.place.name and inner.place.kind != "table":
                aliases = (*aliases, inner.place.name)
            place = replace(write.place, aliases=tuple(dict.fromkeys(aliases)))
            return execution, replace(
                write,
                place=place,
                columns=write.columns or inner.columns,
                hidden=write.hidden if write.columns else inner.hidden,
                query=inner.query,
                format=inner.format or write.format,
                partitions=inner.partitions,
            )
        return self._query_of(root, write, read)

    def _query_of(
        self, root: Execution, write: Write, read: Mapping[int, PlanText | PlanTextError]
    ) -> tuple[Execution, Write]:
        """Where a connector computes what is written as a query of its own, and the write with that query's columns.

        It is the query that gives the expected columns: by their ids, in whatever order (a connector that goes by name
        puts them into the order of its table, and adds those that are not given), or by all their names, in order.
        """
        if write.final or not write.expects:
            return root, write
        wanted = [name.lower() for _, name in write.expects]
        for number, plan in read.items():
            if (
                number == root.id
                or not isinstance(plan, PlanText)
                or plan.write is not None
                or plan.command
                or plan.unplaced
                or any(note.code == "break.rdd" for note in (*plan.notes, *plan.flow.breaks))
            ):
                continue
            names = [column.name for column in plan.flow.columns]
            if [name.lower() for name in names] == wanted:
                return next(e for e in self._group if e.id == number), write
            if {id_ for id_, _ in write.expects} <= set(plan.ids) and len(plan.ids) == len(names):
                return next(e for e in self._group if e.id == number), replace(write, columns=tuple(names))
        return root, write

    def _action(
        self,
        root: Execution,
        group: list[Execution],
        read: Mapping[int, PlanText | PlanTextError],
        done: tuple[Execution, Write] | None,
        suffix: str = "",
    ) -> Executed:
        execution, write = done if done is not None else (root, None)
        plan = read[execution.id]
        if isinstance(plan, PlanTextError):
            return self._unread(root, plan)
        writes = write is not None and write.final and write.kind == "insert"
        status, error = self._status(root, group, writes=writes)
        notes = list(dict.fromkeys((*plan.notes, *plan.flow.breaks)))
        if _is_batch(execution):
            notes = [_FOREACH if note.code == "break.rdd" else note for note in notes]
            if write is None and plan.flow.columns:
                notes.append(_SINK)
        if write is not None and write.expects and not plan.flow.columns and status == "complete":
            notes.append(_UNTOLD)
        reads = [dataset for dataset in plan.flow.reads if not _INTERNAL.search(dataset)]
        ignored = write is None and not plan.unplaced and (plan.command or not reads or _is_inference(root))
        if plan.uncertain:
            text = f"{plan.uncertain} expressions whose structure could not be told: what they depend on is certain"
            notes.append(Diagnostic("plan.expression", "info", text))
        places = {identity: found.place for identity, found in plan.sources.items() if not _INTERNAL.search(identity)}
        made: Derivation | None = None
        target = ""
        if write is not None:
            target = write.place.id
            places[target] = _joined(places.get(target), write.place)
            made = _without_itself(self._derivation(write, plan, root, target, notes))
            made = replace(made, statement=replace(made.statement, run=f"{made.statement.run}{suffix}"))
        elif plan.unplaced:
            note = Diagnostic("break.target", "warning", "the plan does not tell where it writes to")
            notes.append(note)
        elif not ignored:
            target = f"query:{_digest(plan.normal)}"
            statement = self._statement("select", plan, root)
            made = derivation_of(plan.flow, target, statement, target_kind="query", mode="replace")
            made = _noted(made, [note for note in notes if note not in plan.flow.breaks])
        if made is not None and status != "complete":
            made = attempted(made, status)
        inputs, outputs, columns = self._sides(group, read, plan, write, execution, ignored)
        breaks = tuple(note for note in notes if note.severity != "info")
        outcome = "ignored" if ignored else made.status if made is not None else "opaque"
        if made is not None and made.edges and all(edge.kind is EdgeKind.OPAQUE for edge in made.edges):
            outcome = "opaque"
        run = Run(
            id=f"{self.application.id or self.application.log}/{root.id}{suffix}",
            job="",
            status=status,
            how=HOW,
            application=self.application.id,
            user=self.application.user,
            started=_time(root.started),
            ended=_time(root.ended),
            error=error,
            software=software_of(self.application),
            config=clean_config({**self.application.config, **root.config}),
            host=host_of(self.application),
            inputs=inputs,
            outputs=outputs,
            plan="" if ignored else plan.normal,
            breaks=() if ignored else breaks,
        )
        return Executed(run, target, made, outcome, places, columns)

    def _unread(self, root: Execution, error: PlanTextError) -> Executed:
        note = Diagnostic("break.plan", "error", f"the plan of execution {root.id} could not be read: {error}")
        return Executed(replace(self._run(root, [root]), breaks=(note,)), "", None, "opaque")

    def _defined(self, root: Execution, group: list[Execution], plan: PlanText, defined: Defined) -> Executed:
        """What a command did to the catalog; if it failed, that is nothing."""
        place, notes = defined.place, tuple(Diagnostic(code, "warning", text) for code, text in defined.breaks)
        outputs = (RunOutput(place.id, defined.does),) if place is not None else ()
        run = replace(self._run(root, group), outputs=outputs, plan=plan.normal, breaks=notes)
        if run.status != "complete" or place is None:
            return Executed(run, "", None, "opaque" if notes else "ignored")
        made = definition(defined, self._statement(defined.kind, plan, root)) if defined.mode else None
        if made is not None and notes:
            made = _noted(replace(made, columns_complete=False), list(notes))
        places = {each.id: each for each in (place, defined.source) if each is not None}
        outcome = made.status if made is not None and not notes else "opaque" if notes else "ignored"
        return Executed(run, place.id, made, outcome, places)

    def _run(self, root: Execution, group: Iterable[Execution]) -> Run:
        """A run of which no more is known than its beginning and its end."""
        status, message = self._status(root, group)
        return Run(
            id=f"{self.application.id or self.application.log}/{root.id}",
            job="",
            status=status,
            how=HOW,
            application=self.application.id,
            user=self.application.user,
            started=_time(root.started),
            ended=_time(root.ended),
            error=message,
            software=software_of(self.application),
            config=clean_config({**self.application.config, **root.config}),
            host=host_of(self.application),
        )

    def _derivation(
        self, write: Write, plan: PlanText, root: Execution, target: str, notes: list[Diagnostic]
    ) -> Derivation:
        columns: list[str] | None = None
        names = [column.name for column in plan.flow.columns]
        if write.columns is not None:
            told = [column_path(name, case_sensitive=self.names.case_sensitive) for name in write.columns]
            # Names that the text leaves out are those of what is written.
            columns = (
                told if len(told) >= len(names) or not write.hidden else [*told, *output_paths(names[len(told) :])]
            )
        statement = self._statement(write.kind, plan, root)
        made = derivation_of(
            plan.flow,
            target,
            statement,
            target_kind=write.place.kind,
            mode=write.mode,
            columns=columns,
            namespace=write.place.name.namespace,
        )
        made = _noted(made, [note for note in notes if note not in plan.flow.breaks])
        if not plan.flow.columns and columns:
            made = replace(made, columns_complete=False, status="partial")
        return made

    def _statement(self, kind: str, plan: PlanText, root: Execution) -> Statement:
        return Statement(
            fingerprint=_digest(plan.normal),
            kind=kind,
            dialect="spark",
            file="",
            how=HOW,
            text=plan.normal[:MAX_TEXT],
            run=f"{self.application.id or self.application.log}/{root.id}",
            principal=self.application.user or None,
            first_seen=_time(root.started),
            last_seen=_time(root.started),
        )

    def _status(self, root: Execution, group: Iterable[Execution], *, writes: bool = False) -> tuple[str, str]:
        """How it ended, and why. Sparks before 3.4 tell only of jobs that failed; a write without a job was none."""
        failed = next((e for e in (root, *group) if e.failed), None)
        if failed is not None and (failed is root or root.failed or self.application.is_old):
            return "failed", failed.error
        if root.ended is not None:
            silent = self.application.is_old and writes and not any(e.jobs for e in group)
            return ("unknown", "") if silent else ("complete", "")
        if self.application.ended is not None:
            return "aborted", "the application ended before it did"
        return "running", ""

    def _sides(
        self,
        group: list[Execution],
        read: Mapping[int, PlanText | PlanTextError],
        plan: PlanText,
        write: Write | None,
        execution: Execution,
        ignored: bool,
    ) -> tuple[tuple[RunInput, ...], tuple[RunOutput, ...], dict[str, dict[str, str | None]]]:
        columns: dict[str, dict[str, str | None]] = {}
        figures: dict[str, list[Figures]] = {}
        for each in group:
            text = read[each.id]
            if not isinstance(text, PlanText):
                continue
            found: dict[str, list[Figures]] = {}
            for operator, dataset in text.scans:
                registered = registered_by(operator, each.registered.scans)
                if registered is not None:
                    found.setdefault(dataset, []).append(figures_of(registered, self.application.values))
                for name, type_ in columns_of(operator).items():
                    known = columns.setdefault(dataset, {})
                    path = column_path(name, case_sensitive=self.names.case_sensitive)
                    known[path] = type_ or known.get(path)
            for dataset, rows in found.items():
                figures.setdefault(dataset, []).append(summed(rows))
        inputs = []
        reads = list(plan.flow.reads)
        if write is not None and write.kind in ("update", "delete", "merge"):
            reads.append(write.place.id)  # rows that are changed are read, be it that nothing is set to what they have
        for dataset in dict.fromkeys(reads):
            if _INTERNAL.search(dataset):
                continue
            known_figures = largest(figures.get(dataset, []))
            source = plan.sources.get(dataset)
            version = source.version if source is not None else None
            if write is not None and write.place.id == dataset:
                version = write.version if version is None else version
            inputs.append(
                RunInput(
                    dataset,
                    known_figures.rows,
                    known_figures.bytes,
                    known_figures.files,
                    Identity("delta", version, "", 0, 0) if version is not None else None,
                    tuple((path, type_ or "") for path, type_ in sorted(columns.get(dataset, {}).items())),
                )
            )
        outputs: tuple[RunOutput, ...] = ()
        if write is not None:
            written = figures_of(execution.registered.writes, self.application.values)
            paths = [column_path(name) for name in write.columns or [c.name for c in plan.flow.columns]]
            fields = tuple((path, "") for path in dict.fromkeys(paths))
            outputs = (
                RunOutput(write.place.id, write.save_mode, written.rows, written.bytes, written.files, fields=fields),
            )
        for each in group:
            self.application.values.forget(each.registered.ids())
        return tuple(sorted(inputs, key=lambda item: item.dataset)), outputs, {} if ignored else columns


def named(executed: Executed, script: str, source: str) -> Executed:
    """An action under the name of its job, which the log may have told only at its end."""
    job = job_name(script, "" if executed.target.startswith("query:") else executed.target)
    made = executed.derivation
    if made is not None:
        statement = replace(made.statement, file=script, source=source)
        notes = tuple(replace(note, file=note.file or script, line=note.line or 1) for note in made.diagnostics)
        made = replace(made, statement=statement, diagnostics=notes)
    executed.run = replace(
        executed.run,
        job=job,
        source=source,
        breaks=tuple(
            replace(n, file=n.file or script, target=n.target or executed.target or None) for n in executed.run.breaks
        ),
    )
    executed.derivation = made
    executed.views = tuple(
        replace(view, statement=replace(view.statement, file=script, source=source)) for view in executed.views
    )
    return executed


def attempted(made: Derivation, status: str) -> Derivation:
    """What a run that did not succeed set out to do: it may have added to its target, and replaced nothing."""
    told = {"failed": "the run failed", "aborted": "the application ended before the run did"}
    code = "failed-run" if status in told else "unfinished-run"
    text = told.get(status, "no event tells how the run ended")
    note = Diagnostic(code, "warning", text, target=made.target)
    return replace(
        made,
        mode="append" if made.mode == "replace" and made.target_kind != "query" else made.mode,
        status="partial",
        diagnostics=(*made.diagnostics, note),
    )


def _is_batch(execution: Execution) -> bool:
    """Whether this is one batch of a streaming query: then its description names the query's run."""
    return bool(_BATCH.search(execution.description))


def _noted(made: Derivation, notes: list[Diagnostic]) -> Derivation:
    """A derivation with more notes."""
    if not notes:
        return made
    extra = tuple(replace(note, target=note.target or made.target) for note in notes)
    worse = any(note.severity != "info" for note in extra)
    diagnostics = tuple(dict.fromkeys((*made.diagnostics, *extra)))
    return replace(made, diagnostics=diagnostics, status="partial" if worse else made.status)


def _without_itself(made: Derivation) -> Derivation:
    """An UPDATE or MERGE without what stays as it is: rows and columns that are copied from the table into itself."""
    if made.mode not in ("update", "delete"):
        return made
    kept = tuple(
        edge
        for edge in made.edges
        if edge.source.dataset != made.target
        or edge.kind not in (EdgeKind.IDENTITY, EdgeKind.READ)
        or (edge.kind is EdgeKind.IDENTITY and edge.source.path != edge.target_path)
    )
    return replace(made, edges=kept)


def _is_inference(execution: Execution) -> bool:
    """Whether Spark only looks at a file's schema."""
    return bool(_INFERENCE.search(execution.details.split("\n", 1)[0]))


def _joined(known: Place | None, place: Place) -> Place:
    if known is None:
        return place
    return replace(place, aliases=tuple(dict.fromkeys((*known.aliases, *place.aliases))))


def _time(milliseconds: int | None) -> str | None:
    if milliseconds is None or not 0 <= milliseconds < 253_402_300_800_000:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

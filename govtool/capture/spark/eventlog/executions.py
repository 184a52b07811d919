"""From the executions of one action to a run, and to what it says of the dataset that it wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from govtool.capture.spark import plan as p
from govtool.capture.spark.definitions import Defined, definition
from govtool.capture.spark.eventlog.application import Application, Execution
from govtool.capture.spark.eventlog.runs import (
    inputs_of,
    is_internal,
    moment_of,
    outputs_of,
    run_id,
    run_of,
    scanned,
)
from govtool.capture.spark.executed import MAX_TEXT, PLAN_TEXT, Executed, attempted, fingerprint, outcome_of
from govtool.capture.spark.flow import derivation as derivation_of
from govtool.capture.spark.identity import column_path, joined, output_paths
from govtool.capture.spark.plantext.read import PlanText, read_plan
from govtool.capture.spark.plantext.scans import Names
from govtool.capture.spark.plantext.tree import PlanTextError
from govtool.capture.spark.plantext.writes import PlanWrite
from govtool.model import Derivation, Diagnostic, EdgeKind, Statement
from govtool.model.run import RunOutput

MAX_KNOWN = 100_000
"""Attributes of base relations that are remembered."""

_INFERENCE = re.compile(r"DataFrameReader\.|DataStreamReader\.|FileStreamSource|InferSchema|getFileFormat")
_BATCH = re.compile(r"\brunId = [0-9a-f-]{36}")
_FOREACH = Diagnostic("break.foreach-batch", "warning", "foreachBatch: what a batch was made of is not in the plan")
_SINK = Diagnostic("break.streaming-sink", "warning", "where a streaming query writes to is not in its plan")
_NO_TARGET = Diagnostic("break.source", "warning", "none of the executions tells what the command writes")
_LATER = frozenset({"break.source", "break.operator", "unresolved"})
"""What another execution of the same action may tell."""


@dataclass(slots=True)
class EventLogInterpreter:
    """Reads the plans of one application's executions, one action after the other."""

    application: Application
    names: Names = field(default_factory=Names)
    _known: dict[int, tuple[str, str]] = field(default_factory=dict)

    def actions(self, group: list[Execution]) -> Iterator[Executed]:
        """What the executions of one root did."""
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
            done = self._implementation(root, group, main.write, written, read)
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
        self,
        root: Execution,
        group: list[Execution],
        write: PlanWrite,
        written: list[Execution],
        read: Mapping[int, PlanText | PlanTextError],
    ) -> tuple[Execution, PlanWrite]:
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
        return self._query_of(root, group, write, read)

    def _query_of(
        self, root: Execution, group: list[Execution], write: PlanWrite, read: Mapping[int, PlanText | PlanTextError]
    ) -> tuple[Execution, PlanWrite]:
        """Where a connector computes what is written as a query of its own, and the write with that query's columns.

        It is the query that gives the expected columns: by their ids, in whatever order (a connector that goes by name
        puts them into the order of its table, and adds those that are not given), or by all their names, in order.
        """
        if write.final or not write.expects:
            return root, write
        wanted = [name.lower() for _, name in write.expects]
        for execution in group:
            plan = read[execution.id]
            if (
                execution is root
                or not isinstance(plan, PlanText)
                or plan.write is not None
                or plan.command
                or plan.unplaced
                or any(note.code == "break.rdd" for note in (*plan.notes, *plan.flow.breaks))
            ):
                continue
            names = [column.name for column in plan.flow.columns]
            if [name.lower() for name in names] == wanted:
                return execution, write
            if {id_ for id_, _ in write.expects} <= set(plan.ids) and len(plan.ids) == len(names):
                return execution, replace(write, columns=tuple(names))
        return root, write

    def _action(
        self,
        root: Execution,
        group: list[Execution],
        read: Mapping[int, PlanText | PlanTextError],
        done: tuple[Execution, PlanWrite] | None,
        suffix: str = "",
    ) -> Executed:
        execution, write = done if done is not None else (root, None)
        plan = read[execution.id]
        if isinstance(plan, PlanTextError):
            return self._unread(root, plan)
        writes = write is not None and write.final and write.kind == "insert"
        run = run_of(self.application, root, group, suffix=suffix, writes=writes)
        notes = list(dict.fromkeys((*plan.notes, *plan.flow.breaks)))
        if _is_batch(execution):
            notes = [_FOREACH if note.code == "break.rdd" else note for note in notes]
            if write is None and plan.flow.columns:
                notes.append(_SINK)
        if write is not None and write.expects and not plan.flow.columns and run.status == "complete":
            notes.append(_NO_TARGET)
        reads = [dataset for dataset in plan.flow.reads if not is_internal(dataset)]
        ignored = write is None and not plan.unplaced and (plan.command or not reads or _is_inference(root))
        if plan.uncertain:
            text = f"{plan.uncertain} expressions whose structure could not be told: what they depend on is certain"
            notes.append(Diagnostic("plan.expression", "info", text))
        places = {identity: found.place for identity, found in plan.sources.items() if not is_internal(identity)}
        made: Derivation | None = None
        target = ""
        if write is not None:
            target = write.place.id
            places[target] = joined(places.get(target), write.place)
            made = _without_itself(self._derivation(write, plan, root, target, notes))
            made = made._replace(statement=made.statement._replace(run=f"{made.statement.run}{suffix}"))
        elif plan.unplaced:
            note = Diagnostic("break.target", "warning", "the plan does not tell where it writes to")
            notes.append(note)
        elif not ignored:
            target = f"query:{fingerprint(plan.normal)}"
            statement = self._statement("select", plan, root)
            made = derivation_of(plan.flow, target, statement, target_kind="query", mode="replace")
            made = _noted(made, [note for note in notes if note not in plan.flow.breaks])
        if made is not None and run.status != "complete":
            made = attempted(made, run.status)
        figures, columns = scanned(
            self.application,
            [(each, plan_text) for each in group if isinstance(plan_text := read[each.id], PlanText)],
            case_sensitive=self.names.case_sensitive,
        )
        run = replace(
            run,
            inputs=inputs_of(plan, write, figures, columns),
            outputs=outputs_of(self.application, execution, plan, write),
            plan="" if ignored else plan.normal,
            breaks=() if ignored else tuple(note for note in notes if note.severity != "info"),
        )
        for each in group:
            self.application.values.forget(each.registered.ids())
        outcome = outcome_of(made, ignored=ignored)
        return Executed(run, target, made, outcome, places, {} if ignored else columns)

    def _unread(self, root: Execution, error: PlanTextError) -> Executed:
        note = Diagnostic("break.plan", "error", f"the plan of execution {root.id} could not be read: {error}")
        return Executed(replace(run_of(self.application, root, [root]), breaks=(note,)), "", None, "opaque")

    def _defined(self, root: Execution, group: list[Execution], plan: PlanText, defined: Defined) -> Executed:
        """What a command did to the catalog; if it failed, that is nothing."""
        place, notes = defined.place, tuple(Diagnostic(code, "warning", text) for code, text in defined.breaks)
        outputs = (RunOutput(place.id, defined.does),) if place is not None else ()
        run = replace(run_of(self.application, root, group), outputs=outputs, plan=plan.normal, breaks=notes)
        if run.status != "complete" or place is None:
            return Executed(run, "", None, "opaque" if notes else "ignored")
        made = definition(defined, self._statement(defined.kind, plan, root)) if defined.mode else None
        if made is not None and notes:
            made = _noted(made._replace(columns_complete=False), list(notes))
        places = {each.id: each for each in (place, defined.source) if each is not None}
        outcome = made.status if made is not None and not notes else "opaque" if notes else "ignored"
        return Executed(run, place.id, made, outcome, places)

    def _derivation(
        self, write: PlanWrite, plan: PlanText, root: Execution, target: str, notes: list[Diagnostic]
    ) -> Derivation:
        columns: list[str] | None = None
        names = [column.name for column in plan.flow.columns]
        if write.columns is not None:
            paths = [column_path(name, case_sensitive=self.names.case_sensitive) for name in write.columns]
            # Names that the text leaves out are those of what is written.
            columns = (
                paths if len(paths) >= len(names) or not write.hidden else [*paths, *output_paths(names[len(paths) :])]
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
            made = made._replace(columns_complete=False, status="partial")
        return made

    def _statement(self, kind: str, plan: PlanText, root: Execution) -> Statement:
        return Statement(
            fingerprint=fingerprint(plan.normal),
            kind=kind,
            dialect="spark",
            file="",
            how=PLAN_TEXT,
            text=plan.normal[:MAX_TEXT],
            run=run_id(self.application, root),
            principal=self.application.user or None,
            first_seen=moment_of(root.started),
            last_seen=moment_of(root.started),
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
    return made._replace(diagnostics=diagnostics, status="partial" if worse else made.status)


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
    return made._replace(edges=kept)


def _is_inference(execution: Execution) -> bool:
    """Whether Spark only looks at a file's schema."""
    return bool(_INFERENCE.search(execution.details.split("\n", 1)[0]))

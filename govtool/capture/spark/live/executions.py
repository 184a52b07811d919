"""From what a process wrote down to runs, and to what they say of the datasets that they wrote.

Executions that one action started (CREATE TABLE AS has two, saveAsTable three) share a root and are one run: the
outermost names the table, the one that wrote tells the path, the rows and the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from govtool.capture.spark import plan as p
from govtool.capture.spark.analyzed.place_names import place_of
from govtool.capture.spark.analyzed.read import Analyzed, read_plan
from govtool.capture.spark.definitions import Defined, definition
from govtool.capture.spark.dependencies import PlanDependencies
from govtool.capture.spark.drawn import drawn
from govtool.capture.spark.executed import (
    MAX_TEXT,
    PLAN,
    PLAN_TEXT,
    Executed,
    attempted,
    fingerprint,
    moment,
    named,
    outcome_of,
)
from govtool.capture.spark.flow import derivation, flow_of
from govtool.capture.spark.identity import DatasetPlace, column_path, joined
from govtool.capture.spark.live.actions import actions
from govtool.capture.spark.live.commands import SAVE_MODES, WrittenDataset, written_by
from govtool.capture.spark.live.definitions import defined_by
from govtool.capture.spark.live.reproduction import with_reproduction
from govtool.capture.spark.live.runs import LiveRuns, inputs_of, outputs_of, script_name
from govtool.capture.spark.live.spool import Line, Process
from govtool.capture.spark.plantext.read import read_plan as read_plan_text
from govtool.capture.spark.plantext.scans import Names
from govtool.capture.spark.plantext.tree import PlanTextError
from govtool.model import Derivation, Diagnostic, Statement
from govtool.model.run import RunInput, RunOutput

_BREAKS = {
    "plan-too-large": "its plan was too large to be written down",
    "plan-unreadable": "its plan could not be written down",
}
_TABLE_LOG = re.compile(r"/_delta_log(?:/|\Z)")
"""What Delta Lake asks its own log is no query of the job's."""


@dataclass(slots=True)
class _Read:
    """An execution and its plan."""

    line: Line
    plan: Analyzed | None
    flow: PlanDependencies
    written: WrittenDataset | None
    problem: str = ""


@dataclass(slots=True)
class LiveInterpreter:
    """Reads what one process wrote down."""

    process: Process
    source: str
    expand_views: bool = False
    """See through views of the catalog."""
    commit: str = ""
    """The state of the script's repository: a commit, ``+`` behind it if there were changes."""
    _runs: LiveRuns = field(init=False)
    _streams: dict[int, p.Node] = field(default_factory=dict)
    _driver: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._runs = LiveRuns(self.process, self.commit)

    def actions(self) -> Iterator[Executed]:
        """What the executions of the process did, in order."""
        self._notes()
        script = script_name(self.process)
        for lines in actions(self.process.executions):
            for executed in self._actions([self._read(line) for line in lines]):
                yield named(executed, script, self.source)
        for line in self.process.connected:
            yield named(self._connected(line), script, self.source)

    def _read(self, line: Line) -> _Read:
        if not isinstance(line.get("plan"), list):
            return _Read(line, None, PlanDependencies(), None, str(line.get("break") or "plan-unreadable"))
        try:
            plan = read_plan(line, streams=self._streams, driver=frozenset(self._driver))
            return _Read(line, plan, flow_of(plan.root, expand_views=self.expand_views), written_by(line, plan))
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
            return _Read(
                line, None, PlanDependencies(), None, f"plan-unreadable: {type(error).__name__}: {error}"[:200]
            )

    def _notes(self) -> None:
        """Data of the driver, and batches of streams: what their columns are."""
        plans: dict[str, p.Node] = {}
        for line in self.process.streams:
            ids = [number for number in line.get("ids") or () if isinstance(number, int)]
            if line.get("e") == "local":
                self._driver.update(ids)
            elif line.get("e") == "stream" and isinstance(line.get("plan"), list):
                try:
                    plans[str(line.get("stream"))] = read_plan(line).root
                except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
                    continue
            elif line.get("e") == "batch":
                stream = plans.get(str(line.get("stream")))
                if stream is not None:
                    self._streams.update(dict.fromkeys(ids, stream))

    # ---- one action ----------------------------------------------------------------------------------------------

    def _actions(self, group: list[_Read]) -> Iterator[Executed]:
        numbered = (each for each in group if each.line.get("execution") is not None)
        root = next((each for each in numbered if each.line["execution"] == each.line.get("root")), group[-1])
        writers = [each for each in group if each.written is not None]
        if root.written is not None or (root.plan is not None and root.plan.command and writers):
            yield self._action(root, group, self._joined(root, writers))
            return
        yield self._action(root, group, None)
        for each in writers:  # an action inside of another: an expression that runs queries, a procedure
            yield self._action(each, [each], each.written)

    def _joined(self, root: _Read, writers: list[_Read]) -> WrittenDataset | None:
        """What is written, by all that tell it: the outermost has the name, the innermost the place."""
        written = root.written or (writers[-1].written if writers else None)
        if written is None:
            return None
        aliases = dict.fromkeys(written.place.aliases)
        columns = written.columns
        for each in writers:
            inner = each.written
            if inner is None or inner is root.written:
                continue
            if inner.parts > written.parts > 0 and inner.place.name.name.endswith(_last(written.place)):
                written = replace(written, place=replace(inner.place, aliases=written.place.aliases), parts=inner.parts)
            elif inner.place.name != written.place.name:
                aliases[inner.place.name] = None
            aliases.update(dict.fromkeys(inner.place.aliases))
            columns = columns or inner.columns
        return replace(written, place=replace(written.place, aliases=tuple(aliases)), columns=columns)

    def _action(self, root: _Read, group: list[_Read], written: WrittenDataset | None) -> Executed:
        if root.plan is not None and (root.flow.columns or root.plan.kind):
            main = root
        else:
            main = next((each for each in group if each.flow.columns), root)
        line = root.line
        run_id = self._runs.id_of(line)
        status = "complete" if line.get("ok") else "failed"
        defined = defined_by(line.get("command"))
        if defined is not None and written is None:
            return self._defined(line, run_id, status, defined)
        if main.plan is None:
            return self._unread(root, run_id, status)
        normal = drawn(main.plan.root)
        flow = main.flow
        is_query = root.plan is not None and not root.plan.command and bool(flow.reads) and not line.get("inference")
        is_query = is_query and not all(_TABLE_LOG.search(read) for read in flow.reads)
        ignored = written is None and not is_query
        places = {place.id: place for each in group if each.plan is not None for place in each.plan.places}
        made: Derivation | None = None
        target = ""
        if written is not None:
            target = written.place.id
            places[target] = joined(places.get(target), written.place)
            normal = f"{written.kind} {written.save_mode} {target}\n{normal}"
            made = self._derivation(flow, target, written, self._statement(written.kind, normal, line, run_id))
        elif not ignored:
            target = f"query:{fingerprint(normal)}"
            statement = self._statement("select", normal, line, run_id)
            made = derivation(flow, target, statement, target_kind="query", mode="replace")
        views = tuple(
            self._derivation(
                view,
                name,
                WrittenDataset(places[name], "create_view", "", "replace", None),
                self._statement("create_view", f"view {name}", line, run_id),
            )
            for name, view in flow.views
            if name in places
        )
        if made is not None and status != "complete":
            made = attempted(made, status)
        read = {dataset: known for each in group if each.plan is not None for dataset, known in each.plan.columns}
        run = self._runs.run(
            line,
            run_id,
            status,
            inputs=inputs_of(flow, [each.line for each in group], read, places),
            outputs=outputs_of(written, flow, [each.line for each in group]),
            plan="" if ignored else normal,
            breaks=() if ignored else tuple(note for note in flow.breaks if note.severity != "info"),
        )
        run = with_reproduction(run, [each.line for each in group], places, self.process)
        columns: dict[str, dict[str, str | None]] = {}
        for each in group:
            for dataset, known in each.plan.columns if each.plan is not None else ():
                columns.setdefault(dataset, {}).update({path: type_ or None for path, type_ in known})
        outcome = outcome_of(made, ignored=ignored)
        return Executed(run, target, made, outcome, {} if ignored else places, {} if ignored else columns, views)

    def _defined(self, line: Line, run_id: str, status: str, defined: Defined) -> Executed:
        """What a command did to the catalog; if it failed, that is nothing."""
        normal = f"{defined.kind} {defined.place.id if defined.place is not None else '?'}"
        notes = tuple(Diagnostic(code, "warning", message) for code, message in defined.breaks)
        outputs = (RunOutput(defined.place.id, defined.does),) if defined.place is not None else ()
        run = self._runs.run(line, run_id, status, outputs=outputs, plan=normal, breaks=notes)
        if status != "complete" or defined.place is None:
            return Executed(run, "", None, "opaque" if notes else "ignored")
        target = defined.place.id
        made = definition(defined, self._statement(defined.kind, normal, line, run_id)) if defined.mode else None
        outcome = made.status if made is not None else "opaque" if notes else "ignored"
        places = {place.id: place for place in (defined.place, defined.source) if place is not None}
        return Executed(run, target, made, outcome, places)

    def _connected(self, line: Line) -> Executed:
        """A write over Spark Connect: its target as the client said it, and the plan as the server explained it."""
        run_id = self._runs.id_of(line)
        status = "complete" if line.get("ok") else "failed"
        facts = line.get("command")
        try:
            text = read_plan_text(str(line.get("text") or ""), Names(case_sensitive=False))
        except PlanTextError as error:
            unread = _Read(line, None, PlanDependencies(), None, f"{line.get('break') or 'plan-unreadable'}: {error}")
            executed = self._unread(unread, run_id, status)
            return replace(executed, run=replace(executed.run, how=PLAN_TEXT))
        place = place_of(facts) if isinstance(facts, Mapping) else None
        if place is None and text.write is not None:
            place, kind, save, mode = text.write.place, text.write.kind, text.write.save_mode, text.write.mode
            names = text.write.columns
        elif place is None:
            return Executed(self._runs.run(line, run_id, status), "", None, "ignored")
        else:
            save, mode = SAVE_MODES.get(str((facts or {}).get("mode", "")).lower(), ("", "append"))
            kind, names = "insert", None
        target = place.id
        normal = f"{kind} {save} {target}\n{text.normal}"
        statement = self._statement(kind, normal, line, run_id)._replace(how=PLAN_TEXT)
        written = WrittenDataset(place, kind, save, mode, names)
        made = self._derivation(text.flow, target, written, statement)
        if status != "complete":
            made = attempted(made, status)
        places = {identity: found.place for identity, found in text.sources.items()}
        places[target] = joined(places.get(target), place)
        run = self._runs.run(
            line,
            run_id,
            status,
            inputs=tuple(RunInput(read) for read in sorted(text.flow.reads)),
            outputs=outputs_of(written, text.flow, []),
            plan=normal,
            breaks=tuple(note for note in (*text.notes, *text.flow.breaks) if note.severity != "info"),
        )
        return Executed(replace(run, how=PLAN_TEXT), target, made, made.status, places)

    def _derivation(
        self, flow: PlanDependencies, target: str, written: WrittenDataset, statement: Statement
    ) -> Derivation:
        columns = None if written.columns is None else [column_path(name) for name in written.columns]
        return derivation(
            flow,
            target,
            statement,
            target_kind=written.place.kind,
            mode=written.mode,
            columns=columns,
            namespace=written.place.name.namespace,
        )

    def _unread(self, root: _Read, run_id: str, status: str) -> Executed:
        problem, _, detail = root.problem.partition(":")
        if problem == "plan-unanalyzed":  # Spark could not make sense of the query: nothing ran
            return Executed(self._runs.run(root.line, run_id, status), "", None, "ignored")
        text = _BREAKS.get(problem, "its plan could not be read")
        note = Diagnostic("break.plan", "error", f"{run_id}: {text}{':' if detail else ''}{detail}")
        return Executed(self._runs.run(root.line, run_id, status, breaks=(note,)), "", None, "opaque")

    def _statement(self, kind: str, normal: str, line: Line, run_id: str) -> Statement:
        time = moment(line.get("started", line.get("ended")))
        return Statement(
            fingerprint=fingerprint(normal),
            kind=kind,
            dialect="spark",
            file="",
            how=PLAN,
            text=normal[:MAX_TEXT],
            run=run_id,
            principal=self._runs.user(line) or None,
            first_seen=time,
            last_seen=time,
        )


def _last(place: DatasetPlace) -> str:
    return "." + place.name.name.rpartition(".")[2]

"""From the executions that a process wrote down to runs, and to derivations of the datasets that they wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from govtool.capture.spark import plan as p
from govtool.capture.spark.analyzed.place_names import place_of
from govtool.capture.spark.analyzed.read import Analyzed, read_plan
from govtool.capture.spark.definitions import Defined
from govtool.capture.spark.dependencies import PlanDependencies
from govtool.capture.spark.drawn import drawn
from govtool.capture.spark.executed import Executed, named
from govtool.capture.spark.execution import Action, Reading, WrittenDataset
from govtool.capture.spark.flow import flow_of
from govtool.capture.spark.interpreter import executed, interpret
from govtool.capture.spark.live.actions import grouped
from govtool.capture.spark.live.batches import Streams
from govtool.capture.spark.live.commands import SAVE_MODES, ends_here, unplaced, written_by
from govtool.capture.spark.live.definitions import defined_by
from govtool.capture.spark.live.rdd_actions import rdd_reading, with_frames
from govtool.capture.spark.live.reproduction import (
    inputs_as_listed,
    outputs_as_left,
    overwrites_partitions,
    with_reproduction,
)
from govtool.capture.spark.live.runs import LiveRuns, inputs_of, outputs_of, script_name
from govtool.capture.spark.live.spool import Line, Process
from govtool.capture.spark.live.variables import SessionVariables
from govtool.capture.spark.nesting import actions_of
from govtool.capture.spark.plantext.read import PlanText
from govtool.capture.spark.plantext.read import read_plan as read_plan_text
from govtool.capture.spark.plantext.scans import Names
from govtool.capture.spark.plantext.tree import PlanTextError
from govtool.model import Diagnostic
from govtool.model.run import Run, RunInput, RunOutput

_BREAKS = {
    "plan-too-large": "its plan was too large to be written down",
    "plan-unreadable": "its plan could not be written down",
}
_REFUSED = "plan-unanalyzed"
"""Spark could not make sense of the query: nothing ran."""
_MALFORMED = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError)
"""Exceptions of reading a plan that is malformed."""


@dataclass(frozen=True, slots=True)
class LiveExecution:
    """An execution that a session's listener heard of."""

    line: Line
    opened: float
    closed: float
    reading: Reading | None
    problem: Diagnostic | None = None
    connected: bool = False
    """It ran over Spark Connect: its plan is text."""
    is_batch: bool = False

    @property
    def is_inference(self) -> bool:
        """True if Spark only looks at files to find their schema."""
        return bool(self.line.get("inference"))


@dataclass(frozen=True, slots=True)
class LiveSource:
    """Makes runs of the executions of one process."""

    runs: LiveRuns
    streams: Streams

    def run(self, action: Action[LiveExecution]) -> Run:
        """The run of an action."""
        line = action.lead.line
        run = self.runs.run(line, batches=self.streams.batches_of(line), text=action.lead.connected)
        return with_reproduction(run, [member.line for member in action.members], self.runs.process)

    def inputs(self, action: Action[LiveExecution]) -> tuple[RunInput, ...]:
        """Return the inputs."""
        reading = action.main.reading
        if reading is None:
            return ()
        if action.lead.connected:
            return tuple(RunInput(read) for read in sorted(reading.flow.reads))
        lines = [self.streams.measured(member.line) for member in action.members]
        readings = [member.reading for member in action.members if member.reading is not None]
        read = inputs_of(reading.flow, lines, readings)
        origins = [origin for line in lines for origin in self.streams.origins_of(line)]
        return inputs_as_listed(read, action.lead.line, [*origins, *lines], readings)

    def outputs(self, action: Action[LiveExecution]) -> tuple[RunOutput, ...]:
        """Return the outputs."""
        reading = action.main.reading
        if action.written is None or reading is None:
            return ()
        writers = [m.line for m in action.members if m.reading is not None and m.reading.written is not None]
        return outputs_as_left(outputs_of(action.written, reading.flow, writers), writers)

    def evidence(self, action: Action[LiveExecution]) -> str:
        """The plan as drawn, below what is done with it."""
        normal = action.main.reading.normal if action.main.reading is not None else ""
        written = action.written
        return f"{written.kind} {written.save_mode} {written.place.id}\n{normal}" if written is not None else normal


@dataclass(slots=True)
class LiveInterpreter:
    """Reads what one process wrote down."""

    process: Process
    source: str
    expand_views: bool = False
    """See through views of the catalog."""
    commit: str = ""
    """The state of the script's repository: a commit, ``+`` behind it if there were changes."""
    _streams: Streams = field(init=False)
    _live: LiveSource = field(init=False)
    _numbered: dict[int, tuple[str, ...]] = field(init=False, default_factory=dict)
    _variables: SessionVariables = field(init=False, default_factory=SessionVariables)

    def __post_init__(self) -> None:
        self._streams = Streams.of(self.process)
        self._live = LiveSource(LiveRuns(self.process, self.commit), self._streams)

    def actions(self) -> Iterator[Executed]:
        """Return the actions of the process, in order."""
        script = script_name(self.process)
        for lines in grouped(self.process.executions):
            for action in actions_of(self._executions(lines)):
                self._number(action)
                yield named(executed(action, self._live), script, self.source)
        for line in self.process.connected:
            for each in interpret([_connected(line)], self._live):
                yield named(each, script, self.source)
        for line in self.process.rdd_actions:
            reading = rdd_reading(line, self._streams.plans, self._streams.driver)
            execution = LiveExecution(with_frames(line), 0.0, 0.0, reading)
            for each in interpret([execution], self._live):
                yield named(each, script, self.source)

    def numbered_runs(self) -> dict[int, tuple[str, ...]]:
        """The ids of runs by the numbers of their executions in the spool; a multi-insert has several.

        Those of the actions that were read: their plans are not read a second time.
        """
        rdds = [line for line in self.process.rdd_actions if isinstance(line.get("n"), int)]
        found: dict[int, tuple[str, ...]] = {int(line["n"]): (self._live.runs.id_of(line),) for line in rdds}
        for number, names in self._numbered.items():
            found[number] = tuple(dict.fromkeys((*found.get(number, ()), *names)))
        return found

    def _number(self, action: Action[LiveExecution]) -> None:
        name = self._live.runs.id_of(action.lead.line)
        for member in action.members:
            number = member.line.get("n")
            if isinstance(number, int):
                self._numbered[number] = tuple(dict.fromkeys((*self._numbered.get(number, ()), name)))

    def _executions(self, lines: Sequence[Line]) -> Iterator[LiveExecution]:
        """Executions of one root. Spark counts them as they begin, and the listener hears of them as they end."""
        for position, line in enumerate(lines):
            number, n = line.get("execution"), line.get("n")
            noted = n if isinstance(n, int) else position
            opened = number if isinstance(number, int) else -noted
            yield self._execution(line, float(opened), float(noted))

    def _execution(self, line: Line, opened: float, closed: float) -> LiveExecution:
        if not isinstance(line.get("plan"), list):
            defined = defined_by(line.get("command"))
            if defined is not None:  # a procedure is called by name, and has no plan
                return LiveExecution(
                    line, opened, closed, Reading(PlanDependencies(), _title(defined), defined=defined)
                )
            return LiveExecution(
                line, opened, closed, None, _problem(line, str(line.get("break") or "plan-unreadable"))
            )
        try:
            plan = read_plan(
                line,
                streams=self._streams.plans,
                driver=self._streams.driver,
                variables=self._variables.before(line),
                checkpoints=self._streams.checkpoints.plans_of(line),
            )
            self._variables.take(line, plan)
            if not plan.command:
                self._streams.checkpoints.take(line, plan.root)
            dynamic = overwrites_partitions(line, self.process)
            return LiveExecution(line, opened, closed, _reading(line, plan, self.expand_views, dynamic=dynamic))
        except _MALFORMED as error:
            text = f"plan-unreadable: {type(error).__name__}: {error}"[:200]
            return LiveExecution(line, opened, closed, None, _problem(line, text))


def _reading(line: Line, plan: Analyzed, expand_views: bool, *, dynamic: bool) -> Reading:
    """The meaning of an analyzed plan, with the facts that were written down beside it."""
    flow = flow_of(plan.root, expand_views=expand_views)
    written = written_by(line, plan, dynamic=dynamic)
    if written is not None and not written.alone and not plan.kind and not flow.columns:
        written = replace(written, final=False)
    defined = defined_by(line.get("command")) if written is None else None
    normal = drawn(plan.root)
    if defined is not None:
        normal = _title(defined)
    lost = unplaced(line, plan) if written is None and defined is None else None
    return Reading(
        flow,
        normal,
        written,
        places={place.id: place for place in plan.places},
        columns={dataset: {path: type_ or None for path, type_ in known} for dataset, known in plan.columns},
        notes=(*flow.breaks, lost) if lost is not None else flow.breaks,
        command=bool(plan.command) and lost is None and not ends_here(line),
        unplaced=lost is not None and lost.code == "break.target",
        defined=defined,
        ids=() if isinstance(plan.root, p.Modify) else tuple(output.id for output in p.outputs_of(plan.root)),
    )


def _title(defined: Defined) -> str:
    """Return the effect of a command on the catalog, in place of a plan."""
    return f"{defined.kind} {defined.place.id if defined.place is not None else '?'}"


def _problem(line: Line, problem: str) -> Diagnostic | None:
    """Return the reason why there is no plan; None if nothing ran."""
    code, _, detail = problem.partition(":")
    if code == _REFUSED:
        return None
    text = _BREAKS.get(code, "its plan could not be read")
    number = line.get("execution", line.get("query", line.get("n")))
    return Diagnostic("break.plan", "error", f"execution {number}: {text}{':' if detail else ''}{detail}")


def _connected(line: Line) -> LiveExecution:
    """A write over Spark Connect: its target as the client gave it, and the plan as the server explained it."""
    try:
        text = read_plan_text(str(line.get("text") or ""), Names(case_sensitive=False))
    except PlanTextError as error:
        problem = _problem(line, f"{line.get('break') or 'plan-unreadable'}: {error}")
        return LiveExecution(line, 0.0, 0.0, None, problem, connected=True)
    written = _target(line.get("command"), text)
    reading = Reading(
        text.flow,
        text.normal,
        written,
        places={identity: found.place for identity, found in text.sources.items()},
        notes=(*text.notes, *text.flow.breaks),
        command=written is None,
    )
    return LiveExecution(line, 0.0, 0.0, reading, connected=True)


def _target(facts: object, text: PlanText) -> WrittenDataset | None:
    place = place_of(facts) if isinstance(facts, Mapping) else None
    if place is not None and isinstance(facts, Mapping):
        save, mode = SAVE_MODES.get(str(facts.get("mode", "")).lower(), ("", "append"))
        return WrittenDataset(place, "insert", save, mode)
    write = text.write
    if write is None:
        return None
    return WrittenDataset(write.place, write.kind, write.save_mode, write.mode, write.columns)

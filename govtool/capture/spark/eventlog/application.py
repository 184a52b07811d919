"""The events of one application, in any order and repetition.

Executions that one action started (CREATE TABLE AS has two, saveAsTable three) share a root. When all of a root have
ended they are handed on, a little later, as their last figures may come after their end; then nothing of them is held.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from govtool.capture.spark.eventlog.lines import Line
from govtool.capture.spark.eventlog.metrics import MetricValues, Registered, register
from govtool.capture.spark.eventlog.rdd_jobs import RddJobs
from govtool.capture.spark.plantext.tree import physical_plan
from govtool.capture.spark.redact import first_line
from govtool.capture.spark.streams import BatchKey, BatchProgress
from govtool.model import Diagnostic
from govtool.redaction import clean_text

LINGER = 16
"""Finished roots that wait for late events before they are handed on."""
MAX_OPEN = 10_000
"""Executions that are waited for; beyond, the oldest are taken as never ended."""

_SCRIPT_AT = re.compile(r" at (\S+\.(?:py|ipynb|R)):\d+\Z")
_SCRIPT = re.compile(r"\.(?:py|jar|R|sql|ipynb|scala)\Z")
_STARTS_OTHERS = re.compile(
    r"Execute (?:Optimized)?(?:InsertInto(?:DataSource|Hive)Dir|Create(?:DataSource|Hive)TableAsSelect"
    r"|SaveIntoDataSource|SaveAsV1Table|(?:MergeInto|Update|Delete)\w*)Command|Atomic\w+TableAsSelect|(?:Create|Replace)TableAsSelect"
)
_COLLECTED = re.compile(r"[.$](?:collect|toLocalIterator|take|tail|head|serveToStream)[\w$]*\(")
"""A frame of Spark that hands rows to the driver."""
_ASSIGNED = ("SetVariable", "Scan ")
"""Operators of a plan that sets a variable to what it reads."""
_EXECUTION = re.compile(rb'"spark\.sql\.execution\.id":"(\d+)"')
_JOB = re.compile(rb'"Job ID":(\d+)')
_COMMAND_SKIPS = frozenset(
    {"--jars", "--py-files", "--files", "--conf", "--packages", "--master", "--name", "--archives", "--properties-file",
     "--driver-memory", "--executor-memory", "--deploy-mode", "--driver-class-path", "--driver-java-options", "--queue",
     "--num-executors", "--executor-cores", "--total-executor-cores", "--repositories", "--exclude-packages",
     "--driver-library-path", "--proxy-user", "--driver-cores", "--principal", "--keytab"}
)  # fmt: skip


@dataclass(slots=True)
class SqlExecution:
    """One SQL execution."""

    id: int
    root: int
    description: str = ""
    details: str = ""
    plan: str = ""
    started: int | None = None
    """Milliseconds since 1970."""
    ended: int | None = None
    error: str = ""
    failed: bool = False
    config: dict[str, str] = field(default_factory=dict)
    """The settings of the session itself."""
    registered: Registered = field(default_factory=Registered)
    jobs: int = 0
    line: int = 1
    part: str = ""


@dataclass(slots=True)
class Application:
    """One application, followed event by event."""

    log: str
    id: str = ""
    name: str = ""
    user: str = ""
    version: str = ""
    started: int | None = None
    ended: int | None = None
    config: dict[str, str] = field(default_factory=dict)
    java: str = ""
    scala: str = ""
    system: dict[str, str] = field(default_factory=dict)
    added: tuple[str, ...] = ()
    """Jars and packages that the user added."""
    script: str = ""
    values: MetricValues = field(default_factory=MetricValues)
    progress: dict[BatchKey, BatchProgress] = field(default_factory=dict)
    """Of the latest batches of streaming queries."""
    collected: int | None = None
    """The number of the first execution whose rows the driver got; None: it got none."""
    assigned: int | None = None
    """The number of the first execution that gave a variable what a query found; None: none did."""
    kept: int | None = None
    """The number of the first execution after a stream left rows in the driver's memory; None: none did."""
    created: set[tuple[str, str]] = field(default_factory=set)
    """Databases and names of the tables that the application made in the session catalog, and did not drop."""
    rdd_jobs: RddJobs = field(default_factory=RddJobs)
    notes: list[Diagnostic] = field(default_factory=list)
    events: int = 0
    _last: int = 0
    _open: dict[int, dict[int, SqlExecution]] = field(default_factory=dict)
    """Executions by root."""
    _roots: dict[int, int] = field(default_factory=dict)
    _ends: dict[int, tuple[int | None, str]] = field(default_factory=dict)
    """Ends that came before, or without, their start."""
    _done: dict[int, None] = field(default_factory=dict)
    _lingering: list[int] = field(default_factory=list)
    _jobs: dict[int, int] = field(default_factory=dict)

    def feed(self, line: Line, part: str) -> Iterator[list[SqlExecution]]:
        """Take up an event; yields the executions of roots that nothing more is to come of.

        Raises:
            ValueError: The line is no JSON object of the kind that it says it is.
        """
        self.events += 1
        match line.event:
            case "SparkListenerStageCompleted":
                self.values.add_stage(line.data)
                return
            case "SparkListenerSQLAdaptiveExecutionUpdate":
                self._adapted(line.data)
                return
            case "SparkListenerJobStart":
                self._job_started(line.data)
                return
            case _:
                pass
        event = json.loads(line.data)
        if not isinstance(event, dict):
            raise ValueError("no JSON object")
        if line.event.startswith("SparkListenerSQL"):
            self._of_execution(event, line, part)
        else:
            self._of_application(event, line.event)
        yield from self._handed_on()

    @property
    def is_old(self) -> bool:
        """True if this is a Spark that does not tell how executions end: one before 3.4."""
        found = re.match(r"(\d+)\.(\d+)", self.version)
        return found is not None and (int(found[1]), int(found[2])) < (3, 4)

    def rest(self) -> Iterator[list[SqlExecution]]:
        """Return the open entries at the end of the log."""
        for root in sorted(self._open):
            yield self._close(root)
        self._open.clear()

    def _of_execution(self, event: dict[str, Any], line: Line, part: str) -> None:
        if line.event == "SparkListenerSQLExecutionStart":
            self._started(event, line, part)
        elif line.event == "SparkListenerSQLExecutionEnd":
            error = event.get("errorMessage")
            self._ended(_integer(event.get("executionId")), _integer(event.get("time")), str(error) if error else None)

    def _of_application(self, event: dict[str, Any], name: str) -> None:
        match name:
            case "SparkListenerDriverAccumUpdates":
                self._accumulated(event)
            case "SparkListenerJobEnd":
                self._job_ended(event)
            case "SparkListenerApplicationStart":
                self.id = str(event.get("App ID") or self.id)
                self.name = clean_text(str(event.get("App Name") or ""))
                self.user = str(event.get("User") or "")
                self.started = _integer(event.get("Timestamp"))
            case "SparkListenerApplicationEnd":
                self.ended = _integer(event.get("Timestamp"))
            case "SparkListenerLogStart":
                self.version = str(event.get("Spark Version") or "")
            case "SparkListenerEnvironmentUpdate":
                self._environment(event)
            case "StreamingQueryListener$QueryProgressEvent":
                self._progressed(_dict(event.get("progress")))
            case "CreateTableEvent" | "DropTableEvent" | "RenameTableEvent":
                self._catalogued(event, name)

    def _catalogued(self, event: dict[str, Any], name: str) -> None:
        """A table of the session catalog was made, dropped or renamed."""
        database, table = str(event.get("database") or ""), str(event.get("name") or "")
        if name == "CreateTableEvent":
            self.created.add((database, table))
        elif (database, table) in self.created:
            self.created.remove((database, table))
            if event.get("newName"):
                self.created.add((database, str(event["newName"])))

    def _accumulated(self, event: dict[str, Any]) -> None:
        for update in _list(event.get("accumUpdates")):
            if isinstance(update, list) and len(update) == 2 and all(isinstance(each, int) for each in update):
                self.values.add(update[0], update[1])

    # ---- executions -------------------------------------------------------------------------------------------------

    def _started(self, event: dict[str, Any], line: Line, part: str) -> None:
        number = _integer(event.get("executionId"))
        if number is None:
            raise ValueError("an execution without a number")
        if number in self._done or number in self._roots:
            return  # the event came twice
        root = _integer(event.get("rootExecutionId"))
        if root is None:
            root = self._started_by(str(event.get("physicalPlanDescription") or "")) or number
        execution = SqlExecution(
            number,
            root,
            str(event.get("description") or ""),
            str(event.get("details") or "")[:2000],
            str(event.get("physicalPlanDescription") or ""),
            _integer(event.get("time")),
            config={str(k): str(v) for k, v in _dict(event.get("modifiedConfigs")).items()},
            line=line.number,
            part=part,
        )
        register(line.data, execution.registered, first=True)
        self._open.setdefault(root, {})[number] = execution
        self._roots[number] = root
        self._last = max(self._last, number)
        if self.collected is None and _COLLECTED.search(execution.details[:300]):
            self.collected = number
        if self.assigned is None and all(word in execution.plan for word in _ASSIGNED):
            self.assigned = number
        if not self.script:
            place = _SCRIPT_AT.search(execution.description)
            self.script = place[1].rsplit("/", 1)[-1] if place is not None else ""
        if number in self._ends:
            self._ended(number, *self._ends.pop(number))

    def _started_by(self, plan: str) -> int | None:
        """Of Sparks that do not tell the root of an execution: the one command that is under way, for what writes."""
        if "Execute Insert" not in physical_plan(plan)[:2000]:
            return None
        under_way = [
            execution.root
            for group in self._open.values()
            for execution in group.values()
            if execution.ended is None and _STARTS_OTHERS.search(physical_plan(execution.plan)[:400])
        ]
        return under_way[0] if len(under_way) == 1 else None

    def _ended(self, number: int | None, time: int | None, error: str | None) -> None:
        if number is None:
            raise ValueError("an execution without a number")
        root = self._roots.get(number)
        if root is None:
            if number not in self._done:
                self._ends[number] = (time, error or "")
            return
        execution = self._open[root][number]
        execution.ended = time if execution.ended is None else execution.ended
        if error:
            execution.error, execution.failed = first_line(error), True
        if all(each.ended is not None for each in self._open[root].values()) and root not in self._lingering:
            self._lingering.append(root)

    def _handed_on(self) -> Iterator[list[SqlExecution]]:
        while len(self._lingering) > LINGER:
            root = self._lingering.pop(0)
            if root in self._open and all(each.ended is not None for each in self._open[root].values()):
                yield self._close(root)
                del self._open[root]
        if len(self._roots) > MAX_OPEN:
            root = min(self._open)
            yield self._close(root)
            del self._open[root]

    def _close(self, root: int) -> list[SqlExecution]:
        found = self._open[root]
        for number in found:
            self._roots.pop(number, None)
            self._done[number] = None
        return [found[number] for number in sorted(found)]

    def unmatched(self) -> int:
        """Ends of executions whose start is not in the log."""
        return len(self._ends)

    def _adapted(self, data: bytes) -> None:
        found = re.match(rb'[^\0]{0,200}?"executionId":(\d+)', data)
        root = self._roots.get(int(found[1])) if found is not None else None
        if found is not None and root is not None:
            register(data, self._open[root][int(found[1])].registered, first=False)

    # ---- jobs: how older Sparks tell that an execution failed --------------------------------------------------

    def _job_started(self, data: bytes) -> None:
        job = _JOB.search(data)
        found = _EXECUTION.findall(data)  # stages may quote properties too; the job's own come last
        if job is not None and found:
            number = int(found[-1])
            self._jobs[int(job[1])] = number
            root = self._roots.get(number)
            if root is not None:
                self._open[root][number].jobs += 1
                if number == root and BatchKey.described(self._open[root][number].description) is not None:
                    self.rdd_jobs.started(data, in_batch=True)  # what SQL does in a foreachBatch has executions
        elif job is not None:
            self.rdd_jobs.started(data)

    def _job_ended(self, event: dict[str, Any]) -> None:
        self.rdd_jobs.ended(event)
        number = self._jobs.pop(_integer(event.get("Job ID")) or 0, None)
        result = _dict(event.get("Job Result"))
        root = self._roots.get(number) if number is not None else None
        if result.get("Result") == "JobFailed" and root is not None and number is not None:
            execution = self._open[root][number]
            error = _dict(result.get("Exception")).get("Message")
            execution.failed = True
            execution.error = execution.error or first_line(str(error or "a job failed"))

    def _progressed(self, event: dict[str, Any]) -> None:
        found = BatchProgress.reported(event)
        if found is not None:
            self.progress[found.key] = found
            if found.is_kept and self.kept is None:
                self.kept = self._last + 1
            if len(self.progress) > MAX_OPEN:
                del self.progress[next(iter(self.progress))]

    # ---- the environment ---------------------------------------------------------------------------------------

    def _environment(self, event: dict[str, Any]) -> None:
        self.config.update({str(k): str(v) for k, v in _pairs(event.get("Spark Properties"))})
        java = dict(_pairs(event.get("JVM Information")))
        self.java = str(java.get("Java Version") or self.java).split(" ")[0]
        self.scala = str(java.get("Scala Version") or self.scala).removeprefix("version ")
        system = dict(_pairs(event.get("System Properties")))
        self.system = {str(k): str(v) for k, v in system.items() if k in ("os.name", "os.arch")}
        command = str(system.get("sun.java.command") or "")
        self.script = script_of(command) or self.script
        classpath = _pairs(event.get("Classpath Entries"))
        own = {str(path).rsplit("/", 1)[-1] for path, origin in classpath if origin == "Added By User"}
        self.added = tuple(sorted({*self.added, *own}))


def script_of(command: str) -> str:
    """The script, or the main class, that a ``spark-submit`` command line runs; empty if it is a shell or not told."""
    words = command.split()
    at = next((i for i, word in enumerate(words) if word.endswith(("SparkSubmit", "spark-submit"))), -1)
    if at < 0:
        return ""
    main = ""
    position = at + 1
    while position < len(words):
        word = words[position]
        if word == "--class" and position + 1 < len(words):
            main = words[position + 1].rsplit(".", 1)[-1]
            position += 2
        elif word in _COMMAND_SKIPS:
            position += 2
        elif word.startswith("--"):
            position += 1
        else:
            break
    # Settings with spaces in them are not quoted here: what follows need not be the script.
    script = next((w for w in words[position:] if _SCRIPT.search(w)), "")
    return main or script.rsplit("/", 1)[-1]


def _integer(value: object) -> int | None:
    """A number as the JVM has it, of 64 bits; None if it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _pairs(value: object) -> list[tuple[Any, Any]]:
    """Properties: an object, or in some versions a list of pairs."""
    if isinstance(value, dict):
        return list(value.items())
    return [(pair[0], pair[1]) for pair in _list(value) if isinstance(pair, list) and len(pair) == 2]

"""Actions of RDDs in a job's spool: those of tracked programs, and those of plain RDDs, which are stated breaks.

Nothing hears of RDDs but their own methods: those that run jobs are wrapped. A call from within pyspark or govtool is
none of the program's; ``DataFrame.foreach`` and ``foreachPartition`` are, which call those of an RDD.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

from govtool.spark.live import process
from govtool.spark.live.driver import frame_rdds
from govtool.spark.live.job import facts
from govtool.spark.live.jvm import call_sites
from govtool.spark.live.jvm.hadoop import qualified
from govtool.spark.live.plans import files

MAX_PLAIN = 1_000
"""Actions of plain RDDs that are written down, by process."""
MAX_TRACKED = 1_000
"""Actions of tracked programs that are written down, by process."""
_WRITES = ("saveAsTextFile", "saveAsPickleFile", "saveAsSequenceFile", "saveAsHadoopFile", "saveAsNewAPIHadoopFile")
_CONFIGURED = ("saveAsHadoopDataset", "saveAsNewAPIHadoopDataset")
"""Methods that write where a configuration of Hadoop has it."""
_PLACES = ("mapreduce.output.fileoutputformat.outputdir", "mapred.output.dir")
FOREACH = ("foreach", "foreachPartition")
"""Methods that hand rows to a function of the job, which may put them anywhere."""
ANSWERS = (
    "aggregate", "collect", "collectAsMap", "countByKey", "countByValue", "first", "fold", "lookup", "max",
    "mean", "min", "reduce", "stats", "sum", "take", "takeOrdered", "takeSample", "toLocalIterator", "top",
    "treeAggregate", "treeReduce",
)  # fmt: skip
"""Methods by which the driver gets values of records."""
_ACTIONS = (*_WRITES, *_CONFIGURED, *FOREACH, *ANSWERS, "count")
PLAIN = "its RDDs are not tracked: make them with govtool.spark.lineage_context(sc)"
"""The reason why rows of a plain RDD's action cannot be traced."""
_THROUGH = "functions over records of an RDD: any part of one may come from any column"
_HANDED = "a function of the job got the rows, and where it put them is not known"

_HERE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "")


class RddActions:
    """Writes the actions of one process's RDDs into its spools.

    Args:
        recorder: The recorder of the process.
    """

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder
        self._seen: set[tuple[str, str]] = set()
        self._plain = 0
        self._tracked = 0
        self._applications: set[str] = set()

    @property
    def has_records(self) -> bool:
        """True if rows are to be traced."""
        return self._recorder.replay is not None

    @property
    def positions(self) -> str:
        """The private folder where positions of records are wanted; empty: they are not."""
        replay = self._recorder.replay
        return str(replay.spool.folder) if replay is not None and replay.eager else ""

    def write(self, context: Any, line: dict[str, Any], plans: list[Any], private: dict[str, Any]) -> None:
        """Write down an action; returns at once.

        Args:
            context: The ``SparkContext``.
            line: Its facts, in the form of an execution.
            plans: The analyzed plans of DataFrames behind it.
            private: What its rows are traced by.
        """
        self._tracked += 1
        if self._tracked <= MAX_TRACKED:
            self._put(context, line, plans, private)
        elif self._tracked == MAX_TRACKED + 1:
            self._full(MAX_TRACKED, "tracked")

    def _put(self, context: Any, line: dict[str, Any], plans: list[Any], private: dict[str, Any]) -> None:
        application = str(context.applicationId)
        session = self._session(context, application)
        common = {"application": application}

        def put() -> None:
            number = self._recorder.next_number()
            if session is not None:
                self._recorder.write(session)
            own = {"n": number, "run": f"rdd-{number}", **common}
            self._recorder.write({"e": "rdd", **own, **line, "frames": frame_rdds.captured(plans)})
            replay = self._recorder.replay
            if replay is not None:
                os.makedirs(replay.spool.folder, mode=0o700, exist_ok=True)
                replay.spool.write({"e": "rdd", **own, **private})

        self._recorder.put(put)

    def _full(self, limit: int, kind: str) -> None:
        self._recorder.note({"e": "trouble", "what": f"more than {limit:,} actions of {kind} RDDs: the rest is lost"})

    def _session(self, context: Any, application: str) -> dict[str, Any] | None:
        """The facts of an application that has no session which is listened to."""
        known = {each for _, _, each in self._recorder.sessions.values()}
        if application in known or application in self._applications:
            return None
        self._applications.add(application)
        return facts.context_facts(context)

    # ---- plain RDDs ---------------------------------------------------------------------------------------------

    def plain(self, rdd: Any, name: str, place: str, path: str, started: float, error: str) -> None:
        """Write down an action of an RDD that is not tracked.

        Args:
            rdd: The RDD.
            name: The method.
            place: File and line of the call.
            path: Where it wrote; empty: nowhere.
            started: When it began, in seconds.
            error: Why it failed; empty: it did not.
        """
        if not path and name not in FOREACH and (name, place) in self._seen:
            return
        self._seen.add((name, place))
        self._plain += 1
        if self._plain > MAX_PLAIN:
            if self._plain == MAX_PLAIN + 1:
                self._full(MAX_PLAIN, "plain")
            return
        description = frame_rdds.described(rdd)
        line = action_line(name, f"{name} at {place}", started, error)
        paths = enumerate(frame_rdds.paths_in(description))
        line["leaves"] = {str(number): {"paths": [path]} for number, path in paths}
        if name in FOREACH:
            line["handed"] = True
        line["reason"] = f"{name} at {place}: {_HANDED if name in FOREACH else _THROUGH}"
        if path:
            line.update(output_facts(path, error))
        self._put(rdd.context, line, frame_rdds.known.behind(description), {"reason": f"{name} at {place}: {PLAIN}"})


def action_line(name: str, label: str, started: float, error: str = "") -> dict[str, Any]:
    """The facts that every action has."""
    line: dict[str, Any] = {"name": name, "label": label, "ok": not error, "started": started, "ended": time.time()}
    if error:
        line["error"] = facts.one_line(error)
    return line


def output_facts(path: str, error: str = "") -> dict[str, Any]:
    """Where an action wrote, and the files that it left there."""
    place = qualified(path)
    found: dict[str, Any] = {"command": {"path": place}}
    try:
        if not error:
            left = files.left_files(place, None, 0.0, {})["left"]
            found.update(left=left, written=left)
            found["metrics"] = {"write": {"files": left["files"], "bytes": left["size"]}}
    except Exception:
        found["unlisted"] = True
    return found


def read_paths(rdd: Any) -> list[str]:
    """The paths of Hadoop files behind an RDD, as its own description has them."""
    return frame_rdds.paths_in(frame_rdds.described(rdd))


_actions: RddActions | None = None


def recording() -> RddActions | None:
    """Return what writes down the actions of this process's RDDs; None unless the process is recorded."""
    global _actions
    if not process.folder:
        return None
    recorder = process.recorder(process.folder)
    if _actions is None or _actions._recorder is not recorder:
        _actions = RddActions(recorder)
    return _actions


def patch(module: ModuleType, collected: Callable[[], None]) -> None:
    """Hear of the actions of RDDs of a module of pyspark.

    Args:
        module: The module.
        collected: Called when the driver was given records.
    """
    for name in _ACTIONS:
        original = getattr(module.RDD, name, None)
        if original is not None:
            setattr(module.RDD, name, _noted(name, original, collected, lambda rdd: rdd))


def patch_frames(frame_class: Any) -> None:
    """Hear of the functions that DataFrames hand their rows to, and of the RDDs of their rows."""
    frame_rdds.known.patch(frame_class)
    for name in FOREACH:
        original = getattr(frame_class, name)
        setattr(frame_class, name, _noted(name, original, lambda: None, lambda frame: frame.rdd))


def _noted(name: str, original: Any, collected: Callable[[], None], rdd_of: Callable[[Any], Any]) -> Any:
    package = call_sites.pyspark_folder()

    @wraps(original)
    def action(self: Any, *args: Any, **named: Any) -> Any:
        caller = sys._getframe(1)
        place = caller.f_code.co_filename
        actions = None if place.startswith((package, _HERE)) else _recording_or_none()
        if actions is None:
            return original(self, *args, **named)
        where = f"{os.path.basename(place)}:{caller.f_lineno}"
        started, error = time.time(), ""
        try:
            return original(self, *args, **named)
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}"
            raise
        finally:
            try:
                if name in ANSWERS:
                    collected()
                actions.plain(rdd_of(self), name, where, _target(name, args, named), started, error)
            except Exception as failure:
                process.trouble(process.folder, f"rdd: {type(failure).__name__}")

    return call_sites.standing_for(original, action)


def _target(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> str:
    """The path that an action writes to; empty: it does not write, or not to a path."""
    if name in _WRITES:
        return str(named.get("path", args[0] if args else ""))
    if name in _CONFIGURED:
        conf = named.get("conf", args[0] if args else {})
        return str(next((conf[key] for key in _PLACES if key in conf), ""))
    return ""


def _recording_or_none() -> RddActions | None:
    try:
        return recording()
    except Exception:
        return None

"""Actions of RDDs in a job's spool: those of tracked programs, and those of plain RDDs, which are stated breaks.

Nothing hears of RDDs but their own methods: those that run jobs are wrapped where records were requested. A call from
within pyspark or govtool is none of the program's.
"""

from __future__ import annotations

import os
import re
import sys
import time
from functools import wraps
from types import ModuleType
from typing import Any

from govtool.spark.live import facts, files, process

MAX_PLAIN = 200
"""Actions of plain RDDs that are written down, by process."""
MAX_TRACKED = 1_000
"""Actions of tracked programs that are written down, by process."""
_READ = re.compile(r"^(?:\(\d+\))?[ |+-]*(?:\(\d+\) )?(\S.*?) (?:New)?HadoopRDD\[", re.MULTILINE)
_WRITES = ("saveAsTextFile", "saveAsPickleFile", "saveAsSequenceFile", "saveAsHadoopFile", "saveAsNewAPIHadoopFile")
_ACTIONS = (
    *_WRITES, "aggregate", "collect", "collectAsMap", "count", "countByKey", "countByValue", "first", "fold",
    "foreach", "foreachPartition", "lookup", "max", "mean", "min", "reduce", "saveAsHadoopDataset",
    "saveAsNewAPIHadoopDataset", "stats", "sum", "take", "takeOrdered", "takeSample", "toLocalIterator", "top",
    "treeAggregate", "treeReduce",
)  # fmt: skip
PLAIN = "its RDDs are not tracked: make them with govtool.spark.lineage_context(sc)"
"""The reason why rows of a plain RDD's action cannot be traced."""

_HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class RddActions:
    """Writes the actions of one process's RDDs into its spools.

    Args:
        recorder: The recorder of the process, with records.
    """

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder
        self._seen: set[tuple[str, str]] = set()
        self._plain = 0
        self._tracked = 0
        self._applications: set[str] = set()

    @property
    def positions(self) -> str:
        """The private folder where positions of records are wanted; empty: they are not."""
        replay = self._recorder.replay
        return str(replay.spool.folder) if replay is not None and replay.eager else ""

    def write(self, context: Any, line: dict[str, Any], private: dict[str, Any]) -> None:
        """Write down an action; returns at once.

        Args:
            context: The ``SparkContext``.
            line: Its facts, in the form of an execution.
            private: What its rows are traced by.
        """
        self._tracked += 1
        if self._tracked <= MAX_TRACKED:
            self._put(context, line, private)
        elif self._tracked == MAX_TRACKED + 1:
            self._full(MAX_TRACKED, "tracked")

    def _put(self, context: Any, line: dict[str, Any], private: dict[str, Any]) -> None:
        application = str(context.applicationId)
        session = self._session(context, application)
        common = {"application": application}

        def put() -> None:
            number = self._recorder.next_number()
            if session is not None:
                self._recorder.write(session)
            own = {"n": number, "run": f"rdd-{number}", **common}
            self._recorder.write({"e": "rdd", **own, **line})
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
        if not path and (name, place) in self._seen:
            return
        self._seen.add((name, place))
        self._plain += 1
        if self._plain > MAX_PLAIN:
            if self._plain == MAX_PLAIN + 1:
                self._full(MAX_PLAIN, "plain")
            return
        read = read_paths(rdd)
        line = action_line(name, f"{name} at {place}", started, error)
        line["leaves"] = {str(number): {"paths": [each]} for number, each in enumerate(read)}
        line["reason"] = f"{name} at {place}: {PLAIN}"
        if path:
            line.update(output_facts(rdd.context, path, error))
        self._put(rdd.context, line, {"reason": f"{name} at {place}: {PLAIN}"})


def action_line(name: str, label: str, started: float, error: str = "") -> dict[str, Any]:
    """The facts that every action has."""
    line: dict[str, Any] = {"name": name, "label": label, "ok": not error, "started": started, "ended": time.time()}
    if error:
        line["error"] = facts.one_line(error)
    return line


def output_facts(context: Any, path: str, error: str = "") -> dict[str, Any]:
    """Where an action wrote, and the files that it left there."""
    place = qualified(context, path)
    found: dict[str, Any] = {"command": {"path": place}}
    try:
        if not error:
            left = files.left_files(place, None, 0.0, {})["left"]
            found.update(left=left, written=left)
            found["metrics"] = {"write": {"files": left["files"], "bytes": left["size"]}}
    except Exception:
        found["unlisted"] = True
    return found


def qualified(context: Any, path: str) -> str:
    """A path with its scheme, as Hadoop resolves it."""
    place = context._jvm.org.apache.hadoop.fs.Path(path)
    return str(place.getFileSystem(context._jsc.hadoopConfiguration()).makeQualified(place).toString())


def read_paths(rdd: Any) -> list[str]:
    """The paths of Hadoop files behind an RDD, as its own description has them."""
    text = rdd._jrdd.rdd().toDebugString()
    found = dict.fromkeys(path for each in _READ.findall(str(text)) for path in each.split(","))
    return [qualified(rdd.context, path) for path in found]


_actions: RddActions | None = None


def recording() -> RddActions | None:
    """Return what writes down the actions of this process's RDDs; None unless records were requested."""
    global _actions
    if not process.folder:
        return None
    recorder = process.recorder(process.folder)
    if recorder.replay is None:
        return None
    if _actions is None or _actions._recorder is not recorder:
        _actions = RddActions(recorder)
    return _actions


def patch(module: ModuleType) -> None:
    """Hear of the actions of RDDs of a module of pyspark."""
    package = os.path.dirname(os.path.abspath(str(sys.modules["pyspark"].__file__)))
    for name in _ACTIONS:
        original = getattr(module.RDD, name, None)
        if original is not None:
            setattr(module.RDD, name, _noted(name, original, (package, _HERE)))


def _noted(name: str, original: Any, own: tuple[str, ...]) -> Any:
    @wraps(original)
    def action(self: Any, *args: Any, **named: Any) -> Any:
        caller = sys._getframe(1)
        place = caller.f_code.co_filename
        actions = None if place.startswith(own) else _recording_or_none()
        if actions is None:
            return original(self, *args, **named)
        where = f"{os.path.basename(place)}:{caller.f_lineno}"
        path = str(named.get("path", args[0] if args else "")) if name in _WRITES else ""
        started, error = time.time(), ""
        try:
            return original(self, *args, **named)
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}"
            raise
        finally:
            try:
                actions.plain(self, name, where, path, started, error)
            except Exception as failure:
                process.trouble(process.folder, f"rdd: {type(failure).__name__}")

    return action


def _recording_or_none() -> RddActions | None:
    try:
        return recording()
    except Exception:
        return None

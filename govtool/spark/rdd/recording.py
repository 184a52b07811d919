"""Actions of a tracked program in the spool of its job, where records were requested.

The line of an action has the paths that it read and wrote; what it is traced by, with records of the driver and
arguments, goes into the private spool. Nothing is done per record.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.spark.live import process, rdd_actions, streams
from govtool.spark.live.driver import frame_rdds
from govtool.spark.live.jvm.hadoop import qualified
from govtool.spark.live.plans import files as listings
from govtool.spark.rdd import eager, saved, sources
from govtool.spark.rdd.log import RddNode, RecordedResult, ancestors
from govtool.spark.rdd.operators import Kind

if TYPE_CHECKING:
    from govtool.spark.rdd.sources import Identity

TAKES = frozenset({"take", "first"})
"""Actions whose result is the first records."""
KEPT = TAKES | {"collect", "saveAsTextFile"}
"""Actions whose result has records, so that their positions are worth a second run."""


@dataclass(slots=True)
class RunningAction:
    """An action while it runs.

    Attributes:
        name: The method.
        label: With file and line.
        node: The RDD that it runs on.
        started: In seconds.
        read: Files of the text sources behind the node, by the source's number.
        path: Where it wrote; empty: nowhere.
        taken: The number of records that were taken from the beginning; None: all.
        texts: Their text.
        result: What it returned, where that is compared later.
    """

    name: str
    label: str
    node: RddNode
    started: float
    read: dict[int, Identity] = field(default_factory=dict)
    path: str = ""
    taken: int | None = None
    result: RecordedResult | None = None
    texts: list[str] = field(default_factory=list)


@contextlib.contextmanager
def action(context: Any, name: str, label: str, node: RddNode) -> Iterator[RunningAction]:
    """Run an action, and write it down if records were requested.

    Args:
        context: The ``SparkContext``.
        name: The method.
        label: With file and line.
        node: The RDD that it runs on.
    """
    running = RunningAction(name, label, node, time.time())
    with _harmless():
        _look(context, running)
    try:
        yield running
    except Exception as failure:
        with _harmless():
            _write(context, running, f"{type(failure).__name__}: {failure}")
        raise
    with _harmless():
        _write(context, running, "")


@contextlib.contextmanager
def _harmless() -> Iterator[None]:
    """Nothing of ours keeps an action from running."""
    try:
        yield
    except Exception as error:
        if process.folder:
            process.trouble(process.folder, f"rdd: {type(error).__name__}: {error}"[:200])


def _look(context: Any, running: RunningAction) -> None:
    """Note which files are about to be read."""
    recorded = rdd_actions.recording() is not None
    for node in ancestors((running.node,)):
        if "path" in node.details and (recorded or "files" not in node.details):
            running.read[node.number] = sources.identities(context, node.details["path"])
            node.details.setdefault("files", running.read[node.number])
            eager.listed(node, running.read[node.number])


def _write(context: Any, running: RunningAction, error: str) -> None:
    actions = rdd_actions.recording()
    if actions is None:
        return
    line = rdd_actions.action_line(running.name, running.label, running.started, error)
    line["steps"] = [each.label for each in ancestors((running.node,))]
    line["leaves"] = {str(n): leaf for n, leaf in enumerate(_leaves(context, running))}
    if running.path:
        line.update(rdd_actions.output_facts(running.path, error))
    if running.name in rdd_actions.ANSWERS:
        streams.rows_were_collected()
    private = {} if error or not actions.has_records else _private(context, running)
    if private and actions.positions and running.name in KEPT:
        private["positions"] = _positions(actions.positions, running)
    plans = [plan for node in _sources(running) for plan in _plans(node)]
    actions.write(context, line, plans, private)


def _leaves(context: Any, running: RunningAction) -> Iterator[dict[str, Any]]:
    """Facts of the files behind a node, in the form of a plan's leaves."""
    for node in ancestors((running.node,)):
        if node.number in running.read:
            listed = [(_listed(file), *identity) for file, identity in running.read[node.number].items()]
            paths = _folders(context, node.details["path"])
            yield {"relation": "text", "paths": paths, "listing": listings.summed(listed)}
    for node in _sources(running):
        for path in rdd_actions.read_paths(node.rdd):
            yield {"paths": [path]}


def _sources(running: RunningAction) -> list[RddNode]:
    """The RDDs of Spark behind an action, which the program does not know more of."""
    nodes = (node for node in ancestors((running.node,)) if node.number not in running.read)
    return [node for node in nodes if node.kind is Kind.SOURCE and node.name != "parallelize"]


def _plans(node: RddNode) -> list[Any]:
    """The analyzed plans of the DataFrames whose rows an RDD of Spark has."""
    return frame_rdds.known.behind(frame_rdds.described(node.rdd))


def _private(context: Any, running: RunningAction) -> dict[str, Any]:
    """What the rows of an action are traced by."""
    document = saved.document({"": running.node})
    entries = {entry["number"]: entry for entry in document["nodes"]}
    for number, identity in running.read.items():
        entries[number]["files"] = identity
        path = entries[number]["path"]
        entries[number]["dataset"] = _folders(context, path)
        # As it was resolved here: another process has another working folder.
        entries[number]["path"] = ",".join(qualified(each) for each in sources.parts(path))
    if running.taken is not None:
        document["taken"] = running.taken
    if running.result is not None:
        document["result"] = [running.result.action, running.result.count, running.result.digest]
    found: dict[str, Any] = {"log": document, "spark": str(context.version)}
    if running.path:
        found["output"] = qualified(running.path)
        if running.name == "saveAsTextFile":
            found["written"] = sources.identities(context, running.path)
    return found


def _positions(folder: str, running: RunningAction) -> dict[str, Any]:
    """Write the positions of an action's records into a file of the private spool; return its facts."""
    started = time.time()
    try:
        found = eager.positions(running.node, not running.path)
    except eager.TooManyPositionsError:
        return {"missing": f"{running.label} has more than {eager.MAX_PAIRS:,} positions of records"}
    except Exception as error:
        return {"missing": f"the positions of {running.label} could not be taken: {type(error).__name__}"}
    texts = dict(found.texts)
    if running.taken is not None:
        texts[eager.RESULT] = {eager.text_id(text): text for text in running.texts}
    data = b"".join(table.pairs for table in found.tables)
    file = Path(folder) / f"{os.getpid()}-{time.time_ns()}.positions"
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as sink:
        sink.write(data)
    return {
        "file": file.name,
        "sha256": hashlib.sha256(data).hexdigest(),
        "tables": [[table.node, table.stop, len(table.pairs), table.exactness, table.reason] for table in found.tables],
        "coarse": found.coarse,
        "texts": [[node, list(own.items())] for node, own in texts.items()],
        "seconds": round(time.time() - started, 3),
    }


def _folders(context: Any, path: str) -> list[str]:
    """The paths of a list, each with its scheme; of a pattern the folder that it looks in."""
    return [_without_pattern(qualified(each)) for each in sources.parts(path)]


def _without_pattern(path: str) -> str:
    names = path.split("/")
    plain = next((n for n, name in enumerate(names) if set(name) & set("*?[{")), len(names))
    return "/".join(names[:plain])


def _listed(file: str) -> str:
    return f"file:{file}" if file.startswith("/") else file

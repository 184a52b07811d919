"""The exact plans of a job's spool, each tied to its run and to the files that the run wrote."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from govtool.records.capture import RecordedWrite
from govtool.redaction import failure_of
from govtool.spark.live.plans.sink_log import FOLDER as SINK_LOG
from govtool.spark.live.plans.sink_log import logged_files
from govtool.spark.live.records.stream_batches import STREAM_STATE

if TYPE_CHECKING:
    from govtool.capture.spark.executed import Executed
    from govtool.capture.spark.identity import DatasetPlace
    from govtool.capture.spark.live.executions import LiveInterpreter
    from govtool.model.run import Run
    from govtool.records.plan.expressions import Value
    from govtool.records.plan.nodes import File, Plan, Relation, Write
    from govtool.records.plan.tree import Node
    from govtool.records.plan.types import Type
    from govtool.records.spooled_plans import Planned

PRIVATE = "private"
"""The folder, within a spool, of what holds data."""
_SLACK = timedelta(milliseconds=5)
"""Times of runs are whole milliseconds. More would take the files of a write just before for those of this one."""


@dataclass(frozen=True, slots=True)
class ProcessActions:
    """The actions of one process of a job.

    Attributes:
        process: The name of its file in the spool.
        runs: Ids of runs by the number of an execution.
        executed: Its actions.
    """

    process: str
    runs: Mapping[int, tuple[str, ...]]
    executed: Sequence[Executed]


def process_actions(interpreter: LiveInterpreter, executed: Sequence[Executed]) -> ProcessActions:
    """The actions of a process with the numbers of their executions."""
    return ProcessActions(interpreter.process.name, interpreter.numbered_runs(), executed)


def recorded_writes(spool: Path, processes: Iterable[ProcessActions]) -> tuple[list[RecordedWrite], list[str]]:
    """The writes and queries of a job whose rows can be traced, and why those of others cannot."""
    from govtool.records.execute.inputs import relations
    from govtool.records.spooled_plans import read_spool

    by_process: dict[str, list[Planned]] = {}
    for captured in read_spool(spool / PRIVATE):
        by_process.setdefault(process_id(captured.process), []).append(captured)
    writes, problems = [], []
    for process in processes:
        plans, lost = _plans(by_process.get(process_id(process.process), ()), process.runs)
        problems += lost
        written, lost = _writes(process.executed, plans)
        writes += written
        problems += lost
    for write in writes:
        stated = _traced_in_part if relations(write.plan.root) else untraceable
        problems += [stated(write.run_id, f"{why} ({remedy(why)})") for why in unreadable_inputs(write.plan)]
    return writes, list(dict.fromkeys(problems))


def process_id(name: str) -> str:
    """The number of a process, of the name of its file in a spool."""
    return name.partition("-")[0]


def _plans(found: Iterable[Planned], runs: Mapping[int, tuple[str, ...]]) -> tuple[dict[str, Plan], list[str]]:
    """The plan of each run: the one that writes, where several executions make one action."""
    from govtool.records.plan.nodes import Write

    plans: dict[str, Plan] = {}
    problems: dict[str, str] = {}
    for captured in found:
        names = runs.get(captured.number, ())
        if captured.plan is None or len(names) > 1:
            problems.update(dict.fromkeys(names, _with_remedy(captured.reason) or "several inserts are one plan"))
            continue
        for name in names:
            if name not in plans or isinstance(captured.plan.root, Write):
                plans[name] = captured.plan
    return plans, [untraceable(name, why) for name, why in problems.items() if name not in plans]


def _with_remedy(reason: str) -> str:
    """Return why there is no plan, with what helps where that is known."""
    return f"{reason} ({remedy(reason)})" if STREAM_STATE in reason else reason


def _changes_rows(action: Executed) -> bool:
    """Return whether a statement changes rows of a table: what it runs on its way is not the plan of its rows."""
    return any(output.mode in _CHANGES for output in action.run.outputs)


def _writes_no_rows(action: Executed) -> bool:
    """Return whether a statement leaves no rows of its own: queries that it runs are those of a table's log."""
    return all(output.mode in _WITHOUT_ROWS for output in action.run.outputs)


def _has_no_rows(plan: Plan) -> bool:
    """Return whether a plan is a command that reads and returns nothing, such as ``CREATE TABLE``."""
    from govtool.records.plan.nodes import Break

    return isinstance(plan.root, Break) and not plan.root.children and not plan.root.columns


def _writes(executed: Iterable[Executed], plans: Mapping[str, Plan]) -> tuple[list[RecordedWrite], list[str]]:
    """The writes and queries that have a plan; one that cannot be read costs the others nothing."""
    writes, problems = [], []
    for action in executed:
        plan = plans.get(action.run.id)
        if plan is None or action.run.status != "complete" or action.outcome == "ignored":
            continue
        try:
            write = _write(action, plan)
        except Exception as error:  # a bug of ours
            problems.append(untraceable(action.run.id, failure_of(error)))
            continue
        if write is not None:
            writes.append(write)
    return writes, problems


def _write(action: Executed, plan: Plan) -> RecordedWrite | None:
    from govtool.records.plan.nodes import Write

    if _changes_rows(action) and not isinstance(plan.root, Write):
        return None
    output = action.target if action.run.outputs else None
    if output is not None and _writes_no_rows(action):
        return None
    if output is None and _has_no_rows(plan):
        return None
    files = None
    if output is not None:
        files = written_files(plan, output, action.places.get(output), action.run)
    return RecordedWrite(action.run.id, plan, output, files, breaks_of(plan))


CONNECT = (
    "it ran through Spark Connect, which keeps plans on the server: run the job in a classic session to record its rows"
)
STREAM = "a streaming query wrote it by itself: write its batches with foreachBatch to have them recorded"


CHANGED = "MERGE, UPDATE and DELETE write rows anew that they do not change: trace what reads the table, by its version"
_CHANGES = ("merge", "update", "delete")
_WITHOUT_ROWS = ("create", "add", "drop", "truncate", "rename_column")
"""Modes of statements that change the catalog, or take all rows away."""


def untraceable_writes(processes: Iterable[ProcessActions], known: Container[str]) -> Iterator[Executed]:
    """The writes of a job that have no plan of their rows, and no reason was found for it.

    Args:
        processes: The job's actions.
        known: Ids of runs whose rows can be traced.
    """
    for process in processes:
        for action in process.executed:
            done = action.run.status == "complete" and action.outcome != "ignored"
            if done and not _writes_no_rows(action) and action.run.id not in known:
                yield action


def untraceable(run: str, reason: str) -> str:
    """Return the remark on a run whose rows cannot be traced."""
    return f"rows of {run} cannot be traced: {reason}"


def _traced_in_part(run: str, reason: str) -> str:
    return f"rows of {run} are traced in part: {reason}"


def reason_of(action: Executed, problems: Iterable[str]) -> str:
    """Return why the rows of a write cannot be traced, and behind a colon what helps.

    Args:
        action: The write.
        problems: Remarks that were made already.
    """
    if _changes_rows(action):
        return CHANGED
    begin = untraceable(action.run.id, "")
    known = next((each.removeprefix(begin) for each in problems if each.startswith(begin)), "")
    if known:
        return known
    if action.run.how == "plan-text":
        return CONNECT
    batches = action.run.batches
    if batches is not None and action.run.id.endswith(f"/{batches.run}"):  # of the query as a whole
        return STREAM
    return "its plan could not be read or was not recorded: the messages of its recording name the reason"


def remedy(reason: str) -> str:
    """Return what helps where rows of an input cannot be read again, by the reason (`unreadable_inputs`)."""
    if STREAM_STATE in reason:
        return "write the stream's own rows to files, and group or join them in a job that reads these"
    return "write what was read to files first, and trace from these"


def unreadable_inputs(plan: Plan) -> tuple[str, ...]:
    """Return why inputs of a plan cannot be read again: databases, topics, RDDs."""
    from govtool.records.plan.nodes import Break
    from govtool.records.plan.tree import walk_nodes

    found = (node.reason for node in walk_nodes(plan.root) if isinstance(node, Break) and not node.nodes())
    return tuple(dict.fromkeys(found))


def breaks_of(plan: Plan) -> tuple[str, ...]:
    """Return the reasons why parts of a plan cannot be evaluated again."""
    from govtool.records.plan.expressions import Opaque
    from govtool.records.plan.nodes import Break
    from govtool.records.plan.tree import walk, walk_nodes

    found: dict[str, None] = {}
    for node in walk_nodes(plan.root):
        if isinstance(node, Break):
            found[node.reason] = None
        for term in walk(node):
            if isinstance(term, Opaque):
                found[term.reason] = None
    return tuple(found)


# ---- written files ------------------------------------------------------------------------------------------------


def written_files(plan: Plan, output: str, place: DatasetPlace | None, run: Run) -> Relation | None:
    """The files that a write left and that are there now; None where that is not known.

    They are the data files in the target's folder that were made while the write ran: what a later write of the job
    replaced is not among them, nor what was appended before. Where there are fewer than the write made, the listing is
    marked as a part (``stored.in_part``); where there are more, another write ran at the time.
    """
    from govtool.records.plan.expressions import Attribute
    from govtool.records.plan.nodes import Relation, Write, outputs
    from govtool.records.plan.types import Field, Struct
    from govtool.records.split_plans import in_part

    root = plan.root
    folder = _folder(place)
    table = _table(root, folder)
    if table is not None:
        return _of_table(plan, output, table, run)
    if not isinstance(root, Write) or folder is None or len(root.columns) != len(outputs(root.child)):
        return None
    types = _types_written(root)
    if len(types) < len(root.columns):
        return None
    files = _files(folder, run, root.partitioned, types, plan.session.zone)
    made = next((each.files for each in run.outputs if each.dataset == output), None)
    if files is None or (made is not None and len(files) > made):
        return None
    own = [name for name in types if name not in root.partitioned]
    attributes = tuple(Attribute(number, name, types[name]) for number, name in enumerate((*own, *root.partitioned)))
    schema = Struct(tuple(Field(name, types[name]) for name in own))
    kind = root.format or _format(files)
    left = Relation(0, output, kind, files, attributes, schema, root.partitioned, root.options)
    return left if made is None or made == len(files) else in_part(left, made)


def _types_written(root: Write) -> dict[str, Type]:
    """The types of the columns that a write has, by their names; those of partitions are spelled as its folders are."""
    from govtool.records.plan.nodes import outputs

    spelled = {name.lower(): name for name in root.partitioned if name not in root.columns}
    columns = [spelled.get(name.lower(), name) for name in root.columns]
    return {name: column.type for name, column in zip(columns, outputs(root.child), strict=True)}


def _table(root: Node, folder: Path | None) -> tuple[str, str] | None:
    """The format and the place of the table that a write went to; None of plain files."""
    from govtool.records.lake.leaf_options import table_of
    from govtool.records.plan.nodes import Write

    known = table_of(root) if isinstance(root, Write) else None
    if known is None and folder is not None and (folder / "_delta_log").is_dir():
        return "delta", str(folder)
    return known


def _of_table(plan: Plan, output: str, table: tuple[str, str], run: Run) -> Relation | None:
    """The files of the commit that a write made."""
    from dataclasses import replace

    from govtool.records.lake.written import written_to_table
    from govtool.records.plan.nodes import Write, outputs

    begin, end = _moment(run.started), _moment(run.ended)
    if begin is None or end is None or not isinstance(plan.root, Write):
        return None
    columns = outputs(plan.root.child)
    if len({column.name.lower() for column in columns}) < len(columns):
        return None
    window = (int((begin - _SLACK).timestamp() * 1000), int((end + _SLACK).timestamp() * 1000) + 1)
    found = written_to_table(*table, columns, window, run.application)
    return None if found is None else replace(found, dataset=output)


def _folder(place: DatasetPlace | None) -> Path | None:
    names = (place.name, *place.aliases) if place is not None else ()
    paths = [Path(name.name) for name in names if name.is_path and name.namespace == "file" and name.name[:1] == "/"]
    return next((path for path in paths if path.exists()), None)


def _files(
    folder: Path, run: Run, partitioned: Sequence[str], types: Mapping[str, Type], zone: str
) -> tuple[File, ...] | None:
    from govtool.records.plan.nodes import File

    begin, end = _moment(run.started), _moment(run.ended)
    if begin is None or end is None:
        return None
    logged = logged_files(folder / SINK_LOG)
    found = []
    for path in sorted(folder.rglob("*")) if folder.is_dir() else [folder]:
        inner = path.relative_to(folder).parts
        if not path.is_file() or any(part.startswith(("_", ".")) for part in inner):
            continue
        facts = path.stat()
        written = datetime.fromtimestamp(facts.st_mtime, begin.tzinfo)
        if not begin - _SLACK <= written <= end + _SLACK:
            continue
        if logged is not None and f"file:{path}" not in logged:
            continue  # a failed attempt of a stream left it
        values = partition_values(inner[:-1], partitioned, types, zone)
        if values is None:
            return None
        found.append((path.as_uri(), facts.st_size, facts.st_mtime_ns // 1_000_000, values))
    return tuple(File(number, *each) for number, each in enumerate(sorted(found)))


def partition_values(
    folders: Sequence[str], names: Sequence[str], types: Mapping[str, Type], zone: str
) -> tuple[Value, ...] | None:
    """The partition values of a file, from its folders; None where they cannot be read.

    Args:
        folders: Between the target's folder and the file.
        names: The columns of the partitions.
        types: Of columns, by name.
        zone: The time zone of the session that wrote them.
    """
    parts = dict(part.partition("=")[::2] for part in folders)
    if set(parts) != set(names):
        return None
    values: list[Value] = []
    for name in names:
        text = unquote(parts[name])
        value = None if text == "__HIVE_DEFAULT_PARTITION__" else _partition_value(text, types[name], zone)
        if value is None and text != "__HIVE_DEFAULT_PARTITION__":
            return None
        values.append(value)
    return tuple(values)


def _partition_value(text: str, kind: Type, zone: str) -> Value:
    """The value in a folder's name; None where it cannot be read: floats, binaries, a time that the zone has twice."""
    from govtool.records.plan import types as t
    from govtool.records.plan.text_values import decimal_value, is_ambiguous, text_value

    if kind == t.STRING:
        return text
    if isinstance(kind, t.Decimal):
        return decimal_value(text, kind)
    if kind in (t.FLOAT, t.DOUBLE) or (kind == t.TIMESTAMP and is_ambiguous(text, zone)):
        return None
    return text_value(text, kind, zone)


def _format(files: Sequence[File]) -> str:
    suffixes = {each.uri.rpartition(".")[2] for each in files}
    return suffixes.pop() if len(suffixes) == 1 else ""


def _moment(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None

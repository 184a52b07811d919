"""Runs of workflows: invocations of modules, the relations between them, and the files that hold them.

The rows inside of an invocation are those of the write that made its output: a ``RecordRun`` (``model/records``) whose
output is the dataset of the relation, and whose application is one of the run's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from govtool.model.parquet import of_format, read_parquet, refusing_damage, write_parquet
from govtool.model.typed import require_types

WORKFLOW_RUNS = "workflow_runs"
"""The store table of runs of workflows; one fragment a run."""
FORMAT = 1
"""Version of the layout, in the Parquet metadata."""
_FORMAT_KEY = b"govtool.workflow_runs"


class RelationFile(NamedTuple):
    """A file of a relation: equal to another only if its place, size and time are."""

    uri: str
    size: int
    modified: int
    """Milliseconds since 1970."""


@dataclass(frozen=True, slots=True)
class BoundaryRelation:
    """A relation at a module boundary, as files.

    Attributes:
        path: Its folder or file.
        format: ``parquet``, ``csv`` or ``json``.
        schema: Its columns, as Spark's JSON has them; empty: not known before it is read.
        files: Its files.
    """

    path: str
    format: str
    schema: str
    files: tuple[RelationFile, ...]


@dataclass(frozen=True, slots=True)
class ModuleInvocation:
    """One invocation of a module. Relations are named, with the paths of their files.

    Attributes:
        execution: The execution, counted from 1 over the whole sequence.
        node: The node of the workflow.
        module: The module.
        number: The number of this invocation of the module, counted from 1 over the whole sequence.
        inputs: What it received: name, path, and the node that made it, or nothing for an input of the workflow.
        state: What it found: name, slot and path.
        new_state: What it left where that differs: name, slot and path.
        outputs: What it made: name and path.
        kept: Names of outputs that are outputs of the execution.
        ran_jobs: Jobs ran while the module's function did. What they gave it (a total, a count, the values of a pivot)
            may decide what it returned.
        indirect: Paths of relations that it did not receive, and that may have decided values which the functions of
            modules left for it: earlier calls read them and ran jobs.
    """

    execution: int
    node: str
    module: str
    number: int
    inputs: tuple[tuple[str, str, str], ...] = ()
    state: tuple[tuple[str, str, str], ...] = ()
    new_state: tuple[tuple[str, str, str], ...] = ()
    outputs: tuple[tuple[str, str], ...] = ()
    kept: tuple[str, ...] = ()
    ran_jobs: bool = False
    indirect: tuple[str, ...] = ()

    @property
    def hangs_on_jobs(self) -> bool:
        """Return whether what jobs gave may have decided what it made: its own jobs, or those of earlier calls."""
        return self.ran_jobs or bool(self.indirect)

    @property
    def reads(self) -> tuple[str, ...]:
        """The paths of all relations that may have decided what it made."""
        received = [path for _, path, _ in self.inputs] + [path for _, _, path in self.state]
        return tuple(dict.fromkeys([*received, *self.indirect]))


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """One run of a workflow: consecutive executions.

    Attributes:
        id: Its id.
        workflow: The name of the workflow.
        status: ``complete``, ``failed`` or ``aborted``: the process was killed.
        mode: ``columns`` or ``records``: how much is captured.
        applications: Ids of the Spark applications that it ran in.
        started: ISO 8601, UTC.
        ended: ISO 8601, UTC; empty: not known.
        error: Why it failed.
        edges: The edges of the workflow, loops unfolded: source, target, relation.
        invocations: What ran, in order; those of an execution that failed included.
        relations: The relations that they name, by path.
        whole: The last execution that is whole.
        program: ``FILE.py`` or ``FILE.py:NAME`` that it was run from; empty: not from a file.
        source: The digest of the files that its modules are written in; empty: not known.
    """

    id: str
    workflow: str
    status: str
    mode: str
    applications: tuple[str, ...]
    started: str
    ended: str
    error: str
    edges: tuple[tuple[str, str, str], ...]
    invocations: tuple[ModuleInvocation, ...]
    relations: Mapping[str, BoundaryRelation]
    whole: int
    program: str = ""
    source: str = ""

    @property
    def executions(self) -> tuple[int, ...]:
        """The executions of the run that are whole."""
        return tuple(sorted({each.execution for each in self.invocations if each.execution <= self.whole}))


def run_text(run: WorkflowRun, known: dict[ModuleInvocation | BoundaryRelation, str] | None = None) -> str:
    """A run as JSON, on one line.

    Args:
        run: The run.
        known: Texts of parts that were written before; it grows. A run that goes on is written again and again.
    """
    known = {} if known is None else known
    body = {name: _json(value) for name, value in _fields(run).items() if name not in ("invocations", "relations")}
    body["invocations"] = _list_text(run.invocations, known)
    body["relations"] = _list_text(run.relations.values(), known)
    return "{" + ",".join(f"{_json(name)}:{body[name]}" for name in sorted(body)) + "}"


def _list_text(
    parts: Iterable[ModuleInvocation | BoundaryRelation], known: dict[ModuleInvocation | BoundaryRelation, str]
) -> str:
    parts = tuple(parts)
    for each in parts:
        if each not in known:
            known[each] = _json(_fields(each))
    return "[" + ",".join([known[each] for each in parts]) + "]"


def _fields(value: WorkflowRun | ModuleInvocation | BoundaryRelation) -> dict[str, Any]:
    found = {each.name: getattr(value, each.name) for each in fields(value)}
    if not found.get("indirect", True):  # so earlier versions read all other runs
        del found["indirect"]
    return found


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def run_from(text: str) -> WorkflowRun:
    """Read what ``run_text`` wrote.

    Raises:
        ValueError, KeyError, TypeError: It is something else.
    """
    body = json.loads(text)
    relations = [
        BoundaryRelation(**{**each, "files": tuple(RelationFile(*file) for file in each["files"])})
        for each in body["relations"]
    ]
    lists = ("inputs", "state", "new_state", "outputs")
    invocations = tuple(
        ModuleInvocation(
            **{
                **each,
                **{name: tuple(map(tuple, each[name])) for name in lists},
                "kept": tuple(each["kept"]),
                "indirect": tuple(each.get("indirect", ())),
            }
        )
        for each in body["invocations"]
    )
    more = {
        "applications": tuple(body["applications"]),
        "edges": tuple((source, target, name) for source, target, name in body["edges"]),
        "invocations": invocations,
        "relations": {each.path: each for each in relations},
    }
    run = WorkflowRun(**{**body, **more})
    require_types(run)
    return run


def encode_workflow_run(run: WorkflowRun) -> bytes:
    """A run as Parquet; equal runs give equal bytes."""
    import pyarrow as pa

    from govtool.model.arrow_arrays import texts

    row = _row(run)
    schema = pa.schema([(name, pa.string()) for name in row], metadata={_FORMAT_KEY: str(FORMAT).encode()})
    return write_parquet(pa.Table.from_arrays([texts([value]) for value in row.values()], schema=schema))


def _row(run: WorkflowRun) -> dict[str, str]:
    row = {"id": run.id, "workflow": run.workflow, "status": run.status, "started": run.started, "body": run_text(run)}
    return {name: value.encode("utf-8", "replace").decode() for name, value in row.items()}


@refusing_damage("a fragment holds no runs of workflows")
def decode_workflow_runs(data: bytes) -> list[WorkflowRun]:
    """Read what ``encode_workflow_run`` wrote.

    Raises:
        IntegrityError: It is something else, or of a newer format, or holds no run or several.
    """
    table = of_format(read_parquet(data), _FORMAT_KEY, FORMAT, "runs of workflows have")
    (row,) = table.to_pylist()
    run = run_from(row["body"])
    if any(row[name] != value for name, value in _row(run).items() if name != "body"):  # older texts had fewer fields
        raise ValueError("the columns of a run say otherwise than its text")
    return [run]


def sorted_runs(runs: Iterable[WorkflowRun]) -> list[WorkflowRun]:
    """Runs, the newest first."""
    return sorted(runs, key=lambda run: (run.started, run.id), reverse=True)

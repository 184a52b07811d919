"""The program of a workflow: the digest of its source, and the file to run again."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.app.workflow_runs.load import load_workflow
from govtool.errors import UsageError

if TYPE_CHECKING:
    from govtool.model.workflow_run import WorkflowRun
    from govtool.workflow.modules.schedule import Schedule
    from govtool.workflow.modules.workflow import Workflow


@dataclass(frozen=True, slots=True)
class FoundProgram:
    """A program to run again.

    Attributes:
        flow: The workflow.
        is_same: Its source is that of the run; False: it is another one, or not known.
    """

    flow: Workflow
    is_same: bool


def source_digest(flow: Workflow) -> str:
    """A digest of the files that the functions of modules are written in; empty where one is in no file."""
    files = set()
    for module in flow.nodes.values():
        try:
            file = inspect.getsourcefile(inspect.unwrap(module.function))
        except TypeError:  # an object that is called
            file = None
        if file is None or not Path(file).is_file():
            return ""
        files.add(file)
    return contents_digest(Path(file).read_bytes() for file in files)


def contents_digest(contents: Iterable[bytes]) -> str:
    """A digest of the contents of files: where they lie does not count."""
    parts = sorted(hashlib.sha256(each).hexdigest() for each in contents)
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def find_program(run: WorkflowRun, stated: str | Workflow | None, folder: Path) -> FoundProgram:
    """The program of a run: the one that is stated, the recorded file, or a file of the same source in a folder.

    Args:
        run: The run.
        stated: ``FILE.py`` or ``FILE.py:NAME``, or the workflow itself.
        folder: Where files of the same source are looked for.

    Raises:
        UsageError: It is not found, or has changed since the run (``usage.program``); or it is another workflow.
        UnknownNameError: The file has no such workflow.
    """
    if stated is not None:
        flow = load_workflow(stated) if isinstance(stated, str) else stated
        return FoundProgram(flow, bool(run.source) and source_digest(flow) == run.source)
    for target in _targets(run, folder):
        flow = load_workflow(target)
        if source_digest(flow) == run.source:
            return FoundProgram(flow, True)
    what = "has changed since" if _is_there(run.program) else "is not found"
    raise UsageError(
        f"the program of run {run.id} {what}",
        code="usage.program",
        location=run.program or None,
        hint="--program FILE.py[:NAME] names the one to run again; --mode propagate runs nothing",
    )


def _is_there(program: str) -> bool:
    return bool(program) and Path(file_of(program)).is_file()


def file_of(program: str) -> str:
    """The file of a recorded program, ``FILE.py`` or ``FILE.py:NAME``."""
    place, colon, _ = program.rpartition(":")
    return place if colon and place.endswith(".py") else program


def _targets(run: WorkflowRun, folder: Path) -> Iterable[str]:
    """Files that may hold the program: the recorded one, and those of the same content. No other file is run."""
    from govtool.app.records.engines import own_files

    if not run.source:
        return
    name = run.program[len(file_of(run.program)) :]
    if _is_there(run.program):
        yield run.program
    for file in own_files(folder):
        if contents_digest([file.read_bytes()]) == run.source:
            yield f"{file}{name}"


def checked_schedule(run: WorkflowRun, flow: Workflow) -> Schedule:
    """The schedule of a program, which has to have the nodes of the run.

    Raises:
        InvalidWorkflowError: The workflow breaks rules.
        UsageError: It has other nodes or modules (``usage.program``).
    """
    schedule = flow.validated()
    known = {use.node: use.module.name for use in schedule.uses}
    for each in run.invocations:
        if known.get(each.node) != each.module:
            raise UsageError(
                f"workflow {flow.name} has no node {each.node} of module {each.module}, as run {run.id} had",
                code="usage.program",
                hint="--program FILE.py[:NAME], the program of the run",
            )
    return schedule

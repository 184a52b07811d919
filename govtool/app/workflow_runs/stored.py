"""Runs of workflows in the store: committed, listed, found by name."""

from __future__ import annotations

import difflib
import hashlib
from typing import TYPE_CHECKING

from govtool.app.project.user import user_name
from govtool.errors import AmbiguousNameError, UnknownNameError
from govtool.model.workflow_run import (
    WORKFLOW_RUNS,
    WorkflowRun,
    decode_workflow_runs,
    encode_workflow_run,
    sorted_runs,
)

if TYPE_CHECKING:
    from govtool.store import Commit, CommitResult, Reader, Store

_CANDIDATES = 20


def commit_workflow_run(store: Store, run: WorkflowRun, branch: str) -> CommitResult:
    """Commit a run; each is a source of its own, so that no run takes the place of another.

    Raises:
        StoreError: The commit could not be written; the store is as it was.
    """
    from govtool.store import Changes, Fragment

    source = f"workflow-run:{run.workflow}:{run.id}"
    data = encode_workflow_run(run)
    return store.commit(
        Changes((source,), (Fragment(source, WORKFLOW_RUNS, data, 1),)),
        message=f"workflow {run.workflow}: {run.id}",
        author=user_name(),
        batch=f"workflow-run:{hashlib.sha256(data).hexdigest()}",
        summary={"command": "workflow run", "workflow": run.workflow, "run": run.id, "status": run.status},
        branch=branch,
    )


def read_workflow_runs(store: Reader, commit: Commit) -> list[WorkflowRun]:
    """The runs of workflows of a commit, the newest first.

    Raises:
        StoreError: A fragment cannot be read.
        IntegrityError: A fragment is not what was written.
    """
    refs = [ref for ref in store.fragments(commit) if ref.table == WORKFLOW_RUNS]
    return sorted_runs(run for data in store.read_many(refs) for run in decode_workflow_runs(data))


def find_workflow_run(store: Reader, commit: Commit, text: str) -> WorkflowRun:
    """The run of an id, of the beginning of one, or of a workflow's name: its last; ``NAME~1`` is the last but one.

    Raises:
        UnknownNameError: There is none (``usage.unknown-run``), with near names.
        AmbiguousNameError: Several ids begin so (``usage.ambiguous-run``).
    """
    runs = read_workflow_runs(store, commit)
    exact = [run for run in runs if run.id == text]
    if exact:
        return exact[0]
    name, _, back = text.partition("~")
    own = [run for run in runs if run.workflow == name]
    number = int(back) if back.isdigit() else 0
    if (not back or back.isdigit()) and number < len(own):
        return own[number]
    begun = [run for run in runs if text and run.id.startswith(text)]
    if len(begun) == 1:
        return begun[0]
    if begun:
        raise AmbiguousNameError(
            f"{text!r} may be {len(begun)} runs",
            code="usage.ambiguous-run",
            nearest=tuple(run.id for run in begun[:_CANDIDATES]),
        )
    known = list(dict.fromkeys(name for run in runs for name in (run.workflow, run.id)))
    raise UnknownNameError(
        f"no run of a workflow is called {text!r}",
        code="usage.unknown-run",
        nearest=tuple(difflib.get_close_matches(text, known, 3, 0.3)),
        hint="govtool workflow list",
    )

"""Capture of a workflow run: the plans of its writes, and a manifest that survives the process."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.app.workflow_runs.state import write_atomically
from govtool.errors import GovtoolError
from govtool.model.workflow_run import BoundaryRelation, ModuleInvocation, WorkflowRun, run_from, run_text

if TYPE_CHECKING:
    from govtool.model.run import Run
    from govtool.store import Store

_WAIT = 60.0
_IDENTIFIED = 16 << 20
"""Bytes of a relation up to which its content is identified, so that runs can be compared."""
RUNS = "runs"
"""The folder of runs that are not yet in the store, within the state folder."""


class RunTracker:
    """Follows one run: listens to its session, and writes its manifest down after every execution."""

    def __init__(self, root: Path, run: WorkflowRun, spark: Any, *, eager: bool = False) -> None:
        from govtool.app.records.writes import PRIVATE
        from govtool.spark.live.job.digest_key import ensure_key
        from govtool.spark.live.listener import Recorder
        from govtool.spark.live.records.exact import PlanRecorder
        from govtool.spark.live.spool import Spool

        self.spool = root / RUNS / run.id
        self._manifest = root / RUNS / f"{run.id}.json"
        self._invocations: list[ModuleInvocation] = list(run.invocations)
        self._relations: dict[str, BoundaryRelation] = dict(run.relations)
        self._texts: dict[ModuleInvocation | BoundaryRelation, str] = {}
        self._run = run
        self._spark = spark
        self.spool.mkdir(parents=True, mode=0o700)
        ensure_key()
        self._recorder = Recorder(Spool(str(self.spool)))
        if run.mode != "columns":
            self._recorder.replay = PlanRecorder(Spool(str(self.spool / PRIVATE)), eager)
        self._recorder.attach(spark)
        self._listener = _last_listener(spark)
        self._save()

    @property
    def run(self) -> WorkflowRun:
        """The run as far as it has gone."""
        return replace(self._run, invocations=tuple(self._invocations), relations=dict(self._relations))

    def invoked(self, invocation: ModuleInvocation, relations: Mapping[str, BoundaryRelation]) -> None:
        """See ``RunObserver``."""
        self._invocations.append(invocation)
        self._relations.update(relations)

    def executed(self, execution: int) -> None:
        """See ``RunObserver``."""
        self._run = replace(self._run, whole=execution)
        self._save()

    def drain(self) -> None:
        """Wait until everything that was heard of is written down."""
        self._recorder.drain(_WAIT)

    def finish(self, status: str, ended: str, error: str = "") -> WorkflowRun:
        """Stop listening, and write down how the run ended."""
        self._recorder.checkpoint(_WAIT)
        with contextlib.suppress(Exception):  # the session may have been stopped
            self._spark._jsparkSession.listenerManager().unregister(self._listener)
        _release(self._recorder.replay)
        self._run = replace(self._run, status=status, ended=ended, error=error)
        self._save()
        return self.run

    def _save(self) -> None:
        write_atomically(self._manifest, run_text(self.run, self._texts))


def _last_listener(spark: Any) -> Any:
    """The listener that was registered last, as the JVM has it: Spark removes by identity, which no new proxy has."""
    listeners = spark._jsparkSession.listenerManager().listListeners()
    return listeners[len(listeners) - 1]


def _release(replay: Any) -> None:
    """Have a recorder of plans keep no more functions and rows: what it patched stays patched."""
    if replay is not None:
        replay.eager = False
        replay.rows._note = _ignore
        replay.functions.note = _ignore


def _ignore(*_: Any) -> None:
    """Take a note of nothing."""


def commit_run(
    store: Store, root: Path, run: WorkflowRun, last: int, branch: str | None = None
) -> tuple[WorkflowRun, tuple[str, ...]]:
    """Commit a run and the plans of its writes, and remove what it left beside the state.

    Args:
        store: The store.
        root: The state folder.
        run: The run; the last of its executions may not have become whole.
        last: The execution that the pointer names.
        branch: Where to commit.

    Returns:
        The run as committed, and warnings: what was lost of the capture.

    Raises:
        StoreError: The commit could not be written; what the run left stays, and the next run commits it.
    """
    from govtool.app.project.project import existing_branch
    from govtool.app.runs.job import remove_spool
    from govtool.capture.sql.collector import uncollected

    target = existing_branch(store, branch)
    run = replace(run, whole=min(run.whole, last))
    spool = root / RUNS / run.id
    with uncollected():
        warnings = _committed(store, spool, run, target)
    remove_spool(spool)
    shutil.rmtree(spool, ignore_errors=True)
    (root / RUNS / f"{run.id}.json").unlink(missing_ok=True)
    return run, warnings


def _committed(store: Store, spool: Path, run: WorkflowRun, target: str) -> tuple[str, ...]:
    from govtool.app.runs.job import commit_captured, read_captured
    from govtool.app.workflow_runs.stored import commit_workflow_run

    captured = read_captured(spool, f"workflow:{run.workflow}")
    captured.gathered.runs = [_with_job(each, run.workflow) for each in captured.gathered.runs]
    if captured.processes:
        commit_captured(
            store,
            captured,
            identified=_IDENTIFIED,
            message=f"workflow {run.workflow}: {run.id}",
            branch=target,
        )
    commit_workflow_run(store, run, target)
    return tuple(captured.warnings)


def _with_job(write: Run, workflow: str) -> Run:
    """What one write is a run of: ``WORKFLOW:NODE/RELATION``, in every execution and state folder."""
    from govtool.query.runs.relation_names import workflow_relation

    found = next((place for each in write.outputs if (place := workflow_relation(each.dataset))), None)
    return write if found is None else replace(write, job=f"{workflow}:{found[1]}")


def commit_interrupted(store: Store, root: Path, last: int, branch: str | None = None) -> tuple[WorkflowRun, ...]:
    """Commit the runs that a killed process left, as ``aborted``, each with its executions up to the ``last``.

    Those that cannot be committed now stay for the next run.
    """
    found = []
    for file in sorted((root / RUNS).glob("*.json")) if (root / RUNS).is_dir() else ():
        try:
            run = run_from(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # cut off before its first execution: nothing in it is whole
        if run.status == "running":
            run = replace(run, status="aborted", error="the process ended before the run did")
        with contextlib.suppress(GovtoolError):
            found.append(commit_run(store, root, run, last, branch)[0])
    return tuple(found)

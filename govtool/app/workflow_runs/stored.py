"""Runs of workflows in the store: committed, listed, found by name."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from govtool.app.project.user import user_name
from govtool.app.records.damaged import DamagedFragment, fragments_beside_damage
from govtool.errors import AmbiguousNameError, IntegrityError, UnknownNameError
from govtool.model.workflow_run import (
    WORKFLOW_RUNS,
    WorkflowRun,
    decode_workflow_runs,
    encode_workflow_run,
    sorted_runs,
)
from govtool.redaction import SECRET

if TYPE_CHECKING:
    from govtool.model.records import RecordRun
    from govtool.store import Commit, CommitResult, FragmentRef, Reader, Store

_CANDIDATES = 20
_SHOWN = 200
"""The most characters of a name in a message."""
_SOURCE = "workflow-run:"
"""The beginning of the source of a run; its workflow and its id follow, with a colon between them."""


@dataclass(frozen=True, slots=True)
class DamagedRun:
    """A run of a workflow whose record cannot be read. Its names are those of its source.

    Attributes:
        id: Its id.
        workflow: The name of the workflow.
        damage: The fragment, and what is wrong with it.
    """

    id: str
    workflow: str
    damage: DamagedFragment

    def error(self) -> IntegrityError:
        """The error of a question that needs the run."""
        return IntegrityError(
            f"the record of the run {self.id} cannot be read: {self.damage.why}",
            code="store.corrupt-fragment",
            location=self.damage.ref.key,
            hint="restore this object from a backup or a copy of the store, or:"
            f" govtool store forget --source '{self.damage.ref.source}', and run the workflow again",
        )


def damaged_run(ref: FragmentRef, why: str) -> DamagedRun:
    """The run whose record is in a fragment that cannot be read."""
    workflow, _, run = ref.source.removeprefix(_SOURCE).rpartition(":")
    return DamagedRun(run, workflow, DamagedFragment(ref, why))


def commit_workflow_run(store: Store, run: WorkflowRun, branch: str) -> CommitResult:
    """Commit a run; each is a source of its own, so that no run takes the place of another.

    Raises:
        StoreError: The commit could not be written; the store is as it was.
    """
    from govtool.store import Changes, Fragment

    source = f"{_SOURCE}{run.workflow}:{run.id}"
    data = encode_workflow_run(run)
    return store.commit(
        Changes((source,), (Fragment(source, WORKFLOW_RUNS, data, 1),)),
        message=f"workflow {run.workflow}: {run.id}",
        author=user_name(),
        batch=f"workflow-run:{hashlib.sha256(data).hexdigest()}",
        summary={"command": "workflow run", "workflow": run.workflow, "run": run.id, "status": run.status},
        branch=branch,
    )


def read_workflow_runs(store: Reader, commit: Commit) -> tuple[list[WorkflowRun], list[DamagedRun]]:
    """The runs of workflows of a commit, the newest first, and those whose records cannot be read.

    Raises:
        StoreError: The store cannot be read.
    """
    refs = [ref for ref in store.fragments(commit) if ref.table == WORKFLOW_RUNS]
    damaged: list[DamagedFragment] = []
    placed = [
        (ref, run) for ref, runs in fragments_beside_damage(store, refs, decode_workflow_runs, damaged) for run in runs
    ]
    others = [damaged_run(ref, why) for ref, run in placed if (why := misplaced(ref, run))]
    own = {run.damage.ref for run in others}
    broken = [*(damaged_run(each.ref, each.why) for each in damaged), *others]
    return sorted_runs(run for ref, run in placed if ref not in own), sorted(broken, key=lambda each: each.id)


def actions_of(run: WorkflowRun, known: Iterable[RecordRun]) -> list[RecordRun]:
    """The recorded actions of a run: what it wrote, and queries of its applications whose rows went to the driver.

    Runs of one Spark session are one application; what each of them wrote is its own.
    """
    from govtool.app.datasets.places import path_id

    written = {path_id(path) for path in run.relations}
    own = [each for each in known if each.application in run.applications]
    return [each for each in own if not each.output or each.output in written]


def names_of(runs: Iterable[WorkflowRun], damaged: Iterable[DamagedRun]) -> Iterator[str]:
    """The workflows and the ids of runs."""
    for run in runs:
        yield from (run.workflow, run.id)
    for lost in damaged:
        yield from (lost.workflow, lost.id)


def misplaced(ref: FragmentRef, run: WorkflowRun) -> str:
    """Why a record is not that of the run which its source names; empty: it is, or text was removed from it."""
    if not ref.source.startswith(_SOURCE) or SECRET in f"{run.workflow}{run.id}":
        return ""
    return "" if ref.source == f"{_SOURCE}{run.workflow}:{run.id}" else f"it is that of the run {run.id[:_SHOWN]}"


def find_workflow_run(store: Reader, commit: Commit, text: str) -> WorkflowRun:
    """The run of an id, of the beginning of one, or of a workflow's name: its last; ``NAME~1`` is the last but one.

    Raises:
        UnknownNameError: There is none (``usage.unknown-run``), with near names.
        AmbiguousNameError: Several ids begin so (``usage.ambiguous-run``).
        IntegrityError: The record of the run that is meant, or may be meant, cannot be read.
    """
    runs, damaged = read_workflow_runs(store, commit)
    exact = [run for run in runs if run.id == text]
    if exact:
        return exact[0]
    name, _, back = text.partition("~")
    own = [run for run in runs if run.workflow == name]
    is_counted = not back or back.isdecimal()
    # When a damaged run began is not known: neither is which run is the last one.
    for each in damaged:
        if each.id == text or (is_counted and each.workflow == name):
            raise each.error()
    number = int(back) if back.isdecimal() else 0
    if is_counted and number < len(own):
        return own[number]
    found = _begun_with(text, runs, damaged) if text else None
    if found is not None:
        return found
    known = list(dict.fromkeys(names_of(runs, damaged)))
    raise UnknownNameError(
        f"no run of a workflow is called {text!r}",
        code="usage.unknown-run",
        nearest=tuple(difflib.get_close_matches(text, known, 3, 0.3)),
        hint="govtool workflow list",
    )


def _begun_with(text: str, runs: Sequence[WorkflowRun], damaged: Sequence[DamagedRun]) -> WorkflowRun | None:
    """The run whose id begins so; None if there is none.

    Raises:
        AmbiguousNameError: Several ids begin so.
        IntegrityError: Its record cannot be read.
    """
    begun = [run for run in runs if run.id.startswith(text)]
    lost = [each for each in damaged if each.id.startswith(text)]
    if len(begun) + len(lost) > 1:
        raise AmbiguousNameError(
            f"{text!r} may be {len(begun) + len(lost)} runs",
            code="usage.ambiguous-run",
            nearest=(*(run.id for run in begun), *(each.id for each in lost))[:_CANDIDATES],
        )
    if lost:
        raise lost[0].error()
    return begun[0] if begun else None

"""Runs as people name them to ``store forget``, and the recorded writes that they consist of."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from govtool.app.upkeep.record_fragments import RecordFragments
from govtool.errors import AmbiguousNameError, GovtoolError, IntegrityError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from govtool.model.workflow_run import WorkflowRun
    from govtool.store import Commit, Reader

_NEAREST = 3
_ALIKE = 0.3
"""How alike names have to be to be suggested, from 0 to 1."""


def written_by(store: Reader, commit: Commit, name: str) -> tuple[str, ...]:
    """The ids of the recorded writes of a run: those of a workflow alone, though others ran in its application.

    Args:
        store: The store.
        commit: The run is one of this commit.
        name: The id of a run of a workflow; a workflow or a job, which is its last run; or ``NAME~1``, the one before.
            The beginning of an id is none: what is removed is gone.

    Returns:
        The ids, or an application with all that it wrote; nothing for any other name.

    Raises:
        UsageError: The run of a workflow has no records of rows (``usage.no-records``).
        IntegrityError: The record of the run that is meant cannot be read.
    """
    from govtool.app.workflow_runs.programs.actions import find_program, read_programs
    from govtool.app.workflow_runs.stored import find_workflow_run

    own = name.rpartition("~")[0] or name
    try:
        run = find_workflow_run(store, commit, name)
        if name == run.id or own == run.workflow:
            return _writes_of(store, commit, run)
    except (UnknownNameError, AmbiguousNameError):
        pass
    try:
        program = find_program(read_programs(store, commit), name)
    except (AmbiguousNameError, IntegrityError):
        return ()  # of damaged records nothing is known, and they are removed all the same
    return (program.application,) if program is not None and own == program.job else ()


def _writes_of(store: Reader, commit: Commit, run: WorkflowRun) -> tuple[str, ...]:
    from govtool.app.records.tables import read_runs_beside_damage
    from govtool.app.workflow_runs.stored import actions_of

    writes, damaged = read_runs_beside_damage(store, commit)
    found = tuple(each.run for each in actions_of(run, writes))
    if not found and not damaged:
        raise UsageError(
            f"the run {run.id} of {run.workflow} has no recorded rows",
            code="usage.no-records",
            hint="govtool workflow list",
        )
    return found


def unknown_run(store: Reader, commit: Commit | None, name: str, found: RecordFragments) -> UnknownNameError:
    """The error about a name that no run with records has."""
    message, hint = f"no records of run {name}", "govtool workflow list"
    if found.damaged:
        sources = sorted({group.source for group in found.groups if group.damaged})
        message += f"; damaged fragments of {', '.join(sources[:3])} may hold them"
        hint = f"govtool store fsck lists them; govtool store forget --source '{sources[0]}' removes all of a source"
    nearest = difflib.get_close_matches(name, list(_known(store, commit, found)), _NEAREST, _ALIKE)
    return UnknownNameError(message, code="usage.unknown-run", nearest=tuple(nearest), hint=hint)


def _known(store: Reader, commit: Commit | None, found: RecordFragments) -> Iterable[str]:
    """All names that would have been understood, each once."""
    from govtool.app.workflow_runs.programs.actions import read_programs
    from govtool.app.workflow_runs.stored import read_workflow_runs

    names: dict[str, None] = {}
    if commit is not None:
        runs, _ = read_workflow_runs(store, commit)
        names.update(dict.fromkeys(each for run in runs if run.mode == "records" for each in (run.workflow, run.id)))
        with contextlib.suppress(GovtoolError):  # of damaged records nothing is known
            names.update(dict.fromkeys(each.job for each in read_programs(store, commit)))
    for group in found.groups:
        for run in group.runs.values():
            names.update(dict.fromkeys((run.application, run.run)))
    return names

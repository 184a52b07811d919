"""Writes of programs that hang, as their code shows, on rows which they collected before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from govtool.app.records.tables import run_order
from govtool.app.runs.lookup import read_history
from govtool.app.workflow_runs.programs.actions import application_of
from govtool.app.workflow_runs.programs.driver_code import UNKNOWN, HangingWrites
from govtool.app.workflow_runs.programs.driver_rows import WritesThatHang, written_by_code

if TYPE_CHECKING:
    from pathlib import Path

    from govtool.model.records import RecordRun
    from govtool.model.run import Run
    from govtool.store import Commit, Reader


def hanging_by_code(store: Reader, commit: Commit, folder: Path) -> WritesThatHang:
    """The writes of an application that hang on rows which it collected, as its code shows.

    Args:
        store: The store.
        commit: Runs are those of this commit.
        folder: Where, and below which, files of the code as it ran are looked for.
    """
    return written_by_code(lambda application: _runs_of(store, commit, application), folder)


def _runs_of(store: Reader, commit: Commit, application: str) -> list[Run]:
    return [run for run in read_history(store, commit).runs if application_of(run) == application]


def code_not_found(application: str) -> HangingWrites:
    """What is known of the writes of an application whose code is not looked for."""
    return UNKNOWN


def hangs(hanging: WritesThatHang, run: RecordRun) -> bool:
    """Return whether a write hangs on what its application collected, as its code shows; not where that is not found.

    Args:
        hanging: See ``hanging_by_code``.
        run: The write.
    """
    writes = hanging(run.application)
    return writes is not UNKNOWN and writes.has(run.output)


def is_before(earlier: RecordRun, later: RecordRun) -> bool:
    """Return whether a job ran one action before another."""
    return earlier.application == later.application and run_order(earlier.run) < run_order(later.run)

"""Writes of programs that hang, as their code shows, on rows which they collected before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from govtool.app.records.tables import run_order
from govtool.app.runs.lookup import read_history
from govtool.app.workflow_runs.programs.actions import application_of
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


def is_before(earlier: RecordRun, later: RecordRun) -> bool:
    """Return whether a job ran one action before another."""
    return earlier.application == later.application and run_order(earlier.run) < run_order(later.run)

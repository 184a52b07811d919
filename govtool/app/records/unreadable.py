"""Runs whose records lie in damaged fragments, with what the history of runs knows of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from govtool.app.records.tables import read_runs_beside_damage
from govtool.app.runs.lookup import job_and_steps, read_history
from govtool.names import renewed_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from govtool.app.records.damaged import DamagedFragment
    from govtool.errors import IntegrityError
    from govtool.model.records import RecordRun
    from govtool.model.run import Run
    from govtool.store import Commit, Reader


@dataclass(frozen=True, slots=True)
class UnreadableRun:
    """A run whose records cannot be read.

    Attributes:
        run: What is known of it otherwise.
        damage: A fragment that may hold its records.
    """

    run: Run
    damage: DamagedFragment

    def reads(self) -> set[str]:
        """The datasets that it read."""
        return each_name(each.dataset for each in self.run.inputs)

    def writes(self) -> set[str]:
        """The datasets that it wrote."""
        return {each.dataset for each in self.run.outputs}

    def datasets(self) -> set[str]:
        """The datasets that it read or wrote."""
        return self.reads() | self.writes()

    def error(self) -> IntegrityError:
        """The error of a question that needs its records."""
        return self.damage.error([self.run.id])

    def why(self) -> str:
        """Why its rows are not known, with what to do about it."""
        error = self.error()
        return f"{error.message} ({error.hint})"

    def is_named(self, text: str) -> bool:
        """Return whether a text may mean it: a part of its id, its application, or its job, as in ``job.py~1``."""
        name, _ = job_and_steps(renewed_text(text.removeprefix("run:")))
        application = self.run.application or self.run.id.rpartition("/")[0]
        by_id = any(text and (one.startswith(text) or one.endswith(text)) for one in self.run.ids)
        return by_id or text == application or any(job == name or job.startswith(f"{name}:") for job in self.run.jobs)


def each_name(inputs: Iterable[str]) -> set[str]:
    """The datasets of inputs: several paths that are read as one have commas between them."""
    return {name for one in inputs for name in (one, *one.split(","))}


def runs_beside_damage(store: Reader, commit: Commit) -> tuple[list[RecordRun], list[UnreadableRun]]:
    """All writes whose rows can be traced, by the ids of their runs, and the runs whose records cannot be read.

    Raises:
        IntegrityError: A damaged fragment holds runs of which nothing is known (``store.corrupt-fragment``).
    """
    known, damaged = read_runs_beside_damage(store, commit)
    lost = list(_unreadable(store, commit, known, damaged)) if damaged else []
    return [run for run in known if run.plan], lost


def _unreadable(
    store: Reader, commit: Commit, known: Sequence[RecordRun], damaged: Iterable[DamagedFragment]
) -> Iterator[UnreadableRun]:
    read = {each.run for each in known}
    history = [run for run in read_history(store, commit).runs if not read.intersection(run.ids)]
    for damage in damaged:
        source = damage.ref.source
        lost = [run for run in history if {"", source} & {run.source, *(one.source for one in run.records)}]
        if not lost:
            raise damage.error()
        yield from (UnreadableRun(run, damage) for run in lost)

"""Functions of modules that ran jobs while they were called: what these read may have decided what was made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from govtool.app.datasets.places import path_id
from govtool.app.workflow_runs.programs.module_code import only_shown_in
from govtool.app.workflow_runs.stored import read_workflow_runs
from govtool.records.execute.places import place_of

if TYPE_CHECKING:
    from pathlib import Path

    from govtool.model.records import RecordRun
    from govtool.records.execute.places import Place
    from govtool.store import Commit, Reader


class DriverQuery(Protocol):
    """A recorded query whose rows went to the driver."""

    @property
    def run(self) -> RecordRun:
        """The query."""

    def read_places(self) -> set[Place]:
        """The files that it read."""


@dataclass(frozen=True, slots=True)
class CallWithJobs:
    """A call of a module whose function ran jobs: these may have decided what it made.

    Attributes:
        name: The invocation, ``Post#2``.
        applications: The applications of its run.
        received: The files of what it received, and of what reached it beside relations, by dataset.
        made: The datasets that it made.
        only_shows: The code shows that nothing it made hangs on what its jobs gave.
        ran_jobs: Jobs ran while it was called; else it can reach values that calls with jobs left.
    """

    name: str
    applications: frozenset[str]
    received: Mapping[str, frozenset[Place]]
    made: frozenset[str]
    only_shows: bool = False
    ran_jobs: bool = True

    def why(self, which: str) -> str:
        """Say why what it made may be another one without rows; ``which`` ends the sentence."""
        if self.ran_jobs:
            return f"jobs ran while {self.name} was called, and may have decided with rows that {which} what it made"
        return f"{self.name} can reach values outside of relations, which jobs of earlier calls may have decided"

    def received_places(self) -> frozenset[Place]:
        """The files of all that it received."""
        return frozenset().union(*self.received.values())


@dataclass(frozen=True, slots=True)
class JobsOfModules:
    """What functions of modules made that ran jobs while they were called: these may have decided what it is.

    Attributes:
        calls: The calls of such functions.
        relations: The files of all relations of workflows.
    """

    calls: tuple[CallWithJobs, ...] = ()
    relations: frozenset[Place] = frozenset()

    @classmethod
    def of(cls, store: Reader, commit: Commit, folder: Path) -> JobsOfModules:
        """Those of the runs of workflows in a version of a store.

        Args:
            store: The store.
            commit: Its version.
            folder: Where, and below which, files of the code as it ran are looked for.
        """
        runs = read_workflow_runs(store, commit)[0]
        shown = only_shown_in(folder, {run.source: run.program for run in runs if run.source})
        files = {
            (run.id, path): frozenset(map(place_of, relation.files))
            for run in runs
            for path, relation in run.relations.items()
        }
        calls = []
        for run in runs:
            for each in run.invocations:
                if each.hangs_on_jobs:
                    made = [path for _, path in each.outputs] + [path for _, _, path in each.new_state]
                    calls.append(
                        CallWithJobs(
                            f"{each.module}#{each.number}",
                            frozenset(run.applications),
                            {path_id(path): files[run.id, path] for path in each.reads if (run.id, path) in files},
                            frozenset(map(path_id, made)),
                            not each.indirect and each.module in shown(run.source),
                            each.ran_jobs,
                        )
                    )
        return cls(tuple(calls), frozenset().union(*files.values()))

    def making(self, outputs: Collection[str]) -> JobsOfModules:
        """Those that made some datasets."""
        return replace(self, calls=tuple(each for each in self.calls if not each.made.isdisjoint(outputs)))

    def ran(self, query: DriverQuery) -> bool:
        """Return whether a query may be a job of one of these functions: it read what one received, or other files."""
        read = query.read_places()
        own = [each for each in self.calls if query.run.application in each.applications]
        return any(read & each.received_places() for each in own) or (bool(own) and read.isdisjoint(self.relations))

    def decided(self, output: str, reached: Collection[Place], queries: Iterable[DriverQuery]) -> str:
        """Say why a dataset may be another one without rows that reached some files; empty if it cannot.

        Args:
            output: The dataset.
            reached: The files.
            queries: Queries whose rows went to the driver. A function may read files that it did not receive.
        """
        for each in self.calls:
            if output in each.made and not each.only_shows:
                if not each.received_places().isdisjoint(reached):
                    return each.why("it received")
                own = (query for query in queries if query.run.application in each.applications)
                if any(not (query.read_places() - self.relations).isdisjoint(reached) for query in own):
                    return each.why("it did not receive")
        return ""

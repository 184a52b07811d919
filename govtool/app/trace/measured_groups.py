"""Measurements of groups: the smallest one behind the rows that recorded runs left in an output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from govtool.app.datasets.stranger_files import are_local, files_beside
from govtool.app.records.dataset_names import inputs_of
from govtool.app.records.engines import engines
from govtool.app.records.opening import open_write
from govtool.app.records.unreadable import UnreadableRun, runs_beside_damage
from govtool.app.runs.lookup import read_history
from govtool.errors import GovtoolError
from govtool.names import join_name, split_name
from govtool.policy.classes.measured import MeasuredGroup
from govtool.records.execute.chain import ExecutorChain
from govtool.records.execute.inputs import changed
from govtool.records.lake.written import LiveTables
from govtool.records.split_plans import made_nothing, relation_of
from govtool.records.trace.groups import SmallestGroup, smallest_group

if TYPE_CHECKING:
    from govtool.app.records.opened import OpenedWrite
    from govtool.model.records import RecordRun
    from govtool.records.plan.nodes import Relation
    from govtool.store import Commit, Reader


class RecordedGroups:
    """Measures the groups of what recorded runs left; starts no JVM. A ``govtool.policy.classes.measured.GroupMeter``.

    Args:
        store: The store.
        commit: Runs are those of this commit.
    """

    def __init__(self, store: Reader, commit: Commit) -> None:
        self._store, self._commit = store, commit
        self._known: dict[tuple[str, str, tuple[str, ...], str], MeasuredGroup] = {}
        self._opened: dict[str, OpenedWrite] = {}
        self._live = LiveTables()

    def measure(self, target: str, source: str, entity: Sequence[str], column: str = "") -> MeasuredGroup:
        """The smallest group of an output; see ``GroupMeter``."""
        key = (target, source, tuple(entity), column)
        if key not in self._known:
            self._known[key] = self._measured(*key)
        return self._known[key]

    @cached_property
    def _runs(self) -> tuple[list[RecordRun], list[UnreadableRun]]:
        return runs_beside_damage(self._store, self._commit)

    @cached_property
    def _dates(self) -> dict[str, str]:
        return {run.id: run.ended or run.started or "" for run in read_history(self._store, self._commit).runs}

    def _measured(self, target: str, source: str, entity: tuple[str, ...], column: str) -> MeasuredGroup:
        counted = " or ".join(entity) if entity else f"rows of {source}"
        known, unreadable = self._runs
        writers = [run for run in known if run.output == target]
        there = [run for run in writers if is_there(run, self._live)]
        left = _left(there)
        others = files_beside(left, self._live)
        lost = next((each.why() for each in unreadable if target in each.writes()), None)
        if lost is not None and (others or not are_local({file.uri for each in left for file in each.files})):
            return MeasuredGroup(target, counted, why=lost)
        if not writers:
            return MeasuredGroup(target, counted, why=f"no recorded run wrote {target} (govtool run --records)")
        if not there:
            last = writers[-1].run
            return MeasuredGroup(target, counted, why=f"the files that {last} wrote are gone, or were written again")
        if others:
            return MeasuredGroup(target, counted, why=f"{others} files of {target} were not left by a recorded run")
        if any(map(self._live.are_thinned, left)):
            return MeasuredGroup(target, counted, why=f"rows of files of {target} were deleted since")
        groups = [self._of_run(run, target, source, entity, counted, column) for run in there]
        unknown = next((each for each in groups if each.at_most is None), None)
        smallest = min(groups, key=lambda each: (each.at_most or 0, each.at_least or 0))
        return unknown or smallest

    def _of_run(
        self, run: RecordRun, target: str, source: str, entity: tuple[str, ...], counted: str, column: str
    ) -> MeasuredGroup:
        members = _members(run, source, entity)
        columns = [f"{dataset}.{column}" for dataset, column in members.items() if column is not None]
        about = MeasuredGroup(target, "".join(columns) or counted, run=run.run, date=self._dates.get(run.run, ""))
        if not members:
            what = " or ".join(entity) or source
            return replace(about, why=f"{run.run} did not read {what}")
        try:
            write = self._open(run)
            if write.lineage.refused:
                first = write.lineage.refused[0]
                return replace(about, why=f"{first.file} {first.reason} since {run.run} read it")
            found = smallest_group(write.lineage, members, _valued(source, column))
        except GovtoolError as error:
            return replace(about, why=error.message)
        if found is None:
            return replace(about, why=f"{run.run} left no row that is made of {counted}")
        return _stated(about, found)

    def _open(self, run: RecordRun) -> OpenedWrite:
        """A write, to be evaluated by DuckDB alone: a check starts no Spark."""
        if run.run not in self._opened:
            write = open_write(self._store, self._commit, run)
            executor = ExecutorChain(engines(write.plan.session)[:1], write.plan.session)
            lineage = replace(write.lineage, executor=executor)
            self._opened[run.run] = replace(write, executor=executor, lineage=lineage)
        return self._opened[run.run]


def is_there(run: RecordRun, live: LiveTables) -> bool:
    """Return whether what a run left is there now, as it left it."""
    left = relation_of(run.written, run.output)
    if left is None or changed([left]) or not live.has(left):
        return False
    return bool(left.files) or made_nothing(left)  # not what a later write of the job replaced


def _stated(about: MeasuredGroup, found: SmallestGroup) -> MeasuredGroup:
    """A measurement as evidence: of a trace that may hold too many rows, only the upper bound is known."""
    if found.grade.exactness == "exact":
        why = "" if found.at_least == found.at_most else "the input is read several times"
        return replace(about, at_least=found.at_least, at_most=found.at_most, why=why)
    if found.grade.exactness == "superset":
        return replace(about, at_least=0, at_most=found.at_most, why=found.grade.why)
    return replace(about, why=found.grade.why)


def _members(run: RecordRun, source: str, entity: Sequence[str]) -> Mapping[str, str | None]:
    """The inputs of a run that have members, with the column that identifies them; None: rows are members.

    Of several columns with the entity, one of the aggregated dataset is taken, else the first by name.
    """
    read = inputs_of(run)
    if not entity:
        return {source: None} if source in read else {}
    found: dict[str, str] = {}
    for name in entity:
        *dataset, column = split_name(name)
        found.setdefault(join_name(dataset), column)
    own = [each for each in (source, *sorted(found)) if each in found and each in read]
    return {own[0]: found[own[0]]} if own else {}


def _valued(source: str, column: str) -> Mapping[str, str]:
    """The aggregated column of the source, if it is one of its own columns."""
    *dataset, name = split_name(column) if column else ("",)
    return {source: name} if join_name(dataset) == source else {}


def _left(runs: Sequence[RecordRun]) -> list[Relation]:
    left = (relation_of(run.written, run.output) for run in runs)
    return [each for each in left if each is not None]

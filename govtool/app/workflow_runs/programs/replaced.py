"""Outputs of which a later write replaced some partitions: the rows at a run's end, before and after a deletion.

An overwrite of the partitions that it writes rows of (Spark's dynamic mode) replaces others where a deletion leaves it
other rows: a partition that it writes no row of any more keeps the rows of the write before, which come back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote, urlparse

from govtool.app.records.writes import partition_values
from govtool.app.workflow_runs.programs.actions import ProgramAction, RecordedProgram, short_names
from govtool.app.workflow_runs.programs.layout import last_contents, written_files
from govtool.app.workflow_runs.programs.rows import partition_cell
from govtool.model.run import OVERWRITES_SOME
from govtool.records.cells import json_value
from govtool.records.execute.places import Place, place_of
from govtool.records.lake.leaf_options import table_of
from govtool.records.plan.nodes import File
from govtool.workflow.modules.run_rows import OutputDeletion
from govtool.workflow.queries.statuses import RowStatus, Values

Partition = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class PartitionWrite:
    """A write into a partitioned output.

    Attributes:
        node: The invocation.
        replaces: It replaced the partitions that it wrote to; else it added to them.
        partitions: Those that it wrote rows of, in JSON's types.
        emptied: Those that it replaced and wrote no row of: the statement named them.
    """

    node: str
    replaces: bool
    partitions: frozenset[Partition]
    emptied: frozenset[Partition] = frozenset()


@dataclass(frozen=True, slots=True)
class PartitionHistory:
    """The writes of a run into one output, from the last one that replaced all of it.

    Attributes:
        relation: The output, as the run's answers call it.
        columns: The columns of its partitions.
        writes: In order; empty: the partitions of a write are not known.
        note: What is to be known where they are not.
    """

    relation: str
    columns: tuple[str, ...]
    writes: tuple[PartitionWrite, ...]
    note: str


def partition_histories(program: RecordedProgram) -> tuple[PartitionHistory, ...]:
    """Outputs of a program of which a later write replaced some partitions or rows."""
    names = short_names(action.output for action in program.actions if action.output)
    by_output: dict[str, list[ProgramAction]] = {}
    for action, is_last in zip(program.actions, last_contents(program), strict=True):
        if action.output and is_last:
            by_output.setdefault(action.output, []).append(action)
    found = []
    for output, actions in by_output.items():
        some = [action for action in actions[1:] if _replaces_some(action)]
        if some:
            runs = " and ".join(action.run.id for action in some)
            note = f"{names[output]}: rows of earlier writes that {runs} may have replaced are among its rows"
            found.append(_history(names[output], actions, note))
    return tuple(found)


def _history(name: str, actions: Sequence[ProgramAction], note: str) -> PartitionHistory:
    found = [_written(action) for action in actions]
    known = [each for each in found if each is not None]
    columns = {names for names, _ in known}
    if len(known) < len(found) or len(columns) != 1:
        return PartitionHistory(name, (), (), note)
    there: dict[Place, Partition] = {}
    writes = []
    for action, (_, own) in zip(actions, known, strict=True):
        partitions, emptied = frozenset(own.values()), frozenset[Partition]()
        if _replaces_some(action):
            left = _left(action)
            gone = {part for place, part in there.items() if left is not None and place not in left}
            emptied = frozenset(gone - partitions)
            there = {place: part for place, part in there.items() if part not in partitions | emptied}
        there.update(own)
        writes.append(PartitionWrite(action.number, _replaces_some(action), partitions, emptied))
    return PartitionHistory(name, columns.pop(), tuple(writes), note)


def _replaces_some(action: ProgramAction) -> bool:
    return bool(action.run.outputs) and action.run.outputs[0].mode == OVERWRITES_SOME


def _written(action: ProgramAction) -> tuple[tuple[str, ...], dict[Place, Partition]] | None:
    """The partition columns of a write, and the partition of each of its files; None where these are not known."""
    from govtool.records.plan import codec
    from govtool.records.split_plans import files_made, relation_of

    record = action.record
    known = relation_of(record.written, action.output) if record is not None and record.written else None
    if record is None or known is None or not known.partitioned or table_of(known) is not None:
        return None
    types = {column.name: column.type for column in known.columns}
    found = {place_of(file): file.partition for file in known.files}
    gone = [file for file in written_files(action) if place_of(file) not in found]  # when the run was recorded
    zone = codec.loads(record.written).session.zone if gone else ""
    for file in gone:
        folders = unquote(urlparse(file.uri).path).split("/")[-1 - len(known.partitioned) : -1]
        values = partition_values(folders, known.partitioned, types, zone)
        if values is None:
            return None
        found[place_of(file)] = values
    if len(found) < files_made(known):
        return None
    kinds = [types[name] for name in known.partitioned]
    return known.partitioned, {place: _json(map(partition_cell, values, kinds)) for place, values in found.items()}


def _left(action: ProgramAction) -> set[Place] | None:
    """The files that were there right after a write; None where they are not known."""
    left = action.run.outputs[0].left
    if left is None or len(left.listed) < left.files:
        return None
    return {place_of(File(number, *file)) for number, file in enumerate(left.listed)}


def _json(values: Iterable[Any]) -> Partition:
    return tuple(json_value(value) for value in values)


# ---- deletions ------------------------------------------------------------------------------------------------------


def without_replaced(
    relations: Mapping[str, OutputDeletion], histories: Iterable[PartitionHistory]
) -> tuple[dict[str, OutputDeletion], tuple[str, ...]]:
    """What a deletion makes of the rows that are there at the end of a run.

    Args:
        relations: What it makes of the rows of each write.
        histories: Those of ``partition_histories``.

    Returns:
        The relations, without rows that a later write replaced; and notes of those that still have them.
    """
    found, notes = dict(relations), []
    for history in histories:
        deletion = found.get(history.relation)
        if deletion is None:
            continue
        places = [deletion.columns.index(name) for name in history.columns if name in deletion.columns]
        if not history.writes or len(places) < len(history.columns) or not _has_all(deletion, history):
            notes.append(history.note)
        else:
            found[history.relation] = _Replacing(deletion, history, tuple(places)).whole()
    return found, tuple(notes)


def _has_all(deletion: OutputDeletion, history: PartitionHistory) -> bool:
    """Return whether a deletion has the rows of all writes; one that made no rows has none."""
    nodes = {*deletion.nodes, *(node for _, node in deletion.gained_by)}
    return nodes <= {write.node for write in history.writes}


@dataclass
class _Replacing:
    deletion: OutputDeletion
    history: PartitionHistory
    places: tuple[int, ...]
    rows: list[tuple[int, RowStatus, str]] = field(default_factory=list)
    gains: list[tuple[Values, tuple[int, str]]] = field(default_factory=list)
    gains_possible: bool = False
    _afterwards: dict[str, set[Partition]] = field(default_factory=dict)
    """The partitions that each write has rows of after the deletion."""
    _unsure: set[str] = field(default_factory=set)
    """Writes with rows of which that is not known."""

    def whole(self) -> OutputDeletion:
        """The rows at the end."""
        self.gains_possible = self.deletion.gains_possible
        for (_, row), node in zip(self.deletion.rows, self.deletion.nodes, strict=True):
            if row.after is not None:
                self._afterwards.setdefault(node, set()).add(self._part(row.after))
            elif row.status == "unknown":
                self._unsure.add(node)
        for values, (_, node) in zip(self.deletion.gains, self.deletion.gained_by, strict=True):
            self._afterwards.setdefault(node, set()).add(self._part(values))
        for (execution, row), node in zip(self.deletion.rows, self.deletion.nodes, strict=True):
            self._row(execution, row, node)
        for values, by in zip(self.deletion.gains, self.deletion.gained_by, strict=True):
            self._gain(values, by)
        return replace(
            self.deletion,
            rows=tuple((execution, row) for execution, row, _ in self.rows),
            nodes=tuple(node for _, _, node in self.rows),
            gains=tuple(values for values, _ in self.gains),
            gained_by=tuple(by for _, by in self.gains),
            gains_possible=self.gains_possible,
        )

    def _row(self, execution: int, row: RowStatus, node: str) -> None:
        was_replaced = any(self._part(row.before) in write.partitions | write.emptied for write in self._later(node))
        if row.status == "deleted":
            self.rows += [] if was_replaced else [(execution, row, node)]
            return
        fate = self._fate(row.before if row.after is None else row.after, node)
        if row.after is None and fate is not None and not self.deletion.computed.isdisjoint(self.history.columns):
            fate = None if any(True for _ in self._later(node)) else fate  # it may be in another partition
        if was_replaced:
            if row.after is not None:
                self._gain(row.after, (execution, node))
            else:
                self.gains_possible |= fate is not True
        elif fate is True:
            self.rows.append((execution, RowStatus(row.before, "deleted"), node))
        else:
            self.rows.append((execution, row if fate is False else RowStatus(row.before, "unknown"), node))

    def _gain(self, values: Values, by: tuple[int, str]) -> None:
        fate = self._fate(values, by[1])
        if fate is False:
            self.gains.append((values, by))
        self.gains_possible |= fate is None

    def _fate(self, values: Values, node: str) -> bool | None:
        """Return whether a row is replaced after the deletion; None: it may be."""
        part = self._part(values)
        fates = [self._writes_to(part, write) for write in self._later(node)]
        return True if True in fates else None if None in fates else False

    def _writes_to(self, part: Partition, write: PartitionWrite) -> bool | None:
        """Return whether a write still replaces a partition after the deletion; None: it may."""
        if part in write.emptied or part in self._afterwards.get(write.node, ()):
            return True
        return None if write.node in self._unsure or self.deletion.gains_possible else False

    def _later(self, node: str) -> Iterator[PartitionWrite]:
        """The writes after one that replaced partitions."""
        names = [write.node for write in self.history.writes]
        return (write for write in self.history.writes[names.index(node) + 1 :] if write.replaces)

    def _part(self, values: Values) -> Partition:
        return _json(values[place] for place in self.places)

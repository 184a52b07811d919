"""Inputs whose files are gone or were written again, evaluated again by the plan of the run that wrote them.

A staging table that is overwritten every night is gone the next day; what it was made of often is not. Where a recorded
run wrote the files that another one read, its plan takes their place, and a trace goes on through it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

from govtool.app.records.dataset_names import is_called
from govtool.errors import EvidenceError, GovtoolError, UsageError
from govtool.records.execute.inputs import changed, relations
from govtool.records.execute.places import Place, place_of
from govtool.records.lake.leaf_options import table_of
from govtool.records.leaves import with_relations
from govtool.records.plan import codec
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Call, Case, Expression, Literal
from govtool.records.plan.leaf_numbers import last_leaf, renumbered
from govtool.records.plan.nodes import Break, Plan, Project, Relation, Union, Write, outputs
from govtool.records.plan.tree import Node, walk_nodes
from govtool.records.sql.dialect import NotExact
from govtool.records.trace.answer import EvaluatedInput
from govtool.records.trace.normal import Ids, normalized, refreshed, spare_ids

if TYPE_CHECKING:
    from govtool.app.records.unreadable import UnreadableRun
    from govtool.model.records import RecordRun
    from govtool.model.run import Run
    from govtool.store import Commit, Reader

_MOST = 20
"""The most runs that one trace goes through in this way."""
_TIMESTAMPS, _MILLIS = "spark.sql.parquet.outputTimestampType", "TIMESTAMP_MILLIS"


class _NotPossible(Exception):
    """What is lost stays lost, with the reason."""


def evaluated_inputs(
    store: Reader, commit: Commit, run: RecordRun, plan: Plan, down_to: Collection[str] = ()
) -> tuple[Plan, tuple[EvaluatedInput, ...], Mapping[str, str]]:
    """A plan without inputs that are lost, as far as the plans of recorded runs give their rows again.

    Args:
        store: The store.
        commit: Runs are those of this commit.
        run: The run whose plan it is.
        plan: The plan.
        down_to: Names of datasets. Inputs that were made of one of them are evaluated again, too: the plan then reads
            these datasets itself.

    Returns:
        The plan; what was evaluated again; and by dataset why its lost files are not.

    Raises:
        EvidenceError: What was made of one of ``down_to`` cannot be evaluated again (``evidence.not-reproduced``).
    """
    if not down_to and not changed(relations(plan.root)):
        return plan, (), {}
    found, ids, leaves = _Writers.of(store, commit), spare_ids(plan.root), count(last_leaf(plan.root) + 1)
    return _Evaluation(found, plan, ids, leaves, frozenset(down_to)).over(plan.root, (run.run,))


@dataclass(frozen=True, slots=True)
class _Writers:
    """The recorded runs that wrote files.

    Attributes:
        store: Their store.
        commit: The version.
        runs: By id.
        facts: What the history knows of them.
        wrote: All files of each.
        of_file: The run that wrote a file.
        lost: Runs whose records cannot be read.
    """

    store: Reader
    commit: Commit
    runs: dict[str, RecordRun] = field(default_factory=dict)
    facts: dict[str, Run] = field(default_factory=dict)
    wrote: dict[str, frozenset[Place]] = field(default_factory=dict)
    of_file: dict[Place, str] = field(default_factory=dict)
    lost: list[UnreadableRun] = field(default_factory=list)

    @staticmethod
    def of(store: Reader, commit: Commit) -> _Writers:
        """All of a commit."""
        from govtool.app.records.unreadable import runs_beside_damage
        from govtool.app.workflow_runs.programs.actions import ProgramAction, read_programs
        from govtool.app.workflow_runs.programs.layout import written_files

        found = _Writers(store, commit, lost=runs_beside_damage(store, commit)[1])
        actions: list[ProgramAction] = [
            action for program in read_programs(store, commit, of_workflows=True) for action in program.actions
        ]
        for action in actions:
            if action.record is None or not action.output:
                continue
            files = frozenset(map(place_of, written_files(action)))
            found.runs[action.run.id], found.facts[action.run.id] = action.record, action.run
            found.wrote[action.run.id] = files
            found.of_file.update(dict.fromkeys(files, action.run.id))
        return found

    def reads(self, run: str, names: Collection[str]) -> bool:
        """Return whether a run read one of some datasets, or what was made of one."""
        seen, waiting = {run}, [run]
        while waiting:  # a table of years is a chain of more runs than functions may call each other
            record = self.runs[waiting.pop()]
            if any(is_called(dataset, name) for _, dataset in record.inputs for name in names):
                return True
            files = [place_of(file) for leaf in relations(codec.loads(record.listings).root) for file in leaf.files]
            writers = {self.of_file[place] for place in files if place in self.of_file} - seen
            seen |= writers
            waiting += sorted(writers)
        return False

    def unreadable(self, leaf: Relation) -> UnreadableRun | None:
        """A run that may have written files of a leaf, and whose records cannot be read."""
        if all(place_of(file) in self.of_file for file in leaf.files):
            return None
        return next((each for each in self.lost if each.writes().intersection(leaf.dataset.split(","))), None)

    def plan(self, run: str) -> Plan:
        """The plan of a run, which gives the rows that it wrote.

        Raises:
            _NotPossible: It may give others.
        """
        from govtool.app.records.tables import read_plan
        from govtool.records.sql.spark import SparkDialect
        from govtool.records.sql.statement import write

        if self.runs[run].program:
            raise _NotPossible(f"{run} is a program of RDDs")
        try:
            plan = read_plan(self.store, self.commit, self.runs[run])
            undetermined = write(plan, SparkDialect(plan.session)).undetermined
        except (NotExact, GovtoolError) as error:
            raise _NotPossible(str(error)) from error
        broken = [node.reason for node in walk_nodes(plan.root) if isinstance(node, Break)]
        if undetermined or broken or not isinstance(plan.root, Write):
            raise _NotPossible((*undetermined, *broken, "its plan writes nothing")[0])
        return plan

    def is_whole(self, run: str) -> bool:
        """Return whether all files of a run are known: as many as Spark counted."""
        made = next((each.files for each in self.facts[run].outputs), None)
        return bool(self.wrote[run]) and (made is None or made == len(self.wrote[run]))


@dataclass(slots=True)
class _Evaluation:
    writers: _Writers
    plan: Plan
    ids: Ids
    leaves: count[int]
    down_to: frozenset[str] = frozenset()
    found: list[EvaluatedInput] = field(default_factory=list)
    why: dict[str, str] = field(default_factory=dict)

    def over(self, root: Node, through: tuple[str, ...]) -> tuple[Plan, tuple[EvaluatedInput, ...], Mapping[str, str]]:
        """The plan with what it reads evaluated again where that is lost."""
        known: dict[int, Node] = {}

        def swapped(leaf: Relation) -> Node:
            if leaf.leaf not in known:
                known[leaf.leaf] = self._leaf(leaf, through)
            made = known[leaf.leaf]
            return made if made is leaf else refreshed_rows(made, leaf, self.ids)

        root = with_relations(root, swapped)
        return replace(self.plan, root=root), tuple(dict.fromkeys(self.found)), self.why

    def _leaf(self, leaf: Relation, through: tuple[str, ...]) -> Node:
        lost = {each.uri for each in changed([leaf])}
        above = self._made_of_wanted(leaf)
        if above:
            try:
                return self._rows(leaf, lost | above, through)
            except _NotPossible as error:
                raise EvidenceError(
                    f"{leaf.dataset} cannot be evaluated again: {error}",
                    code="evidence.not-reproduced",
                    hint="replay the runs one by one: --with DATASET=FILE reads what one of them would write",
                ) from error
        unreadable = self.writers.unreadable(leaf) if lost or self.down_to else None
        if unreadable is not None and self.down_to:
            raise unreadable.error()
        if not any(place_of(file) in self.writers.of_file for file in leaf.files if file.uri in lost):
            self.why.update({} if unreadable is None else {leaf.dataset: unreadable.why()})
            return leaf
        before = len(self.found)
        try:
            return self._rows(leaf, lost, through)
        except _NotPossible as error:
            del self.found[before:]
            self.why[leaf.dataset] = str(error)
            return leaf

    def _made_of_wanted(self, leaf: Relation) -> set[str]:
        """The files of a leaf that were made of a wanted dataset."""
        if not self.down_to or any(is_called(leaf.dataset, name) for name in self.down_to):
            return set()
        made = {file.uri: self.writers.of_file.get(place_of(file), "") for file in leaf.files}
        runs = {run for run in made.values() if run and self.writers.reads(run, self.down_to)}
        return {uri for uri, run in made.items() if run in runs}

    def _rows(self, leaf: Relation, lost: set[str], through: tuple[str, ...]) -> Node:
        """The rows of a leaf, those in lost files by the plans of the runs that wrote them."""
        if table_of(leaf) is not None:
            raise _NotPossible("versions of tables are not evaluated again")
        if leaf.format != "parquet":
            raise _NotPossible(f"values in {leaf.format} files may not be those of the plan that wrote them")
        if leaf.metadata:
            raise _NotPossible("the plan reads where its rows are")
        there = {place_of(file): file for file in leaf.files}
        runs = dict.fromkeys(self._writer(place_of(file)) for file in leaf.files if file.uri in lost)
        parts: list[Node] = []
        for run in runs:
            if not self.writers.is_whole(run) or not self.writers.wrote[run] <= set(there):
                raise _NotPossible(f"it is a part of what {run} wrote")
            there = {place: file for place, file in there.items() if place not in self.writers.wrote[run]}
            parts.append(self._written(leaf, run, through))
        if there:
            rest = replace(leaf, files=tuple(there.values()), leaf=next(self.leaves))
            parts.insert(0, refreshed(rest, self.ids))
        self.found += [EvaluatedInput(leaf.dataset, run) for run in runs]
        return parts[0] if len(parts) == 1 else Union(tuple(parts), leaf.columns)

    def _writer(self, place: Place) -> str:
        if place not in self.writers.of_file:
            raise _NotPossible("no recorded run wrote all of its files that are gone")
        return self.writers.of_file[place]

    def _written(self, leaf: Relation, run: str, through: tuple[str, ...]) -> Node:
        """The columns of a leaf, by the plan of a run that wrote its files."""
        if run in through or len(through) > _MOST:
            raise _NotPossible("it was made in too many runs")
        plan = self.writers.plan(run)
        if plan.session != self.plan.session:
            raise _NotPossible(f"{run} ran in a session of other settings")
        _require_micros(leaf, self.writers.facts[run])
        assert isinstance(plan.root, Write)
        try:
            own = normalized(refreshed(renumbered(plan.root.child, self.leaves), self.ids), self.ids)
        except UsageError as error:
            raise _NotPossible(str(error)) from error
        inner = _Evaluation(self.writers, plan, self.ids, self.leaves, self.down_to)
        made, further, why = inner.over(own, (*through, run))
        if changed(relations(made.root)):
            reason = next((f": {each}" for each in why.values()), "")
            raise _NotPossible(f"what {run} read is gone, too{reason}")
        self.found += further
        return _columns(leaf, plan.root, made.root, self.ids)


def refreshed_rows(rows: Node, leaf: Relation, ids: Ids) -> Node:
    """Rows of a leaf as an operator with its columns; each place of the plan has a copy of its own."""
    copy = refreshed(rows, ids)
    pairs = zip(outputs(copy), leaf.columns, strict=True)
    return Project(copy, tuple(replace(ids.named(new.name, old), id=new.id) for old, new in pairs))


def _columns(leaf: Relation, written: Write, rows: Node, ids: Ids) -> Node:
    """The columns that a leaf reads of what was written, in its order."""
    names = [name.lower() for name in written.columns]
    values: list[Expression] = []
    for column in leaf.columns:
        if names.count(column.name.lower()) != 1:
            raise _NotPossible(f"its column {column.name} was not written by name")
        made = outputs(rows)[names.index(column.name.lower())]
        if t.bare(made.type) != t.bare(column.type):
            raise _NotPossible(f"its column {column.name} is read as another type")
        is_text_of_folders = column.name in leaf.partitioned and column.type == t.STRING
        values.append(_as_folders(made) if is_text_of_folders else made)
    named = tuple(ids.named(column.name, value) for column, value in zip(leaf.columns, values, strict=True))
    return Project(rows, named)


def _as_folders(value: Expression) -> Expression:
    """The text of a partition: an empty one is NULL in the name of a folder."""
    empty = Call("=", (value, Literal("", t.STRING)), t.BOOLEAN)
    return Case(((empty, Literal(None, t.STRING)),), value, t.STRING)


def _require_micros(leaf: Relation, run: Run) -> None:
    """Refuse timestamps that were written with fewer digits than the plan gives."""
    kinds: Sequence[t.Type] = [column.type for column in leaf.columns]
    if any("timestamp" in repr(kind) for kind in kinds) and dict(run.config).get(_TIMESTAMPS) == _MILLIS:
        raise _NotPossible("its timestamps were written as milliseconds")

"""``whatif delete --run``: what a deletion of records makes of the rows that a workflow run wrote.

``propagate`` decides by the annotations alone, over all modules. ``replay`` calls the recorded invocations again
without the records; of a program, it evaluates the recorded plans. ``auto`` propagates, and calls again only what the
relations that were left open hang on; where propagation is certain of a relation between modules, its rows are taken
from there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.answers.run_deletion import RunDeletionAnswer
from govtool.app.records.token_lists import near_tokens, require_tokens
from govtool.app.workflow_runs.addresses import (
    AddressedRelation,
    find_version,
    key_places,
    matches,
    parse_address,
    select_versions,
    versions_of,
)
from govtool.app.workflow_runs.opened import engine_errors
from govtool.app.workflow_runs.without_records import ReplayedRun
from govtool.errors import GovtoolError, UnknownNameError, UsageError
from govtool.workflow.modules.circuit_leaves import AnnotatedRelation
from govtool.workflow.modules.run_circuit import produced_by
from govtool.workflow.modules.run_rows import OutputDeletion
from govtool.workflow.queries.rerun import ReplayDiffers, replayed, resolved
from govtool.workflow.queries.statuses import RowDeletion, RowStatus, deletion_of
from govtool.workflow.queries.survival import Survival, propagate
from govtool.workflow.semirings.counts import standing_counts
from govtool.workflow.why import QueryProvenance

if TYPE_CHECKING:
    from govtool.app.workflow_runs.opened import OpenedRun
    from govtool.app.workflow_runs.programs.again import ProgramReplayer
    from govtool.app.workflow_runs.programs.layout import ProgramLayout
    from govtool.app.workflow_runs.without_records import RunReplayer
    from govtool.model.run import Run
    from govtool.model.workflow_run import BoundaryRelation
    from govtool.workflow.modules.run_circuit import RunCircuit
    from govtool.workflow.modules.run_tuples import RelationRows
    from govtool.workflow.modules.workflow import Workflow

MODES = ("auto", "propagate", "replay")
_NEAR = 20_000
"""Tokens that are looked through for one like a token that there is not."""


@dataclass(frozen=True, slots=True)
class RunDeletionRequest:
    """Deletions of records of a run.

    Attributes:
        deletions: Lists of tokens; each is one deletion.
        mode: Of ``MODES``.
        outputs: Relations to judge: addresses without a key; empty: the outputs of executions.
        program: The program to run again: ``FILE.py[:NAME]`` or the workflow; None: by the digest of its source.
        spark: The session to run it in; None: the active one, or a new one.
    """

    deletions: Sequence[Sequence[str]]
    mode: str = "auto"
    outputs: Sequence[str] = ()
    program: str | Workflow | None = None
    spark: Any = None


def delete_in_run(opened: OpenedRun, request: RunDeletionRequest) -> list[RunDeletionAnswer]:
    """What each of several deletions makes of the rows of a run; the run is annotated once.

    Raises:
        UsageError: A token is there twice; a file has changed since the run; the program to replay is not found.
        UnknownNameError: There is no such token, relation, execution or mode.
        EngineError: No engine evaluates the plans, or Spark is missing for a replay.
    """
    if request.mode not in MODES:
        raise UnknownNameError.of_few("mode", request.mode, MODES)
    if request.program is not None and not opened.has_modules:
        raise UsageError(
            f"run {opened.run.id} has no modules: its recorded plans are evaluated, and no program is called",
            code="usage.program",
            hint="leave --program out",
        )
    return _answers(opened, request, _wanted(opened, request.outputs))


def _answers(
    opened: OpenedRun, request: RunDeletionRequest, wanted: list[AddressedRelation]
) -> list[RunDeletionAnswer]:
    from govtool.app.workflow_runs.programs.driver_rows import queries_before

    records = InputRecords(opened)
    for tokens in request.deletions:
        records.check(tokens)
    with ExitStack() as stack:
        stack.enter_context(engine_errors())
        paths = dict.fromkeys(each.path for each in wanted)
        layout = _layout_of(opened)
        circuit = opened.circuit(paths if layout is None else dict.fromkeys([*paths, *queries_before(layout, paths)]))
        judge = _Deletions(opened, request, wanted, circuit, records, stack, layout)
        return [judge.answer(tokens) for tokens in request.deletions]


def _layout_of(opened: OpenedRun) -> ProgramLayout | None:
    from govtool.app.workflow_runs.programs.files import ProgramFiles

    return opened.files.layout if isinstance(opened.files, ProgramFiles) else None


def statuses_of_row(opened: OpenedRun, row: str, tokens: Sequence[str]) -> set[str]:
    """The statuses that a deletion of records gives to the rows of a run that an address means, by propagation.

    Raises:
        UsageError: The address names no row, or a file has changed since the run.
        UnknownNameError: There is no such token, relation or column.
        EngineError: No engine evaluates the plans.
    """
    address = parse_address(row)
    version = find_version(opened.run, opened.files, address)
    (answer,) = _answers(opened, RunDeletionRequest([tokens], "propagate"), [version])
    (found,) = answer.relations.values()
    places = key_places(found.columns, address.key)
    return {each.status for _, each in found.rows if each.before is not None and matches(each.before, places)}


def _wanted(opened: OpenedRun, outputs: Sequence[str]) -> list[AddressedRelation]:
    """The relations to judge."""
    if not outputs:
        return [each for each in versions_of(opened.run) if each.is_kept]
    found: dict[AddressedRelation, None] = {}
    for text in outputs:
        address = parse_address(text)
        if address.key:
            raise UsageError(
                f"{text} names rows, not a relation", code="usage.address", hint=f"--outputs {address.relation}"
            )
        found.update(dict.fromkeys(select_versions(opened.run, address)))
    return list(found)


class InputRecords:
    """The records that went into a run, by token."""

    def __init__(self, opened: OpenedRun) -> None:
        self._opened = opened

    @cached_property
    def places(self) -> dict[str, tuple[str, int]]:
        """The path of the relation and the row of each record, by token."""
        run, files = self._opened.run, self._opened.files
        made = produced_by(run)
        read = [path for each in run.invocations if each.execution <= run.whole for path in _received(each)]
        sources = [path for path in dict.fromkeys(read) if path not in made]
        return {
            token: (path, row) for path in sources for row, token in enumerate(files.rows(run.relations[path]).tokens)
        }

    def check(self, tokens: Sequence[str]) -> None:
        """Refuse tokens that name no record of the run, or one twice."""
        require_tokens(tokens)
        missing = [token for token in tokens if token not in self.places]
        if missing:
            raise UnknownNameError(
                f"no record of the run is '{missing[0]}'"
                + (f", nor are {len(missing) - 1:,} more" if missing[1:] else ""),
                code="usage.unknown-token",
                nearest=near_tokens(missing[0], list(self.places)[:_NEAR]),
                hint=self._hint(missing[0]),
            )

    def _hint(self, missing: str) -> str:
        datasets = {token.rpartition("@")[0] for token in self.places}
        if any(missing == dataset or dataset.endswith(f"/{missing}") for dataset in datasets):
            return f"a dataset as a whole: govtool replay {self._opened.run.id} --without {missing} --where true"
        example = next(iter(self.places), "")
        like = f"a record is called, for example, {example}; " if example else ""
        if not self._opened.has_modules and not self._opened.all_runs:
            return f"{like}--all-runs goes on to the runs that wrote its inputs"
        return f"{like}a record that was deleted before the run is not there either"

    def rows(self, tokens: Iterable[str]) -> dict[str, set[int]]:
        """The rows of records, by the path of their relation."""
        found: dict[str, set[int]] = {}
        for path, row in (self.places[token] for token in tokens):
            found.setdefault(path, set()).add(row)
        return found


def _received(each: Any) -> Iterator[str]:
    yield from (path for _, path, _ in each.inputs)
    yield from (path for _, _, path in each.state)


@dataclass
class _Deletions:
    opened: OpenedRun
    request: RunDeletionRequest
    wanted: list[AddressedRelation]
    circuit: RunCircuit
    records: InputRecords
    stack: ExitStack
    layout: ProgramLayout | None
    """That of a program; a workflow with modules has none."""
    notes: list[str] = field(default_factory=list)
    _found: dict[str, QueryProvenance] = field(default_factory=dict)

    def answer(self, tokens: Sequence[str]) -> RunDeletionAnswer:
        """One deletion."""
        state = self._propagated(tokens)
        paths = list(dict.fromkeys(each.path for each in self.wanted))
        deletions = {path: self._deletion(path, state) for path in paths}
        again = ReplayedRun()
        if self.request.mode != "propagate":
            is_all = self.request.mode == "replay"
            open_ = [path for path in paths if is_all or not deletions[path].is_certain]
            again = self._again(tokens, open_, state, is_all) if open_ else again
            for path in open_:
                deletions[path] = self._after(path, deletions[path], again, is_all)
        lost = dict(again.failed)
        may_come: tuple[str, ...] = ()
        if self.layout is not None:
            decided, may_come = self._unsettle(self.layout, deletions, state)
            lost |= decided
        coarse = [] if all(each.is_certain for each in deletions.values()) else self.circuit.coarse_notes()
        relations, notes = self._at_the_end(self._by_relation(deletions))
        return RunDeletionAnswer(
            self.opened.run.id,
            self.request.mode,
            tuple(tokens),
            relations,
            tuple(f"{each.module}#{each.number}" for each in again.invocations),
            {str(each): lost[each.path] for each in self.wanted if each.path in lost},
            (*notes, *self.notes, *coarse, *may_come),
        )

    def _unsettle(
        self, layout: ProgramLayout, deletions: dict[str, RowDeletion], state: Survival
    ) -> tuple[dict[str, str], tuple[str, ...]]:
        """Leave open what collected rows that change may have decided; the reason by path, and notes."""
        from govtool.app.workflow_runs.programs.driver_rows import made_with_collected, written_by_code

        def changed(path: str, is_open: bool) -> Iterator[Any]:
            found = deletions[path] if path in deletions else self._deletion(path, state)
            rows = [row for row in found.rows if is_open or row.status != "kept"]
            if rows or found.gains or found.gains_possible:
                yield None
            yield from (cell for row in rows for cell in row.before)

        def runs_of(application: str) -> list[Run]:
            return [each.run for each in layout.program.actions if each.application == application]

        decided = made_with_collected(layout, changed, written_by_code(runs_of, Path.cwd()))
        made = {path: why for path, why in decided.reasons.items() if path in deletions}
        for path in made:
            rows = tuple(RowStatus(row.before, "unknown") for row in deletions[path].rows)
            deletions[path] = RowDeletion(rows, (), gains_possible=True)
        return made, decided.notes

    def _at_the_end(self, relations: dict[str, OutputDeletion]) -> tuple[Mapping[str, OutputDeletion], tuple[str, ...]]:
        """The relations without rows that later writes replaced, unless some were asked for; and the notes."""
        from govtool.app.workflow_runs.programs.replaced import without_replaced

        if self.request.outputs:
            return relations, self.opened.notes
        found, left = without_replaced(relations, self.opened.histories)
        settled = {each.note for each in self.opened.histories} - set(left)
        return found, tuple(note for note in self.opened.notes if note not in settled)

    def _by_relation(self, deletions: Mapping[str, RowDeletion]) -> dict[str, OutputDeletion]:
        found: dict[str, OutputDeletion] = {}
        for each in self.wanted:
            own = deletions[each.path]
            provenance = self._provenance(each.path)
            columns = tuple(column.name for column in provenance.query.columns)
            computed = [column.name for column in provenance.query.columns if column.id in provenance.cells]
            known = found.get(each.relation, OutputDeletion(columns))
            known = replace(known, gains_possible=known.gains_possible or own.gains_possible)
            found[each.relation] = known.joined((each.execution, each.node), columns, own.rows, own.gains, computed)
        return found

    # ---- propagation ------------------------------------------------------------------------------------------------

    @cached_property
    def _counts(self) -> Any:
        return standing_counts(self.circuit.circuit)

    def _provenance(self, path: str) -> QueryProvenance:
        if path not in self._found:
            self._found[path] = QueryProvenance(self.circuit.query(path), self.circuit.tokens)
        return self._found[path]

    def _propagated(self, tokens: Sequence[str]) -> Survival:
        nodes = np.array(sorted(self.circuit.tokens.nodes(list(tokens)).values()), np.int64)
        first = self._provenance(self.wanted[0].path)
        return propagate(first.query, self._counts, nodes)

    def _deletion(self, path: str, state: Survival) -> RowDeletion:
        return deletion_of(self._provenance(path), state, state.is_open(self.circuit.gate(path)))

    # ---- replay -----------------------------------------------------------------------------------------------------

    @cached_property
    def _replayer(self) -> RunReplayer | ProgramReplayer:
        from govtool.app.workflow_runs.frames import BoundaryFrames
        from govtool.app.workflow_runs.programs.again import ProgramReplayer
        from govtool.app.workflow_runs.programs.files import ProgramFiles
        from govtool.app.workflow_runs.run import spark_session
        from govtool.app.workflow_runs.source import checked_schedule, find_program
        from govtool.app.workflow_runs.without_records import RunReplayer

        if isinstance(self.opened.files, ProgramFiles):
            return ProgramReplayer(self.opened.run, self.opened.files)
        program = find_program(self.opened.run, self.request.program, Path.cwd())
        if not program.is_same:
            self.notes.append("the program that was run again is not known to be that of the run")
        schedule = checked_schedule(self.opened.run, program.flow)
        session = self.stack.enter_context(spark_session(self.request.spark, program.flow.name))
        return RunReplayer(self.opened.run, self.opened.files, schedule, BoundaryFrames(session))

    def _again(self, tokens: Sequence[str], paths: list[str], state: Survival, is_all: bool) -> ReplayedRun:
        try:
            replayer = self._replayer
        except GovtoolError as error:
            if is_all:
                raise
            # What propagation is certain of stands; the rest stays unknown, and why is in the answer.
            return ReplayedRun(failed=dict.fromkeys(paths, error.message))
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="govtool-replay-")))
        known = {} if is_all else self._known(state, paths, folder / "known")
        return replayer.without(self.records.rows(tokens), paths, folder, known)

    def _known(self, state: Survival, paths: Sequence[str], folder: Path) -> dict[str, BoundaryRelation]:
        """Relations between modules of which propagation is certain, with the rows that they have afterwards."""
        from govtool.app.workflow_runs.relation_copies import written_rows
        from govtool.app.workflow_runs.without_records import required_for

        found: dict[str, BoundaryRelation] = {}
        for each in required_for(self.opened.run, paths):
            for path in sorted(each.paths):
                relation = self.circuit.relations.get(path)
                if path in paths or not isinstance(relation, AnnotatedRelation):
                    continue
                if not self._is_touched(relation, state):
                    found[path] = relation.relation
                    continue
                deletion = self._deletion(path, state)
                written = (
                    written_rows(relation.relation, deletion, folder / str(len(found))) if deletion.is_certain else None
                )
                if written is not None:
                    found[path] = written
        return found

    def _is_touched(self, relation: AnnotatedRelation, state: Survival) -> bool:
        return bool(
            state.is_open(relation.gate)
            or state.moved(relation.nodes()).any()
            or any(state.touched(cells).any() for cells in relation.cells())
        )

    def _after(self, path: str, deletion: RowDeletion, again: ReplayedRun, is_all: bool) -> RowDeletion:
        """A deletion with what a relation is after the replay."""
        if path in again.failed:
            return deletion
        run, files = self.opened.run, self.opened.files
        found = self._provenance(path)
        names = [column.name for column in found.query.columns]
        recorded = _in_order(files.rows(run.relations[path]), names)
        after = _in_order(files.rows(again.relations[path]), names) if path in again.relations else recorded
        computed = [at for at, column in enumerate(found.query.columns) if column.id in found.cells]
        if is_all:
            return replayed(recorded, after, computed)
        try:
            return resolved(deletion, after, computed)
        except ReplayDiffers:
            return replayed(recorded, after, computed)


def _in_order(found: RelationRows, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """Rows with their columns in an order: those of partitions are the last of written files."""
    if tuple(found.columns) == tuple(names) or set(found.columns) != set(names):
        return list(found.values)
    at = [found.columns.index(name) for name in names]
    return [tuple(row[place] for place in at) for row in found.values]

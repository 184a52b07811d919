"""Opens a recorded write: its plan over the files that still are what was read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.app.records.engines import engines
from govtool.app.records.frame_positions import KeptPositions
from govtool.app.records.keys import declared_keys
from govtool.app.records.opened import OpenedWrite
from govtool.app.records.tables import read_plan, read_positions
from govtool.app.records.user_functions import functions_of, without_functions, without_lost_functions
from govtool.app.records.written_files import titled, written_files_now, written_output
from govtool.config import load_config
from govtool.model.positions import decode_positions
from govtool.records.execute.chain import ExecutorChain
from govtool.records.execute.inputs import changed, relations
from govtool.records.leaves import with_files
from govtool.records.lineage import Lineage
from govtool.records.plan.nodes import Plan, Relation, Repartition
from govtool.records.plan.tree import Node, walk, walk_nodes
from govtool.records.replay.choices import chooses_rows
from govtool.records.trace.answer import RefusedFile
from govtool.records.trace.list_order import depends_on_order
from govtool.records.trace.looseness import has_breaks
from govtool.records.trace.normal import spare_ids
from govtool.records.trace.segment import reads
from govtool.records.trace.selection import bound_condition
from govtool.records.trace.ties import ChosenCell, TieCheck, always_tied, never_tied
from govtool.records.trace.undetermined import settled

if TYPE_CHECKING:
    from govtool.model.records import RecordRun
    from govtool.records.sidecar.lookup import SidecarUse
    from govtool.records.trace.answer import EvaluatedInput
    from govtool.store import Commit, Reader


def open_write(
    store: Reader,
    commit: Commit,
    run: RecordRun,
    sidecars: SidecarUse | None = None,
    *,
    in_part: bool = False,
    kept: bool = False,
    chosen_by: str | None = None,
    evaluated: bool = False,
    down_to: Collection[str] = (),
) -> OpenedWrite:
    """Read a write's plan, check its files, and cut it at its boundaries.

    Args:
        store: The store.
        commit: Plans are those of this commit.
        run: The write.
        sidecars: Key sidecars to look rows up in.
        in_part: Trace around operators that cannot be evaluated again: see ``govtool.records.trace.loosen``. Rows of
            such a plan are not all the run's.
        kept: Trace by positions that the run kept, if there are any, instead of the plan.
        chosen_by: The condition that chooses rows of the output, if inputs alone are shown of their trace. Whether rows
            tie for a cell that it does not read, and that decides no rows, is then not looked for.
        evaluated: Inputs that are gone or have changed are evaluated again by the plans of the runs that wrote them,
            where these give the same rows.
        down_to: With ``evaluated``, datasets that the plan is to read itself: see ``evaluated_inputs``.

    Raises:
        EvidenceError: What was made of one of ``down_to`` cannot be evaluated again (``evidence.not-reproduced``).
        UsageError: The plan cannot be traced, its private values were removed, or the condition is mistaken.
        StoreError: A fragment cannot be read.
    """
    from govtool.records.sidecar.lookup import SidecarUse

    sidecars = sidecars or SidecarUse()
    plan = read_plan(store, commit, run)
    again: tuple[EvaluatedInput, ...] = ()
    why: Mapping[str, str] = {}
    if evaluated and not (kept and run.positions):
        from govtool.app.records.evaluated_inputs import evaluated_inputs

        plan, again, why = evaluated_inputs(store, commit, run, plan, down_to)
    leaves = relations(plan.root)
    there, refused = _over_unchanged_files(plan, leaves, why)
    positions = _positions(store, commit, run) if kept else None
    if positions is not None:
        positions.require_fit(plan.root)
        opened = _by_positions(run, there, positions, refused, sidecars)
        if opened is not None:
            return opened
    executor = ExecutorChain(engines(plan.session, sidecars, root=plan.root), plan.session)
    whole = without_lost_functions(there.root)
    keys = declared_keys(leaves, _own_keys())
    facts = {"run": run.run, "output": run.output or run.run, "refused": refused, "keys": keys, "session": plan.session}
    facts["evaluated"] = again
    is_whole = not refused
    untouched = None
    if is_whole and chosen_by is not None:
        untouched = _untouched(Plan(whole, plan.session), executor, chosen_by, facts)
    if untouched is None:
        # Over a part of the inputs, no rows may tie where some did.
        tied = always_tied if not is_whole else TieCheck(executor, spare_ids(whole), whole)
        root = titled(settled(whole, plan.session, tied))
        lineage = (Lineage.in_part if in_part else Lineage.of)(root, executor, **facts)
    else:
        root, lineage = untouched
    output = written_output(run, root, lineage)
    lineage = replace(lineage, written=output)
    return OpenedWrite(
        run, Plan(root, plan.session), lineage, executor, output, sidecars, untouched=untouched is not None
    )


def _over_unchanged_files(
    plan: Plan, leaves: Sequence[Relation], why: Mapping[str, str]
) -> tuple[Plan, tuple[RefusedFile, ...]]:
    """A plan over the files that are as they were, and the others with the reason; ``why`` adds to a dataset's."""
    lost = changed(leaves)
    reasons = (f"{each.reason}: {why[each.dataset]}" if each.dataset in why else each.reason for each in lost)
    named = (RefusedFile(each.dataset, each.uri, reason) for each, reason in zip(lost, reasons, strict=True))
    refused = tuple(dict.fromkeys(named))  # a file may be read twice
    gone = {(each.dataset, each.uri) for each in lost}
    files = {leaf.leaf: [file for file in leaf.files if (leaf.dataset, file.uri) not in gone] for leaf in leaves}
    return Plan(with_files(plan.root, files), plan.session) if gone else plan, refused


def _untouched(
    plan: Plan, executor: ExecutorChain, chosen_by: str, facts: dict[str, Any]
) -> tuple[Node, Lineage] | None:
    """A plan whose choosing cells and calls of functions are blank, where a condition on the output reads none of them.

    Its rows and their traces are the run's, whatever the run chose. None where such cells decide rows, and where there
    are none.
    """
    functions = dict.fromkeys(functions_of(plan.root), "a function of the user's is not called")
    root = titled(settled(without_functions(plan.root, functions), plan.session))
    has_chosen = any(isinstance(term, ChosenCell) for node in walk_nodes(root) for term in walk(node))
    if not (has_chosen or functions) or chooses_rows(root):
        return None
    if has_breaks(settled(plan.root, plan.session, never_tied)):
        return None
    lineage = Lineage.in_part(root, executor, **facts)
    condition = bound_condition(chosen_by, lineage.stage.segment.visible, executor)
    if reads([condition]) & (lineage.blank | lineage.rounded) or depends_on_order(condition, lineage.lists):
        return None
    if lineage.looseness is not None or (functions and _has_doubts(lineage)):
        return None
    return root, lineage


def _has_doubts(lineage: Lineage) -> bool:
    """Return whether rows are marked as not certain: see ``loosen``."""
    return any(isinstance(node, Repartition) for stage in lineage.stages() for node in walk_nodes(stage.segment.node))


def _own_keys() -> Any:
    """The declared keys of the working folder's configuration."""
    return load_config(Path.cwd()).keys


def _positions(store: Reader, commit: Commit, run: RecordRun) -> KeptPositions | None:
    """The positions that a write of a DataFrame kept."""
    data = read_positions(store, commit, run) if run.positions and not run.program else None
    return KeptPositions(decode_positions(data)) if data is not None else None


def _by_positions(
    run: RecordRun, plan: Plan, positions: KeptPositions, refused: tuple[RefusedFile, ...], sidecars: SidecarUse
) -> OpenedWrite | None:
    """A write that is traced by positions; None where the written files are not what they were."""
    root, executor = titled(plan.root), ExecutorChain(engines(plan.session, None), plan.session)
    ids = spare_ids(root)
    output = written_files_now(run, root, ids)
    if output is None:
        return None
    stage, record = positions.trace(root, ids).stage(output)
    lineage = Lineage(
        stage, executor, ids, run.run, run.output or run.run, declared_keys(relations(plan.root), _own_keys()),
        refused, written=output, plan=root, session=plan.session, kept=True,
    )  # fmt: skip
    return OpenedWrite(run, Plan(root, plan.session), lineage, executor, output, sidecars, record)

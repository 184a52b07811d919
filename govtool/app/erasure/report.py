"""The answer of an erasure plan; the same question gives the same answer."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.answers.row_erasure import (
    DatasetErasure,
    PlannedFile,
    Row,
    RowChange,
    RowErasureAnswer,
    UnknownRows,
    Unsearched,
)
from govtool.app.erasure.chain import RecordedChain, recorded_chain
from govtool.app.erasure.deltas import file_rows
from govtool.app.erasure.found import ErasedOutput, ErasedSource, JoinedInput, RowErasure
from govtool.app.erasure.keys import (
    GraphKeys,
    SubjectKeys,
    datasets_without_subject,
    graph_keys,
    parsed_subjects,
    subject_keys,
)
from govtool.app.erasure.relations import workflow_relations
from govtool.app.erasure.row_plan import row_erasure
from govtool.app.records.unreadable import runs_beside_damage
from govtool.app.runs.lookup import read_history
from govtool.app.versions.version import version_of
from govtool.config import load_config
from govtool.errors import GovtoolError
from govtool.records.cells import json_value
from govtool.records.execute.inputs import local_path
from govtool.records.execute.places import place_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from govtool.graph.index import Index
    from govtool.records.execute.places import Place
    from govtool.records.plan.nodes import File
    from govtool.store import Commit, Reader

MAX_UNKNOWN = 1000
"""The most uncertain rows of a dataset that are named one by one."""


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """An erasure on the rows of recorded runs.

    Attributes:
        subject: ``DATASET.COLUMN=VALUE``, each.
        key: Further columns, ``DATASET.COLUMN``, that hold the same identifier.
        run: A run, an application, ``JOB~1``, or a run of a workflow; None with ``all_runs``: all.
        all_runs: Go on to the runs that exchange files with it.
        no_subject: Inputs that hold nothing about a subject.
    """

    subject: tuple[str, ...] = field(repr=False)
    key: tuple[str, ...] = ()
    run: str | None = None
    all_runs: bool = False
    no_subject: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedErasure:
    """An erasure that was worked out: what was found, and its answer."""

    chain: RecordedChain
    keys: SubjectKeys
    found: RowErasure
    answer: RowErasureAnswer


def planned_erasure(
    store: Reader, commit: Commit, request: ErasureRequest, index: Callable[[], Index]
) -> PlannedErasure:
    """The plan for the erasure of a data subject on the rows of recorded runs.

    Args:
        store: The store.
        commit: Runs and plans are those of this commit.
        request: The subject, and the runs.
        index: Opens the column graph.

    Raises:
        UsageError: There is no subject, one has no value, the store has no records, or no row is the subject's
            (``usage.no-rows``), or a dataset is declared to hold nothing about a subject and does
            (``usage.no-subject``).
        UnknownNameError: There is no such run, dataset or column.
        AmbiguousNameError: A dataset may be several.
    """
    subjects = parsed_subjects(request.subject)
    chain = recorded_chain(store, commit, request.run, request.all_runs)
    try:
        known = graph_keys(index(), [each.column for each in subjects])
    except GovtoolError:  # the column graph only adds to what is searched
        known = GraphKeys()
    settings = load_config(Path.cwd())
    relations = workflow_relations(store, commit, chain)
    without = datasets_without_subject(chain, request.no_subject, settings.no_subject, relations)
    keys = subject_keys(chain, subjects, request.key, known, settings.keys, without, relations)
    found = row_erasure(store, commit, chain, keys)
    if request.all_runs:
        found = replace(found, not_reached=(*found.not_reached, *_unrecorded(store, commit, found)))
    return PlannedErasure(chain, keys, found, answer_of(store, commit, request, keys, found))


def _unrecorded(store: Reader, commit: Commit, found: RowErasure) -> tuple[Unsearched, ...]:
    """Runs without records of rows that read what an erasure changes."""
    touched = {source.dataset for source in found.sources}
    touched |= {each.link.output for each in found.outputs if not each.cut}
    records, unreadable = runs_beside_damage(store, commit)
    known = {run.run for run in records} | {each.run.id for each in unreadable}
    entries = {}
    for run in read_history(store, commit).runs:
        read = sorted(touched.intersection(each.dataset for each in run.inputs))
        if run.id not in known and read and run.status != "failed":
            for name in [each.dataset for each in run.outputs] or [run.id]:
                entries[name] = Unsearched(name, f"{run.id} made it of {read[0]}, and its rows were not recorded")
    return tuple(entries.values())


def answer_of(
    store: Reader, commit: Commit, request: ErasureRequest, keys: SubjectKeys, found: RowErasure
) -> RowErasureAnswer:
    """The answer in JSON's types."""
    outputs: dict[str, list[ErasedOutput]] = {}
    for each in found.outputs:
        outputs.setdefault(each.link.output, []).append(each)
    tokens = {source.dataset: tuple(row.token for row in source.rows().values()) for source in found.sources}
    for each in found.outputs:
        if each.tokens:
            tokens[each.link.output] = (*tokens.get(each.link.output, ()), *each.tokens)
    return RowErasureAnswer(
        version=version_of(store, commit),
        subjects=request.subject,
        keys=request.key,
        run=request.run,
        all_runs=request.all_runs,
        tokens=tokens,
        datasets=(
            *(_source(source) for source in found.sources),
            *(_joined(each) for each in found.joined),
            *(_merged([_output(each) for each in group]) for group in outputs.values()),
        ),
        searched=keys.columns(),
        not_searched=found.not_searched,
        not_reached=found.not_reached,
        request_no_subject=request.no_subject,
        no_subject=keys.no_subject,
    )


def _source(source: ErasedSource) -> DatasetErasure:
    delta, rows = source.delta(), source.rows()
    names = tuple(column.name for column in delta.relation.columns)
    key = source.key or names
    places = [names.index(name) for name in key]
    total = file_rows(delta.relation)
    return DatasetErasure(
        dataset=source.dataset,
        source=True,
        columns=names,
        key=key,
        delete=_sorted(_cells(row.cells[n] for n in places) for row in rows.values()),
        unchanged=None if total is None else total - len(rows),
        rows_scanned=total,
        scanned_files=len(delta.relation.files),
        scanned_bytes=sum(file.size for file in delta.relation.files),
        why="rows with the subject's key",
        files=_files(delta.relation.files, delta.drops),
    )


def _joined(found: JoinedInput) -> DatasetErasure:
    """An input whose rows may be about the subject by a key that was not named: nothing is deleted of it."""
    why = (
        f"{found.run} read it together with {found.beside}, and none of its columns is searched:"
        " rows of it may be the subject's"
    )
    relation = found.relation
    return DatasetErasure(
        dataset=relation.dataset,
        source=True,
        columns=tuple(column.name for column in relation.columns),
        unknown=(UnknownRows(why),),
    )


def _output(outcome: ErasedOutput) -> DatasetErasure:
    link, found = outcome.link, outcome.corrected
    files = link.written.files if link.written is not None else ()
    base = DatasetErasure(
        dataset=link.output,
        runs=(link.run.run,),
        rows_scanned=outcome.read,
        scanned_files=sum(len(leaf.files) for leaf in link.reads),
        scanned_bytes=sum(file.size for leaf in link.reads for file in leaf.files),
        files=_files(files, ()),
    )
    if found is None:
        if outcome.cut:
            base = replace(base, rows_scanned=0, scanned_files=0, scanned_bytes=0)
            if outcome.unknown:
                return replace(base, unknown=(UnknownRows(outcome.unknown),))
            return replace(base, unchanged=outcome.rows, why="its inputs stay as they are")
        return replace(base, unknown=(UnknownRows(outcome.unknown),), recompute=True, writable=False)
    names = tuple(column.name for column in found.delta.relation.columns)
    leaving = len(found.gone) + len(found.changed)
    return replace(
        base,
        columns=names,
        key=tuple(names[n] for n in found.key),
        delete=_sorted(_cells(row[n] for n in found.key) for row in found.gone),
        change=tuple(
            sorted(
                (_change(found.key, before, after) for before, after in found.changed), key=lambda each: repr(each.key)
            )
        ),
        appear=_sorted(_cells(row) for row in found.new),
        unchanged=None if outcome.rows is None else outcome.rows - leaving,
        equal=found.reached - leaving,
        unknown=_unknown(outcome),
        recompute=True,
        writable=found.writable,
        why="" if found.delta else "its rows have the same values without the subject's",
        files=_files(files, found.delta.drops),
    )


def _change(key: Sequence[int], before: Sequence[Any], after: Sequence[Any]) -> RowChange:
    return RowChange(_cells(before[n] for n in key), _cells(before), _cells(after))


def _unknown(outcome: ErasedOutput) -> tuple[UnknownRows, ...]:
    found = outcome.corrected
    assert found is not None
    if not outcome.uncertain:
        return ()
    why = "; ".join(outcome.uncertain)
    if found.doubtful is None:
        return (UnknownRows(why),)
    keys = dict.fromkeys(_sorted(_cells(row[n] for n in found.key) for row in found.doubtful))
    return tuple(UnknownRows(why, key) for key in keys)[:MAX_UNKNOWN]


def _merged(parts: Sequence[DatasetErasure]) -> DatasetErasure:
    """A dataset that several runs wrote."""
    first = max(parts, key=lambda each: len(each.columns))
    if len(parts) == 1:
        return first
    alike = all(each.key in ((), first.key) for each in parts)
    return replace(
        first,
        runs=_chained(parts, "runs"),
        delete=_sorted(_chained(parts, "delete")),
        change=_chained(parts, "change"),
        appear=_sorted(_chained(parts, "appear")),
        unchanged=_total(each.unchanged for each in parts),
        equal=sum(each.equal for each in parts),
        unknown=_chained(parts, "unknown"),
        recompute=any(each.recompute for each in parts),
        writable=all(each.writable for each in parts),
        rows_scanned=_total(each.rows_scanned for each in parts),
        scanned_files=sum(each.scanned_files for each in parts),
        scanned_bytes=sum(each.scanned_bytes for each in parts),
        why=first.why if alike else "its runs wrote rows of several forms",
        files=_chained(parts, "files"),
    )


def _chained(parts: Sequence[DatasetErasure], field: str) -> tuple[Any, ...]:
    """What a field of all parts holds, one after the other."""
    return tuple(itertools.chain.from_iterable(getattr(each, field) for each in parts))


def _total(numbers: Iterable[int | None]) -> int | None:
    """The sum; None if a number is not known."""
    found = list(numbers)
    known = [number for number in found if number is not None]
    return sum(known) if len(known) == len(found) else None


def _cells(values: Iterable[Any]) -> Row:
    return tuple(map(json_value, values))


def _sorted(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(sorted(rows, key=repr))


def _files(files: Iterable[File], rewritten: Container[Place]) -> tuple[PlannedFile, ...]:
    """Files with their identity; with a digest where they will be written anew."""
    return tuple(
        PlannedFile(file.uri, file.size, file.modified, _digest(file.uri) if place_of(file) in rewritten else "")
        for file in files
    )


def _digest(uri: str) -> str:
    path = local_path(uri)
    return "" if path is None else file_digest(path)


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()

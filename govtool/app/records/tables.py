"""Tables of record-level provenance: written with the runs of a job, carried along, and read.

A commit replaces all that its source holds. What earlier runs of the job recorded is carried along as it is, by
reference: the cost of a commit follows what it adds. Only an application that is recorded again, as a notebook is that
commits now and then, is read back. Fragments are named by their content, so that nothing is stored twice.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from govtool.app.records.damaged import (
    DamagedFragment,
    decoded_beside_damage,
    fragments_beside_damage,
    rows_beside_damage,
)
from govtool.app.records.noted_values import NotedValues, lacks_texts, others_error
from govtool.errors import IntegrityError, UsageError
from govtool.model.positions import PRIVATE_POSITIONS, PositionsCost, decode_cost
from govtool.model.records import (
    PLANS,
    PRIVATE_VALUES,
    RECORD_RUNS,
    RECORD_TABLES,
    PlanCost,
    PrivateValues,
    RecordRun,
    StoredPlan,
    decode_plans,
    decode_private,
    decode_record_runs,
    encode_plans,
    encode_private,
    encode_record_runs,
)
from govtool.store import Fragment

if TYPE_CHECKING:
    from govtool.model.run import Run
    from govtool.records.capture import RecordedWrite
    from govtool.records.plan.nodes import Plan, Relation
    from govtool.store import Commit, FragmentRef, Reader

_T = TypeVar("_T")
_PLANS_TOGETHER = 32
"""Plans up to which a job's lie in one fragment; beyond, each digit of their digests tells sixteen fragments apart."""
_NUMBERS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class RecordChange:
    """What a commit does to the record-level tables of a source."""

    added: tuple[Fragment, ...] = ()
    kept: tuple[FragmentRef, ...] = ()
    """Of earlier runs, as they are."""

    @property
    def identity(self) -> list[str]:
        """What the source holds afterwards, in an order of its own."""
        own = (hashlib.sha256(fragment.data).hexdigest() for fragment in self.added)
        return sorted({*own, *(ref.sha256 for ref in self.kept)})


@dataclass(slots=True)
class RecordTables:
    """The tables of record-level provenance of a source. A later write takes the place of an earlier one."""

    plans: dict[str, StoredPlan] = field(default_factory=dict)
    """By digest."""
    runs: dict[str, RecordRun] = field(default_factory=dict)
    """By run id."""
    private: dict[str, PrivateValues] = field(default_factory=dict)
    """By run id."""
    positions: dict[str, bytes] = field(default_factory=dict)
    """Fragments with positions of records, by run id."""
    _boundaries: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """What ``_boundaries`` says of plans, by shape."""
    _ids: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Datasets by the names that leaves have: the steps of a program read the same ones."""

    @staticmethod
    def of(writes: Iterable[RecordedWrite]) -> RecordTables:
        """Return the tables of a job's writes."""
        found = RecordTables()
        for write in writes:
            found.add(write)
        return found

    def __bool__(self) -> bool:
        """Return whether there is anything."""
        return bool(self.runs)

    def add(self, write: RecordedWrite) -> None:
        """Take in a write."""
        from govtool.records.split_plans import relation_text, taken_apart

        parts = taken_apart(write.plan)
        shape = parts.shape
        if shape not in self._boundaries:  # those of a plan that ran before are the same
            self._boundaries[shape] = _boundaries(write.plan)
        boundaries, why = self._boundaries[shape]
        files = write.output_files
        run = RecordRun(
            run=write.run_id,
            plan=parts.digest,
            output=write.output or "",
            inputs=tuple((leaf, self._dataset_id(dataset)) for leaf, dataset in parts.datasets),
            listings=parts.listings,
            written=relation_text(files, write.plan.session) if files is not None else "",
            boundaries=boundaries,
            breaks=tuple(dict.fromkeys((*write.breaks, *why))),
        )
        self.plans[parts.digest] = StoredPlan(parts.digest, parts.body)
        self.runs[run.run] = run
        self.private[run.run] = PrivateValues(run.run, parts.values)

    def _dataset_id(self, name: str) -> str:
        if name not in self._ids:
            self._ids[name] = dataset_id(name)
        return self._ids[name]

    def add_untraceable(self, run_id: str, output: str, reason: str) -> None:
        """Take in a write whose rows cannot be traced, with the reason."""
        from govtool.records.plan import codec
        from govtool.records.plan.nodes import Plan, Session, Union

        listings = codec.dumps(Plan(Union((), ()), Session("", True, "UTC")))
        self.runs[run_id] = RecordRun(run_id, "", output, (), listings, breaks=(reason,))

    def resumed(self, earlier: RecordTables) -> RecordTables:
        """These tables with what an earlier commit of the source held."""
        runs = {**earlier.runs, **self.runs}
        private = {run: each for run, each in {**earlier.private, **self.private}.items() if run in runs}
        plans = {**earlier.plans, **self.plans}
        used = {run.plan for run in runs.values()}
        positions = {run: data for run, data in {**earlier.positions, **self.positions}.items() if run in runs}
        return RecordTables({digest: plans[digest] for digest in plans if digest in used}, runs, private, positions)

    def beside(self, store: Reader, commit: Commit | None, source: str, known: Container[str]) -> RecordChange:
        """What a commit adds and what it carries along, where these tables come beside those of earlier runs.

        Args:
            store: The store.
            commit: What is there; None: nothing.
            source: The job's source.
            known: Applications of the source that the commit has runs of.

        Raises:
            StoreError: a fragment cannot be read.
            IntegrityError: a fragment is not what was written.
        """
        if commit is None:
            return RecordChange(self.fragments(source))
        if any(run.application in known for run in self.runs.values()):
            return RecordChange(self.resumed(read_tables(store, commit, source)).fragments(source))
        refs = (ref for ref in store.fragments(commit) if ref.source == source and ref.table in RECORD_TABLES)
        return RecordChange(self.fragments(source), tuple(refs))

    def fragments(self, source: str) -> tuple[Fragment, ...]:
        """The tables as fragments: one for a few dozen plans, one an application."""
        groups = _by_digest(self.plans.values())
        plans = [Fragment(source, PLANS, encode_plans(group), len(group)) for group in groups]
        runs, private = [], []
        for part in _by_application(self.runs.values()).values():
            values = [self.private[run.run] for run in part if run.run in self.private]
            noted = ""
            if values:
                private.append(Fragment(source, PRIVATE_VALUES, encode_private(values), len(values)))
                noted = hashlib.sha256(private[-1].data).hexdigest()
            part = [replace(run, private=noted if run.run in self.private else run.private) for run in part]
            runs.append(Fragment(source, RECORD_RUNS, encode_record_runs(part), len(part)))
        positions = [Fragment(source, PRIVATE_POSITIONS, data, 1) for data in sorted(set(self.positions.values()))]
        return (*plans, *runs, *private, *positions)


def _by_digest(plans: Iterable[StoredPlan]) -> list[list[StoredPlan]]:
    """Plans that share a fragment: those whose digests begin alike.

    A job that runs again with a few other plans so leaves the fragments of the rest as they are.
    """
    found = sorted(plans, key=lambda plan: plan.digest)
    digits = 0
    while len(found) > _PLANS_TOGETHER * 16**digits:
        digits += 1
    return [list(group) for _, group in groupby(found, key=lambda plan: plan.digest[:digits])]


def _by_application(runs: Iterable[RecordRun]) -> dict[str, list[RecordRun]]:
    split: dict[str, list[RecordRun]] = {}
    for run in runs:
        split.setdefault(run.application, []).append(run)
    return dict(sorted(split.items()))


def _boundaries(plan: Plan) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Operators at which a trace may stop; or why there is no trace."""
    from govtool.records.trace.back import Stage
    from govtool.records.trace.rules import traceable

    try:
        segment, *_ = traceable(plan.root)
        stages = [Stage(segment)]
        for stage in stages:
            links = [n for n, each in enumerate(stage.segment.sources) if hasattr(each, "link")]
            stages.extend(stage.below(number) for number in links)
    except UsageError as error:
        return (), (error.message,)
    return tuple(stage.operator for stage in stages[1:]), ()


def dataset_id(name: str) -> str:
    """The graph's id of what a leaf reads: a path, several paths with commas between them, or a table."""
    from govtool.app.project.path_root import within_root
    from govtool.capture.spark.identity import path_name, table_name

    if "/" not in name:
        return table_name(name).id
    parts = name.split(",")
    if not all("/" in part for part in parts):  # a comma within a path
        return within_root(path_name(name).id)
    return ",".join(within_root(path_name(part).id) for part in parts)


def read_tables(store: Reader, commit: Commit, source: str | None = None) -> RecordTables:
    """Read the tables of a commit: of one source, or of all.

    Raises:
        StoreError: a fragment cannot be read.
        IntegrityError: a fragment is not what was written.
    """
    tables, damaged = read_tables_beside_damage(store, commit, source)
    if damaged:
        raise damaged[0].error()
    return tables


def read_tables_beside_damage(
    store: Reader, commit: Commit, source: str | None = None
) -> tuple[RecordTables, list[DamagedFragment]]:
    """The tables of a commit, of one source or of all, and the fragments that cannot be read.

    Raises:
        StoreError: the store cannot be read.
    """
    refs = [ref for ref in store.fragments(commit) if ref.table in RECORD_TABLES and source in (None, ref.source)]
    damaged: list[DamagedFragment] = []

    def rows(table: str, decode: Callable[[bytes], list[_T]]) -> Iterator[_T]:
        return rows_beside_damage(store, [ref for ref in refs if ref.table == table], decode, damaged)

    plans = {plan.digest: plan for plan in rows(PLANS, decode_plans)}
    runs = {run.run: run for run in rows(RECORD_RUNS, decode_record_runs)}
    private = NotedValues(store, refs).read_all(runs.values(), damaged)
    used = {run.positions for run in runs.values()}
    stored = [ref for ref in refs if ref.table == PRIVATE_POSITIONS and ref.sha256 in used]
    by_digest = {ref.sha256: data for ref, (data,) in fragments_beside_damage(store, stored, _as_is, damaged)}
    positions = {name: by_digest[run.positions] for name, run in runs.items() if run.positions in by_digest}
    return RecordTables(plans, runs, private, positions), damaged


def _as_is(data: bytes) -> list[bytes]:
    return [data]


def read_runs_beside_damage(store: Reader, commit: Commit) -> tuple[list[RecordRun], list[DamagedFragment]]:
    """All writes, by the ids of their runs, and the fragments whose writes cannot be read.

    Raises:
        StoreError: the store cannot be read.
    """
    refs = [ref for ref in store.fragments(commit) if ref.table == RECORD_RUNS]
    found, damaged = decoded_beside_damage(store, refs, decode_record_runs)
    return sorted(found, key=lambda run: run_order(run.run)), damaged


def read_untraceable(store: Reader, commit: Commit) -> list[RecordRun]:
    """The writes whose rows cannot be traced, with the reason as the only break.

    Raises:
        StoreError: the store cannot be read.
    """
    return [run for run in read_runs_beside_damage(store, commit)[0] if not run.plan]


def run_order(run: str) -> list[tuple[int, str]]:
    """A key by which ``app/10`` comes after ``app/9``."""
    return [_order(part) for part in _NUMBERS.split(run)]


def _order(part: str) -> tuple[int, str]:
    digits = part.lstrip("0")  # Python refuses to read a number of thousands of digits
    return (len(digits), digits) if part.isdecimal() else (-1, part)


def read_plan(store: Reader, commit: Commit, run: RecordRun) -> Plan:
    """The exact plan of a write.

    Raises:
        UsageError: its private values were removed from the store (``usage.forgotten``), or it is an action of RDDs
            (``usage.no-plan``).
        IntegrityError: its plan is not in the store.
        FormatError: its plan cannot be read.
    """
    from govtool.app.records.forgotten import naming_the_commit
    from govtool.records.split_plans import put_together

    if run.program:
        raise UsageError(f"{run.run} is an action of RDDs: it has no plan of a query", code="usage.no-plan")
    body, values = read_stored(store, commit, run)
    with naming_the_commit(store, commit, run):
        return put_together(body, run.listings, values, dict(run.inputs))


def listed_inputs(run: RecordRun) -> tuple[Relation, ...]:
    """The inputs of a write with their files, as they were listed: known also where the plan cannot be read any more.

    Raises:
        FormatError: The listing cannot be read.
    """
    from govtool.records.execute.inputs import relations
    from govtool.records.plan import codec

    names = dict(run.inputs)
    leaves = relations(codec.loads(run.listings).root)
    return tuple(replace(leaf, dataset=names.get(leaf.leaf, leaf.dataset)) for leaf in leaves)


def read_stored(store: Reader, commit: Commit, run: RecordRun) -> tuple[str, str | None]:
    """The plan or program of a write as it is stored, and its private values; None if they, or texts in them, are gone.

    Raises:
        IntegrityError: its plan is not in the store, its values are not those that it was recorded with, or a fragment
            that may hold a part of it is damaged.
    """
    refs = store.fragments(commit)
    plan = _find(store, refs, PLANS, decode_plans, lambda each: each.digest == run.plan, run)
    if plan is None:
        raise IntegrityError(f"the plan of {run.run} is not in the store", code="store.corrupt-fragment")
    own = NotedValues(store, refs).fragment_of(run)
    kept = refs if own is None else [own]
    private = _find(store, kept, PRIVATE_VALUES, decode_private, lambda each: each.run == run.run, run)
    if own is None and run.private and private is not None:
        raise others_error(run)
    if private is None or (own is not None and lacks_texts(run, own, private)):
        return plan.body, None
    return plan.body, private.values


def read_positions(store: Reader, commit: Commit, run: RecordRun) -> bytes | None:
    """The positions of a run's records, as ``govtool.model.positions`` encodes them; None if there are none.

    Raises:
        StoreError: a fragment cannot be read.
        IntegrityError: a fragment is not what was written.
    """
    refs = (ref for ref in store.fragments(commit) if ref.table == PRIVATE_POSITIONS)
    found = next((ref for ref in refs if run.positions and ref.sha256 == run.positions), None)
    return store.read(found) if found is not None else None


def read_positions_cost(store: Reader, commit: Commit, run: Run) -> PositionsCost | None:
    """What it cost to keep the positions of a run's records; None if there are none.

    Args:
        store: The store.
        commit: The run is one of this commit.
        run: It counts under all its ids.

    Raises:
        StoreError: a fragment cannot be read.
        IntegrityError: a fragment is not what was written.
    """
    refs = _refs_of(store, commit, run)
    kept = {ref.sha256: ref for ref in refs if ref.table == PRIVATE_POSITIONS}
    if not kept:
        return None
    own = _own_runs(store, refs, run)
    found = next((kept[each.positions] for each in own if each.positions in kept), None)
    return decode_cost(store.read(found)) if found is not None else None


def read_plan_cost(store: Reader, commit: Commit, run: Run) -> PlanCost | None:
    """What the recorded plan of a run takes in the store; None if no plan of it is there.

    Args:
        store: The store.
        commit: The run is one of this commit.
        run: It counts under all its ids.

    Raises:
        StoreError: a fragment cannot be read.
        IntegrityError: a fragment is not what was written.
    """
    refs = _refs_of(store, commit, run)
    own = next((one for one in _own_runs(store, refs, run) if one.plan), None)
    if own is None:
        return None
    body, values = read_stored(store, commit, own)
    listing, private = _size(own.listings + own.written), None if values is None else _size(values)
    return PlanCost(_size(body), listing, private, own.boundaries, own.breaks)


def _refs_of(store: Reader, commit: Commit, run: Run) -> list[FragmentRef]:
    """The fragments of the sources that recorded a run."""
    sources = {run.source, *(record.source for record in run.records)}
    return [ref for ref in store.fragments(commit) if ref.source in sources]


def _own_runs(store: Reader, refs: Sequence[FragmentRef], run: Run) -> list[RecordRun]:
    """The writes of a run, under all its ids.

    Raises:
        IntegrityError: There is none, and it may be in a damaged fragment.
    """
    rows, damaged = decoded_beside_damage(store, [ref for ref in refs if ref.table == RECORD_RUNS], decode_record_runs)
    found = [one for one in rows if one.run in run.ids]
    if not found and damaged:
        raise damaged[0].error([run.id])
    return found


def _size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _find(
    store: Reader,
    refs: Iterable[FragmentRef],
    table: str,
    decode: Callable[[bytes], list[_T]],
    fits: Callable[[_T], bool],
    run: RecordRun,
) -> _T | None:
    """What a run has in a table; None if it has nothing there.

    Raises:
        IntegrityError: It was not found, and may be in a damaged fragment.
    """
    damaged: list[DamagedFragment] = []
    rows = rows_beside_damage(store, [ref for ref in refs if ref.table == table], decode, damaged)
    found = next(filter(fits, rows), None)
    if found is None and damaged:
        raise damaged[0].error([run.run])
    return found

"""Fragments of recorded runs, each decoded for itself, so that a damaged one hides no other.

Which runs a damaged fragment is of follows from what was committed with it: all fragments of a source that are live
together have the same batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from govtool.errors import FormatError, IntegrityError, StoreError, UsageError
from govtool.model.parquet import refusing_damage
from govtool.model.positions import PRIVATE_POSITIONS, decode_positions
from govtool.model.records import (
    PLANS,
    PRIVATE_VALUES,
    RDD,
    RECORD_RUNS,
    RECORD_TABLES,
    PrivateValues,
    RecordRun,
    StoredPlan,
    decode_plans,
    decode_private,
    decode_record_runs,
)
from govtool.store.commit import FragmentRef
from govtool.store.tombstones import FragmentName, Tombstones, read_tombstones
from govtool.store.upkeep.reachable import all_commits, all_entries

if TYPE_CHECKING:
    from govtool.store import Store

_DECODERS: Mapping[str, Callable[[bytes], list[Any]]] = {
    PLANS: decode_plans,
    RECORD_RUNS: decode_record_runs,
    PRIVATE_VALUES: decode_private,
    PRIVATE_POSITIONS: lambda data: [decode_positions(data)],
}


@dataclass(frozen=True, slots=True)
class RecordGroup:
    """What a source held at once, by what could be read.

    Attributes:
        source: The source.
        runs: Its recorded writes.
        plans: Their plans.
        values: Their private values.
        positions: The digests of the fragments with positions of records.
        damaged: Fragments that cannot be read.
        forgotten: Whether private values of it were removed.
        mistaken: Runs whose records do not belong together, with the table that says so, and why.
    """

    source: str
    runs: Mapping[str, RecordRun]
    plans: Mapping[str, StoredPlan]
    values: Mapping[str, PrivateValues]
    positions: frozenset[str]
    damaged: frozenset[FragmentName]
    forgotten: bool
    mistaken: tuple[tuple[str, str, str], ...] = ()

    def may_be_in(self, name: FragmentName) -> set[str]:
        """The runs that a damaged fragment may be of."""
        table, sha256 = name
        if table == PLANS:
            return {run.run for run in self.runs.values() if run.plan and run.plan not in self.plans}
        if table == RECORD_RUNS:
            return set(self.values) - set(self.runs)
        if table == PRIVATE_VALUES:
            return {run.run for run in self.runs.values() if run.plan} - set(self.values)
        return {run.run for run in self.runs.values() if run.positions == sha256}

    def nameless_positions(self) -> set[FragmentName]:
        """The fragments with positions that no run names which could be read."""
        named = {run.positions for run in self.runs.values()}
        return {(PRIVATE_POSITIONS, sha256) for sha256 in self.positions - named}

    def damaged_of(self, table: str) -> list[FragmentName]:
        """The damaged fragments of a table."""
        return sorted(name for name in self.damaged if name[0] == table)


class RunParts(NamedTuple):
    """What holds private data of a run, where fragments may be damaged."""

    runs: frozenset[str]
    """The ids of its writes, as far as they can be read."""
    fragments: frozenset[FragmentName]
    """Damaged values of it, and positions that damaged records name: as a whole, as they cannot be told apart."""
    doubtful: frozenset[FragmentName]
    """The same, which may be of other runs."""


@dataclass(frozen=True, slots=True)
class RecordFragments:
    """All fragments of recorded runs, of every version.

    Attributes:
        groups: What sources held at once.
        refs: Where each fragment lies.
        damaged: Why a fragment cannot be read.
        holders: The fragment of a table that holds a run, or a plan by its digest.
    """

    groups: tuple[RecordGroup, ...]
    refs: Mapping[FragmentName, FragmentRef]
    damaged: Mapping[FragmentName, str]
    holders: Mapping[tuple[str, str], FragmentName]

    def parts_of(self, is_part: Callable[[str], bool], is_known: Callable[[str], bool]) -> RunParts:
        """What holds private data of a run.

        Args:
            is_part: Whether the id of a run is meant.
            is_known: Whether other fragments of a source name the run. Asked where its records are damaged.
        """
        runs: set[str] = set()
        of_run: set[FragmentName] = set()
        doubtful: set[FragmentName] = set()
        others: set[FragmentName] = set()
        rest: list[RecordGroup] = []
        for group in self.groups:
            recorded, valued = set(filter(is_part, group.runs)), set(filter(is_part, group.values))
            runs |= recorded | valued
            if not recorded:
                rest.append(group)
            elif all(run in valued or not group.runs[run].plan for run in recorded):
                others |= group.damaged | group.nameless_positions()
            else:
                (doubtful if group.forgotten else of_run).update(group.damaged_of(PRIVATE_VALUES))
        is_recorded = len(rest) < len(self.groups)
        for group in rest:
            if not group.damaged_of(RECORD_RUNS) or not (runs.intersection(group.values) or is_known(group.source)):
                continue
            (doubtful if is_recorded or group.forgotten else of_run).update(group.damaged_of(PRIVATE_VALUES))
            (doubtful if is_recorded else of_run).update(group.nameless_positions())
        return RunParts(frozenset(runs), frozenset(of_run - others), frozenset(doubtful - of_run - others))

    def runs_of(self, name: FragmentName) -> list[str]:
        """The runs that a damaged fragment may be of, sorted."""
        return sorted({run for group in self.groups if name in group.damaged for run in group.may_be_in(name)})


def read_record_fragments(store: Store, tables: Iterable[str] = RECORD_TABLES) -> RecordFragments:
    """Read every fragment of recorded runs that any version refers to.

    Args:
        store: The store.
        tables: Those to read; of others it is only known that they are there.

    Raises:
        StoreError: The store cannot be read.
        IntegrityError: A slot, a manifest node or a tombstone is damaged.
    """
    reading = _Reading(store, frozenset(tables))
    groups = [reading.group(source, refs) for source, refs in reading.together()]
    return RecordFragments(tuple(groups), reading.refs, reading.damaged, reading.holders)


@dataclass(slots=True)
class _Reading:
    store: Store
    tables: frozenset[str]
    refs: dict[FragmentName, FragmentRef] = field(default_factory=dict)
    damaged: dict[FragmentName, str] = field(default_factory=dict)
    tombstones: Tombstones = field(default_factory=Tombstones)
    holders: dict[tuple[str, str], FragmentName] = field(default_factory=dict)
    _rows: dict[FragmentName, list[Any]] = field(default_factory=dict)

    def together(self) -> Iterator[tuple[str, list[FragmentRef]]]:
        """The fragments that each source held at once, and what stands in their place."""
        tombstones = self.tombstones = read_tombstones(self.store.objects)
        found: dict[tuple[str, str], dict[FragmentRef, None]] = {}
        for entry in all_entries(self.store.objects, all_commits(self.store.objects)):
            if entry.table in RECORD_TABLES:
                chain = tombstones.chain(FragmentRef.of(entry))
                found.setdefault((entry.source, entry.batch), {}).update(dict.fromkeys(chain))
        for (source, _), refs in found.items():
            yield source, list(refs)

    def group(self, source: str, refs: Iterable[FragmentRef]) -> RecordGroup:
        rows: dict[str, list[Any]] = {table: [] for table in RECORD_TABLES}
        names = {(ref.table, ref.sha256): ref for ref in refs}
        for name, ref in names.items():
            rows[ref.table] += self._decoded(name, ref)
        forgotten = self.tombstones.forgotten
        made = RecordGroup(
            source,
            {run.run: run for run in rows[RECORD_RUNS]},
            {plan.digest: plan for plan in rows[PLANS]},
            {each.run: each for each in rows[PRIVATE_VALUES]},
            frozenset(sha256 for table, sha256 in names if table == PRIVATE_POSITIONS),
            frozenset(names.keys() & self.damaged.keys()),
            any(table == PRIVATE_VALUES and (table, sha256) in forgotten for table, sha256 in names),
        )
        if not {RECORD_RUNS, PRIVATE_VALUES} <= self.tables:
            return made
        stated = [
            run for name in names if name not in forgotten for run in self._rows.get(name, ()) if name[0] == RECORD_RUNS
        ]
        return replace(made, mistaken=(*_stated_twice(stated), *self._unmatched(made, names)))

    def _unmatched(self, group: RecordGroup, names: Container[FragmentName]) -> Iterator[tuple[str, str, str]]:
        """Private values that no write has, and writes whose private values are others or are not there."""
        lost = [] if group.damaged_of(RECORD_RUNS) else sorted(set(group.values) - set(group.runs))
        yield from ((PRIVATE_VALUES, run, "its private values are there, and no record of it") for run in lost)
        if group.damaged_of(PRIVATE_VALUES):
            return
        for run in group.runs.values():
            chain = list(self.tombstones.chain(FragmentRef(group.source, PRIVATE_VALUES, run.private, 0, 0)))
            is_removed = any((ref.table, ref.sha256) in self.tombstones.forgotten for ref in chain)
            is_there = any((ref.table, ref.sha256) in names for ref in chain)
            if run.private and not is_there and run.run in group.values:
                yield RECORD_RUNS, run.run, "its private values are not those that it was recorded with"
            # Of writes that note nothing it is not known whether they had values, unless others have lost their record.
            elif run.plan and run.run not in group.values and not is_removed and (run.private or lost):
                yield RECORD_RUNS, run.run, "its private values are not in the store"

    def _decoded(self, name: FragmentName, ref: FragmentRef) -> list[Any]:
        if name in self._rows or name in self.damaged or ref.table not in self.tables:
            return self._rows.get(name, [])
        self.refs[name] = ref
        try:
            rows = self._rows[name] = _DECODERS[ref.table](self.store.read(ref))
            self.holders.update(((ref.table, _key_of(row)), name) for row in rows)
        except (IntegrityError, FormatError) as error:
            self.damaged[name] = error.message
        except StoreError as error:
            if error.code != "store.forgotten":
                raise
        return self._rows.get(name, [])


def _stated_twice(runs: Iterable[RecordRun]) -> Iterator[tuple[str, str, str]]:
    """Runs of which two different writes bear the name."""
    first: dict[str, RecordRun] = {}
    for run in runs:
        if first.setdefault(run.run, run) != run:
            yield RECORD_RUNS, run.run, "two records bear this name, so that one of them is of another run"


def _key_of(row: Any) -> str:
    return row.digest if isinstance(row, StoredPlan) else getattr(row, "run", "")


def mistaken_runs(found: RecordFragments) -> Iterator[tuple[FragmentName, str, str]]:
    """Runs whose records do not belong together, each once: with the fragment that says so, and why.

    Such a record is of another run, or its values are: every fragment for itself is sound.
    """
    done: set[tuple[str, str, str]] = set()
    for group in found.groups:
        for table, run, why in group.mistaken:
            if (table, run, why) not in done:
                done.add((table, run, why))
                yield found.holders[table, run], run, why


def unreadable_runs(found: RecordFragments) -> Iterator[tuple[FragmentName, RecordRun, str]]:
    """Runs whose fragments are sound, and whose content is not: with the fragment that holds it, and why.

    What was removed on purpose, and plans that are too large to be traced, are sound.
    """
    done: set[tuple[str, str]] = set()
    for group in found.groups:
        for run in group.runs.values():
            if (run.run, run.plan) in done:
                continue
            done.add((run.run, run.plan))
            for table, why in _unreadable(group, run):
                yield found.holders[table, run.plan if table == PLANS else run.run], run, why


def _unreadable(group: RecordGroup, run: RecordRun) -> Iterator[tuple[str, str]]:
    """The table whose content of a run cannot be read, and why."""
    from govtool.records.plan import codec
    from govtool.records.split_plans import relation_of

    values = group.values.get(run.run)
    plan = group.plans.get(run.plan)
    checks: list[tuple[str, Callable[[], object]]] = [
        (RECORD_RUNS, lambda: relation_of(run.written, run.output)),
        (RECORD_RUNS, lambda: codec.loads(run.listings)),
        (RECORD_RUNS, lambda: _require_places(run)),
    ]
    if plan is not None:
        checks.append((PLANS, lambda: _read_plan(run, plan.body, values.values if values else None)))
    for table, check in checks:
        try:
            check()
        except UsageError:
            continue
        except StoreError as error:
            yield table, error.message
            return
    if run.plan and plan is None and not group.damaged_of(PLANS):
        yield RECORD_RUNS, "its plan is not in the store"


_PLAIN = ("parquet", "csv", "json", "orc", "text")
"""Formats whose files lie below the path of their dataset; those of tables of a lake need not."""


def _require_places(run: RecordRun) -> None:
    """Refuse files that do not lie where the dataset is that they are said to be of, as far as paths tell.

    Raises:
        IntegrityError: ``store.corrupt-fragment``.
    """
    from govtool.app.records.tables import listed_inputs
    from govtool.records.split_plans import relation_of

    _require_names(run)
    made = relation_of(run.written, run.output)
    for leaf in (*(() if run.program else listed_inputs(run)), *(() if made is None else (made,))):
        place = _place_of(leaf.dataset)
        if place is None or leaf.format not in _PLAIN or leaf.options:
            continue
        if lost := [file.uri for file in leaf.files if not f"{_place_of(file.uri)}/".startswith(f"{place}/")]:
            raise IntegrityError(
                f"{lost[0]} does not lie in {leaf.dataset}, of which it is said to be a file",
                code="store.corrupt-fragment",
            )


def _require_names(run: RecordRun) -> None:
    """Refuse inputs that are called otherwise than the paths that were read.

    Raises:
        IntegrityError: ``store.corrupt-fragment``.
    """
    from govtool.records.execute.inputs import relations
    from govtool.records.plan import codec

    names = dict(run.inputs)
    for leaf in () if run.program else relations(codec.loads(run.listings).root):
        is_path = "/" in leaf.dataset and not set(leaf.dataset) & set(",*?[{") and leaf.format in _PLAIN
        if is_path and not leaf.options and _last_part(names.get(leaf.leaf, "")) != _last_part(leaf.dataset):
            raise IntegrityError(
                f"its input {leaf.dataset} is called {names.get(leaf.leaf, '')!r}", code="store.corrupt-fragment"
            )


def _last_part(path: str) -> str:
    return unquote(path).rstrip("/").rpartition("/")[2]


def _place_of(uri: str) -> str | None:
    """The path of a URI, with the name of the bucket; None for the name of a table, several paths, and patterns."""
    scheme, found, rest = unquote(uri).partition("://")
    return rest.rstrip("/") if found and scheme.isalnum() and not set(rest) & set(",*?[{") else None


@refusing_damage("a stored plan cannot be read")
def _read_plan(run: RecordRun, body: str, values: str | None) -> None:
    from govtool.app.rdd.programs import log_of
    from govtool.records.split_plans import put_together

    if values is None:
        json.loads(body)
    elif run.program == RDD:
        log_of(run, body, values)
    else:
        put_together(body, run.listings, values, dict(run.inputs))

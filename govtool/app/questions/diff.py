"""The difference of the graphs of two commits.

Where the local indexes of both are there, the digests that these keep of every dataset say which datasets differ, and
only of these more is read; so, too, where one is there and the other is derived from it at once. Otherwise only the
fragments that are live at one of the two are compared, row by row; what is left is looked up in the others, of which a
few columns are read, and a small graph of the statements in question is made for either version. Neither needs memory
for more than those statements and some numbers a statement.

Facts, runs and versions of datasets are read of the fragments that are live at one of the two. Facts are looked up in
the other fragments of facts only where some differ: another source may state the same. Likewise runs, of which another
source may have a record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from govtool.app.versions.gathered import builds_quickly
from govtool.app.versions.index import cached_index, open_index
from govtool.model.fact import FACTS, decode_facts
from govtool.model.run import RUNS, decode_runs
from govtool.model.version import VERSION_TABLES, decode_version
from govtool.query.versions.diff import Difference, difference, facts, unlike
from govtool.query.versions.recorded import RecordedParts, differing_subjects, record_changes
from govtool.query.versions.statements import statement_changes

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from govtool.graph.index import Index
    from govtool.model.fact import Fact
    from govtool.model.run import Run
    from govtool.query.versions.diff import GraphChange
    from govtool.store import Commit, FragmentRef, Reader

_BATCH = 16


def diff_commits(store: Reader, old: Commit, new: Commit) -> Difference:
    """List what was added, removed and changed from one commit to another, of any branches.

    Raises:
        StoreError: A fragment cannot be read.
    """
    from govtool.store.changes import fragment_changes

    removed, added = fragment_changes(store.objects, old, new)
    if not removed and not added:
        return Difference(())
    lineage = _lineage_difference(store, old, new, removed, added)
    return Difference.of((*lineage.changes, *_record_changes(store, new, removed, added)))


def _lineage_difference(
    store: Reader, old: Commit, new: Commit, removed: Sequence[FragmentRef], added: Sequence[FragmentRef]
) -> Difference:
    """The difference in datasets, columns and edges."""
    from govtool.model.columnar import DERIVATIONS

    gone, come = ([ref for ref in side if ref.table == DERIVATIONS] for side in (removed, added))
    if not gone and not come:
        return Difference(())
    before, after = cached_index(store, old), cached_index(store, new)
    if before is not None and after is not None:
        return _between(before, after)
    if (before is not None or after is not None) and builds_quickly(store, _derivations(store, old)):
        return _between(before or open_index(store, old), after or open_index(store, new))
    return _from_fragments(store, new, gone, come)


def _derivations(store: Reader, commit: Commit) -> list[FragmentRef]:
    from govtool.model.columnar import DERIVATIONS

    return [ref for ref in store.fragments(commit) if ref.table == DERIVATIONS]


def _record_changes(
    store: Reader, new: Commit, removed: Sequence[FragmentRef], added: Sequence[FragmentRef]
) -> Iterator[GraphChange]:
    """The differences in facts, runs and versions of datasets."""
    before, after = _records(store, removed), _records(store, added)
    subjects = differing_subjects(before, after)
    common = RecordedParts(
        _common_facts(store, new, added, subjects) if subjects else (),
        _common_runs(store, new, added, (*before.runs, *after.runs)),
    )
    return record_changes(before, after, common)


def _records(store: Reader, refs: Sequence[FragmentRef]) -> RecordedParts:
    """Return what some fragments record beside lineage."""
    wanted = [ref for ref in refs if ref.table in (FACTS, RUNS) or ref.table in VERSION_TABLES]
    found = dict(zip(wanted, store.read_many(wanted), strict=True))
    return RecordedParts(
        tuple(fact for ref, data in found.items() if ref.table == FACTS for fact in decode_facts(data)),
        tuple(run for ref, data in found.items() if ref.table == RUNS for run in decode_runs(data)),
        tuple(decode_version(data) for ref, data in found.items() if ref.table in VERSION_TABLES),
    )


def _common_facts(
    store: Reader, new: Commit, added: Sequence[FragmentRef], subjects: Collection[tuple[str, str | None]]
) -> tuple[Fact, ...]:
    """The facts about some datasets and columns that both versions have, from the fragments of both."""
    refs = _common_refs(store, new, added, FACTS)
    found = (fact for data in store.read_many(refs) for fact in decode_facts(data))
    return tuple(fact for fact in found if (fact.dataset, fact.column) in subjects)


def _common_runs(
    store: Reader, new: Commit, added: Sequence[FragmentRef], differing: Collection[Run]
) -> tuple[Run, ...]:
    """The records that both versions have of executions for which some records differ."""
    if not differing:
        return ()
    ids = {run.id for run in differing}
    applications = {run.application for run in differing} - {""}
    refs = _common_refs(store, new, added, RUNS)
    found = (run for data in store.read_many(refs) for run in decode_runs(data))
    return tuple(run for run in found if run.id in ids or run.application in applications)


def _common_refs(store: Reader, new: Commit, added: Sequence[FragmentRef], table: str) -> list[FragmentRef]:
    """The fragments of a table that both versions have."""
    fresh = {ref[:5] for ref in added}  # A fragment is the same in whichever pack it lies.
    return [ref for ref in store.fragments(new) if ref.table == table and ref[:5] not in fresh]


def _from_fragments(
    store: Reader, new: Commit, removed: Sequence[FragmentRef], added: Sequence[FragmentRef]
) -> Difference:
    from govtool.model.columnar import DERIVATIONS, schema
    from govtool.query.versions.survey import BOTH, COLUMNS, NEW, OLD, FragmentSurvey

    survey = FragmentSurvey()
    taken: list[tuple[FragmentRef, int]] = []
    for side, refs in ((OLD, removed), (NEW, added)):
        for ref, table in _tables(store, refs):
            survey.add(table, side)
            taken.append((ref, side))
    seeds, moved = survey.unlike()
    if not seeds and not moved:
        return Difference(())
    common = _common_refs(store, new, added, DERIVATIONS)
    for ref, table in _tables(store, common, COLUMNS):
        survey.add(table, BOTH)
        taken.append((ref, BOTH))
    names = survey.concerned(seeds, moved)
    rows = survey.speaking(names)
    chosen = sorted(((*taken[number], places) for number, places in rows.items()), key=lambda item: item[0])
    parts: tuple[list[Any], list[Any]] = ([], [])
    for (_, side, places), (_, table) in zip(chosen, _tables(store, (item[0] for item in chosen)), strict=True):
        part = table.take(places).cast(schema())  # without the dictionaries, which are of the whole fragment
        for one in (OLD, NEW):
            if side in (one, BOTH):
                parts[one].append(part)
    return _between(_index(parts[OLD]), _index(parts[NEW]), names)


def _between(old: Index, new: Index, names: Collection[str] | None = None) -> Difference:
    """The difference of two graphs, or of what they say of some datasets."""
    differ = unlike(old, new)
    if names is not None:
        differ.intersection_update(names)
    found = difference(facts(old, differ), facts(new, differ))
    return Difference.of((*found.changes, *statement_changes(old, new, differ, shown=found.changes)))


def _index(tables: list[Any]) -> Index:
    from govtool.graph.builder.build import build
    from govtool.graph.index import Index

    return Index(b"".join(build(tables)))


def _tables(
    store: Reader, refs: Iterable[FragmentRef], columns: Sequence[str] | None = None
) -> Iterator[tuple[FragmentRef, Any]]:
    """Fragments in the order in which an index takes them in."""
    from govtool.model.columnar import read_table

    ordered = sorted(refs)
    for start in range(0, len(ordered), _BATCH):
        batch = ordered[start : start + _BATCH]
        for ref, data in zip(batch, store.read_many(batch), strict=True):
            yield ref, read_table(data, columns=columns)

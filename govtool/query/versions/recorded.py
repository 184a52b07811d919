"""Differences in what versions of the graph record beside lineage: facts, runs and versions of datasets.

A fact that one source stops stating and another one still states is no difference. Several records of one execution
are one run. Of a run that both sides have, it is named in which parts they differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

from govtool.model.fact import Fact
from govtool.model.run import Run
from govtool.model.version import DatasetVersion
from govtool.query.evidence import Evidence
from govtool.query.runs.executions import one_run_each
from govtool.query.versions.diff import ADDED, CHANGED, REMOVED, GraphChange


@dataclass(frozen=True, slots=True)
class RecordedParts:
    """The rows of one side, from fragments that the other side does not have."""

    facts: tuple[Fact, ...] = ()
    runs: tuple[Run, ...] = ()
    versions: tuple[DatasetVersion, ...] = ()


def record_changes(
    old: RecordedParts, new: RecordedParts, common: RecordedParts = RecordedParts()
) -> Iterator[GraphChange]:
    """Compare what two versions record.

    Args:
        old: Of the old version alone.
        new: Of the new version alone.
        common: Of both: facts about the same subjects, and records of the same executions.
    """
    yield from _fact_changes((*old.facts, *common.facts), (*new.facts, *common.facts))
    yield from _run_changes(old.runs, new.runs, common.runs)
    yield from _version_changes(old.versions, new.versions)


def differing_subjects(old: RecordedParts, new: RecordedParts) -> set[tuple[str, str | None]]:
    """The datasets and columns whose facts may differ: those with facts that only one side has."""
    sides = [{_content(fact) for fact in side.facts} for side in (old, new)]
    return {(dataset, column) for dataset, column, _, _ in sides[0] ^ sides[1]}


_Subject = tuple[str, str | None, str]


def _content(fact: Fact) -> tuple[str, str | None, str, str]:
    return fact.dataset, fact.column, fact.name, fact.value


def _fact_changes(old: Iterable[Fact], new: Iterable[Fact]) -> Iterator[GraphChange]:
    before, after = _by_subject(old), _by_subject(new)
    for key in before.keys() | after.keys():
        left, right = before.get(key, []), after.get(key, [])
        values = _values(left), _values(right)
        if values[0] == values[1]:
            continue
        dataset, column, name = key
        yield GraphChange(
            what="fact",
            change=_change(left, right),
            name=dataset if column is None else f"{dataset}.{column}",
            source=None,
            kind=name,
            before=values[0],
            after=values[1],
            evidence=_fact_evidence(left, right),
        )


def _by_subject(facts: Iterable[Fact]) -> dict[_Subject, list[Fact]]:
    found: dict[_Subject, list[Fact]] = {}
    for fact in facts:
        found.setdefault((fact.dataset, fact.column, fact.name), []).append(fact)
    return found


def _values(facts: Iterable[Fact]) -> str | None:
    """The values of one fact; a tag, for one, may be stated more than once."""
    return " | ".join(sorted({fact.value for fact in facts})) or None


def _fact_evidence(left: Iterable[Fact], right: Iterable[Fact]) -> tuple[Evidence, ...]:
    """Return the evidence of a value on one side only, the new side first."""
    values = [{fact.value for fact in side} for side in (left, right)]
    causes = [fact for fact in right if fact.value not in values[0]]
    causes += [fact for fact in left if fact.value not in values[1]]
    found = sorted({(fact.file, fact.how) for fact in causes})
    return tuple(Evidence("fact", file, 0, "", how) for file, how in found)


def _run_changes(old: Iterable[Run], new: Iterable[Run], common: Iterable[Run]) -> Iterator[GraphChange]:
    """Compare executions: a record more of one that was known before is no run more."""
    both = tuple(common)
    for left, right in _paired(one_run_each((*old, *both)), one_run_each((*new, *both))):
        if left == right:
            continue
        parts = _unlike(left, right)
        shown = right or left
        assert shown is not None
        yield GraphChange(
            what="run",
            change=_change(left, right),
            name=shown.id,
            source=None,
            kind=shown.job,
            before=left.status if left is not None else None,
            after=right.status + parts if right is not None else None,
            evidence=(Evidence("run", shown.job, 0, "", shown.how, shown.id, shown.started, shown.ended),),
        )


def _paired(before: Sequence[Run], after: Sequence[Run]) -> Iterator[tuple[Run | None, Run | None]]:
    """Each run beside the one of the other side that has a record of it; each in one pair, or alone."""
    left = {record: number for number, run in enumerate(before) for record in _record_names(run)}
    alone = set(range(len(before)))
    for run in after:
        number = next((left[record] for record in _record_names(run) if left.get(record) in alone), None)
        if number is None:
            yield None, run
        else:
            alone.discard(number)
            yield before[number], run
    yield from ((before[number], None) for number in sorted(alone))


def _record_names(run: Run) -> list[tuple[str, str]]:
    """Return id and job of each record of a run, its own first."""
    return [(run.id, run.job), *((record.id, record.job) for record in run.records)]


def _unlike(left: Run | None, right: Run | None) -> str:
    """In which parts a run of both sides differs besides its status: ``, with other inputs, software``."""
    if left is None or right is None:
        return ""
    names = [f.name for f in fields(Run) if f.name != "status" and getattr(left, f.name) != getattr(right, f.name)]
    return f", with other {', '.join(names)}" if names else ""


def _version_changes(old: Iterable[DatasetVersion], new: Iterable[DatasetVersion]) -> Iterator[GraphChange]:
    before, after = _by_dataset(old), _by_dataset(new)
    for dataset in before.keys() | after.keys():
        left, right = before.get(dataset, {}), after.get(dataset, {})
        if left == right:
            continue
        text = " | ".join(sorted(left)) or None, " | ".join(sorted(right)) or None
        runs = {text: run for text, run in right.items() if left.get(text) != run} or left
        proofs = (Evidence("snapshot", run, 0, "", "snapshot", run) for run in sorted(set(runs.values())))
        yield GraphChange("version", _change(left, right), dataset, None, None, *text, tuple(proofs))


def _by_dataset(versions: Iterable[DatasetVersion]) -> dict[str, dict[str, str]]:
    """The texts of the versions of each dataset, with the run that made them."""
    found: dict[str, dict[str, str]] = {}
    for version in versions:
        found.setdefault(version.dataset, {})[_version_text(version)] = version.run
    return found


def _version_text(version: DatasetVersion) -> str:
    identity = version.identity
    return identity.short if identity.version is None else f"{identity.kind} {identity.version} ({identity.short})"


def _change(left: object, right: object) -> str:
    if not left:
        return ADDED
    return CHANGED if right else REMOVED

"""Effects of dropping, renaming, retyping, masking or deleting columns or datasets, several at once.

drop, rename, retype    verdicts as ``impact`` gives them, the worst of all changes for each column
mask                    the values change: what is made of them ``changes``, what they decide over is ``rows``
delete                  the data goes: what loses its last source is ``lost`` (``support``); what is left
                        with fewer sources ``changes`` or has other ``rows``: a union without an arm, an aggregate
                        over fewer rows; it survives on the other sources. A foreign key ties other ``rows`` to it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from govtool.errors import UnknownNameError, UsageError
from govtool.graph.index import Index
from govtool.model.derivation import HIDDEN, ROWS, ColumnRef
from govtool.model.kinds import EdgeKind
from govtool.query.changes.change import Change
from govtool.query.changes.impact import expand, impact
from govtool.query.changes.impact_entries import Impacted
from govtool.query.changes.support import losses
from govtool.query.changes.types import not_compared
from govtool.query.evidence import FOREIGN_KEY, FOREIGN_KEY_LABEL, Evidence, evidence
from govtool.query.selection.select import Subject, nothing_selected
from govtool.query.selection.selectors import Selection

ACTIONS = ("drop", "rename", "retype", "mask", "delete")
SEVERAL = "several"
"""The action of changes of different kinds in one question."""
VERDICTS = ("lost", "breaks", "unknown", "changes", "rows", "passes")
"""The worst first."""
_GOES = frozenset({"drop", "delete"})
"""The actions that take columns away."""
REPORT = "exposure"
"""The kind of datasets that stand for reports."""


@dataclass(frozen=True, slots=True)
class Affected:
    """A column, or the rows of a dataset, that a change reaches."""

    column: str
    dataset: str
    dataset_kind: str
    verdict: str
    """One of ``VERDICTS``."""
    cause: str
    """The causing columns or datasets among the changed ones; empty for what is lost only by all of them together."""
    hops: int
    path: tuple[str, ...]
    via: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    survives: tuple[str, ...] = ()
    """For ``delete``: the datasets that what is not lost is still made of, sorted."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The answer."""

    action: str
    to: str | None
    subjects: tuple[str, ...]
    affected: tuple[Affected, ...]
    """By verdict, hops and name."""
    unused: tuple[str, ...]
    """Columns that only served what goes; for ``drop`` and ``delete``."""
    unchanged: tuple[str, ...] = ()
    """Subjects that are declared to be of the type that they are to have."""
    parts: tuple[WhatIf, ...] = ()
    """For ``several``: the effects of each kind of change alone."""

    @property
    def counts(self) -> dict[str, int]:
        """Columns per verdict, the worst first; what is not known (``?``) cannot be counted."""
        found = Counter(a.verdict for a in self.affected if not a.column.endswith((f".{ROWS}", f".{HIDDEN}")))
        return {verdict: found[verdict] for verdict in VERDICTS}

    @property
    def not_compared(self) -> tuple[str, ...]:
        """Why no incompatibility with new types can be proved, each reason once."""
        retypes = (
            part for part in self.parts or (self,) if part.action == "retype" and part.unchanged != part.subjects
        )
        return tuple(dict.fromkeys(reason for part in retypes if (reason := not_compared(part.to))))

    @property
    def datasets(self) -> tuple[str, ...]:
        """Datasets with anything affected, sorted."""
        return tuple(sorted({a.dataset for a in self.affected}))

    @property
    def jobs(self) -> tuple[str, ...]:
        """The files and runs whose statements are concerned, sorted."""
        return tuple(sorted({e.file for a in self.affected for e in a.evidence if e.file}))

    @property
    def reports(self) -> tuple[str, ...]:
        """The reports, dbt's exposures, with anything affected, sorted."""
        return tuple(sorted({a.dataset for a in self.affected if a.dataset_kind == REPORT}))


def whatif(index: Index, action: str, selection: Selection, to: str | None = None) -> WhatIf:
    """Answer for one kind of change to everything that was selected.

    Args:
        index: The graph.
        action: One of ``ACTIONS``.
        selection: What is changed.
        to: The new name or type.

    Raises:
        UnknownNameError: There is no such action (``usage.unknown-action``).
        UsageError: Nothing is selected; a dataset is to be retyped; a new name or type is missing, or has no use.
    """
    _check_action(action, to)
    subjects = _subjects(index, selection)
    if not subjects:
        raise nothing_selected()
    if action == "rename" and len(subjects) > 1:
        raise UsageError(
            "one name for several columns or datasets", code="usage.arguments", hint="rename one at a time"
        )
    names = tuple(sorted(s.text for s in subjects))
    unchanged: tuple[str, ...] = ()
    if action == "delete":
        affected = _deleted(index, subjects)
    else:
        change = {"drop": Change("drop"), "mask": Change("logic")}.get(action) or Change(action, to)
        affected, unchanged = _impacted(index, subjects, change)
    found = WhatIf(action, to, names, _in_order(affected), (), unchanged)
    return replace(found, unused=_unused_names(index, _gone(index, found, subjects)))


def whatif_several(index: Index, changes: Sequence[tuple[str, Selection, str | None]]) -> WhatIf:
    """Answer for changes of different kinds that are made together.

    A column has the worst verdict that any of the changes gives it, and the cause that gives it. What another change
    drops or deletes anyway is not listed; what served only columns that go, by whichever change, is unused.

    Args:
        index: The graph.
        changes: As the arguments of `whatif`: action, selection, new name or type.

    Raises:
        UnknownNameError: There is no such action (``usage.unknown-action``).
        UsageError: As `whatif`; or there is no change at all (``usage.arguments``).
    """
    if not changes:
        raise UsageError("no change is given", code="usage.arguments", hint="govtool whatif --drop COLUMN")
    _require_consistent(index, changes)
    parts = tuple(whatif(index, action, selection, to) for action, selection, to in changes)
    if len(parts) == 1:
        return parts[0]
    subjects = [_subjects(index, selection) for _, selection, _ in changes]
    gone = [_gone(index, part, changed) for part, changed in zip(parts, subjects, strict=True)]
    own = {index.name(node) for part, changed in zip(parts, subjects, strict=True) if part.action in _GOES
           for one in changed for node in _nodes(index, one)}  # fmt: skip
    worst: dict[str, Affected] = {}
    for entry in (entry for part in parts for entry in part.affected if entry.column not in own):
        known = worst.get(entry.column)
        if known is None or _order(entry) < _order(known):
            worst[entry.column] = entry
    return WhatIf(
        action=SEVERAL,
        to=None,
        subjects=tuple(dict.fromkeys(name for part in parts for name in part.subjects)),
        affected=_in_order(worst.values()),
        unused=_unused_names(index, set().union(*gone)),
        unchanged=tuple(name for part in parts for name in part.unchanged),
        parts=parts,
    )


def _require_consistent(index: Index, changes: Sequence[tuple[str, Selection, str | None]]) -> None:
    """Refuse to change in two ways what one of them takes away, and to change one thing twice in the same way.

    Raises:
        UsageError: ``usage.contradiction``.
    """
    seen: dict[str, set[str]] = {}
    for action, selection, _ in changes:
        for name in sorted(one.text for one in _subjects(index, selection)):
            before = seen.setdefault(name, set())
            if action in before or (before and not _GOES.isdisjoint({action, *before})):
                both = " and ".join(sorted({action, *before})) if action not in before else f"{action} twice"
                raise UsageError(f"{name}: {both}", code="usage.contradiction", hint="leave one of them out")
            before.add(action)


def _subjects(index: Index, selection: Selection) -> list[Subject]:
    datasets = [Subject(d, None, index.dataset_name(d)) for d in selection.datasets]
    return [*datasets, *(Subject(index.node_dataset[n], n, index.name(n)) for n in selection.columns)]


def _order(entry: Affected) -> tuple[int, int, str]:
    return VERDICTS.index(entry.verdict), entry.hops, entry.column


def _in_order(affected: Iterable[Affected]) -> tuple[Affected, ...]:
    return tuple(sorted(affected, key=_order))


def _gone(index: Index, answer: WhatIf, subjects: Sequence[Subject]) -> set[int]:
    """The nodes that a change removes: dropped and deleted ones, and those lost with them."""
    gone = {n for one in subjects for n in _nodes(index, one)} if answer.action in _GOES else set()
    lost = ((a.dataset, a.column.removeprefix(f"{a.dataset}.")) for a in answer.affected if a.verdict == "lost")
    return gone | {node for end in lost if (node := index.find(ColumnRef(*end))) is not None}


def _unused_names(index: Index, gone: set[int]) -> tuple[str, ...]:
    return tuple(sorted(index.name(n) for n in unused(index, gone)))


def _check_action(action: str, to: str | None) -> None:
    if action not in ACTIONS:
        raise UnknownNameError.of_few("action", action[:40], ACTIONS)
    replaces = action in ("rename", "retype")
    if replaces and not to:
        raise UsageError(f"{action} to what?", code="usage.arguments", hint=f"govtool whatif {action} COLUMN --to NEW")
    if to is not None and not replaces:
        raise UsageError(f"{action} has no new name or type: {to[:40]}", code="usage.arguments", hint="leave out to")


def _nodes(index: Index, subject: Subject) -> Iterable[int]:
    if subject.node is not None:
        return (subject.node, *index.fields(subject.node))
    return range(index.rows(subject.dataset), index.dataset_base[subject.dataset + 1])


def _impacted(index: Index, subjects: list[Subject], change: Change) -> tuple[list[Affected], tuple[str, ...]]:
    """The worst that any of the changes does to a column; and the subjects that do not change."""
    own = {index.name(n) for s in subjects for n in ((s.node,) if s.node is not None else _nodes(index, s))}
    worst: dict[str, tuple[int, int, str, Impacted]] = {}
    unchanged: list[str] = []
    for subject in subjects:
        result = impact(index, subject, change=change)
        unchanged += result.unchanged
        for entry in expand(index, result):
            if entry.column in own or entry.verdict is None:
                continue
            rank = (int(entry.verdict), entry.hops, subject.text)
            if entry.column not in worst or rank < worst[entry.column][:3]:
                worst[entry.column] = (*rank, entry)
    affected = [
        Affected(
            column=entry.column,
            dataset=entry.dataset,
            dataset_kind=entry.dataset_kind,
            verdict=entry.verdict.label if entry.verdict is not None else "",
            cause=cause,
            hops=entry.hops,
            path=entry.path,
            via=entry.via,
            evidence=entry.evidence,
        )
        for _, _, cause, entry in worst.values()
    ]
    return affected, tuple(sorted(unchanged))


def _deleted(index: Index, subjects: list[Subject]) -> list[Affected]:
    """Return what loses its last source, and what changes as it loses others."""
    deleted = [index.rows(s.dataset) if s.node is None else s.node for s in subjects]
    loss = losses(index, deleted)
    reached = {entry.column: entry for entry in _impacted(index, subjects, Change("logic"))[0]}
    cause = subjects[0].text if len(subjects) == 1 else ""
    found = []
    for verdict, nodes in (("lost", loss.lost), ("unknown", loss.unknown)):
        for node in nodes:
            if not index.is_elided(index.node_dataset[node]) and not index.is_unknown(node):
                found.append(_lost(index, node, verdict, cause, reached.pop(index.name(node), None)))
    gone = {index.dataset_name(index.node_dataset[n]) for n in (*deleted, *loss.lost) if index.is_rows(n)}
    lost = [Subject(index.node_dataset[n], None, index.dataset_name(index.node_dataset[n]))
            for n in loss.lost if index.is_rows(n)]  # fmt: skip
    listed = {entry.column for entry in found}
    for entry in _referring(index, [*subjects, *lost]):
        if entry.column not in listed:
            reached.setdefault(entry.column, entry)
    return [*found, *(replace(entry, survives=_survives(index, entry, gone)) for entry in reached.values())]


def _referring(index: Index, subjects: list[Subject]) -> list[Affected]:
    """Return the rows that foreign keys tie to deleted ones, and what they decide: they go, or lose their key."""
    found: dict[str, Affected] = {}
    seen = {subject.dataset for subject in subjects}
    pending = subjects
    while tied := {dataset for subject in pending for dataset in _tied(index, subject)}:
        rows = {index.name(index.rows(dataset)) for dataset in tied}
        for entry in _impacted(index, pending, Change("drop"))[0]:
            if entry.via[:1] == (FOREIGN_KEY_LABEL,) and entry.path[1] in rows:
                found.setdefault(entry.column, entry)
        pending = [Subject(dataset, None, index.dataset_name(dataset)) for dataset in sorted(tied - seen)]
        seen |= tied
    return list(found.values())


def _tied(index: Index, subject: Subject) -> set[int]:
    """Return the datasets with foreign keys that refer to a column: with edges, if these change rows, too."""
    nodes = list(_nodes(index, subject))
    named = [(index.referrer(r), index.referring_rows(r)) for node in nodes for r in index.references(node)]
    decided = [e for node in nodes for e in index.out_edges(node) if index.kind(e) is EdgeKind.FILTER]
    named += [(index.derivation_of(e), index.edge_target[e]) for e in decided]
    return {index.node_dataset[rows] for owner, rows in named if index.statement(owner).kind == FOREIGN_KEY}


def _lost(index: Index, node: int, verdict: str, cause: str, reached: Affected | None) -> Affected:
    """A column or row set that is lost, with the way by which the loss reaches it."""
    dataset = index.node_dataset[node]
    derivations = {index.edge_derivation[e] for e in (*index.in_edges(node), *index.in_edges(index.rows(dataset)))}
    proofs = sorted({evidence(index, d) for d in derivations}, key=lambda e: (e.file, e.line))
    return Affected(
        column=index.name(node),
        dataset=index.dataset_name(dataset),
        dataset_kind=index.dataset_kind(dataset),
        verdict=verdict,
        cause=cause or (reached.cause if reached else ""),
        hops=reached.hops if reached else 0,
        path=reached.path if reached else (),
        via=reached.via if reached else (),
        evidence=tuple(proofs),
    )


def _survives(index: Index, entry: Affected, gone: Collection[str]) -> tuple[str, ...]:
    """The datasets from which the rows of an affected dataset still come."""
    number = index.find_dataset(entry.dataset)
    if number is None:
        return ()
    found = (index.node_dataset[index.edge_source[e]] for e in index.in_edges(index.rows(number)))
    names = {index.dataset_name(d) for d in found if d != number and not index.is_elided(d)}
    return tuple(sorted(names - set(gone)))


def unused(index: Index, gone: set[int]) -> set[int]:
    """Columns that only removed columns used, directly or not; the removed ones are not among them."""
    found: set[int] = set()
    stack = sorted(gone)
    while stack:
        for edge in index.in_edges(stack.pop()):
            source = index.edge_source[edge]
            if source in gone or source in found or index.is_rows(source) or index.is_unknown(source):
                continue
            if len(index.row_edges(index.node_dataset[source])):
                continue
            rows = index.rows(index.node_dataset[source])
            # A column serves while anything is made of it, of its struct or of a field, or a statement names them.
            around = (source, *index.containers(source), *index.fields(source))
            served = {
                index.edge_target[e]
                for n in around
                for e in index.out_edges(n)
                if index.kind(e) is not EdgeKind.UNION_ALL
            }
            served |= {
                index.referring_rows(r) for n in (rows, *around) for r in index.references(n) if not index.names_own(r)
            }
            if all(node in gone or node in found for node in served):
                found.add(source)
                stack.append(source)
    return {n for n in found if not index.is_hidden(index.node_dataset[n])}

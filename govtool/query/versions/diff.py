"""Differences between two versions of the graph: datasets, columns and edges, and the statements behind each.

Statements that change nothing of these are in ``statements``. What else differs, facts, runs, classes …, is in
``recorded`` and ``govtool.policy.rules.baseline``.

Two indexes are compared by what they say, not by how they are numbered: a statement that only moved within its file
changes nothing. An edge is told by its two ends and its kind; other functions, masking or reasons make it *changed*.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from govtool.graph.index import Index
from govtool.query.evidence import Evidence, evidence, step_label

ADDED, REMOVED, CHANGED = "added", "removed", "changed"
DIFFERING = ("dataset", "column", "edge", "statement", "fact", "run", "version", "class", "finding")
"""All that may differ, in the order of answers; classes and findings only where policies are given."""
_QUERY = "query"


@dataclass(frozen=True, slots=True)
class GraphChange:
    """One thing that differs."""

    what: str
    """One of ``DIFFERING``."""
    change: str
    """``added``, ``removed`` or ``changed``."""
    name: str
    """Canonical text; for an edge that of its target, for a fact, a class or a finding that of its subject."""
    source: str | None
    """For an edge or a finding: where the data comes from; for the version of a dataset: the run that wrote it."""
    kind: str | None
    """For an edge the label of its kind, for a statement its kind, for a fact its name, for a run its job, for a
    finding its rule."""
    before: str | None
    """What it was: a dataset's kind, a column's type, how an edge transforms, a part of a statement's text without
    literals, a fact's value, a run's status, the classes of a column, the verdict of a finding; ``None`` if added or
    not known."""
    after: str | None
    evidence: tuple[Evidence, ...]
    """The statements that caused it: those that say so on one side only, the new side's first."""


@dataclass(frozen=True, slots=True)
class Difference:
    """All changes, sorted by what, name and source."""

    changes: tuple[GraphChange, ...]

    @classmethod
    def of(cls, changes: Iterable[GraphChange]) -> Difference:
        """Changes in the order of answers."""
        return cls(tuple(sorted(changes, key=_order)))

    def count(self, what: str, change: str) -> int:
        """Return the number of things of one kind that were added, removed or changed."""
        return sum(1 for item in self.changes if (item.what, item.change) == (what, change))


class _Key(NamedTuple):
    what: str
    name: str
    source: str = ""
    kind: str = ""
    dataset: str = ""


@dataclass(slots=True)
class _Fact:
    """The content of a version about one thing; ``shown`` is false for what answers pass through."""

    values: set[str]
    evidence: set[Evidence]
    shown: bool


Facts = Mapping[_Key, _Fact]


def facts(index: Index, datasets: Collection[str] | None = None) -> Facts:
    """Everything in an index, or in some of its datasets: datasets, columns, and the edges into them."""
    found: dict[_Key, _Fact] = {}
    proofs: dict[int, Evidence] = {}

    def note(key: _Key, value: str | None, derivations: Iterable[int], shown: bool) -> None:
        fact = found.setdefault(key, _Fact(set(), set(), False))
        fact.shown |= shown
        if value is not None:
            fact.values.add(value)
        for d in derivations:
            if d not in proofs:
                proofs[d] = evidence(index, d)
            fact.evidence.add(proofs[d])

    for dataset in generations(index, datasets):
        name, kind = index.dataset_name(dataset), index.dataset_kind(dataset)
        shown = not index.is_elided(dataset) and kind != _QUERY
        makers = index.makers(dataset)
        readers = [] if makers else _readers(index, index.rows(dataset), index.columns(dataset))
        note(_Key("dataset", name, dataset=name), kind, makers or readers, shown)
        makers_of: dict[int, list[int]] = {}
        for maker in makers:
            for node in index.outputs(maker):
                makers_of.setdefault(node, []).append(maker)
        for node in (index.rows(dataset), *index.columns(dataset)):
            text = index.name(node)
            if not index.is_rows(node) and not index.is_unknown(node):
                behind = makers_of.get(node) or _readers(index, node, ())
                note(_Key("column", text, dataset=name), index.type(node), behind, shown)
            for edge in index.in_edges(node):
                source = index.name(index.edge_source[edge])
                key = _Key("edge", text, source, index.kind(edge).label, name)
                # Arms and stars are how it was said, not what: neither makes an edge another one.
                note(key, _manner(index, edge), [index.edge_derivation[edge]], shown=True)
    return found


def unlike(old: Index, new: Index) -> set[str]:
    """The names of all datasets that may differ between two versions, by their digests."""
    from govtool.graph.digests import unequal

    sides = old.resident(), new.resident()
    places = unequal(*(side.arrays["dataset_digest"] for side in sides))
    return {side.dataset_name(d) for side, found in zip(sides, places, strict=True) for d in found.tolist()}


def difference(old: Facts, new: Facts) -> Difference:
    """Compare what two versions say."""
    changes = []
    for key in old.keys() | new.keys():
        before, after = old.get(key), new.get(key)
        left = before if before is not None and before.shown else None
        right = after if after is not None and after.shown else None
        if (left is None and right is None) or (left and right and left.values == right.values):
            continue
        changes.append(
            GraphChange(
                what=key.what,
                change=ADDED if left is None else REMOVED if right is None else CHANGED,
                name=key.name,
                source=key.source or None,
                kind=key.kind or None,
                before=_text(left),
                after=_text(right),
                evidence=_causes(left, right),
            )
        )
    return Difference.of(changes)


def _order(change: GraphChange) -> tuple[int, str, str, str]:
    return DIFFERING.index(change.what), change.name, change.source or "", change.kind or ""


def generations(index: Index, names: Collection[str] | None) -> Iterable[int]:
    """Return the datasets of some names (None: of all); ended generations of a script's table share its name."""
    if names is None:
        yield from range(index.dataset_count)
        return
    for name in sorted(names):
        number = index.find_dataset(name)
        if number is None:
            continue
        # They lie beside each other.
        while number > 0 and index.dataset_name(number - 1) == name:
            number -= 1
        while number < index.dataset_count and index.dataset_name(number) == name:
            yield number
            number += 1


def _readers(index: Index, node: int, more: Iterable[int]) -> list[int]:
    """The derivations that read nodes: what is known of a dataset that nothing makes."""
    return sorted({index.edge_derivation[edge] for each in (node, *more) for edge in index.out_edges(each)})


def _manner(index: Index, edge: int) -> str:
    label = step_label(index.kind(edge), index.functions(edge), index.reason(edge))
    return f"{label}, masking" if index.is_masking(edge) else label


def _text(fact: _Fact | None) -> str | None:
    return " | ".join(sorted(fact.values)) or None if fact is not None else None


def _causes(old: _Fact | None, new: _Fact | None) -> tuple[Evidence, ...]:
    before, after = (old.evidence if old else set()), (new.evidence if new else set())
    edge_sets = {_same(e) for e in before}, {_same(e) for e in after}
    causes = [
        *sorted((e for e in after if _same(e) not in edge_sets[0]), key=_place),
        *sorted((e for e in before if _same(e) not in edge_sets[1]), key=_place),
    ]
    return tuple(causes or sorted(after or before, key=_place))


def _same(item: Evidence) -> tuple[str, ...]:
    """Return the content that stays when a statement moves within its file."""
    return item.file, item.fingerprint, item.kind, item.how, item.run or ""


def _place(item: Evidence) -> tuple[str, int, str]:
    return item.file, item.line, item.fingerprint

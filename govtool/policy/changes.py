"""Rules about changes: what became of columns between two versions of the graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date

from govtool.graph.index import Index
from govtool.policy.dataset_facts import DatasetFacts, Truth
from govtool.policy.finding import Finding, RuleVerdict
from govtool.policy.judge import Approvals, taints_of
from govtool.policy.load import PlacedPart
from govtool.policy.model import ColumnChange, Rule
from govtool.policy.propagate import Propagation
from govtool.policy.taints import Mode
from govtool.query.diff import unlike
from govtool.query.evidence import step
from govtool.query.patterns import Patterns


def judge_changes(
    before: Propagation,
    after: Propagation,
    places: tuple[DatasetFacts, DatasetFacts],
    rule: PlacedPart[Rule],
    today: date,
) -> list[Finding]:
    """Find the columns that a rule protects and that a change drops, adds, retypes or makes otherwise.

    Args:
        before: The classes before the change.
        after: The classes after it.
        places: What is known of the datasets, before and after.
        rule: A rule of the form ``change``.
        today: For approvals.
    """
    body: ColumnChange = rule.value.body
    old, new = before.index, after.index
    approved = Approvals(rule.value, today, new.paths_root)
    guarded = {True: _guarded(before, places[0], rule.value, body), False: _guarded(after, places[1], rule.value, body)}
    found = []
    for kind, name, node, detail in column_changes(old, new):
        if kind not in body.kinds or node not in guarded[kind != "add"] or approved.cover(name):
            continue
        here = new.find(old.ref(node)) if kind in ("retype", "logic") else node if kind == "add" else None
        edges = new.in_edges(here)[:1] if here is not None else []
        found.append(
            Finding(
                rule=rule.value.id,
                title=rule.value.title,
                severity=rule.value.severity,
                verdict=RuleVerdict.VIOLATED,
                source="",
                column=name,
                classes=tuple(body.class_),
                state=f"{kind} {detail}".strip(),
                steps=tuple(step(new, e) for e in edges),
                why=_WORDS[kind] + (f": {detail}" if detail else ""),
                fix=rule.value.fix,
                place=rule.place,
            )
        )
    return found


_WORDS = {
    "drop": "the column is gone",
    "add": "the column is new",
    "retype": "its type changed",
    "logic": "it is made otherwise",
}


def _guarded(spread: Propagation, places: DatasetFacts, rule: Rule, body: ColumnChange) -> set[int]:
    """The columns that a rule speaks of in one version."""
    index = spread.index
    found: set[int] | None = None
    if body.class_:
        found = set(spread.having(Mode.VALUE, taints_of(spread, rule, body.class_, (0,))).tolist())
    if body.columns:
        named = Patterns(body.columns, index.paths_root).columns(index, places.paths)
        found = named if found is None else found & named
    if body.to is not None:
        where = places.where(body.to)
        there = {n for d, t in where.items() if t is Truth.YES for n in index.columns(d)}
        found = there if found is None else found & there
    return found or set()


def column_changes(old: Index, new: Index) -> Iterator[tuple[str, str, int, str]]:
    """Kind of change, name, node (of the old version; for ``add`` of the new), and a detail; sorted by name.

    Only datasets that the two versions tell differently are looked at.
    """
    differ = sorted(unlike(old, new))
    for dataset in _shown(old, differ):
        for node in old.columns(dataset):
            if old.is_unknown(node):
                continue
            here = new.find(old.ref(node))
            if here is None or new.is_hidden(new.node_dataset[here]):
                yield "drop", old.name(node), node, ""
                continue
            was, is_ = old.type(node), new.type(here)
            if was and is_ and was.lower() != is_.lower():
                yield "retype", old.name(node), node, f"{was} to {is_}"
            if _made(old, node) != _made(new, here):
                yield "logic", old.name(node), node, ""
    for dataset in _shown(new, differ):
        for node in new.columns(dataset):
            if not new.is_unknown(node) and old.find(new.ref(node)) is None:
                yield "add", new.name(node), node, ""


def _shown(index: Index, names: Iterable[str]) -> Iterator[int]:
    """The visible datasets of some names."""
    for name in names:
        dataset = index.find_dataset(name)
        if dataset is not None and not index.is_hidden(dataset):
            yield dataset


def _made(index: Index, node: int) -> set[tuple[str, int, tuple[str, ...]]]:
    """Return the sources of a column, and how they reach it."""
    return {(index.name(index.edge_source[e]), index.kind(e), index.functions(e)) for e in index.in_edges(node)}

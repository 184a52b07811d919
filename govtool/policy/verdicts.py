"""Differences in what policies make of two versions of a graph: the classes of columns, and findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date

from govtool.policy.check import CheckResult, check
from govtool.policy.finding import Finding
from govtool.policy.governed import Governed
from govtool.policy.labels import GovernedLabels
from govtool.query.diff import ADDED, CHANGED, REMOVED, GraphChange

CLASS, FINDING = "class", "finding"


def policy_changes(old: Governed, new: Governed, today: date) -> Iterator[GraphChange]:
    """Compare the classes of columns and the findings of the same policies on two versions.

    Rules about changes are judged of the change from the old version to the new one.

    Args:
        old: The old version under the policies.
        new: The new version under them.
        today: The day on which waivers and approvals are judged.
    """
    yield from _class_changes(_classes(old), _classes(new))
    fresh = check(new, today, old)
    changes = [f for f in fresh.findings if f.rule in _change_rules(fresh)]
    yield from _finding_changes(check(old, today).findings, (*check(new, today).findings, *changes))


def _classes(governed: Governed) -> dict[str, str]:
    """The classes of the values of each column that has any; those that are only possible have a question mark."""
    index, labels = governed.spread.index, GovernedLabels(governed)
    found: dict[str, str] = {}
    for dataset in index.datasets():
        if index.is_hidden(dataset):
            continue
        for node in index.columns(dataset):
            names = [*labels.classes(node), *(f"{name}?" for name in labels.possible_classes(node))]
            if names:
                found[index.name(node)] = ", ".join(names)
    return found


def _class_changes(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[GraphChange]:
    for column in old.keys() | new.keys():
        before, after = old.get(column), new.get(column)
        if before != after:
            yield GraphChange(CLASS, _change(before, after), column, None, None, before, after, ())


def _change_rules(result: CheckResult) -> frozenset[str]:
    return frozenset(rule.value.id for rule in result.rules if rule.value.form == "change")


def _finding_changes(old: tuple[Finding, ...], new: tuple[Finding, ...]) -> Iterator[GraphChange]:
    before, after = ({finding.fingerprint: finding for finding in side} for side in (old, new))
    for key in before.keys() | after.keys():
        left, right = before.get(key), after.get(key)
        verdicts = _verdict(left), _verdict(right)
        shown = right or left
        if shown is None or verdicts[0] == verdicts[1]:
            continue
        proofs = tuple(dict.fromkeys(step.evidence for step in shown.steps))
        change = _change(left, right)
        yield GraphChange(FINDING, change, shown.column, shown.source or None, shown.rule, *verdicts, proofs)


def _verdict(finding: Finding | None) -> str | None:
    return None if finding is None else finding.verdict.label


def _change(left: object, right: object) -> str:
    if not left:
        return ADDED
    return CHANGED if right else REMOVED

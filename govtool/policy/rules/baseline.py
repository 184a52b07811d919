"""What is new: findings beside a baseline of accepted ones, and classes and findings of two versions of a graph."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path

from govtool.errors import UsageError
from govtool.given_files import read_given_text
from govtool.policy.classes.governed import Governed, GovernedLabels
from govtool.policy.rules.check import CheckResult, check
from govtool.policy.rules.finding import Accepted, Finding, RuleVerdict, excess_over
from govtool.query.versions.diff import ADDED, CHANGED, REMOVED, GraphChange

SCHEMA = "baseline/1"


def read_baseline(path: Path) -> dict[str, Accepted]:
    """What a baseline file accepts, by fingerprint.

    Raises:
        UsageError: It cannot be read, or is no baseline (``usage.baseline``).
    """
    try:
        value = json.loads(read_given_text(path))
        if not isinstance(value, Mapping) or value.get("schema") != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        return {
            str(entry["fingerprint"]): Accepted(
                entry.get("verdict"),
                entry.get("strength"),
                _size(entry.get("measured")),
                _names(entry.get("classes")),
                entry.get("severity"),
            )
            for entry in value["findings"]
        }
    except OSError as error:
        raise UsageError(
            (error.strerror or str(error)).lower(),
            code="usage.baseline",
            location=str(path),
            hint="govtool check --update-baseline FILE makes one",
        ) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"not a baseline: {error}", code="usage.baseline", location=str(path)) from error


def accepted(findings: Iterable[Finding], known: Mapping[str, Accepted]) -> tuple[Finding, ...]:
    """Mark the findings that a baseline holds, and those that are worse than what it holds."""
    return tuple(_marked(finding, known.get(finding.fingerprint)) for finding in findings)


def _marked(finding: Finding, before: Accepted | None) -> Finding:
    if before is None or finding.failed:
        return finding
    excess = excess_over(before, finding)
    return replace(finding, excess=excess) if excess else replace(finding, accepted=True)


def baseline_object(findings: Iterable[Finding]) -> dict[str, object]:
    """The JSON value of a baseline with the findings that are neither waived nor held."""
    return {"schema": SCHEMA, "findings": list(_entries(findings))}


def _size(value: object) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError("measured is not a number of members")
    return value


def _names(value: object) -> tuple[str, ...] | None:
    if value is None:  # of an earlier version
        return None
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError("classes are not a list of names")
    return tuple(value)


def _entries(findings: Iterable[Finding]) -> Iterator[dict[str, object]]:
    open_ = [f for f in findings if f.verdict in (RuleVerdict.VIOLATED, RuleVerdict.UNKNOWN) and not f.failed]
    for finding in sorted(open_, key=lambda f: (f.rule, f.column, f.source, f.state)):
        yield {
            "fingerprint": finding.fingerprint,
            "rule": finding.rule,
            "source": finding.source,
            "column": finding.column,
            "state": finding.state,
            "verdict": finding.verdict.label,
            "severity": finding.severity,
            "classes": list(finding.classes),
            **({"strength": finding.strength} if finding.strength else {}),
            **({} if finding.measured is None else {"measured": finding.measured}),
        }


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

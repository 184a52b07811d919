"""Checking one version of the graph against policies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from govtool.answers.check import CheckAnswer
    from govtool.app.questions.columns import PolicyChoice
    from govtool.app.versions.opening import Snapshot
    from govtool.policy.classes.governed import Governed
    from govtool.query.versions.diff import GraphChange


def check_answer(
    snapshot: Snapshot,
    policies: PolicyChoice,
    *,
    base: Snapshot | None,
    baseline: Path | None,
    strict: bool,
    measure: bool = False,
) -> CheckAnswer:
    """Judge every rule of the policies.

    Args:
        snapshot: The version to check.
        policies: The policies; there have to be some.
        base: The version before the change: findings that it has too are counted, not listed.
        baseline: A file of findings that are accepted.
        strict: What could not be decided counts as violated.
        measure: Measure the groups of recorded outputs, for declassifiers with such evidence.

    Raises:
        UsageError: There are no policies, they or the baseline are mistaken, or a zone matches nothing.
    """
    from govtool.answers.check import CheckAnswer
    from govtool.policy.classes.governed import require_zones
    from govtool.policy.rules.baseline import accepted, read_baseline
    from govtool.policy.rules.check import check

    known = {} if baseline is None else read_baseline(baseline)
    head = _governed(snapshot, policies, measure=measure)
    require_zones(head.places, head.policies)
    # A zone may be new: the base need not have its datasets.
    before = None if base is None else _governed(base, policies, measure=measure)
    result = check(head, policies.day, before)
    if known:
        result = replace(result, findings=accepted(result.findings, known))
    return CheckAnswer(snapshot.version, result, strict)


def policy_difference(old: Snapshot, new: Snapshot, policies: PolicyChoice) -> list[GraphChange]:
    """The classes and findings that differ between two versions under the same policies.

    Raises:
        UsageError: There are no policies, or they are mistaken.
    """
    from govtool.policy.rules.baseline import policy_changes

    return list(policy_changes(_governed(old, policies), _governed(new, policies), policies.day))


def _governed(snapshot: Snapshot, policies: PolicyChoice, *, measure: bool = False) -> Governed:
    return snapshot.governance.governed(policies.policy, policies.day, measure=measure)

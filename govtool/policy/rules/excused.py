"""What waivers accepted before a change: a finding that came with the change, and is worse, is not meant by them.

A waiver that was given with the change (a new comment in SQL), or that states its limit (``at_most``, ``min_group``),
is taken at its word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from govtool.policy.files.policy_set import PolicySet
from govtool.policy.rules.finding import (
    Finding,
    InlineWaiver,
    MistakenComment,
    PolicyRemark,
    RuleVerdict,
    accepted_as,
    exceeds,
)

_Comments = Iterable[InlineWaiver | MistakenComment]


class Excused:
    """The findings that waivers accept in a base.

    Args:
        policies: With their waivers.
        before: The findings of the base.
        waived: The same, once waivers are applied.
        stated: The waivers in the SQL of the change.
        stated_before: Those in the SQL of the base.
    """

    def __init__(
        self,
        policies: PolicySet,
        before: Sequence[Finding],
        waived: Sequence[Finding],
        stated: _Comments,
        stated_before: _Comments,
    ) -> None:
        self._unwaived = {one.fingerprint: one for one in before}
        self._excused = [one for one in waived if one.verdict is RuleVerdict.WAIVED]
        known = {_content(one) for one in stated_before if isinstance(one, InlineWaiver)}
        comments = [one for one in stated if isinstance(one, InlineWaiver)]
        limits = {one.place for one in policies.waivers if one.value.at_most or one.value.min_group is not None}
        self._at_their_word = limits | {one.place for one in comments if _content(one) not in known}
        self._reasons = {one.because for one in self._excused}

    def limited(
        self, findings: Iterable[Finding], waived: Iterable[Finding]
    ) -> tuple[tuple[Finding, ...], tuple[PolicyRemark, ...]]:
        """Bring back the findings that are worse than what their waiver accepted in the same column of the base.

        Args:
            findings: Those that the base has not, or has milder.
            waived: The same, once waivers are applied.

        Returns:
            The findings, and a warning for each waiver that covers a column that it did not cover in the base.
        """
        given = {one.fingerprint: one for one in findings}
        found: list[Finding] = []
        widened: list[PolicyRemark] = []
        for one in waived:
            if one.verdict is not RuleVerdict.WAIVED or one.waiver in self._at_their_word:
                found.append(one)
                continue
            before = [known for known in self._excused if (known.rule, known.column) == (one.rule, one.column)]
            limits = [exceeds(given[one.fingerprint], accepted_as(self._unwaived[f.fingerprint])) for f in before]
            is_worse = bool(limits) and all(limits)
            found.append(replace(given[one.fingerprint], worse_than=limits[0]) if is_worse else one)
            if not before and one.because in self._reasons:
                text = f"the waiver of {one.rule} now also covers {one.column}, which the base does not have like that"
                widened.append(PolicyRemark("waiver-widened", "warning", text, one.waiver or ""))
        return tuple(found), tuple(dict.fromkeys(widened))


def _content(waiver: InlineWaiver) -> tuple[object, ...]:
    return waiver.rule, waiver.dataset, waiver.expires, waiver.reason

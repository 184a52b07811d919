"""What a change would do to the policies' findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from govtool.query.whatif import WhatIf

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import date

    from govtool.graph.index import Index
    from govtool.policy.dataset_facts import ToolFact
    from govtool.policy.finding import Finding
    from govtool.policy.load import PolicySet


class PolicyEffect(NamedTuple):
    """Findings that a change ends, and those that it leaves."""

    ended: tuple[Finding, ...]
    left: int


def policy_effect(
    index: Index, policies: PolicySet, answer: WhatIf, today: date, tool_facts: Sequence[ToolFact]
) -> PolicyEffect | None:
    """Which findings end if the subjects, and what is lost with them, hold no data in clear any more.

    None for changes that leave the data as it is.
    """
    from govtool.policy.check import check, govern

    if answer.action not in ("drop", "mask", "delete"):
        return None
    before = check(govern(index, policies, today, tool_facts=tool_facts), today)
    after = check(govern(index, policies, today, tool_facts=tool_facts, without=_gone(index, answer)), today)
    stays = {f.fingerprint for f in after.findings}
    ended = tuple(f for f in before.findings if f.fingerprint not in stays and f.verdict.label != "waived")
    return PolicyEffect(ended, sum(f.verdict.label != "waived" for f in after.findings))


def _gone(index: Index, answer: WhatIf) -> Collection[int]:
    names = {*answer.subjects, *(a.column for a in answer.affected if a.verdict in ("lost", "breaks"))}
    found = set()
    for dataset in index.datasets():
        whole = index.dataset_name(dataset) in names
        for node in range(index.rows(dataset), index.dataset_base[dataset + 1]):
            if whole or index.name(node) in names:
                found.add(node)
                found.update(index.fields(node))
    return found

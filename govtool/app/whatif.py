"""Changes that might be made: what they would affect, and what they would do to the policies' findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from govtool.query.whatif import WhatIf

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from govtool.answers.whatif import PolicyEffect, WhatIfAnswer
    from govtool.app.opening import Snapshot
    from govtool.app.questions import PolicyChoice
    from govtool.graph.index import Index


def whatif_answer(
    snapshot: Snapshot,
    action: str,
    selectors: Sequence[str],
    rules: PolicyChoice,
    *,
    to: str | None,
    exclude: Sequence[str],
) -> WhatIfAnswer:
    """Answer what happens if columns or datasets are changed; see ``govtool.query.whatif``.

    Raises:
        UsageError: Nothing is selected, policies are mistaken, or the change makes no sense.
    """
    from govtool.answers.whatif import WhatIfAnswer
    from govtool.app.questions import selector
    from govtool.app.unread import version_for
    from govtool.query.whatif import whatif

    selection = selector(snapshot, rules).select(selectors, exclude)
    result = whatif(snapshot.index, action, selection, to)
    about = {*selection.datasets, *(snapshot.index.node_dataset[node] for node in selection.columns)}
    return WhatIfAnswer(version_for(snapshot, about), result, _policy_effect(snapshot, result, rules))


def _policy_effect(snapshot: Snapshot, result: WhatIf, rules: PolicyChoice) -> PolicyEffect | None:
    """The findings that end if the subjects, and what is lost with them, hold no data in clear any more.

    None without policies, and for changes that leave the data as it is.
    """
    from govtool.answers.whatif import PolicyEffect

    governance, day = snapshot.governance, rules.day
    policies = governance.policies_if_any(rules.policy)
    if policies is None or result.action not in ("drop", "mask", "delete"):
        return None
    from govtool.policy.check import check
    from govtool.policy.governed import govern

    before = check(governance.governed(rules.policy, day), day)
    gone = _gone(snapshot.index, result)
    after = check(govern(snapshot.index, policies, day, tool_facts=governance.facts(), without=gone), day)
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

"""Changes that might be made: what they would affect, and what they would do to the policies' findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from govtool.errors import UsageError
from govtool.query.changes.whatif import WhatIf

if TYPE_CHECKING:
    from collections.abc import Collection

    from govtool.answers.whatif import PolicyEffect, WhatIfAnswer
    from govtool.app.questions.columns import PolicyChoice
    from govtool.app.versions.opening import Snapshot
    from govtool.graph.index import Index


class PlannedChange(NamedTuple):
    """One of several changes."""

    action: str
    """``drop``, ``rename``, ``retype``, ``mask`` or ``delete``."""
    selectors: Sequence[str]
    to: str | None = None
    """The new name or type."""


def planned_changes(
    *, drop: Sequence[str], rename: Sequence[str], retype: Sequence[str], mask: Sequence[str], delete: Sequence[str]
) -> list[PlannedChange]:
    """Changes of several kinds as one list; renames and new types are written ``OLD=NEW`` and ``COLUMN=TYPE``.

    Raises:
        UsageError: A rename or a new type has no ``=``, or nothing on one side of it (``usage.arguments``).
    """
    whole = {"drop": drop, "mask": mask, "delete": delete}
    found = [PlannedChange(action, names) for action, names in whole.items() if names]
    for action, texts in (("rename", rename), ("retype", retype)):
        for text in texts:
            name, sign, new = text.rpartition("=")
            if not sign or not name.strip() or not new.strip():
                raise UsageError(
                    f"--{action} {text[:60]!r} is not COLUMN=NEW",
                    code="usage.arguments",
                    hint=f"--{action} crm.users.email={'mail' if action == 'rename' else 'text'}",
                )
            found.append(PlannedChange(action, [name.strip()], new.strip()))
    return found


def whatif_answer(
    snapshot: Snapshot,
    action: str,
    selectors: Sequence[str],
    policies: PolicyChoice,
    *,
    to: str | None,
    exclude: Sequence[str],
) -> WhatIfAnswer:
    """Answer the effects of changes to columns or datasets; see ``govtool.query.changes.whatif``.

    Raises:
        UsageError: Nothing is selected, policies are mistaken, or the change makes no sense.
    """
    from govtool.answers.whatif import WhatIfAnswer
    from govtool.app.coverage.unread import version_for
    from govtool.app.questions.columns import selector
    from govtool.query.changes.whatif import whatif

    selection = selector(snapshot, policies).select(selectors, exclude)
    result = whatif(snapshot.index, action, selection, to)
    about = {*selection.datasets, *(snapshot.index.node_dataset[node] for node in selection.columns)}
    return WhatIfAnswer(version_for(snapshot, about), result, _policy_effect(snapshot, result, policies))


def whatif_several_answer(
    snapshot: Snapshot, changes: Sequence[PlannedChange], policies: PolicyChoice, *, exclude: Sequence[str]
) -> WhatIfAnswer:
    """Answer the effects of several kinds of changes together; see ``govtool.query.changes.whatif``.

    Raises:
        UsageError: Nothing is selected, policies are mistaken, or a change makes no sense.
    """
    from govtool.answers.whatif import WhatIfAnswer
    from govtool.app.coverage.unread import version_for
    from govtool.app.questions.columns import selector
    from govtool.query.changes.whatif import whatif_several

    choosing = selector(snapshot, policies)
    chosen = [(one.action, choosing.select(one.selectors, exclude), one.to) for one in changes]
    result = whatif_several(snapshot.index, chosen)
    about = {d for _, selection, _ in chosen for d in selection.datasets}
    about |= {snapshot.index.node_dataset[node] for _, selection, _ in chosen for node in selection.columns}
    return WhatIfAnswer(version_for(snapshot, about), result, _policy_effect(snapshot, result, policies))


def _policy_effect(snapshot: Snapshot, result: WhatIf, policies: PolicyChoice) -> PolicyEffect | None:
    """The findings that end if the subjects, and what is lost with them, hold no data in clear any more.

    None without policies, and for changes that leave the data as it is.
    """
    from govtool.answers.whatif import PolicyEffect

    governance, day = snapshot.governance, policies.day
    known = governance.policies_if_any(policies.policy)
    hiding = [part for part in result.parts or (result,) if part.action in ("drop", "mask", "delete")]
    if known is None or not hiding:
        return None
    from govtool.policy.classes.governed import govern
    from govtool.policy.rules.check import check

    before = check(governance.governed(policies.policy, day), day)
    gone = {node for part in hiding for node in _gone(snapshot.index, part)}
    after = check(govern(snapshot.index, known, day, tool_facts=governance.facts(), without=gone), day)
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

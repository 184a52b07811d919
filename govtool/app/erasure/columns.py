"""Erasure of a data subject: from what a person asks for to a plan. What identifies the subject goes no further."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from govtool.errors import UsageError

if TYPE_CHECKING:
    from datetime import date

    from govtool.answers.erase import ErasePlanAnswer
    from govtool.app.questions.columns import PolicyChoice
    from govtool.app.questions.selection import Selector
    from govtool.app.versions.opening import Snapshot
    from govtool.policy.erasure.column_plan import ErasurePlan


class SubjectKey(NamedTuple):
    """A column and what it holds for the subject. The value is personal data: it is never stored, logged or told."""

    column: str
    value: str | None

    def __repr__(self) -> str:
        """Without the value, which a traceback or a log might otherwise show."""
        return f"SubjectKey(column={self.column!r}, value={'…' if self.value is not None else None})"


def parse_subject(text: str) -> SubjectKey:
    """Read ``crm.users.id=42`` or ``crm.users.id``.

    Raises:
        UsageError: There is no column (``usage.subject``).
    """
    quoted = False
    for at, ch in enumerate(text):
        if ch == '"':
            quoted = not quoted
        elif ch == "=" and not quoted:
            column, value = text[:at].strip(), text[at + 1 :]
            break
    else:
        column, value = text.strip(), None
    if not column:
        raise UsageError("a subject is COLUMN or COLUMN=VALUE", code="usage.subject", hint="--subject crm.users.id")
    return SubjectKey(column, value)


def plan(
    selector: Selector, subjects: Sequence[SubjectKey], also: Sequence[str], within: str, today: date
) -> ErasurePlan:
    """The plan for a subject, with policies or without.

    Args:
        selector: The version of the graph, and its policies.
        subjects: What identifies the subject.
        also: Selectors of further columns with the same identifier.
        within: The time there is, as a duration.
        today: For declarations that expire.

    Raises:
        UsageError: A subject is a dataset; ``within`` is no duration.
    """
    from govtool.policy.erasure.column_plan import erasure_plan
    from govtool.policy.files.terms import is_duration
    from govtool.query.selection.select import select

    if not is_duration(within):
        raise UsageError(f"{within[:40]!r} is not a duration", code="usage.duration", hint="--within 30d")
    nodes = []
    for one in subjects:
        subject = select(selector.index, one.column)
        if subject.node is None:
            raise UsageError(
                f"{subject.text} is a dataset; what column identifies the subject?",
                code="usage.subject",
                hint=f"--subject {subject.text}.id",
            )
        nodes.append(subject.node)
    more = selector.columns(also, "--key")
    return erasure_plan(selector.known, nodes, today, also=more, within=within)


def erase_answer(
    snapshot: Snapshot,
    subject: Sequence[str],
    policies: PolicyChoice,
    *,
    key: Sequence[str],
    within: str,
    show_values: bool,
) -> ErasePlanAnswer:
    """The plan for the erasure of a data subject, with policies or without.

    Args:
        snapshot: The version of the graph.
        subject: ``COLUMN`` or ``COLUMN=VALUE``, each.
        policies: Policies, and the day on which declarations are judged.
        key: Selectors of further columns with the same identifier.
        within: The time there is, as a duration.
        show_values: Whether the answer repeats the values, which are personal data.

    Raises:
        UsageError: There is no subject, or it is a dataset; ``within`` is no duration, or policies are mistaken.
        UnknownNameError: There is no such column.
    """
    from govtool.answers.erase import ErasePlanAnswer
    from govtool.app.questions.columns import selector

    named = [parse_subject(text) for text in subject]
    if not named:  # a plan for nobody would read as if there were nothing to erase
        raise UsageError("no subject is given", code="usage.subject", hint="--subject crm.users.id")
    found = plan(selector(snapshot, policies), named, key, within, policies.day)
    return ErasePlanAnswer(snapshot.version, found, tuple(one.value for one in named) if show_values else None)

"""Options that several questions to a graph share, declared once, and what they come to."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, TypeVar

from govtool.api.arguments import Day, paths

if TYPE_CHECKING:
    from govtool.answers.answer import GraphAnswer
    from govtool.api.arguments import Paths, Texts
    from govtool.app.questions.columns import PolicyChoice


class ChangeOptions(TypedDict, total=False):
    """Keywords of questions about planned changes."""

    exclude: Texts | None
    """Selectors of what to leave out."""
    policy: Paths | None
    """As for ``impact``: the answer has the findings that the change would end."""
    today: Day | None
    """As for ``impact``."""
    limit: int | None
    """Entries to return at most; by default all."""
    strict: bool
    """As for ``impact``."""


_GraphAnswer = TypeVar("_GraphAnswer", bound="GraphAnswer")


def accepted(answer: _GraphAnswer, *, strict: bool) -> _GraphAnswer:
    """The answer; see ``GraphAnswer.check_strict``."""
    if strict:
        answer.check_strict()
    return answer


def policy_choice(policy: Paths | None, today: Day | None) -> PolicyChoice:
    """The policies of a question, and the day on which they are judged.

    Raises:
        UsageError: The text is no date (``usage.date``).
    """
    from govtool.app.questions.columns import PolicyChoice
    from govtool.app.questions.governance import day_of

    return PolicyChoice(paths(policy) or None, day_of(today))

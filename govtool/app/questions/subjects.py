"""The subjects of a question: a name, or all that a selector selects; a name costs no more than finding it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from govtool.errors import UnknownNameError
from govtool.graph.index import Index
from govtool.query.selection.select import Subject, select

if TYPE_CHECKING:
    from govtool.app.questions.selection import Selector


class Subjects:
    """Finds the subjects of questions about one version of the graph.

    Args:
        index: The graph.
        selector: Makes what selects from it, where a name does not do.
    """

    def __init__(self, index: Index, selector: Callable[[], Selector]) -> None:
        self._index, self._selector = index, selector

    def find(self, text: str, exclude: Sequence[str] = ()) -> tuple[Subject, ...]:
        """The column or dataset of a name; or all that a selector selects. What is a name is never read as a selector.

        Raises:
            UnknownNameError: Nothing is called so, and it is no selector.
            AmbiguousNameError: Several are.
            UsageError: The selector is mistaken.
        """
        try:
            chosen = select(self._index, text)
            if not exclude:
                return (chosen,)
        except UnknownNameError:
            from govtool.query.selection.selectors import looks_selective

            if not looks_selective(text):
                raise
        from govtool.query.selection.selectors import subjects

        return subjects(self._index, self._selector().select([text], exclude))

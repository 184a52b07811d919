"""What a question is about: a name, or all that a selector selects; a name costs no more than finding it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING

from govtool.errors import UnknownNameError
from govtool.graph.index import Index
from govtool.query.select import Subject, select

if TYPE_CHECKING:
    from govtool.app.selection import Selector
    from govtool.store import Commit, Reader


class Subjects:
    """Finds the subjects of questions about one version of a store; arguments are those of ``Selector``."""

    def __init__(
        self, index: Index, reader: Reader, commit: Commit, policies: Sequence[str] | None, today: date
    ) -> None:
        self._index, self._reader, self._commit = index, reader, commit
        self._policies, self._today = policies, today

    @cached_property
    def _selector(self) -> Selector:
        from govtool.app.selection import Selector

        return Selector(self._index, self._reader, self._commit, self._policies, self._today)

    def find(self, text: str, exclude: Sequence[str] = ()) -> tuple[Subject, ...]:
        """The column or dataset of a name; or all that a selector selects. What is a name is never read as a selector.

        Raises:
            UnknownNameError: Nothing is called so, and it is no selector.
            AmbiguousNameError: Several are.
            UsageError: The selector is mistaken.
        """
        if exclude:
            return self._selector.subjects(text, exclude)
        try:
            return (select(self._index, text),)
        except UnknownNameError:
            from govtool.query.selectors import looks_selective, subjects

            if not looks_selective(text):
                raise
            return subjects(self._index, self._selector.select([text]))

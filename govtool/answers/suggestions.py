"""The answer of ``classify --suggest``: classes that columns may deserve, each with a confidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from govtool.answers.answer import Cell, GraphAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from govtool.policy.suggest import Suggestion


@dataclass(frozen=True, slots=True)
class SuggestionsAnswer(GraphAnswer):
    """Suggested classes, the surest first."""

    schema: ClassVar[str] = "suggestions/1"
    fields: ClassVar[tuple[str, ...]] = ("column", "class", "confidence", "reasons")
    types: ClassVar[Mapping[str, str]] = {"confidence": "number", "reasons": "texts"}

    entries: tuple[Suggestion, ...]
    classified: int = 0
    """Columns of the selection that have a class already, and are not looked at."""
    truncated: int = 0
    """Number of entries left out."""

    def head(self, limit: int | None) -> SuggestionsAnswer:
        """The answer with the first so many entries; None leaves it as it is."""
        shown = self.entries[:limit]
        return replace(self, entries=shown, truncated=self.truncated + len(self.entries) - len(shown))

    def body(self) -> Mapping[str, object]:
        """The keys after the header, as docs/schemas/suggestions-1.json has them."""
        return {
            "suggestions": list(self.items()),
            "classified": self.classified,
            **({"truncated": self.truncated} if self.truncated else {}),
            "coverage": self.version.coverage.counts(),
        }

    def items(self) -> Iterator[dict[str, object]]:
        """The JSON value of each entry."""
        for one in self.entries:
            yield {
                "column": one.column,
                "class": one.class_,
                "confidence": one.confidence,
                "reasons": list(one.reasons),
            }

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """A row an entry."""
        for one in self.entries:
            yield one.column, one.class_, one.confidence, one.reasons

"""The answer of ``classes``: the classes of columns, and the ways by which they came."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from govtool.answers.answer import Cell, GraphAnswer
from govtool.answers.evidence import step_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from govtool.policy.classes.provenance_paths import Classed


@dataclass(frozen=True, slots=True)
class ClassesAnswer(GraphAnswer):
    """The classes of columns and row sets, each with a shortest way from the column that was classified."""

    schema: ClassVar[str] = "classes/1"
    fields: ClassVar[tuple[str, ...]] = ("column", "classes", "mode", "declassified", "source", "way")
    types: ClassVar[Mapping[str, str]] = dict.fromkeys(("classes", "declassified", "way"), "texts")

    entries: tuple[Classed, ...]
    truncated: int = 0
    """Number of entries left out."""

    def head(self, limit: int | None) -> ClassesAnswer:
        """The answer with the first so many entries; None leaves it as it is."""
        shown = self.entries[:limit]
        return replace(self, entries=shown, truncated=self.truncated + len(self.entries) - len(shown))

    def body(self) -> Mapping[str, object]:
        """The keys after the header, as docs/schemas/classes-1.json has them."""
        return {
            "columns": list(self.items()),
            **({"truncated": self.truncated} if self.truncated else {}),
            "coverage": self.version.coverage.counts(),
        }

    def items(self) -> Iterator[dict[str, object]]:
        """The JSON value of each entry."""
        return (_entry_object(entry) for entry in self.entries)

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """A row an entry; the way has a label a hop."""
        for entry in self.entries:
            labels = tuple(step.label for step in entry.steps)
            yield entry.column, entry.classes, entry.mode, entry.passed, entry.source, labels


def _entry_object(entry: Classed) -> dict[str, object]:
    return {
        "column": entry.column,
        "classes": list(entry.classes),
        "origin": entry.origin,
        "mode": entry.mode,
        "declassified": list(entry.passed),
        "source": entry.source,
        "steps": [step_object(step) for step in entry.steps],
    }

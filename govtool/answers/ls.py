"""The answer of ``ls``: the datasets and columns that selectors select."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from govtool.answers.answer import Cell, GraphAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping


class Listed(NamedTuple):
    """A column or dataset of a listing."""

    name: str
    kind: str
    """``column``, or the kind of the dataset."""
    type: str | None
    columns: int
    """Of a dataset; 1 for a column."""
    place: str | None = None
    """Of a query, whose name is a digest: the file and line of its text, and when a log first has it."""


@dataclass(frozen=True, slots=True)
class ListAnswer(GraphAnswer):
    """Selected datasets and columns, by name."""

    schema: ClassVar[str] = "ls/1"
    fields: ClassVar[tuple[str, ...]] = ("name", "kind", "type", "columns", "place")
    types: ClassVar[Mapping[str, str]] = {"columns": "integer"}

    entries: tuple[Listed, ...]
    truncated: int = 0
    """Number of entries left out."""

    def head(self, limit: int | None) -> ListAnswer:
        """The answer with the first so many entries; None leaves it as it is."""
        shown = self.entries[:limit]
        return replace(self, entries=shown, truncated=self.truncated + len(self.entries) - len(shown))

    def body(self) -> Mapping[str, object]:
        """The keys after the header, as docs/schemas/ls-1.json has them."""
        return {
            "items": list(self.items()),
            **({"truncated": self.truncated} if self.truncated else {}),
            "coverage": self.version.coverage.counts(),
        }

    def items(self) -> Iterator[dict[str, object]]:
        """The JSON value of each entry."""
        return (entry._asdict() for entry in self.entries)

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """A row an entry; a column has no number of columns."""
        return ((e.name, e.kind, e.type, None if e.kind == "column" else e.columns, e.place) for e in self.entries)

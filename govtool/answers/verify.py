"""The answer of ``verify``: whether data still is what its provenance describes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from govtool.answers.answer import Answer, Cell
from govtool.answers.runs import identity_object

if TYPE_CHECKING:
    from govtool.model.version import ContentIdentity, DatasetVersion

MATCH = "match"
SAME_ROWS = "rows-match"
CHANGED = "data-changed"
MISSING = "data-missing"
UNRECORDED = "no-provenance"


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The live files of a Delta or Iceberg table that are not as its log says."""

    checked: int
    """Files that were looked for; 0 where the log does not tell."""
    missing: tuple[str, ...] = ()
    """Paths below the table, sorted."""
    resized: tuple[str, ...] = ()
    """Of another size than the log says."""


@dataclass(frozen=True, slots=True)
class VerifyAnswer(Answer):
    """One dataset: the state of its data, what was found and what was recorded."""

    schema: ClassVar[str] = "verify/1"
    fields: ClassVar[tuple[str, ...]] = ("dataset", "state", "found", "recorded", "run")

    store: str
    """The URI of the store."""
    dataset: str
    state: str
    """``match``, ``rows-match``, ``data-changed``, ``data-missing`` or ``no-provenance``."""
    found: ContentIdentity | None
    recorded: DatasetVersion | None
    files: TableFiles | None = None
    """Of a table whose log is what was recorded: its files."""
    writer: str | None = None
    """The last run that wrote it, where none recorded its content."""

    @property
    def run(self) -> str | None:
        """The run that made what was recorded, or wrote it at last."""
        return self.recorded.run if self.recorded else self.writer

    @property
    def matches(self) -> bool:
        """True if the data is what was recorded."""
        return self.state in (MATCH, SAME_ROWS)

    @property
    def compared(self) -> bool:
        """False of a table whose log matches and does not list its files: they were not looked for."""
        return self.files is None or self.files.checked > 0

    def body(self) -> Mapping[str, object]:
        """The state, both contents, and the data from which it was made."""
        recorded = self.recorded
        return {
            "store": self.store,
            "dataset": self.dataset,
            "state": self.state,
            "found": identity_object(self.found),
            "recorded": identity_object(recorded.identity if recorded else None),
            "run": self.run,
            **({} if self.files is None else {"files": _files_object(self.files)}),
            "ancestors": [
                {"dataset": ancestor.dataset, "digest": ancestor.digest, "commit": ancestor.commit}
                for ancestor in (recorded.ancestors if recorded else ())
            ],
        }

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row: the contents by their digests."""
        found, recorded = self.found, self.recorded
        yield (
            self.dataset,
            self.state,
            found.digest if found else None,
            recorded.identity.digest if recorded else None,
            self.run,
        )


def _files_object(files: TableFiles) -> dict[str, object]:
    return {"checked": files.checked, "missing": list(files.missing), "resized": list(files.resized)}

"""The sources of a version of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from govtool.answers.answer import Answer, Cell
from govtool.answers.commits import commit_object
from govtool.answers.coverage import SourceCoverage

if TYPE_CHECKING:
    from govtool.store import Commit


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One source, and the last commit that changed it."""

    counted: SourceCoverage
    commit: Commit | None
    """None where it lies further back than is searched."""

    def to_dict(self) -> dict[str, object]:
        """Plain data."""
        counted, last = self.counted, self.commit
        return {
            "source": counted.source,
            "kind": counted.kind or None,
            "place": counted.place or None,
            "dialect": counted.dialect or None,
            "files": counted.files,
            "coverage": {**counted.coverage.counts(), "share": counted.coverage.share()},
            "commit": commit_object(last) if last is not None else None,
        }


@dataclass(frozen=True, slots=True)
class SourcesAnswer(Answer):
    """The live sources of a commit, by name."""

    schema: ClassVar[str] = "sources/1"
    fields: ClassVar[tuple[str, ...]] = ("source", "kind", "place", "files", "share", "seq", "commit", "time")
    types: ClassVar[Mapping[str, str]] = {"files": "integer", "share": "number", "seq": "integer"}

    store: str
    """The URI of the store."""
    at: Commit
    sources: tuple[SourceRow, ...]
    unlisted: tuple[str, ...] = ()
    """Sources that govtool.toml does not list, where it lists some."""

    def body(self) -> Mapping[str, object]:
        """Store, commit and sources."""
        return {
            "store": self.store,
            "commit": commit_object(self.at),
            "sources": [source.to_dict() for source in self.sources],
        }

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row a source."""
        for source in self.sources:
            counted, last = source.counted, source.commit
            when = (last.seq, last.id, last.time) if last is not None else (None, None, None)
            yield (counted.source, counted.kind, counted.place, counted.files, counted.coverage.share(), *when)

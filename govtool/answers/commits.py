"""The commits of a store: the log, and one commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar

from govtool.answers.answer import Answer, Cell

if TYPE_CHECKING:
    from govtool.answers.coverage import CoverageReport
    from govtool.store import Commit, FragmentRef

REASONS = 10
"""Reasons for incomplete coverage that are listed of a commit."""

_COUNTS = ("statements", "understood", "unread", "runs_understood", "runs_partial", "runs_opaque")
"""Counts of what a commit's ingest read: with those understood, and files that could not be read, its coverage."""


@dataclass(frozen=True, slots=True)
class LogAnswer(Answer):
    """Commits, newest first."""

    schema: ClassVar[str] = "log/1"
    fields: ClassVar[tuple[str, ...]] = (
        *("seq", "id", "time", "author", "sources", "message"),
        *("files", *_COUNTS),
    )
    types: ClassVar[Mapping[str, str]] = {
        "sources": "texts",
        **dict.fromkeys(("seq", "files", *_COUNTS), "integer"),
    }

    store: str
    """The URI of the store."""
    commits: tuple[Commit, ...]
    truncated: int = 0
    """Number of older commits left out."""
    coverage: tuple[CoverageReport, ...] | None = None
    """What was understood of the sources that are live in each commit, and why not all; None where nobody asked."""

    def body(self) -> Mapping[str, object]:
        """Store and commits."""
        more = {"truncated": self.truncated} if self.truncated else {}
        return {"store": self.store, "commits": list(self.objects()), **more}

    def objects(self) -> Iterator[dict[str, object]]:
        """The JSON value of each commit."""
        for number, commit in enumerate(self.commits):
            more: dict[str, object] = {}
            if self.coverage is not None:
                report = self.coverage[number]
                more = {"coverage": report.total.counts(), "reasons": [asdict(one) for one in report.reasons[:REASONS]]}
            yield {**commit_object(commit), **more}

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row a commit."""
        for commit in self.commits:
            named = commit.seq, commit.id, commit.time, commit.author, tuple(commit.sources), commit.message
            yield *named, *_figures(commit)


def _figures(commit: Commit) -> Iterator[int | None]:
    """The files of an ingest and its counts of statements; None where the commit has none."""
    counts = commit.summary.get("coverage")
    known = {"unread": 0, **counts} if isinstance(counts, dict) else {}
    for figure in (commit.summary.get("files"), *map(known.get, _COUNTS)):
        yield figure if isinstance(figure, int) else None


@dataclass(frozen=True, slots=True)
class CommitAnswer(Answer):
    """One commit, and the fragments that are live in it. Its table has one row a fragment."""

    schema: ClassVar[str] = "show/1"
    fields: ClassVar[tuple[str, ...]] = ("source", "table", "sha256", "bytes", "rows")
    types: ClassVar[Mapping[str, str]] = {"bytes": "integer", "rows": "integer"}

    store: str
    """The URI of the store."""
    commit: Commit
    fragments: tuple[FragmentRef, ...]

    def body(self) -> Mapping[str, object]:
        """Store, commit and fragments."""
        live = [dict(zip(self.fields, row, strict=True)) for row in self.rows()]
        return {"store": self.store, "commit": commit_object(self.commit), "fragments": live}

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row a fragment."""
        for ref in self.fragments:
            yield ref.source, ref.table, ref.sha256, ref.size, ref.rows


def commit_object(commit: Commit) -> dict[str, object]:
    """The JSON value of a commit."""
    return {
        "seq": commit.seq,
        "id": commit.id,
        "parent": commit.parent,
        "branch": commit.branch,
        "time": commit.time,
        "author": commit.author,
        "message": commit.message,
        "batch": commit.batch,
        "tool": commit.tool,
        "sources": list(commit.sources),
        "summary": dict(commit.summary),
    }

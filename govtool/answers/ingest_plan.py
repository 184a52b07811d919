"""The answer of ``ingest --dry-run``: what a commit would change, which was not made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from govtool.answers.answer import Answer, Cell
from govtool.answers.diff import DiffAnswer, change_object, change_rows, commit_key, difference_counts

if TYPE_CHECKING:
    from govtool.answers.coverage import Coverage
    from govtool.query.diff import Difference, GraphChange
    from govtool.store import Commit


@dataclass(frozen=True, slots=True)
class IngestPlan(Answer):
    """Everything that an ingest would add, remove or change; nothing of it is in the store."""

    schema: ClassVar[str] = "ingest-plan/1"
    fields: ClassVar[tuple[str, ...]] = DiffAnswer.fields
    types: ClassVar[Mapping[str, str]] = DiffAnswer.types

    store: str
    """The URI of the store."""
    branch: str
    base: Commit | None
    """The commit that the ingest would be on top of; None in an empty store."""
    source: str
    replaces: tuple[str, ...]
    """The sources whose earlier lineage it would replace, its own included; sorted."""
    commits: bool
    """False: the store holds exactly this already, and the ingest would commit nothing."""
    files: int
    coverage: Coverage
    """Of the source, as read now."""
    former: Coverage | None
    """Of the source at ``base``; None where it is new."""
    policies: tuple[str, ...]
    """The policies that classes and findings are of; empty: none were applied."""
    difference: Difference
    """All changes, whatever ``truncated`` leaves out."""
    truncated: int = 0
    """Number of changes left out."""

    @property
    def changes(self) -> tuple[GraphChange, ...]:
        """The changes, sorted by what, name and source."""
        return self.difference.changes[: len(self.difference.changes) - self.truncated]

    @property
    def differs(self) -> bool:
        """True if the graph, its facts, classes or findings would change."""
        return bool(self.difference.changes)

    def head(self, limit: int | None) -> IngestPlan:
        """The answer with at most ``limit`` changes; None leaves it as it is."""
        if limit is None or limit >= len(self.changes):
            return self
        return replace(self, truncated=len(self.difference.changes) - limit)

    def body(self) -> Mapping[str, object]:
        """Source, base, coverage, changes and their numbers."""
        return {
            "store": self.store,
            "branch": self.branch,
            "base": None if self.base is None else commit_key(self.base),
            "source": self.source,
            "replaces": list(self.replaces),
            "commits": self.commits,
            "files": self.files,
            "coverage": {
                "before": None if self.former is None else self.former.counts(),
                "after": self.coverage.counts(),
            },
            "policies": list(self.policies),
            "changes": [change_object(change) for change in self.changes],
            "summary": difference_counts(self.difference),
            **({"truncated": self.truncated} if self.truncated else {}),
        }

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row a change, as `DiffAnswer.rows`."""
        return change_rows(self.changes)

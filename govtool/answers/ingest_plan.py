"""The answer of ``ingest --dry-run``: what a commit would change, which was not made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from govtool.answers.diff import ChangesAnswer, change_object, commit_key, difference_counts

if TYPE_CHECKING:
    from govtool.answers.coverage import Coverage
    from govtool.store import Commit


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestPlan(ChangesAnswer):
    """Everything that an ingest would add, remove or change; nothing of it is in the store."""

    schema: ClassVar[str] = "ingest-plan/1"

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

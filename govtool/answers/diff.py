"""The answer of ``diff``: what changed between two versions of the graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from govtool.answers.answer import Answer, Cell
from govtool.answers.evidence import evidence_object
from govtool.query.versions.diff import DIFFERING

if TYPE_CHECKING:
    from govtool.query.versions.diff import Difference, GraphChange
    from govtool.store import Commit

_KINDS = ("added", "removed", "changed")
_PLURALS = {"class": "classes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesAnswer(Answer):
    """An answer that is a list of changes to the graph."""

    fields: ClassVar[tuple[str, ...]] = (
        *("change", "what", "name", "source"),
        *("kind", "before", "after", "evidence"),
    )
    types: ClassVar[Mapping[str, str]] = {"evidence": "texts"}

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
        """True if anything changes."""
        return bool(self.difference.changes)

    def head(self, limit: int | None) -> Self:
        """The answer with at most ``limit`` changes; None leaves it as it is."""
        if limit is None or limit >= len(self.changes):
            return self
        return replace(self, truncated=len(self.difference.changes) - limit)

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row a change."""
        return change_rows(self.changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffAnswer(ChangesAnswer):
    """Everything that was added, removed or changed from one version to another."""

    schema: ClassVar[str] = "diff/1"

    store: str
    """The URI of the store."""
    old: Commit
    new: Commit

    def body(self) -> Mapping[str, object]:
        """Store, both versions, changes and their numbers."""
        return {
            "store": self.store,
            "from": commit_key(self.old),
            "to": commit_key(self.new),
            "changes": [change_object(change) for change in self.changes],
            "summary": self.counts(),
            **({"truncated": self.truncated} if self.truncated else {}),
        }

    def counts(self) -> dict[str, object]:
        """The number of all changes, by what changed and how."""
        return difference_counts(self.difference)


def plural(what: str) -> str:
    """Several of what may differ.

    >>> plural("edge"), plural("class")
    ('edges', 'classes')
    """
    return _PLURALS.get(what, f"{what}s")


def difference_counts(difference: Difference) -> dict[str, object]:
    """The number of changes, by what changed and how."""
    return {plural(what): {kind: difference.count(what, kind) for kind in _KINDS} for what in DIFFERING}


def change_rows(changes: Iterable[GraphChange]) -> Iterator[tuple[Cell, ...]]:
    """One row a change: the values of `DiffAnswer.fields`."""
    for one in changes:
        places = tuple(dict.fromkeys(item.place for item in one.evidence))
        yield one.change, one.what, one.name, one.source, one.kind, one.before, one.after, places


def change_object(change: GraphChange) -> dict[str, object]:
    """The JSON value of one change."""
    return {
        "change": change.change,
        "what": change.what,
        "name": change.name,
        "source": change.source,
        "kind": change.kind,
        "before": change.before,
        "after": change.after,
        "evidence": [evidence_object(item) for item in change.evidence],
    }


def commit_key(commit: Commit) -> dict[str, object]:
    """The JSON value of the commit at one end of a comparison."""
    return {"seq": commit.seq, "id": commit.id, "time": commit.time, "branch": commit.branch}

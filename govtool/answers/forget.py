"""The outcome of ``store forget``: removed data, commits that still hold it, and copies out of reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from govtool.answers.answer import Answer, Cell


@dataclass(frozen=True, slots=True)
class RemovedFragment:
    """A fragment that is not read any more, in any version."""

    table: str
    sha256: str
    sources: tuple[str, ...]
    rewritten: bool
    """True: another fragment, without the text, is read instead."""


@dataclass(frozen=True, slots=True)
class Remainder:
    """A place that still holds the text, or may hold it."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class ForgetAnswer(Answer):
    """The outcome of ``store forget``."""

    schema: ClassVar[str] = "forget/1"
    fields: ClassVar[tuple[str, ...]] = ("state", "place", "detail")

    store: str
    dry_run: bool
    fragments: tuple[RemovedFragment, ...]
    commits: tuple[tuple[str, int, str], ...] = ()
    """Branch, number and id of each commit that was made."""
    objects: tuple[str, ...] = ()
    """The keys of the objects that were deleted."""
    indexes: tuple[str, ...] = ()
    """The commits whose published indexes were deleted."""
    caches: tuple[str, ...] = ()
    """The folders of this machine's cache that were emptied."""
    held: tuple[Remainder, ...] = ()
    """Objects of this store that hold the text and cannot be changed."""
    lost: tuple[Remainder, ...] = ()
    """Fragments that were damaged before, and shared a pack with a removed one."""
    unreached: tuple[Remainder, ...] = ()
    """Copies elsewhere that no command on this store can remove."""

    def fails(self) -> bool:
        """Return whether the store still holds the text."""
        return bool(self.held)

    def body(self) -> Mapping[str, object]:
        """Everything, under names of its own."""
        return {
            "store": self.store,
            "dry_run": self.dry_run,
            "fragments": [
                {"table": each.table, "sha256": each.sha256, "sources": list(each.sources), "rewritten": each.rewritten}
                for each in self.fragments
            ],
            "commits": [{"branch": branch, "seq": seq, "id": name} for branch, seq, name in self.commits],
            "objects": list(self.objects),
            "indexes": list(self.indexes),
            "caches": list(self.caches),
            "held": [{"place": each.place, "reason": each.reason} for each in self.held],
            "lost": [{"place": each.place, "reason": each.reason} for each in self.lost],
            "unreached": [{"place": each.place, "reason": each.reason} for each in self.unreached],
        }

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """Fragments, then what still holds the text, then what is out of reach."""
        for each in self.fragments:
            state = "rewritten" if each.rewritten else "removed"
            yield state, f"{each.table}/{each.sha256[:12]}", ", ".join(each.sources)
        for held in self.held:
            yield "still there", held.place, held.reason
        for gone in self.lost:
            yield "lost", gone.place, gone.reason
        for copy in self.unreached:
            yield "out of reach", copy.place, copy.reason

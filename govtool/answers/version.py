"""The version of the graph that an answer is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from govtool.wording import count

if TYPE_CHECKING:
    from govtool.answers.coverage import Coverage
    from govtool.store import Commit


@dataclass(frozen=True, slots=True)
class GraphVersion:
    """The store and commit of an answer, and how much of their evidence was understood."""

    store: str
    """The URI of the store."""
    commit: Commit
    coverage: Coverage
    unrelated: int = 0
    """Statements not understood that have nothing to do with the question: they name nothing that it reaches."""

    @property
    def unclear(self) -> int:
        """Statements and files of which nothing is known and that could matter to the answer."""
        return max(0, self.coverage.unclear - self.unrelated)

    def unclear_text(self) -> str:
        """``2 statements not understood and 1 file not read``; empty if there is nothing that could matter."""
        files = min(self.coverage.unread, self.unclear)  # a file that was not read may have to do with anything
        statements = self.unclear - files
        parts = [f"{count(statements, 'statement')} not understood"] if statements else []
        parts += [f"{count(files, 'file')} not read"] if files else []
        return " and ".join(parts)

    def header(self) -> dict[str, object]:
        """The keys of a JSON answer that name the version."""
        return {
            "store": self.store,
            "commit": {"seq": self.commit.seq, "id": self.commit.id, "time": self.commit.time},
        }

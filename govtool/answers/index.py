"""The sizes of a built index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from govtool.store import Commit


@dataclass(frozen=True, slots=True)
class IndexResult:
    """The local index of a commit, built ahead of the first question."""

    commit: Commit
    datasets: int
    columns: int
    edges: int

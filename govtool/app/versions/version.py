"""The version of the graph that an answer is of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from govtool.answers.version import GraphVersion

if TYPE_CHECKING:
    from govtool.store import Commit, Reader


def version_of(store: Reader, commit: Commit) -> GraphVersion:
    """Return a commit with how much of its evidence was understood.

    Raises:
        StoreError: a fragment cannot be read.
    """
    from govtool.app.coverage.total import total_coverage

    return GraphVersion(store.uri, commit, total_coverage(store, commit))

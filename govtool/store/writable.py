"""A store as those that work on its branches see it."""

from __future__ import annotations

from typing import Protocol

from govtool.store.backends.objects import Objects
from govtool.store.commit import Commit
from govtool.store.log import Nodes
from govtool.store.names import DEFAULT_BRANCH


class WritableStore(Protocol):
    """An open store that may be written."""

    @property
    def objects(self) -> Objects:
        """The objects."""

    @property
    def nodes(self) -> Nodes:
        """Nodes of manifests, read and kept."""

    def head(self, branch: str = DEFAULT_BRANCH) -> Commit | None:
        """The newest commit of a branch; None if there is none."""

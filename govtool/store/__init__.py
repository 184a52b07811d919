"""Versioned storage of bytes: a log of immutable commits on local disk or an object store.

Importing this package is cheap: obstore is imported when a store is opened.
"""

from __future__ import annotations

from govtool.store.commit import Changes, Commit, CommitResult, Fragment, FragmentRef
from govtool.store.store import Store

__all__ = ["Changes", "Commit", "CommitResult", "Fragment", "FragmentRef", "Store"]

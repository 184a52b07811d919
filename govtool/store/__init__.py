"""Versioned storage of bytes: a log of immutable commits on local disk or an object store.

Importing this package is cheap: names are imported when they are used, and obstore when a store is opened for writing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from govtool.store.commit import Changes, Commit, CommitResult, Fragment, FragmentRef
    from govtool.store.reader import Reader
    from govtool.store.store import Store

__all__ = ["Changes", "Commit", "CommitResult", "Fragment", "FragmentRef", "Reader", "Store"]

_MODULES = {"Store": "govtool.store.store", "Reader": "govtool.store.reader"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES.get(name, "govtool.store.commit")), name)

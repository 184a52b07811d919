"""Workflow provenance: modules and workflows over DataFrames, and what their runs leave.

>>> from govtool.workflow import cogroup                                            # doctest: +SKIP

Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from govtool.workflow.modules.bags import cogroup as cogroup
    from govtool.workflow.modules.bags import flatten as flatten

_HOMES = {"cogroup": "govtool.workflow.modules.bags", "flatten": "govtool.workflow.modules.bags"}
"""Public names and the modules that hold them."""
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

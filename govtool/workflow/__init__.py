"""Workflow provenance: modules and workflows, graphs of module invocations and tuples, and the questions they answer.

>>> from govtool.workflow import cogroup                                            # doctest: +SKIP

Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {"cogroup": "govtool.spark.workflow.bags", "flatten": "govtool.spark.workflow.bags"}
"""Public names and the modules that hold them."""
__all__ = ["cogroup", "flatten"]


def __getattr__(name: str) -> Any:
    """Import a public name."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

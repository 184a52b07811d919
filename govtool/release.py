"""The version of this release; ``govtool.__version__`` is the same."""

from __future__ import annotations

__version__ = "0.2.0"

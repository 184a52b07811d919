"""govtool: data-governance impact analysis on one versioned provenance graph."""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = ["__version__"]

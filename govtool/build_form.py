"""Tests whether this installation runs the compiled extractor or its Python source; see ``hatch_build.py``."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

COMPILED = "compiled"
PURE = "pure Python"


def form() -> str:
    """Return ``compiled`` or ``pure Python``: where Python finds an extension module, it takes no source."""
    walk = Path(__file__).parent / "capture" / "sql" / "walk"
    found = any((walk / f"state{suffix}").exists() for suffix in EXTENSION_SUFFIXES)
    return COMPILED if found else PURE

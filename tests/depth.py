"""How many generated cases a test tries: a part of them in every run, all of them by ``scripts/test-long``."""

from __future__ import annotations

import os

LONG = os.environ.get("GOVTOOL_TESTS") == "long"


def examples(number: int) -> int:
    """``number``, or about a quarter of it in an ordinary run."""
    return number if LONG else min(number, max(number // 4, 20))

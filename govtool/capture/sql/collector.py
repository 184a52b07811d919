"""What a batch asks of the interpreter: rest from the cyclic collector, and room for recursion."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

RECURSION_LIMIT = 20_000
"""Python frames for the walk: subqueries nest and views stand on views; frames of Python functions do not use the
C stack."""

STATEMENTS_PER_COLLECTION = 1000
"""Trees refer to their parents: only the cyclic collector frees them. A thousand of them are some 100 MB."""


@dataclass(slots=True)
class Garbage:
    """What the cyclic collector has still to free."""

    statements: int = 0
    """Statements whose trees were made since the last collection."""


_garbage = Garbage()


@contextmanager
def uncollected() -> Iterator[Garbage]:
    """Keep the cyclic collector from visiting trees that all stay alive until the batch is done (a third of the time).

    What earlier batches left is collected first, once there is enough of it. Whoever makes trees adds them to what is
    yielded.
    """
    was_enabled = gc.isenabled()
    if was_enabled and _garbage.statements > STATEMENTS_PER_COLLECTION:
        gc.collect()
        _garbage.statements = 0
    gc.disable()
    try:
        yield _garbage
    finally:
        if was_enabled:
            # Without this the next allocation would start a collection of everything that the batch has made.
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Let the walk go as deep as statements nest and views stand on views."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, RECURSION_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)

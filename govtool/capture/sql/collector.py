"""Interpreter settings of a batch: a pause of the cyclic collector, and room for recursion."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

RECURSION_LIMIT = 20_000
"""Python frames for the walk: subqueries nest and views stand on views; frames of Python functions do not use the
C stack."""

FREED_YOUNG = 1000
"""Statements of a batch whose trees the collector may visit as soon as the batch is done. Trees refer to their parents:
only the cyclic collector frees them. A thousand of them are some 100 MB; while they are young, they are freed without a
visit of all else that the process holds."""

GARBAGE_OF = 30_000
"""Characters of SQL after which the parser's garbage is freed: trees that it began and gave up, up to a third of all.
"""

MANY_YOUNG = 300_000
"""New objects of which the next collection had better not visit every one: half a tenth of a second."""


class _Left:
    """Garbage that only a full collection can free."""

    def __init__(self) -> None:
        self.trees = False
        """True if there are trees of a large batch."""


_left: Final = _Left()


class ParserGarbage:
    """Trees that the parser began and gave up, which only the collector can free: freed now and then."""

    __slots__ = ("_parsed",)

    def __init__(self) -> None:
        self._parsed = 0
        """Characters since garbage was freed."""

    def parsed(self, size: int) -> None:
        """Free the garbage after enough text: the collector visits what is new, and that once.

        Args:
            size: Characters of SQL that were parsed.
        """
        self._parsed += size
        if self._parsed > GARBAGE_OF:
            self._parsed = 0
            if gc.get_count()[0] > MANY_YOUNG:  # the memos of many scripts, and the garbage of a few
                _make_old()
            else:
                gc.collect(0)
            _left.trees = True  # these do not count as new any more, and are as many as before


class Uncollected:
    """Keeps the cyclic collector from visiting trees that all stay alive until the batch is done (a third of the time).

    What a large batch left is collected before the next one.
    """

    def __init__(self) -> None:
        self.statements = 0
        """Of the batch: whoever makes trees counts them."""
        self._was_enabled = False

    def __enter__(self) -> Uncollected:
        self._was_enabled = gc.isenabled()
        _collect_left()
        gc.disable()
        if gc.get_count()[0] > MANY_YOUNG:  # the memos of an earlier ingest: not to be visited with the trees
            _left.trees = True
            _make_old()
        return self

    def __exit__(self, *raised: object) -> None:
        if not self._was_enabled:
            return
        if self.statements > FREED_YOUNG:
            _left.trees = True
            _make_old()
        gc.enable()


def _collect_left() -> None:
    """Free the trees of the batch before, unless the collector is off already: then whoever turned it off did this."""
    if _left.trees and gc.isenabled():
        gc.collect()
        _left.trees = False


def _make_old() -> None:
    """Have all objects count as old: else the next allocation would start a visit of everything that a batch made."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the cyclic collector from visiting over and over what is made and stays: texts, memos, derivations."""
    enabled = gc.isenabled()
    _collect_left()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if _left.trees or gc.get_count()[0] > MANY_YOUNG:
                _left.trees = True
                _make_old()
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

"""Progress of building an index, in shares of the time that it is going to take."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Progress = Callable[[int, int], None]

_FRAGMENT, _SCHEMA = 7.0, 11_000
"""CPU milliseconds that a fragment costs however small it is, and the bytes of one that are no data."""
_READING, _STEPS = 0.14e-3, 0.42e-3
"""CPU milliseconds a byte of data beyond that: reading it, and all steps that follow."""
_LEAST = 1000
"""Parts that are reported at least."""


class BuildMeter:
    """Reports parts done and parts in all: derivations, or a thousand parts of a smaller graph.

    Args:
        report: Called with both; None: nothing is reported.
        sizes: Bytes of the fragments, in the order in which they are read.
        derivations: Of all fragments.
        kept: Bytes of further fragments, which need not be read.
    """

    def __init__(self, report: Progress | None, sizes: Sequence[int], derivations: int = 0, kept: int = 0) -> None:
        data = [max(0, size - _SCHEMA) for size in sizes]
        self._report = report
        self._tables = [_FRAGMENT + _READING * size for size in data]
        self._reading = sum(self._tables)
        self._steps = _FRAGMENT + _STEPS * (sum(data) + kept)
        self._parts = max(_LEAST, derivations)
        self._number, self._before = 0, 0.0

    def read(self, number: int, share: float) -> None:
        """A share of a table is read, and all tables before it; calls come in order."""
        while self._number < number:
            self._before += self._cost(self._number)
            self._number += 1
        self._notify(self._before + share * self._cost(number))

    def stepped(self, share: float) -> None:
        """All tables are read, and a share of the steps is done."""
        self._notify(self._reading + share * self._steps)

    def _cost(self, number: int) -> float:
        return self._tables[number] if number < len(self._tables) else 0.0

    def _notify(self, done: float) -> None:
        if self._report is not None:
            self._report(int(self._parts * min(1.0, done / (self._reading + self._steps))), self._parts)

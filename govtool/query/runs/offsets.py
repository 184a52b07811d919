"""The parts of streams that two runs read, compared."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from govtool.model.run import Batches, Offsets, Run

_OF_THE_CHECKPOINT = ("FileStreamSource", "FileSource")
"""Sources whose positions are numbers of the query's own checkpoint, and mean nothing under another."""


class OffsetsChange(NamedTuple):
    """Other parts of one source."""

    source: str
    before: str | None
    after: str | None


def changed_offsets(first: Run, second: Run) -> Iterator[OffsetsChange]:
    """Yield the sources of which two runs read other parts; positions that mean nothing to each other are left out."""
    old, new = first.batches, second.batches
    if old is None or new is None or not old.offsets or not new.offsets:
        return
    for before, after in _pairs(old.offsets, new.offsets):
        source = before.source if before is not None else after.source if after is not None else ""
        sides = tuple(None if one is None else extent_text(one) for one in (before, after))
        if sides[0] == sides[1] or not _are_comparable(old, new, source):
            continue
        yield OffsetsChange(source, *sides)


def _pairs(before: tuple[Offsets, ...], after: tuple[Offsets, ...]) -> Iterator[tuple[Offsets | None, Offsets | None]]:
    """The offsets of each source of both; of a source that a query reads several times, in their order."""
    for source in dict.fromkeys(one.source for one in (*before, *after)):
        yield from zip_longest(*([one for one in side if one.source == source] for side in (before, after)))


def _are_comparable(old: Batches, new: Batches, source: str) -> bool:
    return old.query == new.query or not source.startswith(_OF_THE_CHECKPOINT)


def extent_text(offsets: Offsets) -> str:
    """The part of a source in a few words.

    >>> extent_text(Offsets("FileStreamSource[file:/in]", "", '{"logOffset":0}'))
    'start … {"logOffset":0}'
    """
    return f"{offsets.start or 'start'} … {offsets.end or '?'}"


def is_restart(first: Run, second: Run) -> bool:
    """Return whether two runs are batches of two starts of streaming queries.

    A start from a checkpoint states settings that the checkpoint kept; the start that made it has them by default.
    """
    return first.batches is not None and second.batches is not None and first.batches.run != second.batches.run

"""A recorder of its own for tests that record the session which they share with others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from govtool.spark.live import process


@contextmanager
def own_recorder() -> Iterator[None]:
    """Record within the block by a new recorder of this process; afterwards nothing is recorded as before."""
    before = process._recorder, process.folder
    process._recorder = None
    try:
        yield
    finally:
        made, (process._recorder, process.folder) = process._recorder, before
        if made is not None:
            made.drain(60)
            for session, listener, _ in made.sessions.values():
                session._jsparkSession.listenerManager().unregister(listener)

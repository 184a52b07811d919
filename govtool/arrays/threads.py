"""Threads for work on arrays: while numpy computes, other threads run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")

MOST = 4
"""Threads at most: all of them wait for the same memory."""


class Map(Protocol):
    """Like the built-in ``map``: results in the order of the items; an exception of the function is raised."""

    def __call__(self, run: Callable[[T], R], things: Iterable[T], /) -> Iterator[R]:
        """Run the function on each thing."""


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def side_by_side(things: int) -> Iterator[Map]:
    """A ``map`` with several threads, for up to so many items at a time; the built-in one if one thread is enough."""
    threads = min(things, cores(), MOST)
    if threads < 2:
        yield map
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads, thread_name_prefix="govtool") as pool:
        yield pool.map


def mapped_ahead(run: Callable[[T], R], things: Iterable[T]) -> Iterator[R]:
    """Like the built-in ``map``, but while a result is used, threads make the next ones: as many as there are cores.

    The first result is made without another thread beside it: what the function makes once and keeps is then there.
    """
    waiting = iter(things)
    for first in waiting:
        yield run(first)
        break
    threads = min(cores(), MOST)
    if threads < 2:
        yield from map(run, waiting)
        return
    from collections import deque
    from concurrent.futures import Future, ThreadPoolExecutor
    from itertools import islice

    with ThreadPoolExecutor(threads, thread_name_prefix="govtool") as pool:
        ahead: deque[Future[R]] = deque(pool.submit(run, each) for each in islice(waiting, threads))
        while ahead:
            made = ahead.popleft()
            ahead.extend(pool.submit(run, each) for each in islice(waiting, 1))
            yield made.result()

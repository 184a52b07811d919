"""Runs steps in this process or in several, keeps what they make, and does not do again what an earlier run has done.

A step is a function of a ``Setup`` and of arguments that can be sent to another process; it returns bytes, which are
kept under the name of the job. With a spool they are kept on disk, where a killed ingest finds them again.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from govtool.app.ingest.logs.step_files import StepFiles
from govtool.errors import EngineError

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.process import BaseProcess

    from govtool.capture.logs.read import LogOptions
    from govtool.capture.sql.extract import Options

_Answer = TypeVar("_Answer")


@dataclass(slots=True)
class Setup:
    """The data that all steps of an ingest share."""

    how: LogOptions
    settings: Options
    spool: StepFiles | None
    kept: dict[str, bytes] = field(default_factory=dict)
    """Without a spool, what was made; with one, what was read of it and is needed again and again."""
    made: dict[str, Any] = field(default_factory=dict)
    """Results of steps, for the next step in this process."""
    advance: Callable[[int, int], None] | None = None
    """Takes how many statements more a step has done, and how many more of them were not understood."""

    def view(self, name: str) -> bytes | memoryview:
        """Return the results of a job."""
        if self.spool is not None:
            return self.spool.view(name)
        return self.kept[name]


Step = Callable[..., bytes]
_GLANCE = 0.5
"""Seconds between looks at how far a process is."""

_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals that ask a process to end."""


class Job(NamedTuple):
    """A step to be run."""

    name: str
    step: Step
    arguments: tuple[Any, ...]


class Pool:
    """Runs jobs.

    Args:
        setup: What they share.
        workers: Processes; 1: this one.
    """

    def __init__(self, setup: Setup, workers: int) -> None:
        self.setup = setup
        self.workers = workers
        self._executor: ProcessPoolExecutor | None = None
        self._ended = False
        self._watcher: Callable[[int, int], None] | None = None
        self._counter: Any = None
        """Shared with the processes: statements done by the steps since ``watch``, and those not understood."""
        self._counted = [0, 0]
        """The same in this process."""

    def watch(self, watcher: Callable[[int, int], None] | None) -> None:
        """Report from here on how many statements the steps have done since; None: no more."""
        self._watcher = watcher
        self._counted = [0, 0]
        self.setup.advance = None if watcher is None else self._count
        if self._counter is not None:
            self._counter[:] = [0, 0]

    def _count(self, done: int, failed: int) -> None:
        self._counted[0] += done
        self._counted[1] += failed
        if self._watcher is not None:
            self._watcher(*self._counted)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        executor = self._executor
        if executor is not None:
            processes = list((executor._processes or {}).values())
            executor.shutdown(wait=False, cancel_futures=True)
            _end(processes)  # all answers are here: processes that end by themselves first free what they hold

    def results(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, bytes]]:
        """Run jobs, as many at a time as there are processes; what they made comes in their order.

        Raises:
            EngineError: a process died.
        """
        spool = self.setup.spool
        if self.workers < 2 or spool is None:
            for job in jobs:
                yield job, self._here(job)
            return
        waiting: deque[tuple[Job, Future[None] | None]] = deque()
        for job in jobs:
            done = (spool.folder / job.name).exists() and spool.get(job.name) is not None
            waiting.append((job, None if done else self._submit(_run, job)))
            while len(waiting) > 2 * self.workers or (waiting and waiting[0][1] is None):
                yield self._finished(spool, *waiting.popleft())
        while waiting:
            yield self._finished(spool, *waiting.popleft())

    def answers(self, function: Callable[..., _Answer], calls: Iterable[tuple[Any, ...]]) -> Iterator[_Answer]:
        """Call a function of a setup and of arguments, whose answers need not be kept; they come in order.

        Raises:
            EngineError: a process died.
        """
        if self.workers < 2:
            for arguments in calls:
                yield function(self.setup, *arguments)
            return
        waiting: deque[Future[_Answer]] = deque()
        for arguments in calls:
            waiting.append(self._submit(_call, function, arguments))
            if len(waiting) > 2 * self.workers:
                yield self._answer(waiting.popleft())
        while waiting:
            yield self._answer(waiting.popleft())

    def _here(self, job: Job) -> bytes:
        spool = self.setup.spool
        if spool is None:
            data = self.setup.kept[job.name] = job.step(self.setup, *job.arguments)
            return data
        known = spool.get(job.name)
        if known is None:
            known = job.step(self.setup, *job.arguments)
            spool.put(job.name, known)
        return known

    def _finished(self, spool: StepFiles, job: Job, future: Future[None] | None) -> tuple[Job, bytes]:
        if future is not None:
            self._answer(future)
        data = spool.get(job.name)
        return (job, data) if data is not None else (job, self._here(job))  # removed or torn under our hands

    def _submit(self, function: Callable[..., _Answer], *arguments: Any) -> Future[_Answer]:
        from concurrent.futures import ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool
        from multiprocessing import get_context

        if self._executor is None:
            setup = self.setup
            folder = str(setup.spool.folder) if setup.spool is not None else None
            # Processes that are started afresh: a fork of one with threads, as this one has, may never run.
            context = get_context("spawn")
            with _uninterrupted():  # it starts a process that removes what others leave, too
                self._counter = context.Array("q", 2)
                self._executor = ProcessPoolExecutor(
                    self.workers,
                    context,
                    initializer=_begin,
                    initargs=(setup.how, setup.settings, folder, self._counter),
                )
        try:
            with _uninterrupted():
                return self._executor.submit(function, *arguments)
        except BrokenProcessPool as error:
            raise _died() from error

    def _answer(self, future: Future[_Answer]) -> _Answer:
        from concurrent.futures import wait
        from concurrent.futures.process import BrokenProcessPool

        try:
            while self._watcher is not None and not future.done():
                wait([future], timeout=_GLANCE)
                self._watcher(*self._counter[:])
            return future.result()
        except BrokenProcessPool as error:
            raise _died() from error


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Signals wait: a process is started whole or not at all, and takes no Ctrl-C of a terminal before it ignores it.

    A mask alone would not do: it is inherited, but another thread of this process would take the signal.
    """
    came: list[int] = []
    previous: dict[int, Any] = {}
    masks = threading.current_thread() is threading.main_thread() and hasattr(signal, "pthread_sigmask")
    if masks:
        handled = [number for number in _ENDING if callable(signal.getsignal(number))]
        previous = {number: signal.signal(number, lambda number, _: came.append(number)) for number in handled}
        before = signal.pthread_sigmask(signal.SIG_BLOCK, handled)
    try:
        yield
    finally:
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            for number, handler in previous.items():
                signal.signal(number, handler)
    for number in came[:1]:
        signal.raise_signal(number)


def _end(processes: Sequence[BaseProcess]) -> None:
    """Kill processes and wait until they are gone: what they were writing stays as it is from here on."""
    from multiprocessing.connection import wait

    for process in processes:
        process.kill()
    left = {process.sentinel for process in processes}
    while left:
        left -= set(wait(list(left)))


def _died() -> EngineError:
    return EngineError(
        "a worker process ended without an answer; the system may have killed it for want of memory",
        code="engine.worker",
        hint="run the command again: it goes on where it was; --workers 1 takes the least memory",
    )


# -- in a worker -------------------------------------------------------------------------------------------------------

_setup: list[Setup] = []


def _begin(how: LogOptions, settings: Options, folder: str | None, counter: Any) -> None:
    """Get a worker ready. An interrupt is for the process that asked; when that is gone, nobody waits for an answer."""
    from multiprocessing import parent_process
    from pathlib import Path

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)  # those that were held back when it was started
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()

    def advance(done: int, failed: int) -> None:
        with counter.get_lock():
            counter[0] += done
            counter[1] += failed

    _setup[:] = [Setup(how, settings, StepFiles(Path(folder)) if folder is not None else None, advance=advance)]


def _end_with(sentinel: Any) -> None:
    from multiprocessing.connection import wait

    wait([sentinel])
    os._exit(1)


def _run(job: Job) -> None:
    (setup,) = _setup
    assert setup.spool is not None
    setup.spool.put(job.name, job.step(setup, *job.arguments))


def _call(function: Callable[..., _Answer], arguments: tuple[Any, ...]) -> _Answer:
    (setup,) = _setup
    return function(setup, *arguments)

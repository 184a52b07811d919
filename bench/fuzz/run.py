"""Driver of fuzzing: a process a target, killed when it takes too long; what failed is kept as a fixture."""

from __future__ import annotations

import hashlib
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.fuzz.mutate import mutated
from bench.fuzz.targets import FIXTURES, TARGETS, Target

HANG = 10.0
"""CPU seconds of one input after which it counts as a hang."""
WAIT = 100.0
"""How many times as long it may take by the clock: a reader that waits hangs, one on a busy machine does not."""
MEMORY = 1 << 30
"""Bytes that an input may take beyond what the reader takes anyway."""
KEPT = FIXTURES / "fuzz"
"""What failed, by target: ``tests/test_fuzz_fixtures.py`` reads it again."""


class Hang(BaseException):
    """An input that took too long; not an `Exception`, so that no reader takes it for its own failure."""


def work(target: Target, seconds: float, seed: int, current: Path) -> Iterator[int]:
    """Feed a target until its CPU time is used; each input is written down before it is read.

    Yields:
        The number of inputs so far, after each of them.

    Raises:
        Hang: An input took longer than `HANG`.
        MemoryError: An input took more than `MEMORY`.
    """
    corpus = target.corpus()
    rng = random.Random(seed)
    target_run(target, corpus[0])  # imports are not the input's
    # Twice as much, for a reader may catch the error of the limit: then the peak shows it.
    resource.setrlimit(resource.RLIMIT_AS, (_used() + 2 * MEMORY, resource.RLIM_INFINITY))
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, _hang)
    peak = _peak() + MEMORY
    end = time.process_time() + seconds
    count = 0
    while time.process_time() < end:
        data = mutated(corpus, rng)
        current.write_bytes(data)
        _limited(target, data)
        if _peak() > peak:
            raise MemoryError(f"more than {MEMORY >> 20:,} MB")
        count += 1
        yield count


def _limited(target: Target, data: bytes) -> None:
    signal.setitimer(signal.ITIMER_PROF, HANG)
    signal.setitimer(signal.ITIMER_REAL, WAIT * HANG)
    try:
        target_run(target, data)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def target_run(target: Target, data: bytes) -> None:
    """Feed one input; what govtool refuses is well."""
    from govtool.errors import GovtoolError

    try:
        target.run(data)
    except GovtoolError:
        return


def _hang(*_: object) -> None:
    raise Hang(f"more than {HANG:.0f} s")


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _used() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def child(name: str, seconds: float, seed: int, current: Path) -> int:
    """Work as the process of one target; prints the number of inputs, and on stderr's last line what failed."""
    target = next(each for each in TARGETS if each.name == name)
    count = 0
    try:
        for number in work(target, seconds, seed, current):
            count = number
    except BaseException as error:
        traceback.print_exc()
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "/govtool/" in f.filename]
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
        sys.stderr.write(f"{type(error).__name__} at {place}: {str(error)[:100]}\n")
        return 1
    finally:
        sys.stdout.write(f"{count}\n")
    return 0


class Outcome(NamedTuple):
    """What came of one process of a target."""

    failure: str
    """Empty if nothing failed."""
    inputs: int
    seconds: float
    """CPU seconds."""


class Totals(NamedTuple):
    """What came of all processes."""

    inputs: int
    failures: int
    """Different ones."""


def fuzz(minutes: float, names: list[str]) -> Totals:
    """Share CPU minutes among targets, and print a line for each failure and each target."""
    targets = [target for target in TARGETS if not names or target.name in names]
    failures: Counter[str] = Counter()
    total = 0
    for target in targets:
        left, inputs = minutes * 60 / len(targets), 0
        share = left
        while left > 1:
            with tempfile.NamedTemporaryFile(prefix="fuzz-") as current:
                done = _process(target.name, left, random.randrange(1 << 32), current.name)
                data = Path(current.name).read_bytes()
            inputs += done.inputs
            left -= max(done.seconds, 1.0)
            if done.failure and (kept := _keep(target.name, data, done.failure, failures)):
                sys.stdout.write(f"{target.name}: {done.failure} · {kept}\n")
        total += inputs
        spent, failed = share - left, _of(failures, target.name)
        sys.stdout.write(f"{target.name}: {inputs:,} inputs in {spent:.0f} CPU seconds, {failed} failures\n")
        sys.stdout.flush()
    return Totals(total, len(failures))


def _of(failures: Counter[str], name: str) -> int:
    return sum(1 for each in failures if each.startswith(f"{name} "))


def _process(name: str, seconds: float, seed: int, current: str) -> Outcome:
    command = [sys.executable, "-m", "bench.fuzz", "--child", name, str(seconds), str(seed), current]
    before = _children_seconds()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT * (seconds + HANG), check=False)
    except subprocess.TimeoutExpired:
        return Outcome("hang: the process had to be killed", 0, _children_seconds() - before)
    lines = done.stderr.strip().splitlines() or [f"the process ended with {done.returncode}"]
    inputs = int((done.stdout.split() or ["0"])[-1])
    return Outcome(lines[-1] if done.returncode else "", inputs, _children_seconds() - before)


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _keep(name: str, data: bytes, reason: str, failures: Counter[str]) -> str:
    """Keep the input of a failure that was not seen before; its path, else nothing."""
    key = f"{name} {reason.split(': ')[0]}"
    failures[key] += 1
    if failures[key] > 1:
        return ""
    path = KEPT / name / hashlib.sha256(data).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)

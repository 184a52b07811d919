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
from pathlib import Path

from bench.fuzz.mutate import mutated
from bench.fuzz.targets import FIXTURES, TARGETS, Target

HANG = 10.0
"""Seconds of one input after which it counts as a hang."""
MEMORY = 1 << 30
"""Bytes that an input may take beyond what the reader takes anyway."""
KEPT = FIXTURES / "fuzz"
"""What failed, by target: ``tests/test_fuzz_fixtures.py`` reads it again."""


def work(target: Target, seconds: float, seed: int, current: Path) -> int:
    """Feed a target until its CPU time is used; each input is written down before it is read.

    Returns:
        The number of inputs.
    """
    from govtool.errors import GovtoolError

    corpus = target.corpus()
    rng = random.Random(seed)
    target_run(target, corpus[0])  # imports are not the input's
    resource.setrlimit(resource.RLIMIT_AS, (_used() + MEMORY, resource.RLIM_INFINITY))
    signal.signal(signal.SIGALRM, _hang)
    end = time.process_time() + seconds
    count = 0
    while time.process_time() < end:
        data = mutated(corpus, rng)
        current.write_bytes(data)
        signal.setitimer(signal.ITIMER_REAL, HANG)
        try:
            target.run(data)
        except GovtoolError:
            pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        count += 1
    return count


def target_run(target: Target, data: bytes) -> None:
    """Feed one input; what govtool refuses is well."""
    from govtool.errors import GovtoolError

    try:
        target.run(data)
    except GovtoolError:
        return


def _hang(*_: object) -> None:
    raise TimeoutError(f"more than {HANG:.0f} s")


def _used() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def child(name: str, seconds: float, seed: int, current: Path) -> int:
    """Work as the process of one target; the last line on stderr says what failed."""
    target = next(each for each in TARGETS if each.name == name)
    try:
        sys.stdout.write(f"{work(target, seconds, seed, current)}\n")
    except BaseException as error:
        traceback.print_exc()
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "/govtool/" in f.filename]
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
        sys.stderr.write(f"{type(error).__name__} at {place}: {str(error)[:100]}\n")
        return 1
    return 0


def fuzz(minutes: float, names: list[str]) -> int:
    """Share CPU minutes among targets, and print a line for each failure and each target.

    Returns:
        The number of different failures.
    """
    targets = [target for target in TARGETS if not names or target.name in names]
    failures: Counter[str] = Counter()
    for target in targets:
        left, inputs = minutes * 60 / len(targets), 0
        while left > 1:
            begun, seed = time.monotonic(), random.randrange(1 << 32)
            with tempfile.NamedTemporaryFile(prefix="fuzz-") as current:
                code, out, reason = _process(target.name, left, seed, current.name)
                if code == 0:
                    inputs += int(out.split()[-1])
                    break
                kept = _keep(target.name, Path(current.name).read_bytes(), reason, failures)
            if kept:
                sys.stdout.write(f"{target.name}: {reason} · {kept}\n")
                sys.stdout.flush()
            left -= time.monotonic() - begun
        sys.stdout.write(f"{target.name}: {inputs:,} inputs in the last run, {_of(failures, target.name)} failures\n")
        sys.stdout.flush()
    return len(failures)


def _of(failures: Counter[str], name: str) -> int:
    return sum(1 for each in failures if each.startswith(f"{name} "))


def _process(name: str, seconds: float, seed: int, current: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "bench.fuzz", "--child", name, str(seconds), str(seed), current]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds * 4 + 120, check=False)
    except subprocess.TimeoutExpired:
        return 1, "", "hang: the process had to be killed"
    lines = done.stderr.strip().splitlines() or [f"the process ended with {done.returncode}"]
    return done.returncode, done.stdout, lines[-1]


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

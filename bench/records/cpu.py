"""CPU time of whole trees of processes: Python, the JVM, its workers, and what outlives its parent.

Linux only: /proc, and a subreaper, which inherits the JVM that pyspark leaves behind when it exits.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of a process tree.

    Attributes:
        wall: Until the process itself ended.
        cpu: Of all processes.
    """

    wall: float
    cpu: float


def process_cpu(pid: int) -> float:
    """CPU seconds of all threads of a running process, to the nanosecond, by its clock."""
    return time.clock_gettime((~pid << 3) | 2)


def tree_cpu(root: int) -> float:
    """CPU seconds of a process, of all below it, and of those that they waited for."""
    parents, times = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                words = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(words[1])
                times[int(folder.name)] = sum(map(int, words[11:15])) / _TICK
    return sum(spent for pid, spent in times.items() if _is_below(pid, root, parents))


def _is_below(pid: int, root: int, parents: Mapping[int, int]) -> bool:
    while pid and pid != root:
        pid = parents.get(pid, 0)
    return pid == root


def become_subreaper() -> None:
    """Inherit processes whose parent ends before them.

    Raises:
        OSError: This system has no such thing.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no subreaper")


def cost_of(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Cost:
    """Run a command to its end, and that of all that it leaves behind.

    Raises:
        RuntimeError: It failed.
    """
    before, start = _waited(), time.perf_counter()
    done = subprocess.run(list(command), env=dict(environment), cwd=folder, capture_output=True, text=True)
    wall = time.perf_counter() - start
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:6])} failed: {done.stderr[-2000:]}")
    return Cost(wall, _waited() - before)


def _waited() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

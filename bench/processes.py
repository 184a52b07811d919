"""The cost of processes, run to their end."""

from __future__ import annotations

import resource
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one process: seconds by the clock, and of processor time (user and system)."""

    wall: float
    cpu: float


def run(command: list[str], environment: dict[str, str]) -> tuple[Cost, str]:
    """Run a process to its end.

    Raises:
        RuntimeError: It failed.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    # Beside the store: the policies of this repository are none of the warehouse's.
    beside = Path(environment.get("GOVTOOL_STORE", "")).parent
    beside = beside if beside.is_dir() else Path.cwd()
    done = subprocess.run(command, env=environment, cwd=beside, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{command} exited with {done.returncode}: {done.stderr[-2000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall, cpu), done.stdout


def interleaved(commands: dict[str, list[str]], environment: dict[str, str], rounds: int) -> dict[str, Cost]:
    """Medians of several processes run in turn, so that what else the machine does hits all alike."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            cost, _ = run(command, environment)
            if number:  # The first round warms the file cache and writes bytecode.
                costs[name].append(cost)
    return {
        name: Cost(statistics.median(c.wall for c in taken), statistics.median(c.cpu for c in taken))
        for name, taken in costs.items()
    }

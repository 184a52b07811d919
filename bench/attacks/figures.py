"""Figures beside the attacks: causal order against brute force, requests at any age, fuzzing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.attacks.rows import Row

AGES = (10, 100, 1000, 3000)
HISTORIES = 1000
MINUTES = 60.0
_ROOT = Path(__file__).resolve().parents[2]


def causal() -> Iterator[Row]:
    """Random histories in random orders, compared with brute force at every prefix."""
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "tests/app/test_causal_order.py"]
    environment = {**os.environ, "GOVTOOL_HISTORIES": str(HISTORIES)}
    done = subprocess.run(
        [*command, "-k", "prefix"], cwd=_ROOT, env=environment, capture_output=True, text=True, check=False
    )
    failed = re.search(r"(\d+) failed", done.stdout)
    differences = int(failed[1]) if failed else 0 if done.returncode == 0 else -1
    attack = "random histories of runs in random orders; `show`, `impact run:…`, `fsck` at every prefix"
    yield Row("causal", attack, HISTORIES, f"{differences} differences from brute force")


def requests() -> Iterator[Row]:
    """Requests at an age: a commit, an unchanged ingest, a cold question with a published index."""
    from bench.ages import figures

    for age in AGES:
        commit, unchanged, cold = figures(age)
        result = f"commit {commit}, unchanged ingest {unchanged}, cold question {cold}"
        yield Row("requests", f"requests at {age:,} commits", 1, result)


def fuzz() -> Iterator[Row]:
    """Spoiled inputs to every reader of what others wrote."""
    from bench.fuzz.run import fuzz as run

    totals = run(MINUTES, [])
    yield fuzzed(MINUTES, totals.inputs, totals.failures)


def fuzzed(minutes: float, inputs: int, failures: int) -> Row:
    """The row of a run of fuzzing."""
    from bench.fuzz.targets import TARGETS

    result = f"{failures} different crashes, hangs over 10 s, or more than 1 GB"
    return Row("fuzz", f"spoiled inputs to {len(TARGETS)} readers, {minutes:.0f} CPU minutes", inputs, result)

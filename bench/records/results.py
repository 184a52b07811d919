"""Results in a JSON file, one entry a setting, written after each step, so that a broken run goes on where it was."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from math import exp, fsum, log
from pathlib import Path
from typing import Any

RESAMPLES = 10_000


class Results:
    """The file of a machine's results."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.entries: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}

    def entry(self, key: str) -> dict[str, Any]:
        """The entry of a setting, made when it is not there."""
        found: dict[str, Any] = self.entries.setdefault(key, {})
        return found

    def save(self) -> None:
        """Write all entries, or none."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps(self.entries, indent=1) + "\n")
        part.replace(self.file)


def mean_ratio(pairs: Iterable[tuple[float, float]]) -> float:
    """The geometric mean of the ratios of pairs: the first over the second."""
    logs = [log(there / here) for there, here in pairs]
    return exp(fsum(logs) / len(logs))


def interval(pairs: Sequence[tuple[float, float]], level: float = 0.95) -> tuple[float, float]:
    """The bootstrap interval of the mean ratio: pairs are drawn with replacement, seeded."""
    draw = random.Random(16)
    means = sorted(mean_ratio(draw.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES))
    cut = int(RESAMPLES * (1 - level) / 2)
    return means[cut], means[-1 - cut]

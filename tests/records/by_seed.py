"""Differential checks of random cases, by seed: each in a folder of its own, what is wrong collected."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar


class Total(Protocol):
    """What some cases came to."""

    wrong: list[str]


_Total = TypeVar("_Total", bound=Total)
Check = Callable[[int, Path, _Total], None]


def checked(seeds: range, check: Check, total: _Total) -> _Total:
    """Check some seeds; a case that ends with an error is wrong, too."""
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(seed, Path(folder), total)
            except Exception as error:
                total.wrong.append(f"{seed}: {type(error).__name__}: {error}")
    return total


def main(check: Check, total: _Total, figures: Callable[[_Total], tuple[int, ...]]) -> None:
    """Check as many seeds as the command line says, from the seed that it may name; print what is wrong and figures."""
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    checked(range(first, first + int(sys.argv[1])), check, total)
    print(*total.wrong, sep="\n")
    print(*figures(total))
    sys.exit(bool(total.wrong))

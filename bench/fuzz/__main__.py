"""``python -m bench.fuzz [MINUTES] [TARGET…]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.fuzz.run import child, fuzz
from bench.fuzz.targets import TARGETS


def main(arguments: list[str]) -> int:
    """Run for some CPU minutes, by default 10; exit code 1 if anything failed."""
    if arguments[:1] == ["--child"]:
        _, name, seconds, seed, current = arguments
        return child(name, float(seconds), int(seed), Path(current))
    names = [target.name for target in TARGETS]
    parser = argparse.ArgumentParser("fuzz", description="Feed spoiled inputs to what reads the work of others.")
    parser.add_argument("minutes", nargs="?", type=float, default=10.0, help="of CPU, over all targets (default: 10)")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(names)} (default: all)")
    asked = parser.parse_args(arguments)
    if unknown := [name for name in asked.targets if name not in names]:
        parser.error(f"no target {unknown[0]!r}; there are {', '.join(names)}")
    return 1 if fuzz(asked.minutes, asked.targets).failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

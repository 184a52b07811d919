"""``python -m bench.fuzz [MINUTES] [TARGET…]``."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.fuzz.run import child, fuzz


def main(arguments: list[str]) -> int:
    """Run for some CPU minutes, by default 10; exit code 1 if anything failed."""
    if arguments[:1] == ["--child"]:
        _, name, seconds, seed, current = arguments
        return child(name, float(seconds), int(seed), Path(current))
    minutes = float(arguments[0]) if arguments else 10.0
    return 1 if fuzz(minutes, arguments[1:]).failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

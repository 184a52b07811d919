"""``python -m govtool`` is ``govtool``; the console script begins here, too."""

from __future__ import annotations

import sys


def main() -> int:
    """Run govtool and return its exit code, also where it is interrupted before the first of its modules is there."""
    try:
        from govtool.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130  # as EXIT_INTERRUPTED; nothing more is imported


if __name__ == "__main__":
    sys.exit(main())

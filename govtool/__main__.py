"""``python -m govtool`` is ``govtool``; the console script begins here, too."""

from __future__ import annotations

import gc
import sys


def main() -> int:
    """Run govtool and return its exit code, also where it is interrupted before the first of its modules is there."""
    try:
        from govtool.cli.main import main as run

        code = run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130  # as EXIT_INTERRUPTED; nothing more is imported
    gc.disable()
    gc.freeze()  # Python would visit everything once more before it ends
    return code


if __name__ == "__main__":
    sys.exit(main())

"""``python -m govtool`` is ``govtool``."""

from __future__ import annotations

import sys

from govtool.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

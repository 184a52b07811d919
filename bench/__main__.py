"""``python -m bench``: measure everything, or the sections named, and merge the results into docs/benchmarks.md."""

from __future__ import annotations

from bench.run import main

if __name__ == "__main__":
    main()

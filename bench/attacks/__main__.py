"""``python -m bench.attacks [PART…]``."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator

from bench.attacks import damage, figures, kills, servers
from bench.attacks.rows import Row, merge

PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "kills": kills.kills,
    "forgetting": kills.forgetting,
    "truncations": damage.truncations,
    "damages": damage.damages,
    "flips": damage.flips,
    "faults": servers.faults,
    "writers": servers.writers,
    "causal": figures.causal,
    "requests": figures.requests,
    "fuzz": figures.fuzz,
}


def main(names: list[str]) -> int:
    """Run some parts, by default all, and put their rows into the page as each ends."""
    os.environ["GOVTOOL_CACHE"] = tempfile.mkdtemp(prefix="attacks-")
    for name in names or list(PARTS):
        rows = []
        for row in PARTS[name]():
            sys.stdout.write(f"{name} · {row.attack} · {row.tries:,} · {row.result}\n")
            sys.stdout.flush()
            rows.append(row)
        merge(rows, PARTS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

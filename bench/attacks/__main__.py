"""``python -m bench.attacks [PART…]``: attack a store, and write the rows of docs/store-attacks.md."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator

from bench.attacks import commits, damage, figures, kills, lengths, servers, tables
from bench.attacks.rows import Row, merge

PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "kills": kills.kills,
    "commits": commits.commits,
    "forgetting": kills.forgetting,
    "truncations": damage.truncations,
    "damages": damage.damages,
    "flips": damage.flips,
    "faults": servers.faults,
    "writers": servers.writers,
    "causal": figures.causal,
    "requests": figures.requests,
    "fuzz": figures.fuzz,
    "lengths": lengths.lengths,
    "tables": tables.tables,
    "rdd positions": tables.positions,
}


_WHAT = "Attack a store, and write the rows of docs/store-attacks.md."


def main(arguments: list[str]) -> int:
    """Run some parts, by default all, and put their rows into the page as each ends."""
    parser = argparse.ArgumentParser("python -m bench.attacks", description=_WHAT)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all, some hours")
    names = parser.parse_args(arguments).parts
    if unknown := [name for name in names if name not in PARTS]:
        parser.error(f"no part {unknown[0]!r}; there are {', '.join(PARTS)}")
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

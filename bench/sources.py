"""The first question over a store of many small sources: with no cache, and after one more commit."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.page import table
from bench.processes import run

TITLE = "## Many sources"

SIZES = (10, 100, 1000)
ROUNDS = 3
GOVTOOL = "from govtool.cli.main import main; main()"

_SQL = """\
create view w.v{n} as select a.id, a.x{column} as y, upper(b.name) as name from raw.a a join raw.b{n} b on a.id = b.id;
create view w.u{n} as select id, y from w.v{n};
"""


def section(sizes: tuple[int, ...] = SIZES, rounds: int = ROUNDS) -> str:
    """Measure, and write the section."""
    rows: list[list[str]] = []
    first: list[float] = []
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="govtool-sources-") as folder:
            costs = list(_costs(Path(folder), size, rounds))
        first = first or costs
        ratios = [f"{cost:.2f} s ({cost / base:.2f})" for cost, base in zip(costs, first, strict=True)]
        rows.append([f"{size:,}", *ratios])
    head = ["sources", "impact, no cache", "diff HEAD~1, then", "impact after one more commit", "diff HEAD~1 after it"]
    return f"""{TITLE}

Folders of two views each, every one a source of its own, and all over one table. Whole processes of `govtool impact
COLUMN` and `govtool diff HEAD~1`, CPU, medians of {rounds} rounds; in brackets the ratio to the first row. Goals: at
most 1.3 for `impact`, 1.2 for `diff`.

{table(head, rows)}
"""


def _costs(folder: Path, size: int, rounds: int) -> Iterator[float]:
    """The CPU seconds of the columns of the table."""
    here = Path.cwd()
    os.chdir(folder)
    try:
        _ingest(folder, range(size))
        taken: list[list[float]] = []
        for number in range(rounds):
            environment = {**os.environ, "NO_COLOR": "1", "GOVTOOL_CACHE": str(folder / f"cache{number}")}
            found = [_cost(environment, "impact", "raw.a.x1"), _cost(environment, "diff", "HEAD~1")]
            _ingest(folder, range(number, number + 1), f"create view w.more{number} as select id from w.v{number};\n")
            found += [_cost(environment, "impact", "raw.a.x1"), _cost(environment, "diff", "HEAD~1")]
            taken.append(found)
    finally:
        os.chdir(here)
    for column in zip(*taken, strict=True):
        yield statistics.median(column)


def _cost(environment: dict[str, str], *arguments: str) -> float:
    cost, _ = run([sys.executable, "-c", GOVTOOL, *arguments], environment)
    return cost.cpu


def _ingest(folder: Path, numbers: range, more: str = "") -> None:
    """Ingest each folder as one source, by this process."""
    import govtool
    from govtool.store import Store

    if not (folder / ".govtool").exists():
        Store.init(str(folder / ".govtool"))
    for number in numbers:
        place = folder / "s" / f"p{number}"
        place.mkdir(parents=True, exist_ok=True)
        (place / "q.sql").write_text(_SQL.format(n=number, column=number % 7) + more)
        govtool.ingest_sql(str(place), dialect="postgres")

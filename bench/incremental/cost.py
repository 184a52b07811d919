"""The cost of ingesting a warehouse again after a change, by whole processes of ``govtool ingest sql``.

The texts are those of a checkout of mozilla/bigquery-etl; above their number, the same once more under the name of
another project. Ten views star over a table whose DDL is changed; both are added to the checkout.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.compiled import compiled
from bench.corpora import ROOT
from bench.page import table
from govtool.build_form import COMPILED, PURE

SIZES = (500, 1000, 2000, 4000)
_PATTERN = "{schema}/{table}/query.sql"
_VIEWS = 10
_DDL = "CREATE TABLE `bench-project`.bench.base (id INT64, email STRING{});\n"


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one process."""

    cpu: float
    """Seconds, of the process and its children."""
    wall: float
    """Seconds."""
    peak: int
    """MB of memory at most."""


def section(checkout: Path, sizes: tuple[int, ...] = SIZES) -> str:
    """Return the section of docs/benchmarks.md."""
    rows = []
    with tempfile.TemporaryDirectory() as package:
        for extractor, path in ((COMPILED, compiled(Path(package))), (PURE, ROOT)):
            for size in sizes:
                rows.append([extractor, *_row(checkout, size, path)])
                print(rows[-1], file=sys.stderr, flush=True)
    steps = ["first", "unchanged", "one comment", "one query", "a DDL that ten views star over", "10% changed"]
    head = ["extractor", "files", "text", *steps, "10% / first", "first, two processes", "peak of the first"]
    return f"""## Ingesting again

CPU of whole processes of `govtool ingest sql`, from the start of Python to the commit, on the texts of
mozilla/bigquery-etl (`python -m bench incremental --bigquery-etl PATH`); one process. "compiled" is what a wheel holds,
"pure Python" an editable install. "two processes" is the first with `--workers 2`, by the clock. After each step the
commit is that of an ingest in full, to the byte (`python -m bench.incremental.oracle FOLDER`). Goals at 4,000 files:
one comment 1.5 s, one query 2 s, 10% changed at most 20% of the first, the first 18 s on 2 cores, 300 MB.

{table(head, rows)}
"""


def _row(checkout: Path, size: int, package: Path) -> list[str]:
    with tempfile.TemporaryDirectory() as work:
        files, megabytes = _warehouse(checkout, Path(work) / "sql", size)
        together = _first(Path(work), package, "--workers", "2")
        costs = dict(measure(Path(work), package))
    first = costs["first"]
    share = costs["10% changed"].cpu / first.cpu
    shown = [f"{cost.cpu:.1f} s" for cost in costs.values()]
    rest = [f"{share:.0%}", f"{together.wall:.1f} s", f"{first.peak} MB"]
    return [f"{files:,}", f"{megabytes:.1f} MB", *shown, *rest]


def _first(work: Path, package: Path, *options: str) -> Cost:
    """The cost of a first ingest into a store of its own."""
    with tempfile.TemporaryDirectory() as apart:
        folder = Path(apart)
        (folder / "sql").symlink_to(work / "sql")
        _govtool(folder, package, "init")
        return _ingest(folder, package, *options)


def _warehouse(checkout: Path, folder: Path, size: int) -> tuple[int, float]:
    """Lay out a warehouse; returns its files and megabytes."""
    sources = sorted((checkout / "sql").rglob("*.sql"))
    total = 0
    for number in range(size):
        source = sources[number % len(sources)]
        text = source.read_text(encoding="utf-8", errors="replace")
        place = source.relative_to(checkout / "sql")
        if number >= len(sources):
            text = text.replace("moz-fx-data-shared-prod", "moz-fx-data-shared-two")
            place = Path("two") / re.sub(r"[^\w/.-]", "_", place.as_posix())
        to = folder / place
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(text, encoding="utf-8")
        total += len(text)
    bench = folder / "bench"
    bench.mkdir(parents=True)
    (bench / "base.sql").write_text(_DDL.format(""))
    for number in range(_VIEWS):
        view = f"CREATE VIEW `bench-project`.bench.v{number} AS SELECT * FROM `bench-project`.bench.base;\n"
        (bench / f"v{number}.sql").write_text(view)
    return size + _VIEWS + 1, total / 1e6


def measure(work: Path, package: Path = ROOT) -> Iterator[tuple[str, Cost]]:
    """Yield the steps with their cost; the texts are in the folder ``sql`` of ``work``, govtool is in ``package``."""
    _govtool(work, package, "init")
    files = sorted(path for path in (work / "sql").rglob("*.sql") if path.parent.name != "bench")
    yield "first", _ingest(work, package)
    yield "unchanged", _ingest(work, package)
    _append(files[len(files) // 2], "\n-- a comment\n")
    yield "one comment", _ingest(work, package)
    _replace(files, "SELECT")
    yield "one query", _ingest(work, package)
    (work / "sql" / "bench" / "base.sql").write_text(_DDL.format(", added STRING"))
    yield "ten views", _ingest(work, package)
    for path in files[::10]:
        _append(path, "\n-- one in ten\n")
    yield "10% changed", _ingest(work, package)


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def _replace(files: list[Path], word: str) -> None:
    """A query more that one of the files runs."""
    path = next(path for path in files if path.name == "query.sql" and word in path.read_text(encoding="utf-8"))
    path.write_text(path.read_text(encoding="utf-8").replace(word, f"{word} 1 AS added_column,", 1), encoding="utf-8")


def _ingest(work: Path, package: Path, *options: str) -> Cost:
    words = ["ingest", "sql", "sql", "--dialect", "bigquery", "--relation-from", _PATTERN]
    return _govtool(work, package, *words, *options)


def _govtool(work: Path, package: Path, *arguments: str) -> Cost:
    environ = {
        **os.environ,
        "GOVTOOL_CACHE": str(work / "cache"),
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPATH": str(package),
    }
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "govtool", *arguments],
        cwd=work,
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"govtool {' '.join(arguments)} ended with {process.returncode}")
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - start, _megabytes(usage))


def _megabytes(usage: resource.struct_rusage) -> int:
    return usage.ru_maxrss // 1000

"""RDD programs: what tracking costs a job, and traces beside the job itself.

Titian's grep and word count (Zipf, 8,000 terms), tracked and plain in turns in one session, with plain against plain as
the control. CPU of all processes of the session counts, wall time stands beside it. ``python -m bench.rdd 1024 10``
measures with 1,024 MB and ten pairs, ``python -m bench.rdd 1024 1 "word count"`` one of the programs. A first round
warms the session up, which jobs of minutes do not need.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from operator import add
from pathlib import Path
from typing import Any

from bench.page import table

TITLE = "## RDD programs: tracked against plain, and traces"
TERMS = 8_000
MEGABYTES = 64
PAIRS = 5
WARMED = 256
"""Megabytes up to which a first round only warms the session up."""


def section(megabytes: int = MEGABYTES, pairs: int = PAIRS, programs: Sequence[str] = ()) -> str:
    """Measure in a process of its own, and return the section of the page.

    Args:
        megabytes: The size of the text.
        pairs: How many rounds.
        programs: Names of ``PROGRAMS``; empty: all of them.
    """
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "text")
        generate(path, megabytes)
        command = [sys.executable, "-m", "bench.rdd", "measure", str(path), str(pairs), *programs]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return "\n".join([TITLE, "", *_described(json.loads(done.stdout.splitlines()[-1]), megabytes, pairs)])


def generate(folder: Path, megabytes: int, seed: int = 7) -> None:
    """Write text of Zipf-distributed terms, one file for each 16 MB."""
    folder.mkdir(parents=True)
    draw = random.Random(seed)
    words = [f"term{number:04d}" for number in range(TERMS)]
    weights = [1 / (rank + 1) for rank in range(TERMS)]
    for number in range(max(1, megabytes // 16)):
        block = [" ".join(draw.choices(words, weights, k=10)) for _ in range(12_000)]
        size = min(16, megabytes) << 20
        with (folder / f"part-{number:03d}").open("w") as file:
            while file.tell() < size:
                draw.shuffle(block)
                file.write("\n".join(block) + "\n")


def _has_term(line: str) -> bool:
    return "term0042" in line


def _pair(word: str) -> tuple[str, int]:
    return word, 1


def grep(context: Any, path: str) -> Any:
    """Lines with a term."""
    return context.textFile(path).filter(_has_term)


def word_count(context: Any, path: str) -> Any:
    """The number of each word."""
    return context.textFile(path).flatMap(str.split).map(_pair).reduceByKey(add)


PROGRAMS: dict[str, Callable[[Any, str], Any]] = {"grep": grep, "word count": word_count}


def measure(path: str, pairs: int, programs: Sequence[str]) -> dict[str, Any]:
    """Run the programs in turns and trace them; seconds of wall time and of CPU."""
    from pyspark import cloudpickle
    from pyspark.sql import SparkSession

    from govtool.spark.rdd.context import lineage_context

    register: Any = cloudpickle.register_pickle_by_value
    register(sys.modules[__name__])
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    tracked = lineage_context(session)
    found: dict[str, Any] = {}
    warms = sum(file.stat().st_size for file in Path(path).iterdir()) <= WARMED << 20
    for name, program in PROGRAMS.items():
        if programs and name not in programs:
            continue
        found[name] = _turns(session.sparkContext, tracked, program, path, range(not warms, pairs + 1))
        found[name]["traces"] = _traces(tracked, program, path, name, pairs)
    session.stop()
    return found


def _turns(plain: Any, tracked: Any, program: Callable[..., Any], path: str, turns: range) -> dict[str, Any]:
    times: dict[str, list[tuple[float, float]]] = {"plain": [], "control": [], "tracked": []}
    kinds = [("plain", plain), ("control", plain), ("tracked", tracked)]
    for turn in turns:  # 0 warms up
        shift = turn % 3
        for name, context in kinds[shift:] + kinds[:shift]:
            spent = _timed(lambda context=context: program(context, path).collect())  # type: ignore[misc]
            if turn:
                times[name].append(spent)
    return {"times": times}


def _traces(tracked: Any, program: Callable[..., Any], path: str, name: str, pairs: int) -> dict[str, Any]:
    result = program(tracked, path)
    result.collect()
    words: list[str | None] = [None] if name == "grep" else ["term7999", "term0100"]
    found: dict[str, Any] = {}
    for word in words:
        select = _has_term if word is None else _of_word(word)
        spent, sizes = [], []
        for _ in range(min(3, pairs)):
            position = result.get_lineage().where(select).go_back_all()
            spent.append(_timed(position.places))
            sizes.append(position.count())
        found[word or "all results"] = {"times": spent, "rows": sizes[0]}
    return found


def _of_word(word: str) -> Callable[[Any], bool]:
    return lambda pair: bool(pair[0] == word)


def _timed(run: Callable[[], Any]) -> tuple[float, float]:
    """Wall time and CPU of this process and of all that it started: the JVM and Python's workers."""
    before, start = _cpu(), time.perf_counter()
    run()
    return time.perf_counter() - start, _cpu() - before


def _cpu() -> float:
    """CPU seconds of a tree of processes, of those included that ended."""
    ticks = os.sysconf("SC_CLK_TCK")
    parents: dict[int, tuple[int, float]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = (int(fields[1]), sum(map(int, fields[11:15])) / ticks)
    tree, total = {os.getpid()}, 0.0
    while True:
        more = {pid for pid, (parent, _) in parents.items() if parent in tree} - tree
        if not more:
            break
        tree |= more
    for pid in tree:
        total += parents.get(pid, (0, 0.0))[1]
    return total


def _described(measured: dict[str, Any], megabytes: int, pairs: int) -> list[str]:
    jobs, traces = [], []
    for name, found in measured.items():
        times = found["times"]
        plain = statistics.median(wall for wall, _ in times["plain"])
        for kind in ("control", "tracked"):
            cells = [_ratio(times[kind], times["plain"], part) for part in (1, 0)]
            jobs.append([f"{name}, {'plain again' if kind == 'control' else kind}", *cells, f"{plain:.1f} s"])
        cost = statistics.median(cpu for _, cpu in times["plain"])
        for what, trace in found["traces"].items():
            wall, cpu = (statistics.median(each[part] for each in trace["times"]) for part in (0, 1))
            traces.append(
                [f"{name}: {what}", f"{trace['rows']:,}", f"{wall:.1f} s", f"{wall / plain:.2f}", f"{cpu / cost:.2f}"]
            )
    return [
        f"{megabytes} MB of text, {TERMS:,} terms, {pairs} rounds in turns.",
        "",
        table(["job against the plain one beside it, median", "CPU", "wall", "plain job"], jobs),
        "",
        table(["trace back to the lines", "lines", "wall", "wall / job", "CPU / job"], traces),
    ]


def _ratio(one: list[list[float]], other: list[list[float]], part: int) -> str:
    ratios = [a[part] / b[part] for a, b in zip(one, other, strict=True) if b[part]]
    return f"{statistics.median(ratios):.3f}" if ratios else "–"


def main() -> None:
    """Measure, or print the section."""
    if sys.argv[1:2] == ["measure"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]), sys.argv[4:])))
        return
    given = sys.argv[1:]
    megabytes, pairs = int(given[0]) if given else MEGABYTES, int(given[1]) if given[1:] else PAIRS
    print(section(megabytes, pairs, given[2:]))


if __name__ == "__main__":
    main()

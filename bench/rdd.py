"""RDD programs: what tracking costs a job, and traces beside the job itself.

Titian's grep and word count (Zipf, 8,000 terms), tracked and plain in turns in one session, with plain against plain as
the control. CPU of all processes of the session counts, wall time stands beside it. ``python -m bench.rdd 1024 10``
measures with 1,024 MB and ten pairs, ``python -m bench.rdd 1024 10 "word count"`` one of the programs. Each round is
kept in ``--results FILE``: after a break it goes on where it was. A first round of a session warms it up, which jobs of
minutes do not need; ``--untraced`` leaves the traces out.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from operator import add
from pathlib import Path
from typing import Any

from bench.page import table
from bench.records.results import Results, interval, mean_ratio

TITLE = "## RDD programs: tracked against plain, and traces"
TERMS = 8_000
MEGABYTES = 64
PAIRS = 5
WARMED = 256
"""Megabytes up to which a first round only warms the session up."""
RESULTS = Path(__file__).resolve().parent / "data" / "rdd.json"
KINDS = ("plain", "control", "tracked")


def generate(folder: Path, megabytes: int, seed: int = 7) -> None:
    """Write text of Zipf-distributed terms, one file for each 16 MB; nothing where the folder is there."""
    if folder.exists():
        return
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


def measure(folder: Path, megabytes: int, pairs: int, programs: Sequence[str], results: Results, traced: bool) -> None:
    """Run what is missing of the programs in turns, and trace them.

    Args:
        folder: Where the text is, or is made.
        megabytes: The size of the text.
        pairs: How many rounds each program has in the end.
        programs: Names of ``PROGRAMS``.
        results: Takes each round: seconds of wall time and of CPU, by kind.
        traced: Measure traces, too.
    """
    from pyspark import cloudpickle
    from pyspark.sql import SparkSession

    from govtool.spark.rdd.context import lineage_context

    path = folder / f"text-{megabytes}"
    generate(path, megabytes)
    register: Any = cloudpickle.register_pickle_by_value
    register(sys.modules[__name__])
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    tracked = lineage_context(session)
    contexts = {"plain": session.sparkContext, "control": session.sparkContext, "tracked": tracked}
    for name in programs:
        program, entry = PROGRAMS[name], results.entry(_key(name, megabytes))
        rounds = entry.setdefault("rounds", [])
        if megabytes <= WARMED and len(rounds) < pairs:
            _turn(contexts, program, str(path), 0)
        while len(rounds) < pairs:
            rounds.append(_turn(contexts, program, str(path), len(rounds)))
            results.save()
        if traced and "traces" not in entry:
            entry["traces"] = _traces(tracked, program, str(path), name, pairs)
            results.save()
    session.stop()


def _key(name: str, megabytes: int) -> str:
    return f"{name}, {megabytes:,} MB"


def _turn(contexts: dict[str, Any], program: Callable[..., Any], path: str, number: int) -> dict[str, Any]:
    """One round: each kind once, in an order that changes from round to round."""
    shift = number % len(KINDS)
    return {
        kind: _timed(lambda kind=kind: program(contexts[kind], path).collect())  # type: ignore[misc]
        for kind in KINDS[shift:] + KINDS[:shift]
    }


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


def measured() -> str:
    """Measure what is missing in a process of its own, and return the section of the page."""
    subprocess.run([sys.executable, "-m", "bench.rdd"], capture_output=True, check=True)
    return section(Results(RESULTS))


def section(results: Results) -> str:
    """The section of the page, from all that was measured."""
    jobs, traces = [], []
    for name, found in results.entries.items():
        rounds = found["rounds"]
        wall, cost = (statistics.median(each["plain"][part] for each in rounds) for part in (0, 1))
        for kind in ("control", "tracked"):
            cells = [_ratio([(each[kind][part], each["plain"][part]) for each in rounds]) for part in (1, 0)]
            title = f"{name}, {'plain again' if kind == 'control' else kind}"
            jobs.append([title, str(len(rounds)), *cells, f"{wall:.1f} s"])
        for what, trace in found.get("traces", {}).items():
            took, spent = (statistics.median(each[part] for each in trace["times"]) for part in (0, 1))
            sizes = [f"{trace['rows']:,}", f"{took:.1f} s", f"{took / wall:.2f}", f"{spent / cost:.2f}"]
            traces.append([f"{name}: {what}", *sizes])
    ratios = table(["job / plain job, in turns", "pairs", "CPU", "wall", "plain job"], jobs)
    costs = table(["trace back to the lines", "lines", "wall", "wall / job", "CPU / job"], traces)
    return "\n".join([TITLE, "", ratios, *(["", costs] if traces else [])])


def _ratio(pairs: Sequence[tuple[float, float]]) -> str:
    """The geometric mean of ratios, and its interval where there are enough."""
    kept = [(one, other) for one, other in pairs if one > 0 and other > 0]
    if not kept:
        return "–"
    least, most = interval(kept)
    return f"{mean_ratio(kept):.3f}" + (f" ({least:.3f}–{most:.3f})" if len(kept) > 2 else "")


def main() -> None:
    """Measure what is missing, and print the section."""
    parser = argparse.ArgumentParser(prog="python -m bench.rdd", description=__doc__)
    parser.add_argument("megabytes", type=int, nargs="?", default=MEGABYTES)
    parser.add_argument("pairs", type=int, nargs="?", default=PAIRS)
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--folder", type=Path, default=RESULTS.parent, help="where texts are kept")
    parser.add_argument("--untraced", action="store_true")
    options = parser.parse_args()
    strange = sorted(set(options.programs) - set(PROGRAMS))
    if strange:
        parser.error(f"no program {', '.join(strange)}; there are {', '.join(PROGRAMS)}")
    results = Results(options.results)
    measure(options.folder, options.megabytes, options.pairs, options.programs, results, not options.untraced)
    print(section(results))


if __name__ == "__main__":
    main()

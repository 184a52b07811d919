"""The paper's Figures 5(a) to 5(c), measured in pieces that may be taken by anybody, at any time.

    python -m bench.workflowgen figures --page                  measure all that is missing, then write the page
    python -m bench.workflowgen figures --pieces 2 --only a/10  two pieces of one setting
    python -m bench.workflowgen figures --only page             the section again, from the file of results

A piece is one run of one setting, with a store of its own. Settings of one family on as many cores share a JVM, which
is warmed up once.
Results are written down after each execution, so that a break loses one; a run that was broken off counts with the
executions that it has. The page keeps the rows of settings that have no results here, with the commit of theirs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from bench.page import add_conditions, check_conditions, commit
from bench.records.results import Results
from bench.workflowgen.arctic import ArcticFamily
from bench.workflowgen.arms import ARMS
from bench.workflowgen.car import CarFamily
from bench.workflowgen.family import Family
from bench.workflowgen.generate import arctic_spec, car_spec
from bench.workflowgen.measure import PARTITIONS, run_arms
from bench.workflowgen.session import start_session

RESULTS = Path(__file__).resolve().parents[1] / "data" / "workflowgen.json"
RUNS = 3
"""Measured runs of a setting."""
EXECUTIONS = 5
"""Executions of a run: 8 to 12, or 96 to 100."""
WARM_UP = 2
"""Executions that warm a JVM up: in its first, what is compiled for an arm weighs more than what the arm does."""
TO_THE_END = 60.0
"""Seconds that a run's end may take: the commit, and building the graph."""
CARS, STATIONS, FAN = 20_000, 24, 6


@dataclass(frozen=True, slots=True)
class Setting:
    """One bar of a figure.

    Attributes:
        family: ``car`` or ``arctic``.
        prior: Executions that went before, as generated state.
        topology: Of Arctic stations.
        master: Where Spark runs.
        partitions: Of shuffles.
        arms: What is compared.
        runs: How many runs are wanted.
    """

    family: str
    prior: int
    topology: str = ""
    master: str = "local[2]"
    partitions: int = 2
    arms: tuple[str, ...] = ARMS
    runs: int = RUNS

    @property
    def machine(self) -> tuple[object, ...]:
        """Equal for settings that one JVM may run, one after another: their code is the same, and their cores."""
        return self.family, self.master, self.arms

    def spec(self, executions: int) -> dict[str, Any]:
        """The workflow with its data."""
        if self.family == "car":
            return car_spec(CARS, self.prior, executions)
        return arctic_spec(STATIONS, self.topology, FAN, "month", executions, self.prior)


def settings() -> dict[str, Setting]:
    """All settings, by figure and name."""
    found = {"a/10": Setting("car", 7), "a/100": Setting("car", 95)}
    for prior, name in ((7, "10"), (95, "100")):
        for topology in ("parallel", "dense", "serial"):
            found[f"b/{topology}/{name}"] = Setting("arctic", prior, topology)
    for cores in (1, 2):
        for partitions in (1, 2, 3, 4):
            found[f"c/{cores}/{partitions}"] = Setting(
                "car", 7, master=f"local[{cores}]", partitions=partitions, arms=("untracked", "tracked"), runs=1
            )
    return found


def main(words: list[str]) -> int:
    """The command line; the exit code."""
    parser = _parser()
    add_conditions(parser)
    options = parser.parse_args(words)
    check_conditions(allow_dirty=options.allow_dirty, allow_load=options.allow_load)
    results = Results(options.results)
    until = time.monotonic() + options.seconds - TO_THE_END
    wanted = islice(_missing(results, options.only), options.pieces)
    for _, pieces in groupby(wanted, lambda each: each[1].machine):
        _measure(results, list(pieces), options.executions, until)
    if options.page or "page" in options.only:
        from bench.page import merge, page_sections
        from bench.run import SECTIONS, WORKFLOW_SECTION
        from bench.workflowgen.report import section

        before = page_sections().get(WORKFLOW_SECTION, "")
        merge(WORKFLOW_SECTION, section(results.entries, before), [*SECTIONS, WORKFLOW_SECTION])
    return 0


def _missing(results: Results, only: list[str]) -> Iterator[tuple[str, Setting]]:
    """Runs that are still to be measured: the first of every setting before the second of any."""
    for number in range(RUNS):
        for name, setting in settings().items():
            wanted = not only or any(name == each or name.startswith(f"{each}/") for each in only)
            if wanted and number < setting.runs and len(results.entries.get(name, {}).get("runs", ())) <= number:
                yield name, setting


def _measure(results: Results, pieces: list[tuple[str, Setting]], executions: int, until: float) -> None:
    """Measure runs in one JVM after a warm-up; results are written down as they stand after each execution."""
    from govtool.store import Store

    first = pieces[0][1]
    family: Family = CarFamily() if first.family == "car" else ArcticFamily()
    with tempfile.TemporaryDirectory(prefix="workflowgen-") as text:
        folder = Path(text)
        spark = start_session(first.master, first.partitions)
        try:
            warm_up, store = first.spec(WARM_UP), Store.init(str(folder / "warm" / "store")).uri
            family.write(warm_up, folder / "warm" / "inputs")
            for _ in run_arms(family, warm_up, spark, folder / "warm", first.arms, store):
                pass
            for number, (name, setting) in enumerate(pieces):
                if number and time.monotonic() > until:
                    return
                runs = results.entry(name).setdefault("runs", [])
                runs.append({})  # not saved before it has an execution
                spec, place = setting.spec(executions), folder / f"run{number}"
                family.write(spec, place / "inputs")
                store = Store.init(str(place / "store")).uri  # its own: what it holds is a part of what a commit costs
                spark.conf.set(PARTITIONS, setting.partitions)
                for costs in run_arms(family, spec, spark, place, setting.arms, store, len(runs), until):
                    arms = {arm: asdict(cost) for arm, cost in costs.items()}
                    runs[-1] = {"load": round(os.getloadavg()[0], 1), "commit": commit(), "arms": arms}
                    results.save()
                print(f"{name}: {len(runs)} of {setting.runs}", file=sys.stderr, flush=True)
        finally:
            spark.stop()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.workflowgen figures",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", action="append", default=[], metavar="SETTING", help="a, b/dense, c/1/2 …; or page")
    parser.add_argument("--pieces", type=int, help="measure at most so many (default: all that are missing)")
    parser.add_argument("--executions", type=int, default=EXECUTIONS, help=f"of a run (default: {EXECUTIONS})")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end a run before its last execution then")
    parser.add_argument("--page", action="store_true", help="write the section of docs/benchmarks.md afterwards")
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"default: bench/data/{RESULTS.name}")
    return parser

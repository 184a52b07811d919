"""The page's section on WorkflowGen, from the file of results."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.page import table
from bench.workflowgen.measure import ArmCost

GOAL = 1.10
_PAPER = {
    "a/10": "2.59",
    "a/100": "3.13",
    "b/parallel/10": "1.165",
    "b/dense/10": "1.20",
    "b/serial/10": "1.35",
}
"""Tracked over untracked as the paper has it, wall time."""
_TITLES = {"a": "5(a), 20,000 cars", "b": "5(b), 24 stations", "c": "5(c), 20,000 cars"}
Run = Mapping[str, ArmCost]


def section(entries: Mapping[str, Any]) -> str:
    """The section."""
    runs = {name: [_run(each) for each in entry["runs"] if each] for name, entry in entries.items()}
    measured = {name: own for name, own in sorted(runs.items()) if own}
    if not measured:
        raise SystemExit("nothing is measured yet")
    loads = [each["load"] for entry in entries.values() for each in entry["runs"] if each]
    tracked = [row for name, own in measured.items() if not name.startswith("c/") for row in [_row(name, own)]]
    parts = [
        _head(loads, measured),
        table(
            ["setting", "runs", "executions", "tracked / untracked, CPU", "wall", "paper", "tracked / by hand, CPU",
             "(tracked + graph) / untracked, CPU", "untracked, s an execution"],
            tracked,
        ),
    ]  # fmt: skip
    cores = list(_core_rows(measured))
    if cores:
        parts += [_CORES, table(["shuffle partitions", "untracked, local[1] / local[2]", "tracked"], cores)]
    return "\n\n".join(parts) + "\n"


def _head(loads: Sequence[float], measured: Mapping[str, Sequence[Run]]) -> str:
    rows = [statistics.median(_ratios(own, "untracked", 1)) for name, own in measured.items() if name[0] != "c"]
    met = sum(ratio <= GOAL for ratio in rows)
    return f"""## WorkflowGen: what tracking costs

The settings of Figures 5(a) and 5(b) of "Putting Lipstick on Pig", after 10 and after 100 executions (`python -m
bench.workflowgen figures`, which takes pieces). Three arms take turns in one JVM, execution by execution: plain
PySpark by hand, the workflow untracked, and tracked with records; their outputs are equal, and two executions in each
warm the JVM up. Module boundaries are written as Parquet in both. Ratios are of sums over the executions of a run,
medians over runs, with their least and largest. **CPU** is that of Python and the JVM, listeners included; the machine
was shared (load {_range(loads)}), so wall time says little. The commit of a tracked run is counted where the run
came to its end. Goal: at most {GOAL:.2f}; by CPU it is met by {met} of {len(rows)} settings.
The paper's figures are wall time of Pig on Hadoop."""


def _range(loads: Sequence[float]) -> str:
    low, high = round(min(loads)), round(max(loads))
    return f"{low}" if low == high else f"{low} to {high}"


_CORES = "Figure 5(c), on one machine: wall time with one core over wall time with two."


def _run(found: Mapping[str, Any]) -> Run:
    return {name: ArmCost(**cost) for name, cost in found["arms"].items()}


def _row(name: str, runs: Sequence[Run]) -> list[str]:
    executions = sum(len(run["tracked"].wall) for run in runs)
    seconds = [sum(run["untracked"].wall) / len(run["untracked"].wall) for run in runs]
    whole = [run for run in runs if run["tracked"].nodes]
    return [
        _title(name),
        str(len(runs)),
        str(executions),
        f"**{_spread(_ratios(runs, 'untracked', 1))}**",
        _spread(_ratios(runs, "untracked", 0)),
        _PAPER.get(name, ""),
        _spread(_ratios(runs, "hand", 1)),
        _spread([run["tracked"].total(1, built=True) / run["untracked"].total(1) for run in whole]),
        f"{statistics.median(seconds):.1f}",
    ]


def _ratios(runs: Sequence[Run], under: str, clock: int) -> list[float]:
    return [run["tracked"].total(clock) / run[under].total(clock) for run in runs if under in run]


def _spread(ratios: Sequence[float]) -> str:
    if not ratios:
        return ""
    middle = f"{statistics.median(ratios):.2f}"
    return middle if len(ratios) == 1 else f"{middle} ({min(ratios):.2f}–{max(ratios):.2f})"


def _title(name: str) -> str:
    figure, *words = name.split("/")
    return f"{_TITLES[figure]}, {' '.join(words[:-1])}{' ' if words[:-1] else ''}after {words[-1]}"


def _core_rows(measured: Mapping[str, Sequence[Run]]) -> Iterator[list[str]]:
    for partitions in ("1", "2", "3", "4"):
        one, two = measured.get(f"c/1/{partitions}"), measured.get(f"c/2/{partitions}")
        if one and two:
            arms = ("untracked", "tracked")
            yield [partitions, *(f"{_seconds(one, arm) / _seconds(two, arm):.2f}" for arm in arms)]


def _seconds(runs: Sequence[Run], arm: str) -> float:
    return statistics.median(second for run in runs for second in run[arm].wall)

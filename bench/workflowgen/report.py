"""The page's section on WorkflowGen, from the file of results."""

from __future__ import annotations

import re
import statistics
import textwrap
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


def section(entries: Mapping[str, Any], before: str = "") -> str:
    """The section.

    Args:
        entries: What was measured, by setting.
        before: The section as it stands: its rows are kept for settings that were not measured.
    """
    found = {name: [each for each in entry["runs"] if each] for name, entry in entries.items()}
    measured = {name: own for name, own in sorted(found.items()) if own}
    runs = {name: [_run(each) for each in own] for name, own in measured.items()}
    tracked = {
        _title(name): [*_row(name, own), _commits(measured[name])] for name, own in runs.items() if name[0] != "c"
    }
    cores = {row[0]: row for row in _core_rows(runs, measured)}
    rows = _with_earlier(tracked, before, "setting")
    if not rows and not cores:
        raise SystemExit("nothing is measured yet")
    loads = [each["load"] for own in measured.values() for each in own]
    parts = [_head(loads, rows), table(_COLUMNS, rows)]
    by_cores = _with_earlier(cores, before, "shuffle partitions")
    if by_cores:
        parts += [_CORES, table(_CORE_COLUMNS, by_cores)]
    return "\n\n".join(parts) + "\n"


_COLUMNS = [
    "setting", "runs", "executions", "tracked / untracked, CPU", "wall", "paper", "tracked / by hand, CPU",
    "(tracked + graph) / untracked, CPU", "untracked, s an execution", "govtool at",
]  # fmt: skip
_CORE_COLUMNS = ["shuffle partitions", "untracked, local[1] / local[2]", "tracked", "govtool at"]
_RATIO = _COLUMNS.index("tracked / untracked, CPU")
_COMMIT = re.compile(r"govtool at ([^*]*)\.\*$", re.MULTILINE)


def _with_earlier(rows: Mapping[str, list[str]], before: str, head: str) -> list[list[str]]:
    """Rows of a table, and those of the page that have no new ones; the commit that the page names stands with them."""
    commit = _COMMIT.search(before)
    kept = {}
    for row in _rows_below(before, head):
        names = _COLUMNS if head == _COLUMNS[0] else _CORE_COLUMNS
        own = row if len(row) == len(names) else [*row, commit[1] if commit else "an unknown commit"]
        kept[own[0]] = own
    every = {**kept, **rows}
    return [every[title] for title in sorted(every, key=_by_number)]


def _by_number(title: str) -> list[tuple[bool, int, str]]:
    """A key that puts 10 before 100."""
    return [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", title)]


def _rows_below(text: str, head: str) -> Iterator[list[str]]:
    """The rows of the table whose first column is called so."""
    inside = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        inside = bool(cells) and (inside or cells[0] == head)
        if inside and cells[0] != head and not line.startswith("|---"):
            yield cells


def _commits(runs: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(dict.fromkeys(str(each.get("commit", "an unknown commit")) for each in runs))


def _head(loads: Sequence[float], rows: Sequence[Sequence[str]]) -> str:
    ratios = [float(row[_RATIO].strip("*").split()[0]) for row in rows]
    met = sum(ratio <= GOAL for ratio in ratios)
    load = f"load {_range(loads)}" if loads else "loads of earlier measurements"
    text = f"""The settings of Figures 5(a) and 5(b) of "Putting Lipstick on Pig", after 10 and after 100 executions
(`python -m bench.workflowgen figures`, which takes pieces). Three arms take turns in one JVM, execution by execution:
plain PySpark by hand, the workflow untracked, and tracked with records; their outputs are equal, and two executions in
each warm the JVM up. Module boundaries are written as Parquet in both. Ratios are of sums over the executions of a run,
medians over runs, with their least and largest. **CPU** is that of Python and the JVM, listeners included; wall time
depends on what else ran ({load}). The commit of a tracked run is counted where the run came to its end. Goal: at most
{GOAL:.2f}; by CPU it is met by {met} of {len(ratios)} settings. The paper's figures are wall time of Pig on Hadoop."""
    return f"## WorkflowGen: what tracking costs\n\n{textwrap.fill(text, 118, break_on_hyphens=False)}"


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


def _core_rows(
    runs: Mapping[str, Sequence[Run]], measured: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Iterator[list[str]]:
    for partitions in ("1", "2", "3", "4"):
        one, two = (f"c/{cores}/{partitions}" for cores in (1, 2))
        if one in runs and two in runs:
            shares = [_seconds(runs[one], arm) / _seconds(runs[two], arm) for arm in ("untracked", "tracked")]
            yield [partitions, *(f"{share:.2f}" for share in shares), _commits([*measured[one], *measured[two]])]


def _seconds(runs: Sequence[Run], arm: str) -> float:
    return statistics.median(second for run in runs for second in run[arm].wall)

"""Time of an execution in each arm. Arms take turns in one JVM, in an order that changes from run to run."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.workflowgen.arms import HandArm, WorkflowArm
from bench.workflowgen.family import Family, OutputRow, Spec


def measure(
    family: Family, spec: Spec, spark: Any, folder: Path, arms: Sequence[str], runs: int, store: str
) -> dict[str, Any]:
    """Run a spec several times in each arm.

    Each execution runs in all arms before the next begins, so that what drifts (compiler, heap) drifts for all. The
    tracked arm's commit is counted, shared among its executions. The first execution of each run is the same for
    all arms, and none is left out; a run before the measured ones warms the JVM up.

    Raises:
        ValueError: Outputs of arms differ.
    """
    inputs = folder / "inputs"
    family.write(spec, inputs)
    executions = range(1, len(spec["execs"]) + 1)
    times: dict[str, list[float]] = {name: [] for name in arms}
    means: dict[str, list[float]] = {name: [] for name in arms}
    rows = 0
    for run in range(runs + 1):  # run 0 warms up
        place = folder / f"run{run}"
        order = list(arms[run % len(arms) :]) + list(arms[: run % len(arms)])
        took, outputs = _one_run(family, spec, (spark, inputs, place, store), order, list(executions))
        _require_equal(outputs)
        rows = len(next(iter(outputs.values())))
        if run:
            for name in arms:
                times[name] += took[name]
                means[name].append(sum(took[name]) / len(executions))
        shutil.rmtree(place, ignore_errors=True)
    return {"rows": rows, "executions": len(executions), "runs": runs, **_figures(times, means)}


def _one_run(
    family: Family, spec: Spec, places: tuple[Any, Path, Path, str], order: Sequence[str], executions: Sequence[int]
) -> tuple[dict[str, list[float]], dict[str, list[OutputRow]]]:
    spark, inputs, folder, store = places
    # The tracked arm has a session of its own: the listener of one session is called for that session only.
    sessions = {name: spark.newSession() for name in order}
    made: dict[str, HandArm | WorkflowArm] = {}
    for name in order:
        if name == "hand":
            made[name] = HandArm(family, spec, sessions[name], inputs, folder / name)
        else:
            own = store if name == "tracked" else None
            made[name] = WorkflowArm(family, spec, sessions[name], inputs, folder / name, own)
    took: dict[str, list[float]] = {name: [] for name in order}
    outputs: dict[str, list[OutputRow]] = {name: [] for name in order}
    for execution in executions:
        shift = execution % len(order)
        for name in [*order[shift:], *order[:shift]]:
            started = time.perf_counter()
            rows = made[name].execute(execution)
            took[name].append(time.perf_counter() - started)
            outputs[name] += rows
    for name in order:
        started = time.perf_counter()
        made[name].finish()
        if name == "tracked":
            took[name].append(time.perf_counter() - started)
    return took, outputs


def _require_equal(outputs: Mapping[str, Sequence[OutputRow]]) -> None:
    """Refuse arms that differ.

    Raises:
        ValueError: They do.
    """
    (first, rows), *others = outputs.items()
    for name, own in others:
        if sorted(map(repr, own)) != sorted(map(repr, rows)):
            raise ValueError(f"the outputs of the arms {first} and {name} differ")


def _figures(times: Mapping[str, Sequence[float]], means: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    seconds = {
        name: {
            "median": round(statistics.median(own), 4),
            "mean": round(statistics.fmean(means[name]), 4),
            "spread": [round(min(means[name]), 4), round(max(means[name]), 4)],
        }
        for name, own in times.items()
    }
    ratios = {}
    for over, under in (("tracked", "untracked"), ("tracked", "hand"), ("untracked", "hand")):
        if over in means and under in means:
            pairs = [a / b for a, b in zip(means[over], means[under], strict=True)]
            ratios[f"{over}/{under}"] = round(statistics.median(pairs), 3)
    return {"seconds": seconds, "ratios": ratios}

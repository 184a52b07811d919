"""Time of an execution in each arm. Arms take turns in one JVM, in an order that changes from execution to execution.

Wall time on a machine with other work on it says little, so CPU time is taken as well: that of this process and of its
JVM, over an execution and what Spark's listeners do after it.
"""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.records.cpu import process_cpu
from bench.workflowgen.arms import HandArm, WorkflowArm
from bench.workflowgen.family import Family, OutputRow, Spec

PARTITIONS = "spark.sql.shuffle.partitions"
BUS_SECONDS = 60_000
"""Milliseconds that Spark's listeners may take."""


@dataclass(slots=True)
class ArmCost:
    """What one arm cost in one run.

    Attributes:
        wall: Seconds of each execution.
        cpu: CPU seconds of each execution, of Python and the JVM.
        finish: Wall and CPU seconds of its end: the commit of a tracked run.
        build: Wall and CPU seconds of building the provenance graph of a tracked run.
        nodes: Nodes of that graph.
        rows: Rows of outputs, which are those of all arms; 0 before the end.
    """

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    finish: tuple[float, float] = (0.0, 0.0)
    build: tuple[float, float] = (0.0, 0.0)
    nodes: int = 0
    rows: int = 0

    def total(self, clock: int, *, built: bool = False) -> float:
        """Seconds of the whole run by a clock: 0 is wall time, 1 is CPU time."""
        own = sum((self.wall, self.cpu)[clock]) + self.finish[clock]
        return own + (self.build[clock] if built else 0.0)


class Clocks:
    """Wall time and CPU time of this process and the JVM of a session."""

    def __init__(self, spark: Any) -> None:
        self._bus = spark._jsparkSession.sparkContext().listenerBus()
        handle = spark._jvm.java.lang.ProcessHandle.current()
        self._jvm = int(handle.pid())

    def read(self) -> tuple[float, float]:
        """Seconds by both clocks."""
        return time.perf_counter(), process_cpu(os.getpid()) + process_cpu(self._jvm)

    def settle(self) -> None:
        """Wait until listeners have seen what happened, so that their work is counted where it belongs."""
        self._bus.waitUntilEmpty(BUS_SECONDS)

    @contextmanager
    def measured(
        self, note: Callable[[float, float], None], settle: Callable[[], None] | None = None
    ) -> Iterator[None]:
        """Give the wall and CPU seconds of a block; what goes on behind it counts as CPU time only.

        Args:
            note: Is given the seconds.
            settle: Waits until that is done, once listeners have heard of everything.
        """
        wall, cpu = self.read()
        yield
        done, _ = self.read()
        self.settle()
        if settle is not None:
            settle()
        note(done - wall, self.read()[1] - cpu)


def run_arms(
    family: Family,
    spec: Spec,
    spark: Any,
    folder: Path,
    arms: Sequence[str],
    store: str,
    turn: int = 0,
    until: float = float("inf"),
) -> Iterator[dict[str, ArmCost]]:
    """Run a spec once in each arm; each execution runs in all arms before the next begins.

    What drifts (compiler, heap) so drifts for all.

    Args:
        family: The family of workflows.
        spec: The workflow with its data.
        spark: The session; each arm gets one beside it.
        folder: A folder for state, with the inputs in ``inputs``.
        arms: Names of ``ARMS``.
        store: Where the tracked arm commits.
        turn: Which arm begins.
        until: No execution begins that is not expected to end by then, by ``time.monotonic``; the first runs always.

    Yields:
        The costs up to now: after each execution, and at the end.

    Raises:
        ValueError: Outputs of arms differ.
    """
    clocks = Clocks(spark)
    order = list(arms[turn % len(arms) :]) + list(arms[: turn % len(arms)])
    made = {name: _arm(name, family, spec, spark, folder, store) for name in order}
    costs = {name: ArmCost() for name in order}
    outputs: dict[str, list[OutputRow]] = {name: [] for name in order}
    clocks.settle()
    for execution in range(1, len(spec["execs"]) + 1):
        began = time.monotonic()
        shift = execution % len(order)
        for name in [*order[shift:], *order[:shift]]:
            with clocks.measured(_appended(costs[name]), made[name].settle):
                rows = made[name].execute(execution)
            outputs[name] += rows
        yield costs
        if 2 * time.monotonic() - began > until:
            break
    for name, arm in made.items():
        with clocks.measured(_ended(costs[name])):
            arm.finish()
    _require_equal(outputs)
    tracked = made.get("tracked")
    if isinstance(tracked, WorkflowArm):
        _build(costs["tracked"], tracked, store, clocks)
    for cost in costs.values():
        cost.rows = len(outputs[next(iter(outputs))])
    yield costs


def _arm(name: str, family: Family, spec: Spec, spark: Any, folder: Path, store: str) -> HandArm | WorkflowArm:
    # The tracked arm has a session of its own: the listener of one session is called for that session only.
    session = spark.newSession()
    session.conf.set(PARTITIONS, spark.conf.get(PARTITIONS))
    if name == "hand":
        return HandArm(family, spec, session, folder / "inputs", folder / name)
    return WorkflowArm(family, spec, session, folder / "inputs", folder / name, store if name == "tracked" else None)


def _appended(cost: ArmCost) -> Callable[[float, float], None]:
    def note(wall: float, cpu: float) -> None:
        cost.wall.append(wall)
        cost.cpu.append(cpu)

    return note


def _ended(cost: ArmCost) -> Callable[[float, float], None]:
    def note(wall: float, cpu: float) -> None:
        cost.finish = (wall, cpu)

    return note


def _build(cost: ArmCost, arm: WorkflowArm, store: str, clocks: Clocks) -> None:
    """Build the graph of a run that is committed."""
    from govtool.app.workflow_runs.run_graph import workflow_graph
    from govtool.store import Store

    opened = Store.open(store)
    head = opened.head("main")
    assert arm.run is not None
    assert head is not None

    def note(wall: float, cpu: float) -> None:
        cost.build = (wall, cpu)

    with clocks.measured(note):
        built = workflow_graph(opened, head, arm.run)
    cost.nodes = built.graph.node_count


def measure(
    family: Family, spec: Spec, spark: Any, folder: Path, arms: Sequence[str], runs: int, store: str
) -> dict[str, Any]:
    """Run a spec several times in each arm; a run before the measured ones warms the JVM up.

    The tracked arm's commit is counted, shared among its executions.

    Raises:
        ValueError: Outputs of arms differ.
    """
    measured: list[dict[str, ArmCost]] = []
    rows = 0
    for run in range(runs + 1):
        place = folder / f"run{run}"
        family.write(spec, place / "inputs")
        *_, costs = run_arms(family, spec, spark, place, arms, store, run)
        rows = costs[arms[0]].rows
        if run:
            measured.append(costs)
        shutil.rmtree(place, ignore_errors=True)
    executions = len(spec["execs"])
    return {"rows": rows, "executions": executions, "runs": runs, **_figures(measured, arms, executions)}


def _require_equal(outputs: Mapping[str, Sequence[OutputRow]]) -> None:
    """Refuse arms that differ.

    Raises:
        ValueError: They do.
    """
    (first, rows), *others = outputs.items()
    for name, own in others:
        if sorted(map(repr, own)) != sorted(map(repr, rows)):
            raise ValueError(f"the outputs of the arms {first} and {name} differ")


def _figures(runs: Sequence[Mapping[str, ArmCost]], arms: Sequence[str], executions: int) -> dict[str, Any]:
    seconds = {}
    for name in arms:
        own = [each[name].total(0) / executions for each in runs]
        seconds[name] = {
            "median": round(statistics.median(second for each in runs for second in each[name].wall), 4),
            "mean": round(statistics.fmean(own), 4),
            "spread": [round(min(own), 4), round(max(own), 4)],
        }
    ratios = {}
    for over, under in (("tracked", "untracked"), ("tracked", "hand"), ("untracked", "hand")):
        if over in arms and under in arms:
            pairs = [each[over].total(0) / each[under].total(0) for each in runs]
            ratios[f"{over}/{under}"] = round(statistics.median(pairs), 3)
    return {"seconds": seconds, "ratios": ratios}

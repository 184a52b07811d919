"""How many rows a deletion leaves unknown on WorkflowGen, and whether a new run contradicts any of the others.

    python -m bench.workflowgen unknown [--lists 4] [--only arctic/serial]

Each setting runs once, with records. Lists of records are deleted from the recorded run, and the workflow runs again
over inputs without them.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import govtool
from bench.workflowgen.arctic import SELECTIVITIES, ArcticFamily
from bench.workflowgen.car import CarFamily
from bench.workflowgen.family import Family, Spec, read_parquet
from bench.workflowgen.generate import arctic_spec, car_spec
from bench.workflowgen.session import start_session
from govtool.app.workflow_runs.opened import opened_run
from govtool.model.workflow_run import WorkflowRun
from govtool.store import Store

MODES = ("propagate", "auto")
STATUSES = ("kept", "recomputed", "deleted", "unknown")
SHARES = (0.05, 0.3, 0.7)
"""Of all records, in a large list."""
EXECUTIONS = 3
SMALL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""A few rows a query: compiling costs more than it saves."""
Place = tuple[str, int, str]
"""A relation, and the execution and node that wrote it."""


def settings() -> dict[str, tuple[Family, Spec]]:
    """Small settings of both families: with and without purchases, each topology and selectivity."""
    found: dict[str, tuple[Family, Spec]] = {
        "car/nobody buys": (CarFamily(), car_spec(240, 5, EXECUTIONS)),
        "car/all are bought": (CarFamily(), car_spec(240, 5, EXECUTIONS, accept=1.0)),
        "car/few cars": (CarFamily(), car_spec(60, 2, EXECUTIONS, seed=11, accept=0.7)),
    }
    for topology in ("parallel", "serial", "dense"):
        for selectivity in SELECTIVITIES if topology == "parallel" else ("all", "month"):
            spec = arctic_spec(4, topology, 2, selectivity, EXECUTIONS)
            found[f"arctic/{topology}/{selectivity}"] = (ArcticFamily(), spec)
    return found


@dataclass(frozen=True)
class Comparison:
    """What was counted, and what a new run contradicts."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Counts in a line a mode."""
        lines = [f"{self.counts['lists']} lists, {len(self.wrong)} statuses contradicted"]
        for mode in MODES:
            rows = sum(self.counts[f"{mode} {each}"] for each in STATUSES)
            parts = [f"{each} {self.counts[f'{mode} {each}']:,}" for each in (*STATUSES, "gains", "open")]
            lines.append(f"{mode}: {rows:,} rows: {', '.join(parts)}")
        return "\n    ".join(lines)


def main(words: list[str]) -> int:
    """The command line; the exit code: 1 if a new run contradicts a status."""
    parser = argparse.ArgumentParser(prog="python -m bench.workflowgen unknown", description=__doc__)
    parser.add_argument("--lists", type=int, default=4, help="lists of records of a setting (default: 4)")
    parser.add_argument("--only", default="", help="settings whose name begins so")
    options = parser.parse_args(words)
    spark = start_session("local[2]", 1)
    for name, value in SMALL.items():
        spark.conf.set(name, value)
    totals: dict[str, Comparison] = {}
    try:
        for name, (family, spec) in settings().items():
            if name.startswith(options.only):
                with tempfile.TemporaryDirectory(prefix="workflowgen-") as folder:
                    found = compare(family, spec, spark, Path(folder).resolve(), options.lists)
                print(f"{name}: {found}", *found.wrong, sep="\n    ", flush=True)
                total = totals.setdefault(family.name, Comparison())
                total.counts.update(found.counts)
                total.wrong.extend(found.wrong)
    finally:
        spark.stop()
    print(*(f"{name}: {total}" for name, total in totals.items()), sep="\n")
    return 1 if any(total.wrong for total in totals.values()) else 0


def compare(family: Family, spec: Spec, spark: Any, folder: Path, lists: int) -> Comparison:
    """Run a spec, delete lists of its records, and compare each deletion with a new run."""
    found = Comparison()
    store = Store.init(str(folder / "store"))
    family.write(spec, folder / "inputs")
    run = _ran(family, spec, spark, folder, mode="records", store=store.uri)
    tokens = _tokens(store, run.id, family.records(spec), folder / "inputs")
    deletions = list(_lists(family.records(spec), tokens, lists))
    found.counts["lists"] = len(deletions)
    expected = []
    for number, gone in enumerate(deletions):
        family.write(spec, folder / str(number) / "inputs", frozenset(gone))
        expected.append(_written(_ran(family, spec, spark, folder / str(number), mode="untracked")))
    graph = govtool.open(store.uri)
    for mode in MODES:
        named = [[tokens[each] for each in gone] for gone in deletions]
        answers = graph.workflow_deletions(run.id, named, mode=mode, program=family.flow(spec), spark=spark)
        for gone, answer, after in zip(deletions, answers, expected, strict=True):
            _compare(found, mode, f"{mode} without {', '.join(gone[:5])}", answer, after)
    return found


def _ran(family: Family, spec: Spec, spark: Any, folder: Path, **options: Any) -> WorkflowRun:
    answer = govtool.run_workflow(
        family.flow(spec), folder / "inputs", state=folder / "state", executions=EXECUTIONS, spark=spark, **options
    )
    return answer.run


def _written(run: WorkflowRun) -> dict[Place, Counter[tuple[Any, ...]]]:
    """The rows of the outputs of a run."""
    return {
        (name, each.execution, each.node): Counter(tuple(row.values()) for row in read_parquet(Path(path)))
        for each in run.invocations
        for name, path in each.outputs
        if name in each.kept
    }


def _tokens(store: Store, run: str, records: Mapping[str, Sequence[str]], inputs: Path) -> dict[str, str]:
    """The tokens of the recorded run by those of the spec."""
    with opened_run(store, store.resolve("main"), run) as opened:
        relations = opened.run.relations
        return {
            own: text
            for file, tokens in records.items()
            if str(inputs / file) in relations
            for own, text in zip(tokens, opened.files.rows(relations[str(inputs / file)]).tokens, strict=True)
        }


def _lists(records: Mapping[str, Sequence[str]], known: Mapping[str, str], number: int) -> Iterator[list[str]]:
    """Some of what executions were given; a few of all records; a whole file; a large share of all records."""
    draw = random.Random(7)
    files = [own for tokens in records.values() if (own := [each for each in tokens if each in known])]
    given = [each for file, own in records.items() if not file.startswith("state/") for each in own if each in known]
    everything = [each for own in files for each in own]
    for at in range(number):
        if at % 4 == 0:
            yield draw.sample(given, 1 + at // 4)
        elif at % 4 == 1:
            yield draw.sample(everything, 1 + at)
        elif at % 4 == 2:
            yield draw.choice(files)
        else:
            yield draw.sample(everything, round(len(everything) * SHARES[at // 4 % len(SHARES)]))


def _compare(found: Comparison, mode: str, what: str, answer: Any, expected: Mapping[Place, Counter[Any]]) -> None:
    """Count an answer's statuses, and hold them to the rows that are there after the deletion."""
    for (name, execution, node), after in expected.items():
        own = answer.relations[name]
        rows = [row for (at, row), of in zip(own.rows, own.nodes, strict=True) if (at, of) == (execution, node)]
        gains = [tuple(row) for row, by in zip(own.gains, own.gained_by, strict=True) if by == (execution, node)]
        found.counts.update(f"{mode} {row.status}" for row in rows)
        found.counts[f"{mode} gains"] += len(gains)
        found.counts[f"{mode} open"] += own.gains_possible
        sure = Counter(tuple(row.after) for row in rows if row.after is not None) + Counter(gains)
        unknown = sum(row.status == "unknown" for row in rows)
        left = after - sure
        if sure - after or (left.total() > unknown and not own.gains_possible):
            found.wrong.append(f"{what}: {node}/{name}@{execution} is {dict(after)}, not {dict(sure)}")

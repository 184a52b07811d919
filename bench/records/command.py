"""``python -m bench records``: measure what is missing in the file of results; sections of docs/records.md from it.

python -m bench records --rows 16000000 --pairs 10             everything; again after a break: it goes on
python -m bench records --only capture --workload L6 --rows 1000000 --rows 4000000
python -m bench records --only page                            the sections again from the file
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from bench.page import add_conditions, check_conditions, put
from bench.records.results import Results
from bench.records.rounds import measure_rounds
from bench.records.workloads import WORKLOADS

PARTS = ("capture", "turns", "actions", "eager", "trace", "page")
ROWS = 16_000_000
EAGER_WORKLOADS = ("L2", "L6", "L7")
EAGER_ROUNDS = 5
"""The most turns of the eager baseline, whose jobs take several times as long."""
PAGE = Path(__file__).resolve().parents[2] / "docs" / "records.md"
RESULTS = Path(__file__).resolve().parents[1] / "data" / "records.json"


def main(words: Sequence[str]) -> None:
    """The command line, from its arguments."""
    parser = _parser()
    add_conditions(parser)
    options = parser.parse_args(words)
    check_conditions(allow_dirty=options.allow_dirty, allow_load=options.allow_load)
    options.rows = options.rows or [ROWS]
    options.folder = options.folder.resolve()
    results = Results(options.results)
    parts = options.only or PARTS
    if "capture" in parts:
        from bench.records import overhead

        names = options.workload or list(WORKLOADS)
        overhead.measure(
            overhead.settings(names, options.rows, options.pairs, options.seconds, options.folder), results
        )
    if "turns" in parts:
        names = options.workload or list(WORKLOADS)
        measure_rounds("turns", names, min(options.rows), options.pairs, options.folder, results)
    if "actions" in parts:
        from bench.records import actions

        actions.measure(results, options.turns)
    if "eager" in parts:
        count = min(options.pairs, EAGER_ROUNDS)
        measure_rounds("eager", EAGER_WORKLOADS, min(options.rows), count, options.folder, results)
    if "trace" in parts:
        from bench.records import traces

        traces.measure(options.trace_rows or max(options.rows), options.folder, results)
    if "page" in parts:
        from bench.records import report

        for name, body in report.sections(results):
            put(PAGE, name, body)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench records", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; repeatable (default: all)")
    parser.add_argument("--workload", action="append", choices=WORKLOADS, help="repeatable (default: all)")
    parser.add_argument("--rows", action="append", type=int, help="rows of the main table; repeatable")
    parser.add_argument("--trace-rows", type=int, help="rows of the table that is traced (default: the most of --rows)")
    parser.add_argument("--pairs", type=int, default=10, help="jobs of each kind (default: 10)")
    parser.add_argument("--seconds", type=float, default=30.0, help="CPU of a job's actions, at least (default: 30)")
    parser.add_argument("--turns", type=int, default=60, help="warm actions of each kind (default: 60)")
    parser.add_argument("--folder", type=Path, default=RESULTS.parent / "records", help="data and outputs")
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"default: {RESULTS.name} in bench/data")
    return parser

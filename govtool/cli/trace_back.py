"""``govtool trace back``."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.options import AtOption, BranchOption, FormatOption, OutputOption, StoreOption
from govtool.cli.trace import (
    IdsOption,
    RunOption,
    ShowOption,
    StepOption,
    TraceLimitOption,
    TraceOptions,
    VerifyOption,
    WhereOption,
    trace,
)
from govtool.cli.ui import Ui


def trace_back(
    ui: Ui,
    dataset: Annotated[str, typer.Argument(metavar="OUTPUT", help="A dataset that a recorded run wrote, or its path.")],
    where: WhereOption,
    run: RunOption = None,
    step: StepOption = False,
    show: ShowOption = 20,
    limit: TraceLimitOption = None,
    ids: IdsOption = False,
    verify: VerifyOption = False,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """The input rows behind rows of an output.

      govtool trace back out/report --where "error_code = 4"
      govtool trace back mart.orders --where "id = 7" --run 'job~1' -o rows.csv

    Runs are recorded with govtool run --records. Every step says how close it keeps to the exact rows, and why. Input
    files that have changed since are refused: exit code 3. Formats: table, plain, json, jsonl, csv, markdown; -o
    FILE.parquet writes all rows in their own types.
    """
    return trace(
        ui,
        TraceOptions("back", dataset, where, run, step, show, limit, ids, verify, format, output, at, branch, store),
    )

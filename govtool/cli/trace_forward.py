"""``govtool trace forward``."""

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


def trace_forward(
    ui: Ui,
    dataset: Annotated[str, typer.Argument(metavar="INPUT", help="A dataset that a recorded run read, or its path.")],
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
    """The output rows that rows of an input reached.

      govtool trace forward raw/users --where "id = 42"
      govtool trace forward raw/users --where "id = 42" --format json

    Runs are recorded with govtool run --records. Every step says how close it keeps to the exact rows, and why. Input
    files that have changed since are refused: exit code 3. Formats: table, plain, json, jsonl, csv, markdown; -o
    FILE.parquet writes all rows in their own types.
    """
    return trace(
        ui,
        TraceOptions("forward", dataset, where, run, step, show, limit, ids, verify, format, output, at, branch, store),
    )

"""``govtool trace back``."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.trace import trace_command

_HELP = """The input rows behind rows of an output.

  govtool trace back out/report --where "error_code = 4"
  govtool trace back mart.orders --where "id = 7" --run 'job~1' -o rows.csv

Runs are recorded with govtool run --records. Every step says how close it keeps to the exact rows, and why. Input
files that have changed since are refused: exit code 3. Formats: table, plain, json, jsonl, csv, markdown; -o
FILE.parquet writes all rows in their own types. --all-runs goes on through the runs that wrote
the inputs, and says where it ends.
"""

_DATASET = typer.Argument(metavar="OUTPUT", help="A dataset that a recorded run wrote, or its path.")

trace_back = trace_command("back", _HELP, Annotated[str, _DATASET])

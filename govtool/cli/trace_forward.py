"""``govtool trace forward``."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.trace import trace_command

_HELP = """The output rows that rows of an input reached.

  govtool trace forward raw/users --where "id = 42"
  govtool trace forward raw/users --where "id = 42" --format json

Runs are recorded with govtool run --records. Every step says how close it keeps to the exact rows, and why. Input
files that have changed since are refused: exit code 3. Formats: table, plain, json, jsonl, csv, markdown; -o
FILE.parquet writes all rows in their own types. --all-runs goes on through the runs that read
the output, and says where it ends.
"""

_DATASET = typer.Argument(metavar="INPUT", help="A dataset that a recorded run read, or its path.")

trace_forward = trace_command("forward", _HELP, Annotated[str, _DATASET])

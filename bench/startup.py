"""``govtool --help`` against a bare program of typer and rich."""

from __future__ import annotations

import os
import sys
import tempfile
import textwrap
from pathlib import Path

from bench.page import table
from bench.processes import interleaved

TITLE = "## Starting up"

ROUNDS = 15

BARE = textwrap.dedent(
    '''
    import typer
    import rich.console
    import rich.table

    app = typer.Typer(help="A bare program of typer and rich.")

    @app.command()
    def one(name: str, count: int = 1) -> None:
        """Say hello."""

    @app.command()
    def two(name: str) -> None:
        """Say goodbye."""

    app()
    '''
)

GOVTOOL = "from govtool.cli.main import main; main()"


def section(rounds: int = ROUNDS) -> str:
    """Measure, and write the section."""
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "bare.py"
        bare.write_text(BARE)
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "bare typer + rich, --help": [sys.executable, str(bare), "--help"],
            "govtool --help": [sys.executable, "-c", GOVTOOL, "--help"],
        }
        costs = interleaved(commands, {**os.environ, "NO_COLOR": "1"}, rounds)
    base = costs["bare typer + rich, --help"].wall
    rows = [[name, f"{cost.wall * 1000:.0f} ms", f"{cost.wall / base:.2f}"] for name, cost in costs.items()]
    return f"""{TITLE}

Whole processes, {rounds} rounds in turn. Goal: `govtool --help` at most 1.3 times the bare program.

{table(["program", "time", "ratio"], rows)}
"""

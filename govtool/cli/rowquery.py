"""What commands about one query over files share: its options, and errors shown below its text."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from govtool.cli.complete import complete_dialect
from govtool.cli.ui import Ui
from govtool.errors import EXIT_USAGE, UsageError

SqlOption = Annotated[str, typer.Option("--sql", metavar="QUERY.sql", help="A file with one SELECT, or - for stdin.")]
DataOption = Annotated[Path, typer.Option("--data", metavar="DIR", help="A folder: its *.csv and *.parquet are tables.")]
KeyOption = Annotated[
    list[str] | None,
    typer.Option("--key", metavar="TABLE=COL", help="The column whose values name the records of a table; repeat."),
]
QueryDialectOption = Annotated[
    str,
    typer.Option(
        "--dialect",
        metavar="NAME",
        autocompletion=complete_dialect,
        help="What the query is written in; its meaning is Spark SQL's.",
    ),
]
_PLACE = re.compile(r"([0-9]+):([0-9]+)")


def read_query(file: str) -> str:
    """The text of a query.

    Raises:
        UsageError: The file cannot be read (``usage.query``).
    """
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the query: {error}", code="usage.query", location=file) from error


@contextmanager
def carets(ui: Ui, text: str, name: str) -> Iterator[list[int]]:
    """Report a mistake in the query below its text; the exit code is put into the list."""
    from govtool.model import Diagnostic
    from govtool.render.errors import diagnostic_lines

    failed: list[int] = []
    try:
        yield failed
    except UsageError as error:
        place = _PLACE.fullmatch(error.location or "")
        lines = text.splitlines() or [""]
        if place is None or int(place[1]) > len(lines) or ui.debug:
            raise
        line, column = int(place[1]), int(place[2])
        found = Diagnostic(error.code, "error", error.message, name, line, column, candidates=error.nearest)
        for spans in diagnostic_lines(found, lines[line - 1], ui.remark_width()):
            ui.remark(spans)
        if error.hint:
            ui.hint(error.hint)
        failed.append(EXIT_USAGE)

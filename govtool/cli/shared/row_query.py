"""What commands about one query over files share: its options, and deletions under it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from govtool.cli.shared.complete import complete_dialect
from govtool.cli.shared.diagnostics import show_mistake
from govtool.cli.shared.options import ListOptions
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_OK, UsageError
from govtool.given_files import read_given_text

WhyDataOption = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="A folder: its *.csv and *.parquet are tables.")
]
KeyOption = Annotated[
    list[str] | None,
    typer.Option("--key", metavar="TABLE=COL", help="The column that names a table's records; repeat."),
]
QueryDialectOption = Annotated[
    str,
    typer.Option(
        "--dialect",
        metavar="NAME",
        autocompletion=complete_dialect,
        help="The query's syntax, if it is not spark's.",
    ),
]
WhySqlOption = Annotated[
    str | None, typer.Option("--sql", metavar="QUERY.sql", help="A file with one SELECT, or - for stdin.")
]
WhatIfSqlOption = Annotated[
    str | None, typer.Option("--sql", metavar="QUERY.sql", help="Delete records under one SELECT over --data.")
]
WhatIfDataOption = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="With --sql: a folder of *.csv and *.parquet.")
]
ModeOption = Annotated[
    str | None,
    typer.Option(
        "--mode",
        metavar="auto|propagate|replay",
        help="With --sql, --run: auto replays what is unknown.",
    ),
]


def read_query(file: str) -> str:
    """The text of a query.

    Raises:
        UsageError: The file cannot be read (``usage.query``).
    """
    if file == "-":
        return sys.stdin.read()
    try:
        return read_given_text(Path(file))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        hint = "--sql takes a file; - reads the query from stdin" if len(file.split()) > 1 else None
        raise UsageError(f"cannot be read: {reason.lower()}", code="usage.query", location=file, hint=hint) from error


class RowQuery(NamedTuple):
    """The options of a deletion under a query."""

    sql: str
    data: Path | None
    mode: str | None
    key: list[str] | None
    dialect: str
    follow_links: bool
    shown: ListOptions


def delete_in_query(ui: Ui, query: RowQuery, tokens: list[str], from_: Path | None, *, strict: bool) -> int:
    """Delete records under a query and show what becomes of its rows.

    Raises:
        UsageError: No folder, or tokens and a file of tokens.
        EvidenceError: Something is unknown, with ``strict``.
    """
    from govtool.app.project.links import require_inside
    from govtool.app.records.token_lists import read_deletions
    from govtool.app.why.deletion import delete_rows
    from govtool.app.why.rows import read_keys
    from govtool.render.whatif_rows import FORMATS, check_strict, render

    outputs = query.shown.outputs(FORMATS)
    if query.data is None:
        raise UsageError("--sql needs the folder of its tables", code="usage.arguments", hint="--data DIR")
    if from_ is not None and tokens:
        raise UsageError("both tokens and --tokens are given", code="usage.arguments", hint="give one of them")
    require_inside(query.data, follow_links=query.follow_links)
    text = read_query(query.sql)
    deletions = [tokens] if from_ is None else read_deletions(str(from_))
    options = {"mode": query.mode or "auto", "keys": read_keys(query.key or []), "dialect": query.dialect}
    try:
        answers = delete_rows(text, str(query.data), deletions, **options)  # type: ignore[arg-type]
    except UsageError as error:
        return show_mistake(ui, error, text, query.sql)
    most = None if query.shown.all else query.shown.limit
    for form, file in outputs:
        for lines in render(form, answers, most, is_several=from_ is not None):
            ui.show(lines, file)
    if strict:
        check_strict(answers)
    return EXIT_OK

"""What ``govtool trace back`` and ``govtool trace forward`` share."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.ui import Ui
from govtool.errors import EXIT_EVIDENCE, EXIT_OK, EXIT_USAGE, UsageError

if TYPE_CHECKING:
    from govtool.answers.trace import TraceReport

WhereOption = Annotated[
    str, typer.Option("--where", metavar="EXPR", help="A Spark SQL boolean expression over the dataset's columns.")
]
RunOption = Annotated[
    str | None,
    typer.Option(
        "--run", metavar="RUN", help="A run, an application or JOB~1. Default: by the files that are there now."
    ),
]
StepOption = Annotated[bool, typer.Option("--step", help="Go one boundary only: a group-by, a window, a subquery …")]
ShowOption = Annotated[
    int, typer.Option("--show", metavar="N", min=0, help="Rows of each dataset in tables; counts are whole.")
]
TraceLimitOption = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", min=0, help="Rows of each dataset in JSON (1,000) and CSV (all)."),
]
IdsOption = Annotated[bool, typer.Option("--ids", help="Print only the records' tokens, a line each.")]
VerifyOption = Annotated[
    bool, typer.Option("--verify", help="Evaluate the plan again and compare all its rows with the written ones.")
]
_PLACE = re.compile(r"([0-9]+):([0-9]+)")
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """The options of a trace, as the command line has them."""

    direction: str
    dataset: str
    where: str
    run: str | None
    step: bool
    show: int
    limit: int | None
    ids: bool
    verify: bool
    format: list[str] | None
    output: list[Path] | None
    at: str | None
    branch: str | None
    store: str | None


def trace(ui: Ui, options: TraceOptions) -> int:
    """Trace, show, and return the exit code: 3 where files were refused or the plan was not verified."""
    from govtool.cli.formats import chosen
    from govtool.render.trace import FORMATS

    tables = [file for file in options.output or () if file.suffix.lower() == ".parquet"]
    files = [file for file in options.output or () if file not in tables]
    outputs = chosen(options.format, files, FORMATS) if files or not tables else []
    try:
        report = _answer(options, {form for form, _ in outputs})
    except UsageError as error:
        return _with_caret(ui, error, options.where)
    ui.mark("traced")
    _write_tables(report, tables)
    if options.ids:
        from govtool.app.trace import token_lines

        ui.write(token_lines(report))
    else:
        for form, file in outputs:
            _show(ui, report, form, file, options.show)
    return EXIT_OK if report.is_complete else EXIT_EVIDENCE


def _answer(options: TraceOptions, forms: set[str]) -> TraceReport:
    from govtool.api.opening import open as open_version

    graph = open_version(options.store, ref=options.at, branch=options.branch)
    question = graph.trace_back if options.direction == "back" else graph.trace_forward
    return question(
        options.dataset,
        options.where,
        run=options.run,
        step=options.step,
        limit=_most(options, forms),
        verify=options.verify,
    )


def _most(options: TraceOptions, forms: set[str]) -> int | None:
    """How many rows the answer has to hold; None: all."""
    if options.limit is not None:
        return options.limit
    if "csv" in forms or (options.ids and options.direction == "forward"):
        return None
    return _PAGE if forms & {"json", "jsonl"} else options.show


def _write_tables(report: TraceReport, files: list[Path]) -> None:
    from govtool.app.trace import write_parquet

    for file in files:
        write_parquet(report, file)


def _show(ui: Ui, report: TraceReport, form: str, file: Path | None, show: int) -> None:
    from govtool.render.trace import render_trace, spaced

    terminal = file is None and ui.out.isatty()
    rendered = render_trace(form, report, show, shutil.get_terminal_size().columns if terminal else None)
    if not isinstance(rendered, list):
        ui.show(rendered, file)
    elif file is not None:
        ui.show(spaced(rendered), file)
    else:
        for number, table in enumerate(rendered):
            if number:
                ui.write([""])
            ui.show(table)


def _with_caret(ui: Ui, error: UsageError, where: str) -> int:
    """Report a mistake in the expression below its text.

    Raises:
        UsageError: It is about something else.
    """
    from govtool.model import Diagnostic
    from govtool.render.errors import diagnostic_lines

    place = _PLACE.fullmatch(error.location or "")
    lines = where.splitlines() or [""]
    if place is None or int(place[1]) > len(lines) or ui.debug:
        raise error
    line, column = int(place[1]), int(place[2])
    found = Diagnostic(error.code, "error", error.message, "--where", line, column, candidates=error.nearest)
    for spans in diagnostic_lines(found, lines[line - 1], ui.remark_width()):
        ui.remark(spans)
    if error.hint:
        ui.hint(error.hint)
    return EXIT_USAGE

"""``govtool trace``: rows behind a result, and results that rows reached."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.answers.trace import BACK, FORWARD
from govtool.cli.shared.diagnostics import show_mistake
from govtool.cli.shared.formats import chosen
from govtool.cli.shared.graph_arguments import records_needed
from govtool.cli.shared.options import AtOption, BranchOption, FormatOption, OutputOption, StoreOption
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_EVIDENCE, EXIT_OK, GovtoolError, UsageError

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
StepOption = Annotated[
    bool, typer.Option("--step", help="Stop at the first boundary: a group-by, a window, a subquery …")
]
StartOption = Annotated[
    str | None,
    typer.Option("--start", metavar="BOUNDARY", help="Start at this boundary: --where chooses among its rows."),
]
ShowOption = Annotated[
    int, typer.Option("--show", metavar="N", min=0, help="Rows of each dataset in tables; counts are complete.")
]
TraceLimitOption = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", min=0, help="Rows of each dataset in JSON (1,000) and CSV (all)."),
]
IdsOption = Annotated[bool, typer.Option("--ids", help="Print only the tokens of the records, one per line.")]
VerifyOption = Annotated[
    bool, typer.Option("--verify", help="Evaluate the plan again, and compare all rows with the written ones.")
]
AllRunsOption = Annotated[
    bool, typer.Option("--all-runs", help="Continue through other runs, as far as they are known.")
]
SidecarsOption = Annotated[
    bool,
    typer.Option("--sidecars/--no-sidecars", help="Look up keys in sidecars, and build missing ones afterwards."),
]
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """Options of a trace, in either direction."""

    run: RunOption = None
    step: StepOption = False
    start: StartOption = None
    all_runs: AllRunsOption = False
    show: ShowOption = 20
    limit: TraceLimitOption = None
    ids: IdsOption = False
    verify: VerifyOption = False
    sidecars: SidecarsOption = True
    format: FormatOption = None
    output: OutputOption = None
    at: AtOption = None
    branch: BranchOption = None
    store: StoreOption = None


_DEFAULT = TraceOptions()


def trace_back(
    ui: Ui,
    dataset: Annotated[str, typer.Argument(metavar="OUTPUT", help="A dataset that a recorded run wrote, or its path.")],
    where: WhereOption,
    options: TraceOptions = _DEFAULT,
) -> int:
    """The input rows behind rows of an output.

      govtool trace back out/report --where "error_code = 4"
      govtool trace back mart.orders --where "id = 7" --run 'job~1' -o rows.csv

    Runs are recorded with govtool run --records. Every step says how close it keeps to the exact rows, and why. Input
    files that have changed since are refused: exit code 3. -o FILE.parquet writes all rows in the types of the data.
    --all-runs goes on through the runs that wrote the inputs, and says where it ends. Boundaries have names
    (aggregate, aggregate-2, window …); one that there is not lists them.
    """
    return trace(ui, BACK, dataset, where, options)


def trace_forward(
    ui: Ui,
    dataset: Annotated[str, typer.Argument(metavar="INPUT", help="A dataset that a recorded run read, or its path.")],
    where: WhereOption,
    options: TraceOptions = _DEFAULT,
) -> int:
    """The output rows that rows of an input reached.

      govtool trace forward raw/users --where "id = 42"
      govtool trace forward raw/users --where "id = 42" --format json

    Runs are recorded with govtool run --records. Every step says how close it keeps to the exact rows, and why. Input
    files that have changed since are refused: exit code 3. -o FILE.parquet writes all rows in the types of the data.
    --all-runs goes on through the runs that read the output, and says where it ends. With --start BOUNDARY, the input
    only chooses the run.
    """
    return trace(ui, FORWARD, dataset, where, options)


def trace(ui: Ui, direction: str, dataset: str, where: str, options: TraceOptions) -> int:
    """Trace, show, and return the exit code: 3 where files were refused or the plan was not verified."""
    from govtool.render.trace import FORMATS

    tables = [file for file in options.output or () if file.suffix.lower() == ".parquet"]
    files = [file for file in options.output or () if file not in tables]
    outputs = chosen(options.format, files, FORMATS, [".parquet"]) if files or not tables else []
    limit = _most(direction, options, {form for form, _ in outputs})
    try:
        report = _answer(direction, dataset, where, options, limit)
    except UsageError as error:
        return show_mistake(ui, error, where, "--where")
    ui.mark("traced")
    _write_tables(ui, report, tables)
    if options.ids:
        from govtool.app.trace.questions import token_lines

        ui.write(token_lines(report))
    else:
        for form, file in outputs:
            _show(ui, report, form, file, options.show)
    if options.sidecars:
        _index(ui, report)
    return EXIT_OK if report.is_complete else EXIT_EVIDENCE


def _index(ui: Ui, report: TraceReport) -> None:
    """Build the key sidecars that the trace would have used, now that its answer is there."""
    from govtool.app.records.sidecars import build_missing, missing_keys

    wanted = missing_keys(report.opened.sidecars)
    if not wanted:
        return
    ui.out.flush()
    try:
        with ui.progressing("indexing keys for the next trace (--no-sidecars)"):
            build_missing(wanted, report.opened)
    except GovtoolError as error:
        ui.note(f"key sidecars were not built: {error.message}")


def _answer(direction: str, dataset: str, where: str, options: TraceOptions, limit: int | None) -> TraceReport:
    from govtool.api.opening import open as open_version

    with records_needed():
        graph = open_version(options.store, ref=options.at, branch=options.branch)
    question = graph.trace_back if direction == BACK else graph.trace_forward
    return question(
        dataset,
        where,
        run=options.run,
        step=options.step,
        all_runs=options.all_runs,
        limit=limit,
        verify=options.verify,
        sidecars=options.sidecars,
        start=options.start,
    )


def _most(direction: str, options: TraceOptions, forms: set[str]) -> int | None:
    """Return the number of rows that the answer has to hold; None: all."""
    if options.limit is not None:
        return options.limit
    if "csv" in forms or (options.ids and (options.all_runs or direction == FORWARD)):
        return None
    return _PAGE if forms & {"json", "jsonl"} else options.show


def _write_tables(ui: Ui, report: TraceReport, files: list[Path]) -> None:
    from govtool.app.trace.row_tables import write_parquet

    for file in files:
        as_text = write_parquet(report, file)
        if as_text:
            ui.note(f"{file}: written as text, as no type of Parquet holds all its values: {', '.join(as_text)}")


def _show(ui: Ui, report: TraceReport, form: str, file: Path | None, show: int) -> None:
    from govtool.render.trace import render_trace, spaced

    terminal = file is None and ui.out.isatty()
    rendered = render_trace(form, report, show, shutil.get_terminal_size().columns if terminal else None)
    if not isinstance(rendered, list):
        ui.show(rendered, file, private=True)
    elif file is not None:
        ui.show(spaced(rendered), file, private=True)
    else:
        for number, table in enumerate(rendered):
            if number:
                ui.write([""])
            ui.show(table)

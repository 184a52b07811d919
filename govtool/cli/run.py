"""``govtool run``: run a PySpark job as it is, and commit what it did."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from govtool.cli.shared.options import AuthorOption, BranchOption, MessageOption, StoreOption
from govtool.cli.shared.ui import Ui
from govtool.errors import GovtoolError
from govtool.redaction import failure_of

if TYPE_CHECKING:
    from govtool.app.runs.job import Finished


def run(
    ui: Ui,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND…", help="A script with its arguments, or any command.")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--source", metavar="NAME", help="Default: run: and the name of the script.")
    ] = None,
    spool: Annotated[
        Path | None,
        typer.Option("--spool", metavar="DIR", help="Folder for what the job records. Default: a new folder."),
    ] = None,
    commit_only: Annotated[
        Path | None,
        typer.Option("--commit", metavar="DIR", help="Run nothing: commit what an earlier job left in this folder."),
    ] = None,
    identify: Annotated[
        int,
        typer.Option(
            "--identify", metavar="BYTES", help="Identify outputs of up to this many bytes by their content. 0: none."
        ),
    ] = 1 << 30,
    row_digests: Annotated[
        bool | None,
        typer.Option(
            "--row-digests/--no-row-digests",
            help="Record a digest of the rows of each output. Default: [spark] row_digests, else small outputs.",
        ),
    ] = None,
    records: Annotated[
        bool | None,
        typer.Option(
            "--records/--no-records",
            help="Record exact plans, so that rows can be traced. They hold literals of the job. --records=eager keeps "
            "positions of rows, too, where plans do not determine them, at a cost. Default: [spark] records, else not.",
        ),
    ] = None,
    eager: Annotated[bool, typer.Option("--records-eager", hidden=True)] = False,
    message: MessageOption = None,
    author: AuthorOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """Run a PySpark job as it is, and commit what it did.

      govtool run -- etl.py --day 2026-11-20
      govtool run -- spark-submit --master yarn etl.py
      govtool run --records -- etl.py

    The job keeps its streams, signals and exit code. It needs no jar and no change of its code: its sessions record
    what they execute, and govtool commits that at the end of the job. A failure of govtool is only a warning; records
    that could not be committed are kept.
    """
    from govtool.app.project.project import store_uri
    from govtool.app.runs.job import EAGER_RECORDS, Finished, command_of, exit_as, run_job

    store_uri(store)  # a store that a checkout chose is refused before the job runs, not after it
    wanted = _Commit(source, identify, row_digests, message, author, branch, store)
    if commit_only is not None:
        _commit(ui, Finished(0, commit_only, ""), wanted)
        return 0
    finished = run_job(command_of(command or ()), spool, records=EAGER_RECORDS if eager else records)
    try:
        _commit(ui, finished, wanted)
    except Exception as error:  # a bug of ours is no failure of the job
        if ui.debug:
            raise
        what = str(error) if isinstance(error, GovtoolError) else failure_of(error)
        ui.note(f"warning: {what}: what the job did is not in the graph")
        if isinstance(error, GovtoolError) and error.hint:
            ui.hint(error.hint)
        ui.hint(f"govtool run --commit {finished.spool}")
    return exit_as(finished.code)


run.spellings = {"--records=eager": "--records-eager"}  # type: ignore[attr-defined]


class _Commit(NamedTuple):
    """How what a job did is committed."""

    source: str | None
    identify: int
    row_digests: bool | None
    message: str | None
    author: str | None
    branch: str | None
    store: str | None


def _commit(ui: Ui, finished: Finished, wanted: _Commit) -> None:
    from govtool.app.project.project import existing_branch, open_store
    from govtool.app.runs.job import NO_SPARK, commit_captured, missing_for_spark, read_captured, remove_spool
    from govtool.cli.shared.diagnostics import show_diagnostics
    from govtool.render.spark import spark_summary

    captured = read_captured(finished.spool, wanted.source, finished.commit)
    for warning in captured.warnings:
        ui.note(f"warning: {warning}")
    for cost in captured.costs:
        ui.note(cost)
    if not captured.processes:
        ui.note("warning: no Spark session was seen: nothing to commit")
        if hint := missing_for_spark() or (finished.code and NO_SPARK):
            ui.hint(hint)
        return
    opened = open_store(wanted.store)
    result = commit_captured(
        opened,
        captured,
        identified=wanted.identify,
        row_digests=wanted.row_digests,
        message=wanted.message,
        author=wanted.author,
        branch=existing_branch(opened, wanted.branch),
    )
    show_diagnostics(ui, result.diagnostics, None)
    ui.note(spark_summary(result))
    remove_spool(finished.spool)

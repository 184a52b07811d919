"""``govtool ingest``: bring all sources of govtool.toml up to date."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.shared.diagnostics import show_diagnostics
from govtool.cli.shared.formats import OutputFile, chosen
from govtool.cli.shared.ingests import show_plan
from govtool.cli.shared.options import (
    CommitBundle,
    DryRunOption,
    FormatOption,
    MinCoverageOption,
    OutputOption,
    PolicyOption,
    PublishOption,
    ReplaceOption,
    StrictCommitOption,
)
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_EVIDENCE, EXIT_OK

if TYPE_CHECKING:
    from govtool.answers.ingest_all import IngestAllAnswer, SourceOutcome

_DEFAULT = CommitBundle()


def ingest_all(
    ui: Ui,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", metavar="NAME", help="Only this source: its name, path or kind, or the end of one. Repeatable."
        ),
    ] = None,
    dry_run: DryRunOption = False,
    policy: PolicyOption = None,
    replace: ReplaceOption = False,
    publish: PublishOption = None,
    strict: StrictCommitOption = False,
    min_coverage: MinCoverageOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    options: CommitBundle = _DEFAULT,
) -> int:
    """Bring every source of [[sources]] in govtool.toml up to date, one commit each.

      govtool init
      govtool ingest
      govtool ingest --only sql:warehouse --dry-run

    A source that cannot be read, or of which too little is understood, keeps its last version; the others are
    committed, and the exit code is 3. Mistakes in govtool.toml are reported before anything is read. An unchanged
    source makes no commit. With --quiet only errors are printed.
    """
    from govtool.api.ingest_all import ingest
    from govtool.render.ingest_all import FORMATS, render_ingested

    outputs = chosen(format, output, FORMATS)
    ui.mark("start")
    with ui.progressing("reading sources") as progress:
        answer = ingest(
            only,
            dry_run=dry_run,
            policy=policy,
            strict=strict,
            min_coverage=min_coverage,
            replace=replace,
            publish=publish,
            progress=progress,
            **options.keywords(),
        )
    ui.mark("read, extract and commit")
    for outcome in answer.outcomes:
        _show_remarks(ui, outcome)
    _show_plans(ui, answer, outputs)
    silent = ui.quiet and not (dry_run or format or output)  # a scheduled ingest that went well sends no mail
    for form, file in () if silent else outputs:
        ui.show(render_ingested(form, answer), file)
    note_unlisted(ui, answer.unlisted)
    return EXIT_EVIDENCE if answer.failed else EXIT_OK


def _show_remarks(ui: Ui, outcome: SourceOutcome) -> None:
    """The diagnostics of a source on stderr, and the error of one that failed."""
    from govtool.answers.ingest import RefusedIngestError
    from govtool.render.errors import error_lines

    if outcome.result is not None and outcome.result.created:
        show_diagnostics(ui, outcome.result.diagnostics, outcome.result.text)
    if isinstance(outcome.error, RefusedIngestError):
        show_diagnostics(ui, outcome.error.diagnostics, outcome.error.text)
    if outcome.error is not None:
        state = "keeps its last version" if outcome.kept else "failed, and nothing of it is in the graph"
        ui.note(f"{outcome.source} {state}:")
        for line in error_lines(outcome.error):
            ui.remark(line)


def note_unlisted(ui: Ui, names: Sequence[str]) -> None:
    """A remark on each live source that govtool.toml does not list."""
    for name in names:
        ui.note(f"in the graph, not in govtool.toml: {name} (govtool sources drop {shlex.quote(name)})")


def _show_plans(ui: Ui, answer: IngestAllAnswer, outputs: list[OutputFile]) -> None:
    """The changes of a dry run above the table of sources; other formats have them within."""
    for form, file in outputs:
        if form != "table" or file is not None:
            continue
        for outcome in answer.outcomes:
            if outcome.result is not None and outcome.result.plan is not None and outcome.result.created:
                show_plan(ui, outcome.result.plan, [OutputFile(form, None)])
                ui.write([""])

"""Ingests on the terminal: what all their commands do, and ``--dry-run``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from govtool.cli.shared.diagnostics import refusal_shown, show_diagnostics, show_failures, show_ingest
from govtool.cli.shared.formats import OutputFile, chosen
from govtool.cli.shared.graph_arguments import bound
from govtool.cli.shared.ui import Progress, Ui
from govtool.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from govtool.answers.ingest import IngestResult
    from govtool.answers.ingest_plan import IngestPlan
    from govtool.cli.shared.options import IngestBundle


def run_ingest(
    ui: Ui,
    options: IngestBundle,
    label: str,
    ingest: Callable[[Progress], IngestResult],
    *,
    lines: bool = True,
    errors: bool = True,
    keep_literals: bool = True,
    summary: Callable[[IngestResult], str] | None = None,
) -> None:
    """Ingest, and show the outcome: diagnostics, reasons for incomplete coverage, and a summary; or a dry run's plan.

    Args:
        ui: The terminal.
        options: The options of every ingest.
        label: Of the progress bar.
        ingest: Reads and commits.
        lines: Show the source line of a diagnostic.
        errors: Diagnostics of severity ``error`` count as a lack of evidence.
        keep_literals: Show statements with their literals.
        summary: The last line, where it is not that of all ingests.
    """
    outputs = plan_outputs(options.dry_run, options.format, options.output)
    ui.mark("start")
    explain = options.explain_failures
    with refusal_shown(ui, explain_failures=explain), ui.progressing(label) as progress:
        result = ingest(progress)
    ui.mark("read, extract and commit")
    show_diagnostics(ui, result.diagnostics, result.text if lines else None)
    show_outcome(ui, result, outputs, explain_failures=explain, keep_literals=keep_literals, summary=summary)
    result.check_coverage(strict=options.strict, min_coverage=options.min_coverage, errors=errors)


def plan_outputs(dry_run: bool, format: Sequence[str] | None, output: Sequence[Path] | None) -> list[OutputFile]:
    """Return the renderings of a dry run and their places; none for an ingest.

    Raises:
        UsageError: A format or a file without a dry run, or an unknown format.
    """
    from govtool.render.ingest_plan import FORMATS

    if dry_run:
        return chosen(format, output, FORMATS)
    if format or output:
        raise UsageError(
            "-f and -o need --dry-run",
            code="usage.arguments",
            hint="--dry-run; the format of a log that is read is --from",
        )
    return []


def show_outcome(
    ui: Ui,
    result: IngestResult,
    outputs: Sequence[OutputFile],
    *,
    explain_failures: bool = False,
    keep_literals: bool = True,
    summary: Callable[[IngestResult], str] | None = None,
) -> None:
    """The plan of a dry run, or the outcome of an ingest."""
    if result.plan is None:
        show_ingest(ui, result, explain_failures=explain_failures, keep_literals=keep_literals, summary=summary)
        return
    if explain_failures and not any(file is None and form not in ("table", "plain") for form, file in outputs):
        show_failures(ui, result, keep_literals=keep_literals)
    show_plan(ui, result.plan, outputs)


def show_plan(ui: Ui, plan: IngestPlan, outputs: Sequence[OutputFile]) -> None:
    """The changes that an ingest would make; a table has the first ones, and all of them with ``-v``."""
    from govtool.render.ingest_plan import render

    for form, file in outputs:
        ui.show(render(form, plan.head(bound(None, bool(ui.verbose), form))), file)

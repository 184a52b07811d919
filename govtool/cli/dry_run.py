"""``--dry-run`` of ingests on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from govtool.cli.formats import OutputFile, chosen
from govtool.cli.graph import bound
from govtool.cli.sqlargs import show_failures, show_ingest
from govtool.cli.ui import Ui
from govtool.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from govtool.answers.ingest import IngestResult
    from govtool.answers.ingest_plan import IngestPlan


def plan_outputs(dry_run: bool, format: Sequence[str] | None, output: Sequence[Path] | None) -> list[OutputFile]:
    """Return the renderings of a dry run and their places; none for an ingest.

    Raises:
        UsageError: A format or a file without a dry run, or an unknown format.
    """
    from govtool.render.ingest_plan import FORMATS

    if dry_run:
        return chosen(format, output, FORMATS)
    if format or output:
        raise UsageError("-f and -o are for a dry run", code="usage.arguments", hint="--dry-run")
    return []


def show_outcome(
    ui: Ui,
    result: IngestResult,
    outputs: Sequence[OutputFile],
    *,
    explain_failures: bool = False,
    keep_literals: bool = True,
) -> None:
    """The plan of a dry run, or the outcome of an ingest."""
    if result.plan is None:
        show_ingest(ui, result, explain_failures=explain_failures, keep_literals=keep_literals)
        return
    if explain_failures and not any(file is None and form not in ("table", "plain") for form, file in outputs):
        show_failures(ui, result, keep_literals=keep_literals)
    show_plan(ui, result.plan, outputs)


def show_plan(ui: Ui, plan: IngestPlan, outputs: Sequence[OutputFile]) -> None:
    """The changes that an ingest would make; a table has the first ones, and all of them with ``-v``."""
    from govtool.render.ingest_plan import render

    for form, file in outputs:
        ui.show(render(form, plan.head(bound(None, bool(ui.verbose), form))), file)

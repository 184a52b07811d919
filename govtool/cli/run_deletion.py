"""``govtool whatif delete --run``: its options, and the command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from govtool.cli.shared.formats import chosen
from govtool.cli.shared.graph_arguments import bound
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_OK, EvidenceError, UsageError

OutputsOption = Annotated[
    list[str] | None,
    typer.Option("--outputs", metavar="REL", help="--run: judge REL or NODE/REL@EXECUTION; repeat."),
]
ProgramOption = Annotated[
    str | None,
    typer.Option(
        "--program",
        metavar="WF.py[:NAME]",
        help="With --run: the workflow, if it is not found.",
    ),
]


class RunDeletion(NamedTuple):
    """The options of a deletion in a run."""

    run: str
    mode: str | None
    outputs: list[str] | None
    program: str | None
    format: list[str] | None
    output: list[Path] | None
    limit: int | None
    all: bool
    at: str | None
    branch: str | None
    store: str | None
    all_runs: bool


def delete_in_run(ui: Ui, options: RunDeletion, tokens: list[str], from_: Path | None, *, strict: bool) -> int:
    """Show what deletions make of the rows of a run: one of the arguments, or one a line of a file.

    Raises:
        UsageError: There are no tokens, or both.
        EvidenceError: With ``strict``, something is unknown (``evidence.unclear``).
    """
    from govtool.api.opening import open as open_version
    from govtool.app.records.token_lists import read_deletions
    from govtool.render.run_deletion import FORMATS, answer_lines, render_run_deletion

    formats = chosen(options.format, options.output, FORMATS if from_ is None else ("json",))
    if bool(tokens) == (from_ is not None):
        raise UsageError("name records, or a file with --tokens", code="usage.arguments")
    deletions = [tokens] if from_ is None else read_deletions(str(from_))
    graph = open_version(options.store, ref=options.at, branch=options.branch)
    answers = graph.workflow_deletions(
        options.run,
        deletions,
        mode=options.mode or "auto",
        outputs=options.outputs or (),
        program=options.program,
        all_runs=options.all_runs,
    )
    ui.mark("answer")
    for form, file in formats:
        if from_ is not None:
            ui.show(answer_lines(answers), file)
        else:
            ui.show(render_run_deletion(form, answers[0], bound(options.limit, options.all, form)), file)
    if strict and any(answer.is_unclear() for answer in answers):
        raise EvidenceError("only a new run can decide what becomes of some rows", code="evidence.unclear")
    return EXIT_OK

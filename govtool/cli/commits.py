"""``govtool log``, ``show`` and ``revert``: commits of the store."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.shared.formats import chosen
from govtool.cli.shared.options import (
    AllOption,
    AtOption,
    BranchOption,
    CommitBundle,
    FormatOption,
    LimitOption,
    OutputOption,
    StoreOption,
)
from govtool.cli.shared.ui import Ui
from govtool.render.layout.text import count, printable

_SHOWN = 20


def log(
    ui: Ui,
    limit: LimitOption = None,
    all: AllOption = False,
    format: FormatOption = None,
    output: OutputOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """The commits of the store, newest first.

      govtool log
      govtool log --all --format json

    With -v each commit has its statements understood fully, partly and not at all, and the reasons that cost most.
    """
    from govtool.api.history import log as read_log
    from govtool.render.commits import FORMATS, render_log, render_log_coverage

    outputs = chosen(format, output, FORMATS)
    shown = None if all else _SHOWN if limit is None else limit
    answer = read_log(store, branch=branch, limit=shown, coverage=bool(ui.verbose))
    for form, file in outputs:
        ui.show(render_log(form, answer), file)
        if ui.verbose and form == "table" and file is None and answer.commits:
            ui.write([""])
            ui.show(render_log_coverage(answer))


def show(
    ui: Ui,
    ref: Annotated[
        str,
        typer.Argument(
            metavar="REF|RUN|DATASET@VERSION",
            help="A commit: HEAD~1, a number, an id, a tag or a date. A run: its id, or JOB or JOB~1. A version of a "
            "dataset: orders@3, orders@DIGEST, orders@RUN, orders@latest, orders@2026-11-20.",
        ),
    ] = "HEAD",
    at: AtOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """One commit, one run, or everything that a version of a dataset was made of.

      govtool show
      govtool show lake/orders@2026-11-20 --format json
      govtool show lake/orders@latest --at 2026-11-01

    A commit: what it read and what is live in it. A run: what it read and wrote, with which software and settings. A
    version: the runs and versions that led to it, the nearest first. --at answers from what was known at a commit.
    """
    from govtool.answers.commits import CommitAnswer
    from govtool.answers.runs import RunAnswer
    from govtool.api.opening import open as open_version
    from govtool.render.commits import FORMATS, render_commit
    from govtool.render.runs import render_run, render_version

    outputs = chosen(format, output, FORMATS)
    answer = open_version(store, ref=at, branch=branch).show(None if ref == "HEAD" else ref)
    for form, file in outputs:
        if isinstance(answer, CommitAnswer):
            ui.show(render_commit(form, answer), file)
        elif isinstance(answer, RunAnswer):
            ui.show(render_run(form, answer), file)
        else:
            ui.show(render_version(form, answer), file)


_DEFAULT = CommitBundle()


def revert(
    ui: Ui,
    ref: Annotated[str, typer.Argument(metavar="REF", help="The commit to undo: HEAD, HEAD~2, a number, an id.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Commit nothing; name the sources that would change.")
    ] = False,
    options: CommitBundle = _DEFAULT,
) -> None:
    """Undo a commit: its sources get what they had before it, in a new commit.

      govtool revert HEAD --dry-run
      govtool revert HEAD
      govtool revert 41 --message "wrong dialect"

    Sources that were changed again since are a conflict. Nothing is lost: both commits stay in the log.
    """
    from govtool.api.sources import revert_commit

    result = revert_commit(ref, dry_run=dry_run, **options.keywords())
    commit, undone = result.commit, f"commit {result.undone.seq}"
    if dry_run and result.sources:
        ui.write([f"{undone} ({result.undone.short}) would be undone in: {printable(', '.join(result.sources))}"])
        ui.note("nothing was committed")
        if commit.id == result.undone.id and commit.parent is not None:
            ui.hint("what would change: govtool diff HEAD HEAD~1")
        return
    if not result.created:
        ui.note(f"nothing of {undone} is left at commit {commit.seq} ({commit.short}): nothing to undo")
        return
    ui.note(f"commit {commit.seq} ({commit.short}) undoes {undone} in {count(len(commit.sources), 'source')}")

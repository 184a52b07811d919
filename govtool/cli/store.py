"""``govtool store``: upkeep of the store."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.shared.formats import chosen
from govtool.cli.shared.options import (
    AuthorOption,
    BranchOption,
    FormatOption,
    MessageOption,
    OutputOption,
    StoreOption,
    lines_of,
)
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_EVIDENCE, EXIT_FINDINGS, EXIT_OK, EXIT_STORE
from govtool.render.layout.table import Table
from govtool.render.layout.text import short


def store_compact(ui: Ui, branch: BranchOption = None, author: AuthorOption = None, store: StoreOption = None) -> None:
    """Rewrite the manifest of a branch without dead entries, in a commit that changes nothing else.

    govtool store compact
    govtool store compact --branch redesign
    """
    from govtool.app.project.project import open_store
    from govtool.app.upkeep.store import compact

    result = compact(open_store(store), branch, author)
    commit = result.commit
    if not result.created:
        ui.note(f"{commit.branch}: no dead entries, still at commit {commit.seq} ({short(commit.id)})")
        return
    sizes = commit.summary["compacted"]
    outcome = f"{sizes['before']:,} entries became {sizes['after']:,}" if isinstance(sizes, dict) else "compacted"
    ui.note(f"{commit.branch}: commit {commit.seq} ({short(commit.id)}) · {outcome}")


def store_gc(
    ui: Ui,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be deleted, and delete nothing.")] = False,
    grace: Annotated[
        float,
        typer.Option(
            "--grace", metavar="HOURS", min=0, help="Keep objects younger than this: a running commit may need them."
        ),
    ] = 24.0,
    format: FormatOption = None,
    output: OutputOption = None,
    store: StoreOption = None,
) -> None:
    """Remove objects that killed or beaten writers left behind. Commits, and objects that they refer to, always stay.

    govtool store gc --dry-run
    govtool store gc --grace 48
    """
    from govtool.app.project.project import open_store
    from govtool.app.upkeep.store import collect
    from govtool.render.upkeep import FORMATS, render_gc

    outputs = chosen(format, output, FORMATS)
    opened = open_store(store)
    with ui.progressing("removing") as progress:
        result = collect(opened, hours=grace, dry_run=dry_run, progress=progress)
    for form, file in outputs:
        ui.show(render_gc(form, result, opened.uri, dry_run=dry_run), file)


def store_fsck(
    ui: Ui,
    anchor: Annotated[
        str | None, typer.Option("--anchor", metavar="TEXT", help="The output of an earlier store anchor.")
    ] = None,
    contents: Annotated[
        bool,
        typer.Option("--contents/--no-contents", help="Read and hash every fragment, or only check that it exists."),
    ] = True,
    deep: Annotated[
        bool, typer.Option("--deep", help="Build published indexes again and compare them with the published ones.")
    ] = False,
    ignore_unknown: Annotated[
        bool,
        typer.Option("--ignore-unknown", help="Exit with 0 if all that is unknown is who wrote input versions."),
    ] = False,
    format: FormatOption = None,
    output: OutputOption = None,
    store: StoreOption = None,
) -> int:
    """Check the store: hashes, the chain of commits, gaps, tags, published indexes. Exit code 4 if anything is wrong.

      govtool store fsck
      govtool store fsck --anchor "$(cat anchor.txt)"

    Only an anchor that is kept elsewhere shows that a history was rewritten as a whole, or rolled back. Input
    versions without a known writer are listed, with exit code 3. This is not damage; ingest the run that wrote them.
    --ignore-unknown lists them and exits with 0.
    """
    from govtool.app.project.project import open_store
    from govtool.app.upkeep.store import check, runs_without_values
    from govtool.app.versions.ancestors import unknown_ancestors
    from govtool.render.upkeep import FORMATS, render_fsck

    outputs = chosen(format, output, FORMATS)
    opened = open_store(store)
    with ui.progressing("checking fragments") as progress:
        result = check(opened, anchor=anchor, contents=contents, deep=deep, progress=progress)
    unknown = [] if result.problems else unknown_ancestors(opened)
    forgotten = () if result.problems else runs_without_values(opened)
    for form, file in outputs:
        ui.show(render_fsck(form, result, opened.uri, unknown, forgotten), file)
    if result.problems:
        return EXIT_STORE
    return EXIT_EVIDENCE if unknown and not ignore_unknown else EXIT_OK


def store_anchor(ui: Ui, branch: BranchOption = None, store: StoreOption = None) -> None:
    """Print one line to keep where the store's writers cannot change it, for a later fsck to compare with.

    govtool store anchor > anchor.txt
    govtool store anchor --branch redesign
    """
    from govtool.app.project.project import existing_branch, open_store
    from govtool.app.upkeep.store import anchor_text

    opened = open_store(store)
    ui.write([anchor_text(opened, existing_branch(opened, branch))])


def store_copy(
    ui: Ui,
    target: Annotated[str, typer.Argument(metavar="URI", help="Target: a path or s3://bucket/prefix.")],
    store: StoreOption = None,
) -> None:
    """Copy the whole store, or bring an older copy up to date. All copied objects are verified.

    govtool store copy s3://bucket/lineage
    govtool store copy backup/ --store s3://bucket/lineage
    """
    from govtool.app.project.project import open_store
    from govtool.app.upkeep.store import copy
    from govtool.render.upkeep import copy_sentence

    with ui.progressing("copying") as progress:
        result, uri = copy(open_store(store), target, progress=progress)
    ui.table(Table(columns=(), rows=(), summary=copy_sentence(result, uri)))


def store_repair_clock(
    ui: Ui, branch: BranchOption = None, author: AuthorOption = None, store: StoreOption = None
) -> None:
    """Take over the commits of a clock that was ahead, so that others can commit again.

      govtool store repair-clock
      govtool store repair-clock --branch redesign

    The repair is a commit on top of the last one with a possible time. The later slots stay; govtool show finds them
    by number. This machine's clock must agree with the store's.
    """
    from govtool.app.project.project import open_store
    from govtool.app.upkeep.store import repair_clock

    result = repair_clock(open_store(store), branch, author)
    commit = result.commit
    if result.created:
        ui.note(f"{commit.branch}: commit {commit.seq} ({short(commit.id)}) · {commit.message}")
    else:
        ui.note(f"{commit.branch}: no commit is in the future, still at commit {commit.seq} ({short(commit.id)})")


def store_forget(
    ui: Ui,
    text_file: Annotated[
        str | None,
        typer.Option(
            "--text-file", metavar="FILE", help="Texts to replace by *** in every version, one per line; - is stdin."
        ),
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            metavar="RUN",
            help="Remove the private values and positions of a run's records: an id, an application, or a workflow "
            "or job: its last run; NAME~1 the one before.",
        ),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", metavar="NAME", help="Remove a source from every version, history included."),
    ] = None,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="The reason. It is kept in the store for readers.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be removed, and remove nothing.")] = False,
    message: MessageOption = None,
    author: AuthorOption = None,
    branch: BranchOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    store: StoreOption = None,
) -> int:
    """Remove text that should not be in the store, from every version. It cannot be undone.

      govtool store forget --text-file secrets.txt --dry-run
      govtool store forget --run local-1732/3 --reason "request 81"

    A commit records the removal; all versions are then read without the text. Exit code 1 if commits or tags hold the
    text, as these cannot be changed. Copies that are out of reach are listed.
    """
    from govtool.app.project.project import open_store
    from govtool.app.upkeep.forget import ForgetRequest, forget_text
    from govtool.render.forget import FORMATS, render_forget

    outputs = chosen(format, output, FORMATS)
    opened = open_store(store)
    request = ForgetRequest(
        texts=lines_of(text_file) if text_file else (),
        runs=tuple(run or ()),
        sources=tuple(source or ()),
        reason=reason,
        dry_run=dry_run,
        branch=branch,
        author=author,
        message=message,
    )
    with ui.progressing("reading fragments") as progress:
        answer = forget_text(opened, request, progress)
    for form, file in outputs:
        ui.show(render_forget(form, answer), file)
    return EXIT_FINDINGS if answer.fails() else EXIT_OK

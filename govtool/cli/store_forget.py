"""``govtool store forget``: remove text, a run's private records or a source from every version."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.options import AuthorOption, BranchOption, FormatOption, MessageOption, OutputOption, StoreOption
from govtool.cli.ui import Ui
from govtool.errors import EXIT_FINDINGS, EXIT_OK


def store_forget(
    ui: Ui,
    text_file: Annotated[
        str | None,
        typer.Option(
            "--text-file", metavar="FILE", help="Texts to replace by *** in every version, one a line; - is stdin."
        ),
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option("--run", metavar="RUN", help="Remove the private values and positions of a run's records."),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", metavar="NAME", help="Remove a source from every version, history included."),
    ] = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Kept in the store, for readers.")] = "",
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

    A commit says that something was removed; later and earlier versions are read without it. Exit code 1 if commits or
    tags hold the text: these cannot be changed. Copies that are out of reach are listed.
    """
    from govtool.app.project.project import open_store
    from govtool.app.upkeep.forget import ForgetRequest, forget_text
    from govtool.cli.options import lines_of
    from govtool.render.forget import FORMATS, render_forget

    outputs = chosen(format, output, FORMATS)
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
        answer = forget_text(open_store(store), request, progress)
    for form, file in outputs:
        ui.show(render_forget(form, answer), file)
    return EXIT_FINDINGS if answer.fails() else EXIT_OK

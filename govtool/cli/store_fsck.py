"""``govtool store fsck``: check hashes, the chain, holes; and against an anchor."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.options import FormatOption, OutputOption, StoreOption
from govtool.cli.ui import Ui
from govtool.errors import EXIT_EVIDENCE, EXIT_OK, EXIT_STORE


def store_fsck(
    ui: Ui,
    anchor: Annotated[
        str | None, typer.Option("--anchor", metavar="TEXT", help="The output of an earlier store anchor.")
    ] = None,
    contents: Annotated[
        bool, typer.Option("--contents/--no-contents", help="Read and hash every fragment, or only look for it.")
    ] = True,
    deep: Annotated[
        bool, typer.Option("--deep", help="Build published indexes again and compare them with the published ones.")
    ] = False,
    ignore_unknown: Annotated[
        bool,
        typer.Option("--ignore-unknown", help="Exit with 0 where only the writing of input versions is not known."),
    ] = False,
    format: FormatOption = None,
    output: OutputOption = None,
    store: StoreOption = None,
) -> int:
    """Check the store: hashes, the chain, holes, tags, published indexes. Exit code 4 if anything is wrong.

      govtool store fsck
      govtool store fsck --anchor "$(cat anchor.txt)"

    A history that was rewritten as a whole, or rolled back, is seen only against an anchor kept elsewhere.
    Versions that were read and whose writing is not known are listed, with exit code 3: that is no damage, and ends
    when the writing is ingested. --ignore-unknown lists them and exits with 0.
    """
    from govtool.app.project.project import open_store
    from govtool.app.upkeep.store import check
    from govtool.app.versions.ancestors import unknown_ancestors
    from govtool.render.upkeep import FORMATS, render_fsck

    outputs = chosen(format, output, FORMATS)
    opened = open_store(store)
    with ui.progressing("checking fragments") as progress:
        result = check(opened, anchor=anchor, contents=contents, deep=deep, progress=progress)
    unknown = [] if result.problems else unknown_ancestors(opened)
    for form, file in outputs:
        ui.show(render_fsck(form, result, opened.uri, unknown), file)
    if result.problems:
        return EXIT_STORE
    return EXIT_EVIDENCE if unknown and not ignore_unknown else EXIT_OK

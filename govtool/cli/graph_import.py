"""``govtool graph import``."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.options import AuthorOption, BranchOption, FormatOption, MessageOption, OutputOption, StoreOption
from govtool.cli.ui import Ui


def graph_import(
    ui: Ui,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A graph: JSON, or GraphML by its name.")],
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="What to call it. Default: the file's name.")
    ] = None,
    format: FormatOption = None,
    output: OutputOption = None,
    message: MessageOption = None,
    author: AuthorOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Read a provenance graph into the store and commit; one of the same name is replaced.

      govtool graph import run.json --name dealers

    A file with a cycle, an edge of a missing node, or a wrong type or label is refused, with the line and the reason.
    Formats: table, plain, json, jsonl, csv, markdown.
    """
    from govtool.api.workflow import import_graph
    from govtool.render.workflow import FORMATS, render_workflow

    outputs = chosen(format, output, FORMATS)
    answer = import_graph(file, name=name, store=store, branch=branch, message=message, author=author)
    for form, place in outputs:
        ui.show(render_workflow(form, answer), place)

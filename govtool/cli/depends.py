"""``govtool depends``."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.graph_files import GraphOptions, NodeArgument, graph_command, show_answer
from govtool.cli.ui import Ui
from govtool.errors import EXIT_EVIDENCE, EXIT_FINDINGS, EXIT_OK


@graph_command
def depends(
    ui: Ui,
    options: GraphOptions,
    node: NodeArgument,
    on: Annotated[
        list[str], typer.Option("--on", metavar="TOKEN", help="A record; several are deleted together. Repeatable.")
    ],
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if the node depends on them.")] = False,
) -> int:
    """Show whether a node of a provenance graph would be gone without some records.

      govtool depends n41 --graph dealers --on C2
      govtool depends n41 --graph dealers --on C2 --on C3 --exit-code

    That is necessity: of two alternatives neither is needed alone. Beside it stands the lineage: all records that the
    node comes from. Exit code 3 if only a new run can decide. Formats: table, plain, json, jsonl, csv, markdown.
    """
    answer = options.opened(ui).depends(node, on)
    show_answer(ui, options, answer)
    if answer.depends == "unknown":
        return EXIT_EVIDENCE
    return EXIT_FINDINGS if answer.depends and exit_code else EXIT_OK

"""``govtool path``: how one column reaches another."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.shared.common import selects
from govtool.cli.shared.formats import chosen
from govtool.cli.shared.graph_arguments import ColumnArgument, EvidenceOption, KindOption, SemanticsOption, opened_graph
from govtool.cli.shared.options import (
    AtOption,
    BranchOption,
    FormatOption,
    LimitOption,
    OutputOption,
    PolicyOption,
    StoreOption,
    StrictAnswerOption,
    TodayOption,
)
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_FINDINGS, EXIT_OK


@selects
def path(
    ui: Ui,
    start: ColumnArgument,
    end: ColumnArgument,
    kind: KindOption = None,
    semantics: SemanticsOption = "precise",
    policy: PolicyOption = None,
    today: TodayOption = None,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if there is a path.")] = False,
    strict: StrictAnswerOption = False,
    limit: LimitOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    evidence: EvidenceOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """Find the shortest lineage paths between two columns, hop by hop.

      govtool path crm.users.email mart.audience.email
      govtool path 'class:personal' 'zone:shared' --limit 1

    With several columns at either end, it finds the shortest paths between any two. As a guard in a script:
    --exit-code exits with 1 if there is a path, --strict with 3 if one cannot be excluded.
    """
    from govtool.render.path import FORMATS, render

    outputs = chosen(format, output, FORMATS)
    with opened_graph(ui, store, at, branch) as graph:
        answer = graph.path(
            start, end, kind=kind, semantics=semantics, policy=policy, today=today, limit=limit, evidence=evidence
        )
    ui.mark("path")
    for form, file in outputs:
        ui.show(render(form, answer), file)
    if exit_code and answer.ways:
        return EXIT_FINDINGS
    if strict:
        answer.check_strict()
    return EXIT_OK

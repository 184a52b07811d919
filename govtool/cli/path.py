"""``govtool path``: how one column reaches another."""

from __future__ import annotations

from govtool.cli.formats import chosen
from govtool.cli.graph import ColumnArgument, EvidenceOption, KindOption, SemanticsOption, opened_graph
from govtool.cli.options import (
    AtOption,
    BranchOption,
    FormatOption,
    LimitOption,
    OutputOption,
    StoreOption,
    StrictAnswerOption,
)
from govtool.cli.policyargs import PolicyOption, TodayOption
from govtool.cli.ui import Ui


def path(
    ui: Ui,
    start: ColumnArgument,
    end: ColumnArgument,
    kind: KindOption = None,
    semantics: SemanticsOption = "precise",
    policy: PolicyOption = None,
    today: TodayOption = None,
    strict: StrictAnswerOption = False,
    limit: LimitOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    evidence: EvidenceOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Find the shortest lineage paths between two columns, hop by hop.

      govtool path crm.users.email mart.audience.email
      govtool path 'class:personal' 'zone:shared' --limit 1

    Of several columns on either end, the shortest ways from any to any. Formats: table, plain, json, jsonl, csv,
    markdown.
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
    if strict:
        answer.check_strict()

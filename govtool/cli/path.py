"""``govtool path``: how one column reaches another."""

from __future__ import annotations

from govtool.cli.formats import chosen
from govtool.cli.graph import ColumnArgument, EvidenceOption, KindOption, SemanticsOption, edge_kinds, open_graph
from govtool.cli.options import AtOption, BranchOption, FormatOption, LimitOption, OutputOption, StoreOption
from govtool.cli.policyargs import PolicyOption, TodayOption, today_of
from govtool.cli.ui import Ui

_SHOWN = 5


def path(
    ui: Ui,
    start: ColumnArgument,
    end: ColumnArgument,
    kind: KindOption = None,
    semantics: SemanticsOption = "precise",
    policy: PolicyOption = None,
    today: TodayOption = None,
    limit: LimitOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    evidence: EvidenceOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """How one column reaches another: the shortest ways, hop by hop.

      govtool path crm.users.email mart.audience.email
      govtool path 'class:personal' 'zone:shared' --limit 1

    Of several columns on either end, the shortest ways from any to any. Formats: table, plain, json, jsonl, csv,
    markdown.
    """
    from govtool.app.subjects import Subjects
    from govtool.query.path import paths
    from govtool.render.path import FORMATS, render

    outputs = chosen(format, output, FORMATS)
    kinds = edge_kinds(kind)
    graph = open_graph(ui, store, at, branch, evidence)
    most = _SHOWN if limit is None else limit
    about = Subjects(graph.index, graph.store, graph.commit, policy, today_of(today))
    result = paths(graph.index, about.find(start), about.find(end), most, kinds=kinds, semantics=semantics)
    ui.mark("path")
    for form, file in outputs:
        ui.show(render(form, result, graph.version), file)

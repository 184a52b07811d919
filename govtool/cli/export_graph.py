"""``govtool export graph``: the lineage graph for other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from govtool.cli.formats import chosen
from govtool.cli.graph import opened_graph
from govtool.cli.options import AtOption, BranchOption, FormatOption, OutputOption, StoreOption
from govtool.cli.policyargs import PolicyOption, TodayOption
from govtool.cli.selecting import ExcludeOption, SelectorArgument, selects
from govtool.cli.ui import Ui
from govtool.errors import EXIT_OK

if TYPE_CHECKING:
    from govtool.answers.report import ReportAnswer
    from govtool.report.model import LineageView


@selects
def export_graph(
    ui: Ui,
    selector: SelectorArgument = None,
    exclude: ExcludeOption = None,
    policy: PolicyOption = None,
    today: TodayOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """Write the lineage graph for other tools.

      govtool export graph -o lineage.csv
      govtool export graph 'mart.**' -o mart.graphml
      govtool export graph 'crm.users+' -f mermaid

    Selectors choose datasets, and the edges between them are written; the rows of a dataset are its column *. Formats:
    csv, jsonl and parquet (an edge a row), json (all of it, as report/1), dot, mermaid, graphml, prov-json.
    """
    from govtool.app.questions.columns import PolicyChoice
    from govtool.app.questions.governance import day_of
    from govtool.app.report.graph import graph_view
    from govtool.render.graph_export import FORMATS, PARQUET, parquet, render

    outputs = chosen(format, output, FORMATS)
    with opened_graph(ui, store, at, branch) as graph:
        if any(form == "json" for form, _ in outputs):
            report = graph.report(*selector or (), exclude=exclude, policy=policy, today=today)
            answer: ReportAnswer | LineageView = report
            view = report.graph
        else:  # findings and coverage are in no other format
            rules = PolicyChoice(policy, day_of(today))
            snapshot = graph.snapshot()
            with snapshot.guard:
                answer = view = graph_view(snapshot, rules, selector or (), exclude or ())
    ui.mark("report")
    for form, file in outputs:
        if form == PARQUET:
            ui.write_bytes(parquet(view), file)
        else:
            ui.show(render(form, answer), file)
    return EXIT_OK

"""``govtool explain``: where a column comes from and who reads it."""

from __future__ import annotations

from govtool.cli.formats import chosen
from govtool.cli.graph import ColumnArgument, EvidenceOption, bound, open_graph
from govtool.cli.options import AllOption, AtOption, BranchOption, FormatOption, LimitOption, OutputOption, StoreOption
from govtool.cli.policyargs import PolicyOption, TodayOption, today_of
from govtool.cli.selecting import ExcludeOption
from govtool.cli.ui import Ui


def explain(
    ui: Ui,
    column: ColumnArgument,
    exclude: ExcludeOption = None,
    policy: PolicyOption = None,
    today: TodayOption = None,
    limit: LimitOption = None,
    all: AllOption = False,
    format: FormatOption = None,
    output: OutputOption = None,
    evidence: EvidenceOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Where a column or dataset comes from, who reads it, and what is not known about it.

      govtool explain crm.users.email
      govtool explain 'class:personal' --limit 10

    With -v the statements that define it are shown, without their literals. --limit is for each list of edges, and for
    the columns and datasets of a selector. Formats: table, plain, json, csv, markdown.
    """
    from govtool.app.facts import facts_by_dataset, read_facts
    from govtool.app.subjects import Subjects
    from govtool.query.explain import explain as explain_column
    from govtool.query.select import nothing_selected
    from govtool.render.explain import FORMATS, render, render_many, statements

    outputs = chosen(format, output, FORMATS)
    graph = open_graph(ui, store, at, branch, evidence)
    subjects = Subjects(graph.index, graph.store, graph.commit, policy, today_of(today))
    about = subjects.find(column, exclude or ())
    if not about:
        raise nothing_selected()
    for form, file in outputs:
        most = bound(limit, all, form)
        results = [explain_column(graph.index, one, limit=most) for one in (about if len(about) == 1 else about[:most])]
        if len(about) == 1:
            facts = read_facts(graph.store, graph.commit, results[0].dataset)
            shown = render(form, results[0], graph.version, facts)
        else:
            by_dataset = facts_by_dataset(graph.store, graph.commit, {one.dataset for one in results})
            shown = render_many(form, results, len(about) - len(results), graph.version, by_dataset)
        ui.mark("explain")
        ui.show(shown, file)
        if ui.verbose and form == "table" and file is None:
            for dataset in {one.dataset: one for one in results}.values():
                ui.write(statements(dataset))

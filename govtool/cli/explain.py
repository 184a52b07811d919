"""``govtool explain``: where a column comes from and who reads it."""

from __future__ import annotations

from govtool.cli.formats import chosen
from govtool.cli.graph import ColumnArgument, EvidenceOption, bound, open_graph
from govtool.cli.options import AllOption, AtOption, BranchOption, FormatOption, LimitOption, OutputOption, StoreOption
from govtool.cli.ui import Ui


def explain(
    ui: Ui,
    column: ColumnArgument,
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
      govtool explain mart.audience --format json

    With -v the statements that define it are shown, without their literals.
    """
    from govtool.app.facts import read_facts
    from govtool.query.explain import explain as ask
    from govtool.render.explain import FORMATS, render, statements

    outputs = chosen(format, output, FORMATS)
    graph = open_graph(ui, store, at, branch, evidence)
    for form, file in outputs:
        result = ask(graph.index, column, limit=bound(limit, all, form))
        facts = read_facts(graph.store, graph.commit, result.dataset)
        ui.mark("explain")
        ui.show(render(form, result, graph.version, facts), file)
        if ui.verbose and form == "table" and file is None:
            ui.write(statements(result))

"""``govtool explain``: where a column comes from and who reads it."""

from __future__ import annotations

from govtool.cli.shared.common import ExcludeOption, selects
from govtool.cli.shared.graph_arguments import ColumnArgument, EvidenceOption, note_stale, opened_graph
from govtool.cli.shared.options import ListOptions, PolicyOption, TodayOption
from govtool.cli.shared.ui import Ui

_DEFAULT = ListOptions()


@selects
def explain(
    ui: Ui,
    column: ColumnArgument,
    exclude: ExcludeOption = None,
    policy: PolicyOption = None,
    today: TodayOption = None,
    evidence: EvidenceOption = None,
    options: ListOptions = _DEFAULT,
) -> None:
    """Show the sources and readers of a column or dataset, and what is not known about it.

      govtool explain crm.users.email
      govtool explain 'class:personal' --limit 10

    With -v the statements that define it are shown, without their literals. --limit is for each list of edges, and for
    the columns and datasets of a selector.
    """
    from govtool.render.explain import FORMATS, render, statements

    outputs = options.outputs(FORMATS)
    with opened_graph(ui, options.store, options.at, options.branch) as graph:
        # A limit bounds each of the lists, so a shorter answer is no head of a longer one.
        bounds = dict.fromkeys(options.bound(form) for form, _ in outputs)
        answers = {
            most: graph.explain(column, exclude=exclude, policy=policy, today=today, limit=most, evidence=evidence)
            for most in bounds
        }
        note_stale(ui, graph, {file for answer in answers.values() for file in answer.files()})
    ui.mark("explain")
    for form, file in outputs:
        answer = answers[options.bound(form)]
        ui.show(render(form, answer), file)
        if ui.verbose and form == "table" and file is None:
            for one in {subject.explanation.dataset: subject.explanation for subject in answer.subjects}.values():
                ui.write(statements(one))

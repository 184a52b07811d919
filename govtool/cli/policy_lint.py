"""``govtool policy lint``: what is suspicious about policies."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.graph import open_graph
from govtool.cli.options import AtOption, BranchOption, FormatOption, OutputOption, StoreOption
from govtool.cli.policyargs import PolicyOption, TodayOption
from govtool.cli.ui import Ui
from govtool.errors import EXIT_FINDINGS, EXIT_OK, StoreError, UsageError


def policy_lint(
    ui: Ui,
    policy: PolicyOption = None,
    fail_on: Annotated[
        str, typer.Option("--fail-on", metavar="warning|note|none", help="Exit with 1 at warning or note; none: never.")
    ] = "none",
    today: TodayOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """Check policies themselves: mistakes, and rules and patterns that match nothing.

      govtool policy lint
      govtool policy lint --policy policies/privacy.yml --fail-on warning

    With a store, patterns and zones are looked up in its graph; without one, only the files are read.
    """
    from govtool.answers.answer import at_least
    from govtool.answers.check import SEVERITIES
    from govtool.app.project.project import commit_at, read_store
    from govtool.app.questions.governance import day_of
    from govtool.app.questions.policy import lint, load_policies, stated_facts
    from govtool.render.policy import FORMATS, remarks

    outputs = chosen(format, output, FORMATS)
    worst = at_least(fail_on, SEVERITIES, "severity")  # a wrong one is reported before anything is read
    policies, day = load_policies(policy), day_of(today)
    index, tool_facts = None, []
    try:
        reader = read_store(store)
        commit = commit_at(reader, at, branch)
    except (StoreError, UsageError) as error:
        if store or at or branch:
            raise
        ui.note(f"not looked up in a graph: {error.message}")
    else:
        index, tool_facts = open_graph(ui, store, at, branch).index, stated_facts(reader, commit)
    found = lint(policies, index, day, tool_facts)
    for form, file in outputs:
        ui.show(remarks(form, found, len(policies.rules)), file)
    return EXIT_FINDINGS if any(remark.severity in worst for remark in found) else EXIT_OK


policy_lint.spellings = {"--strict": "--fail-on=warning"}  # type: ignore[attr-defined]  # the former name

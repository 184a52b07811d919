"""``govtool policy lint``: what is suspicious about policies."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.graph import open_graph
from govtool.cli.options import AtOption, BranchOption, FormatOption, OutputOption, StoreOption
from govtool.cli.policyargs import PolicyOption, TodayOption, today_of
from govtool.cli.ui import Ui
from govtool.errors import EXIT_FINDINGS, EXIT_OK, StoreError, UsageError


def policy_lint(
    ui: Ui,
    policy: PolicyOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if there is any warning.")] = False,
    today: TodayOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """Check policies themselves: mistakes, and rules and patterns that match nothing.

      govtool policy lint
      govtool policy lint --policy policies/privacy.yml --strict

    With a store, patterns and zones are looked up in its graph; without one, only the files are read.
    """
    from govtool.app.policy import lint, load_policies, stated_facts
    from govtool.app.project import commit_at, read_store
    from govtool.render.policy import FORMATS, remarks

    outputs = chosen(format, output, FORMATS)
    policies, day = load_policies(policy), today_of(today)
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
    return EXIT_FINDINGS if strict and any(r.severity == "warning" for r in found) else EXIT_OK

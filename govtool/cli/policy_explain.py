"""``govtool policy explain``: rules in words."""

from __future__ import annotations

import difflib
from typing import Annotated

import typer

from govtool.cli.policyargs import PolicyOption
from govtool.cli.ui import Ui
from govtool.errors import EXIT_OK, UnknownNameError


def policy_explain(
    ui: Ui,
    rule: Annotated[
        list[str] | None, typer.Argument(metavar="[RULE]…", help="Rules by their id; all by default.")
    ] = None,
    policy: PolicyOption = None,
) -> int:
    """Say in words what rules mean, what they accept, and what is waived.

    govtool policy explain
    govtool policy explain PII001 --policy pack:starter
    """
    from govtool.app.questions.policy import load_policies
    from govtool.render.policy import explanation

    policies = load_policies(policy)
    known = {placed.value.id: placed for placed in policies.rules}
    for name in rule or ():
        if name not in known:
            raise UnknownNameError(
                f"no rule {name}",
                code="usage.unknown-rule",
                nearest=tuple(difflib.get_close_matches(name, known)),
                hint="govtool policy explain",
            )
    ui.show(explanation(policies, [known[name] for name in rule or known]))
    return EXIT_OK

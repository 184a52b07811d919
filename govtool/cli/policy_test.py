"""``govtool policy test``: the tests beside the rules."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.options import FormatOption, OutputOption
from govtool.cli.policyargs import PolicyOption, TodayOption
from govtool.cli.ui import Ui
from govtool.errors import EXIT_FINDINGS, EXIT_OK, UsageError

FORMATS = ("table", "plain", "json")


def policy_test(
    ui: Ui,
    policy: PolicyOption = None,
    match: Annotated[str | None, typer.Option("--match", "-k", metavar="TEXT", help="Only tests named so.")] = None,
    today: TodayOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
) -> int:
    """Run the tests beside the rules: given a schema and SQL, expect findings.

      govtool policy test
      govtool policy test --policy pack:gdpr -k hash

    Every violated rule of severity error must be expected; warnings and unknowns count where they are named.
    """
    from govtool.app.questions.governance import day_of
    from govtool.app.questions.policy import load_policies, nearest_tests, run_tests
    from govtool.render.policy import tests

    outputs = chosen(format, output, FORMATS)
    policies = load_policies(policy)
    outcomes = run_tests(policies, day_of(today), match)
    if match and not outcomes:
        raise UsageError(
            f"no test is named so: {match[:80]!r}",
            code="policy.no-tests",
            nearest=nearest_tests(policies, match),
            hint="govtool policy test runs them all",
        )
    for form, file in outputs:
        ui.show(tests(form, outcomes), file)
    if not outcomes:
        ui.note("the policies have no tests; see tests: in docs/policies.md")
    return EXIT_OK if all(outcome.passed for outcome in outcomes) else EXIT_FINDINGS

"""``govtool policy``: validate, test and explain policy files."""

from __future__ import annotations

import difflib
from typing import Annotated

import typer

from govtool.cli.shared.formats import chosen
from govtool.cli.shared.graph_arguments import open_graph
from govtool.cli.shared.options import (
    AtOption,
    BranchOption,
    FormatOption,
    OutputOption,
    PolicyOption,
    StoreOption,
    TodayOption,
)
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_FINDINGS, EXIT_OK, EXIT_USAGE, StoreError, UnknownNameError, UsageError


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
    Mistakes that check refuses are errors: exit code 2.
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
        if store or at or branch or error.code == "usage.untrusted-store":
            raise
        ui.note(f"not looked up in a graph: {error.message}")
    else:
        index, tool_facts = open_graph(ui, store, at, branch).index, stated_facts(reader, commit)
    found = lint(policies, index, day, tool_facts)
    for form, file in outputs:
        ui.show(remarks(form, found, len(policies.rules)), file)
    if any(remark.severity == "error" for remark in found):
        return EXIT_USAGE
    return EXIT_FINDINGS if any(remark.severity in worst for remark in found) else EXIT_OK


policy_lint.spellings = {"--strict": "--fail-on=warning"}  # type: ignore[attr-defined]  # the former name


TEST_FORMATS = ("table", "plain", "json")


def policy_test(
    ui: Ui,
    policy: PolicyOption = None,
    match: Annotated[
        str | None, typer.Option("--match", "-k", metavar="TEXT", help="Run only tests whose name contains this.")
    ] = None,
    today: TodayOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
) -> int:
    """Run the tests beside the rules: given a schema and SQL, expect findings.

      govtool policy test
      govtool policy test --policy pack:gdpr -k hash

    Every violated rule of severity error must be expected; warnings and unknowns count only if they are listed.
    """
    from govtool.app.questions.governance import day_of
    from govtool.app.questions.policy import load_policies, nearest_tests, run_tests
    from govtool.render.policy import tests

    outputs = chosen(format, output, TEST_FORMATS)
    policies = load_policies(policy)
    outcomes = run_tests(policies, day_of(today), match)
    if match and not outcomes:
        raise UsageError(
            f"no test has this in its name: {match[:80]!r}",
            code="policy.no-tests",
            nearest=nearest_tests(policies, match),
            hint="govtool policy test runs them all",
        )
    for form, file in outputs:
        ui.show(tests(form, outcomes), file)
    if not outcomes:
        ui.note("the policies have no tests; see tests: in docs/policies.md")
    return EXIT_OK if all(outcome.passed for outcome in outcomes) else EXIT_FINDINGS


def policy_explain(
    ui: Ui,
    rule: Annotated[
        list[str] | None, typer.Argument(metavar="[RULE]…", help="Rules by their id; all by default.")
    ] = None,
    policy: PolicyOption = None,
) -> int:
    """Describe rules in words, with what they accept and what is waived.

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


def policy_schema(ui: Ui) -> int:
    """Print the JSON Schema of policy files.

      govtool policy schema > policy.schema.json
      govtool policy schema | jq .properties

    Editors check and complete policies with it: # yaml-language-server: $schema=policy.schema.json
    """
    from govtool.policy.files.model import json_schema
    from govtool.render.formats.envelope import json_lines

    ui.show(json_lines(json_schema()))
    return EXIT_OK

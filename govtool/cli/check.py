"""``govtool check``: whether the graph keeps to the policies."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.evidence import check_coverage
from govtool.cli.formats import chosen
from govtool.cli.graph import SHOWN
from govtool.cli.options import (
    AllOption,
    AtOption,
    BranchOption,
    DialectOption,
    FormatOption,
    LimitOption,
    MinCoverageOption,
    OutputOption,
    SchemaOption,
    StoreOption,
)
from govtool.cli.policyargs import PolicyOption, TodayOption, governed, today_of
from govtool.cli.ui import Ui
from govtool.errors import EXIT_FINDINGS, EXIT_OK, UnknownNameError, UsageError

if TYPE_CHECKING:
    from govtool.policy.check import CheckResult
    from govtool.render.answer import GraphVersion

_FAIL_ON = ("none", "error", "warning", "note")


def check(
    ui: Ui,
    policy: PolicyOption = None,
    base: Annotated[
        str | None,
        typer.Option("--base", metavar="REF", help="Judge only what has come since: a branch, a tag, HEAD~1, a date."),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", metavar="FILE", help="Findings in this file are accepted.")
    ] = None,
    update_baseline: Annotated[
        Path | None,
        typer.Option(
            "--update-baseline", metavar="FILE", help="Write the findings to a file, to accept them from now."
        ),
    ] = None,
    fail_on: Annotated[
        str,
        typer.Option("--fail-on", metavar="SEVERITY", help="Exit with 1 at error, warning or note; none: never."),
    ] = "error",
    strict: Annotated[bool, typer.Option("--strict", help="What could not be told counts as violated.")] = False,
    today: TodayOption = None,
    sql: Annotated[
        list[str] | None,
        typer.Option("--sql", metavar="PATH", help="Check these SQL files and folders, without a store. Repeatable."),
    ] = None,
    dialect: DialectOption = None,
    schema: SchemaOption = None,
    root: Annotated[
        str,
        typer.Option(
            "--root",
            metavar="FOLDER",
            help="The ingested folder in the repository, for sarif and github. Default: the files are looked for.",
        ),
    ] = "",
    min_coverage: MinCoverageOption = None,
    limit: LimitOption = None,
    all: AllOption = False,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """Whether the graph keeps to the policies.

      govtool check
      govtool check --policy pack:gdpr --base main --format github -o check.sarif
      govtool check --sql etl --dialect snowflake

    Policies are read from policies/ below the working directory, or from --policy. Formats: table, plain, json,
    jsonl, sarif, junit, github, markdown; several at once with -o.
    """
    from govtool.app.checkout import checkout, files_of
    from govtool.app.policy import failing, load_policies
    from govtool.policy.baseline import accepted, baseline_object, read_baseline
    from govtool.policy.check import check as judge
    from govtool.render.check import FORMATS, render
    from govtool.render.envelope import json_lines

    if fail_on not in _FAIL_ON:
        near = tuple(difflib.get_close_matches(fail_on, _FAIL_ON))
        raise UnknownNameError(
            f"no severity {fail_on}", code="usage.unknown-severity", nearest=near, hint=f"one of {', '.join(_FAIL_ON)}"
        )
    outputs = chosen(*_with_sarif(format, output), FORMATS)
    day = today_of(today)
    if sql and (store or base or at or branch):
        raise UsageError("--sql is without a store", code="usage.arguments", hint="leave out --store, --base, --at")
    policies = load_policies(policy)
    known = frozenset[str]() if baseline is None else read_baseline(baseline)
    ui.mark("load the policies")
    with ExitStack() as stack:
        if sql:
            store = stack.enter_context(_only(ui, sql, dialect, schema))
        graph, head = governed(ui, policies, day, store, at, branch, need_zones=True)
        before = None if base is None else governed(ui, policies, day, store, base, branch)[1]
        result = judge(head, day, before)
        ui.mark("check")
        if known:
            from dataclasses import replace

            result = replace(result, findings=accepted(result.findings, known))
        if update_baseline is not None:
            ui.write(json_lines(baseline_object(result.findings)), update_baseline)
        placed = any(form in ("sarif", "github") for form, _ in outputs)
        where = checkout(files_of(result.findings) if placed else (), root)
        for form, file in outputs:
            short = form in ("table", "plain", "markdown") and not all
            most = (SHOWN if limit is None else limit) if short else None
            ui.show(render(form, result, graph.version, strict=strict, where=where, limit=most), file)
            if form == "github":
                _step_summary(result, graph.version, strict)
        check_coverage(graph.version.coverage, strict=False, min_coverage=min_coverage)
        return EXIT_FINDINGS if failing(result, fail_on, strict=strict) else EXIT_OK


@contextmanager
def _only(ui: Ui, paths: list[str], dialect: str | None, schema: list[Path] | None) -> Iterator[str]:
    """A store with some SQL alone."""
    from govtool.app.throwaway import throwaway_store
    from govtool.cli.sqlargs import build_request, show_diagnostics

    request = build_request(
        paths,
        dialect=dialect,
        schema=schema,
        default_catalog=None,
        default_schema=None,
        relation_from=None,
        var=None,
    )
    with throwaway_store(request) as (uri, result):
        show_diagnostics(ui, result.diagnostics, result.text)
        ui.mark("read the SQL")
        yield uri


def _with_sarif(formats: list[str] | None, files: list[Path] | None) -> tuple[list[str] | None, list[Path] | None]:
    """``--format github -o check.sarif`` shows the one and writes the other: the name says what the file is."""
    if formats and files and len(formats) == len(files) and formats[-1] != "sarif" and files[-1].suffix == ".sarif":
        return [*formats, "sarif"], files
    return formats, files


def _step_summary(result: CheckResult, version: GraphVersion, strict: bool) -> None:
    """Append the Markdown to the summary of the job, where GitHub says which file that is."""
    from govtool.render.check import markdown

    place = os.environ.get("GITHUB_STEP_SUMMARY")
    if place:
        with Path(place).open("a", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in markdown(result, version, strict=strict, limit=SHOWN))

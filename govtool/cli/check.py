"""``govtool check``: whether the graph keeps to the policies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.shared.formats import chosen
from govtool.cli.shared.graph_arguments import SHOWN, opened_graph
from govtool.cli.shared.options import (
    AllOption,
    AtOption,
    BranchOption,
    DialectOption,
    FormatOption,
    LimitOption,
    MinCoverageOption,
    OutputOption,
    PolicyOption,
    SchemaOption,
    StoreOption,
    TodayOption,
)
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_FINDINGS, EXIT_OK, UsageError

if TYPE_CHECKING:
    from govtool.answers.check import CheckAnswer


def check(
    ui: Ui,
    policy: PolicyOption = None,
    base: Annotated[
        str | None,
        typer.Option("--base", metavar="REF", help="Judge only changes since a branch, a tag, HEAD~1 or a date."),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", metavar="FILE", help="Findings in this file are accepted.")
    ] = None,
    update_baseline: Annotated[
        Path | None,
        typer.Option(
            "--update-baseline", metavar="FILE", help="Write the findings to a file. They are accepted from now on."
        ),
    ] = None,
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on", metavar="error|warning|note|none", help="Exit with 1 at error, warning or note; none: never."
        ),
    ] = "error",
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Treat unknown verdicts as violations; exit with 3 if a statement was not understood.",
        ),
    ] = False,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="Measure the smallest groups of recorded outputs, for evidence: [measured]. No JVM starts.",
        ),
    ] = False,
    verify_index: Annotated[
        bool,
        typer.Option("--verify-index", help="Build the index again. Exit with 4 if the published one differs."),
    ] = False,
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
    """Check the lineage graph against your policies.

      govtool check
      govtool check --policy pack:gdpr --base main --format github -o check.sarif
      govtool check --sql etl --dialect snowflake

    Policies are read from policies/ below the working directory, or from --policy. Of several formats
    at once the first is shown, the others go to -o FILE.
    """
    from govtool.answers.answer import at_least
    from govtool.answers.check import SEVERITIES
    from govtool.app.project.checkout import checkout, files_of
    from govtool.app.questions.policy import load_policies
    from govtool.render.check import FORMATS, render

    at_least(fail_on, SEVERITIES, "severity")  # a wrong one is reported before anything is checked
    outputs = chosen(*_with_sarif(format, output), FORMATS)
    if sql and (store or base or at or branch):
        raise UsageError("--sql works without a store", code="usage.arguments", hint="leave out --store, --base, --at")
    with ExitStack() as stack:
        if sql:
            load_policies(policy)  # a mistake in them does not wait for the SQL
            store = stack.enter_context(_only(ui, sql, dialect, schema))
        with opened_graph(ui, store, at, branch) as graph:
            answer = graph.check(
                policy=policy,
                base=base,
                baseline=baseline,
                today=today,
                strict=strict,
                measure=measure,
                verify_index=verify_index,
            )
        ui.mark("check")
        accepting = answer if update_baseline is None else _accepting(ui, answer, update_baseline)
        placed = any(form in ("sarif", "github") for form, _ in outputs)
        where = checkout(files_of(answer.findings) if placed else (), root)
        for form, file in outputs:
            short = form in ("table", "plain", "markdown") and not all
            most = (SHOWN if limit is None else limit) if short else None
            ui.show(render(form, answer, where=where, limit=most), file)
            if form == "github":
                _step_summary(answer)
        accepting.check_coverage(min_coverage=min_coverage)
        if accepting.fails(fail_on):
            return EXIT_FINDINGS
        if strict:
            accepting.check_strict()
        return EXIT_OK


@contextmanager
def _only(ui: Ui, paths: list[str], dialect: str | None, schema: list[Path] | None) -> Iterator[str]:
    """A store with some SQL alone."""
    from govtool.app.lineage.throwaway import throwaway_store
    from govtool.app.project.requests import sql_request
    from govtool.cli.shared.diagnostics import show_diagnostics

    request = sql_request(paths, dialect=dialect, schema=schema)
    with throwaway_store(request) as (uri, result):
        show_diagnostics(ui, result.diagnostics, result.text)
        ui.mark("read the SQL")
        yield uri


def _with_sarif(formats: list[str] | None, files: list[Path] | None) -> tuple[list[str] | None, list[Path] | None]:
    """``--format github -o check.sarif`` shows the one and writes the other: the name says what the file is."""
    if formats and files and len(formats) == len(files) and formats[-1] != "sarif" and files[-1].suffix == ".sarif":
        return [*formats, "sarif"], files
    return formats, files


def _accepting(ui: Ui, answer: CheckAnswer, file: Path) -> CheckAnswer:
    """Write the baseline of an answer, and say so; the answer as that baseline leaves it."""
    from govtool.render.formats.envelope import json_lines
    from govtool.render.layout.text import count

    ui.write(json_lines(answer.baseline()), file)
    after = answer.with_baseline()
    number = sum(finding.accepted for finding in after.findings)
    failed = sum(finding.failed for finding in answer.findings)
    left = f"; {count(failed, 'finding')} of rules that failed cannot be accepted" if failed else ""
    ui.note(f"wrote {file}: {count(number, 'finding')} accepted{left}")
    return after


def _step_summary(answer: CheckAnswer) -> None:
    """Append the Markdown to the summary of the job, where GitHub says which file that is."""
    from govtool.render.check import markdown

    place = os.environ.get("GITHUB_STEP_SUMMARY")
    if place:
        with Path(place).open("a", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in markdown(answer, limit=SHOWN))

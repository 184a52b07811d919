"""``govtool whatif``: what a change would do, to many columns at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.common import ExcludeOption, selects
from govtool.cli.complete import complete_selector
from govtool.cli.formats import OutputFile
from govtool.cli.graph import opened_graph
from govtool.cli.graph_files import (
    FromOption,
    GraphOptions,
    GraphRunOption,
    InGraphOption,
    delete_in_graph,
    graph_name,
)
from govtool.cli.options import (
    ListOptions,
    PolicyOption,
    StrictAnswerOption,
    TodayOption,
)
from govtool.cli.rowquery import (
    KeyOption,
    ModeOption,
    QueryDialectOption,
    RowQuery,
    WhatIfDataOption,
    WhatIfSqlOption,
    delete_in_query,
)
from govtool.cli.run_deletion import OutputsOption, ProgramOption, RunDeletion, delete_in_run
from govtool.cli.ui import Ui
from govtool.errors import EXIT_FINDINGS, EXIT_OK, UsageError

if TYPE_CHECKING:
    from govtool.answers.whatif import WhatIfAnswer

SubjectArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="SELECTOR…",
        autocompletion=complete_selector,
        help="Columns and datasets: crm.users.email, 'mart.**', class:personal … See govtool ls --help.",
    ),
]
FailOnOption = Annotated[
    str,
    typer.Option(
        "--fail-on",
        metavar="lost|breaks|unknown|changes|rows|passes",
        help="Exit with 1 if any finding has this verdict or a worse one.",
    ),
]
ToOption = Annotated[str | None, typer.Option("--to", metavar="NEW", help="The new name or type.")]


@dataclass(frozen=True, slots=True)
class WhatIfOptions(ListOptions):
    """Options of every what-if, beside its change."""

    exclude: ExcludeOption = None
    policy: PolicyOption = None
    today: TodayOption = None
    fail_on: FailOnOption = "none"
    strict: StrictAnswerOption = False


def answer(ui: Ui, action: str, selector: list[str], options: WhatIfOptions, *, to: str | None = None) -> int:
    """Ask and show."""
    outputs = outputs_of(options)
    if action in ("rename", "retype") and to is None:
        raise _no_target(action, selector)
    with opened_graph(ui, options.store, options.at, options.branch) as graph:
        found = graph.whatif(
            action, *selector, to=to, exclude=options.exclude, policy=options.policy, today=options.today
        )
    return show(ui, found, outputs, options)


def outputs_of(options: WhatIfOptions) -> list[OutputFile]:
    """Return the outputs; a wrong format or verdict is reported before anything is read.

    Raises:
        UnknownNameError: There is no such verdict (``usage.unknown-verdict``), or no such format.
    """
    from govtool.answers.answer import at_least
    from govtool.query.whatif import VERDICTS
    from govtool.render.whatif import FORMATS

    at_least(options.fail_on, VERDICTS, "verdict")
    return options.outputs(FORMATS)


def show(ui: Ui, found: WhatIfAnswer, outputs: list[OutputFile], options: WhatIfOptions) -> int:
    """Write an answer to its outputs, and return the exit code."""
    from govtool.render.whatif import render

    ui.mark("whatif")
    options.show(ui, outputs, render, found)
    if found.fails(options.fail_on):
        return EXIT_FINDINGS
    if options.strict:
        found.check_strict()
    return EXIT_OK


def _no_target(action: str, selector: list[str]) -> UsageError:
    """The error about a change to nothing; the last of several words is likely what was meant."""
    words = [*selector[:-1], "--to", selector[-1]] if len(selector) > 1 else [*selector, "--to", "NEW"]
    what = "name" if action == "rename" else "type"
    return UsageError(
        f"the new {what} is missing", code="usage.arguments", hint=" ".join(("govtool whatif", action, *words))
    )


_OPTIONS = WhatIfOptions()


@selects
def whatif_drop(
    ui: Ui,
    selector: SubjectArgument,
    options: WhatIfOptions = _OPTIONS,
) -> int:
    """Show what breaks if columns or datasets are dropped.

      govtool whatif drop crm.users.email crm.users.phone
      govtool whatif drop 'stg.**' --exclude stg.users --format markdown

    Statements that name a dropped column break in all their outputs, and so does whatever reads those.
    Formats: table, plain, json, jsonl, csv, markdown.
    """
    return answer(ui, "drop", selector, options)


@selects
def whatif_rename(
    ui: Ui,
    selector: SubjectArgument,
    to: ToOption = None,
    options: WhatIfOptions = _OPTIONS,
) -> int:
    """Show what breaks if a column or dataset is renamed.

      govtool whatif rename crm.users.email --to mail
      govtool whatif rename stg.users --to stg.people -f json

    The first statement to name it breaks; beyond it everything passes.
    Formats: table, plain, json, jsonl, csv, markdown.
    """
    return answer(ui, "rename", selector, options, to=to)


@selects
def whatif_retype(
    ui: Ui,
    selector: SubjectArgument,
    to: ToOption = None,
    options: WhatIfOptions = _OPTIONS,
) -> int:
    """Show what breaks or changes if columns get another type.

      govtool whatif retype shop.orders.total --to text
      govtool whatif retype 'shop.orders.*_at' --to date

    Only what is provably incompatible breaks.
    Formats: table, plain, json, jsonl, csv, markdown.
    """
    return answer(ui, "retype", selector, options, to=to)


@selects
def whatif_mask(
    ui: Ui,
    selector: SubjectArgument,
    options: WhatIfOptions = _OPTIONS,
) -> int:
    """Show what changes if columns hold masked values from now on.

      govtool whatif mask crm.users.email
      govtool whatif mask class:personal.contact --policy pack:gdpr

    What is made of them changes, what they decide over is rows; and which findings of policies end.
    Formats: table, plain, json, jsonl, csv, markdown.
    """
    return answer(ui, "mask", selector, options)


def _changes(name: str, metavar: str, text: str) -> object:
    return typer.Option(f"--{name}", metavar=metavar, autocompletion=complete_selector, help=f"{text} Repeatable.")


DropOption = Annotated[list[str] | None, _changes("drop", "SELECTOR", "Columns and datasets to drop.")]
RenameOption = Annotated[list[str] | None, _changes("rename", "COLUMN=NEW", "A column or dataset, and its new name.")]
RetypeOption = Annotated[list[str] | None, _changes("retype", "COLUMN=TYPE", "A column, and its new type.")]
MaskOption = Annotated[list[str] | None, _changes("mask", "SELECTOR", "Columns to hold masked values.")]
DeleteOption = Annotated[list[str] | None, _changes("delete", "SELECTOR", "Columns and datasets whose data goes.")]


@selects
def whatif_several(
    ui: Ui,
    drop: DropOption = None,
    rename: RenameOption = None,
    retype: RetypeOption = None,
    mask: MaskOption = None,
    delete: DeleteOption = None,
    options: WhatIfOptions = _OPTIONS,
) -> int:
    """Show what changes of several kinds do together.

      govtool whatif --drop crm.users.phone --rename crm.users.email=mail

    Each column has the worst verdict that any of the changes gives it.
    Formats: table, plain, json, jsonl, csv, markdown.
    """
    outputs = outputs_of(options)
    with opened_graph(ui, options.store, options.at, options.branch) as graph:
        found = graph.whatif_several(
            drop=drop,
            rename=rename,
            retype=retype,
            mask=mask,
            delete=delete,
            exclude=options.exclude,
            policy=options.policy,
            today=options.today,
        )
    return show(ui, found, outputs, options)


@selects
def whatif_delete(
    ui: Ui,
    selector: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SELECTOR…|TOKEN…",
            autocompletion=complete_selector,
            help="Columns and datasets: crm.users.email, 'mart.**' … With --run, --graph or --sql, tokens of records.",
        ),
    ] = None,
    graph: InGraphOption = None,
    run: GraphRunOption = None,
    from_: FromOption = None,
    sql: WhatIfSqlOption = None,
    data: WhatIfDataOption = None,
    mode: ModeOption = None,
    outputs: OutputsOption = None,
    program: ProgramOption = None,
    key: KeyOption = None,
    dialect: QueryDialectOption = "spark",
    options: WhatIfOptions = _OPTIONS,
) -> int:
    """Show what changes or loses its last source if data is deleted.

      govtool whatif delete crm.users
      govtool whatif delete crm.users.email stg.legacy -f json
      govtool whatif delete C2 --graph dealers
      govtool whatif delete o17 --sql query.sql --data tables/
      govtool whatif delete TOKEN --run dealers --outputs BestBid

    A UNION survives the loss of one arm, a join does not; a loop that only feeds itself dies. In a provenance graph,
    nodes are deleted or recomputed, or unknown where only a new run can decide; see docs/workflow.md. Of a query over
    files, and of what a workflow run wrote, each row is deleted, kept, recomputed or unknown, and rows appear; see
    docs/why.md and docs/workflows.md.
    Formats: table, plain, json, jsonl, csv, markdown.
    """
    of_columns = {
        "--fail-on": options.fail_on != "none",
        "--policy": options.policy,
        "--exclude": options.exclude,
        "--today": options.today,
    }
    place = (options.format, options.output, options.limit, options.all)
    version = (options.at, options.branch, options.store)
    if run is not None and graph is None:
        _refuse({"--sql": sql, "--data": data, "--key": key, **of_columns}, "a run")
        deletion = RunDeletion(run, mode, outputs, program, *place, *version)
        return delete_in_run(ui, deletion, selector or [], from_, strict=options.strict)
    _refuse({"--outputs": outputs, "--program": program}, "a deletion without --run")
    if graph is not None:
        _refuse({"--sql": sql, "--data": data, "--key": key}, "a graph")
        _refuse_replay(mode)
        stored = GraphOptions(graph_name(graph, run), *place, *version)
        return delete_in_graph(ui, stored, selector or [], from_, strict=options.strict, fail_on=options.fail_on)
    if sql is not None:
        for name in (name for name, value in of_columns.items() if value):
            raise UsageError(f"{name} is for columns, not for records", code="usage.arguments", hint="--strict")
        query = RowQuery(sql, data, mode, key, dialect, *place)
        return delete_in_query(ui, query, selector or [], from_, strict=options.strict)
    if not selector:
        raise UsageError("no column or dataset is named", code="usage.arguments", hint="govtool whatif delete --help")
    if from_ is not None:
        raise UsageError("--tokens is for the records of a --graph or of --sql", code="usage.arguments")
    return answer(ui, "delete", selector, options)


def _refuse(given: Mapping[str, object], what: str) -> None:
    """Refuse options that are for something else.

    Raises:
        UsageError: ``usage.arguments``.
    """
    for name in (name for name, value in given.items() if value):
        raise UsageError(f"{name} is not for {what}", code="usage.arguments", hint="govtool whatif delete --help")


def _refuse_replay(mode: str | None) -> None:
    if mode not in (None, "auto", "propagate"):
        raise UsageError(
            f"a graph is not run again: no mode {mode}",
            code="usage.arguments",
            hint="--mode propagate; what only a new run can decide is unknown",
        )


whatif_delete.spellings = {"--from": "--tokens"}  # type: ignore[attr-defined]  # the former name
